//! What can happen next.

use super::world::{Cmd, Ctx, Mode, Msg, World};

/// One step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Advance,
    Deliver(u8),
    Timer(u8),
    Start(u8, u8),
    CommandEnds(u8),
    Slow(u8),
    Twice(u8),
    Crash(u8),
    Pause(u8, bool),
    Resume(u8),
    StopSignal(u8),
    Cut(u8),
    Mend(u8),
    Wipe,
    Rollback(u8),
    SetBack,
}

impl World {
    /// Every step that can come next.
    ///
    /// What an instance does by itself does not depend on what the others do
    /// at the same moment: one order of it is enough. For the same reason an
    /// instance dies only just before it would do something, a message is held
    /// up only just before it would be the next to arrive, and the store loses
    /// something only just before it is asked.
    pub fn events(&self, ctx: &Ctx) -> Vec<Event> {
        let mut events = Vec::new();
        if self.broken.is_some() || self.now >= ctx.setup.end {
            return events;
        }
        for i in 0..self.insts.len() {
            self.local_events(ctx, i, &mut events);
            if !events.is_empty() {
                self.faults_of(ctx, i, &mut events);
                return events;
            }
        }
        let mut first = None;
        for (index, msg) in self.msgs.iter().enumerate() {
            if !msg.body.is_reply() && msg.held.is_none() {
                first = first.or(Some(index));
                events.push(Event::Deliver(u8::try_from(index).unwrap()));
            }
        }
        if let Some(index) = first {
            self.faults_of_message(ctx, index, &mut events);
        } else {
            events.push(Event::Advance);
            for i in 0..self.insts.len() {
                self.stop_signal(ctx, i, &mut events);
            }
        }
        self.at_any_time(&mut events);
        let asked = self.msgs.iter().any(|msg| !msg.body.is_reply());
        if asked && self.may_fail(ctx) {
            self.faults_of_store(&mut events);
        }
        events
    }

    fn at_any_time(&self, events: &mut Vec<Event>) {
        for (index, msg) in self.msgs.iter().enumerate() {
            if msg.held.is_some() && (!msg.body.is_reply() || self.insts[msg.inst].paused.is_none())
            {
                events.push(Event::Deliver(u8::try_from(index).unwrap()));
            }
        }
        for i in 0..self.insts.len() {
            if self.insts[i].paused.is_some() {
                events.push(Event::Resume(u8::try_from(i).unwrap()));
            }
        }
    }

    fn local_events(&self, ctx: &Ctx, i: usize, events: &mut Vec<Event>) {
        let inst = &self.insts[i];
        if inst.paused.is_some() || matches!(inst.mode, Mode::Gone) {
            return;
        }
        let number = u8::try_from(i).unwrap();
        let reply = |msg: &Msg| msg.inst == i && msg.body.is_reply() && msg.held.is_none();
        for (index, _) in self.msgs.iter().enumerate().filter(|(_, msg)| reply(msg)) {
            events.push(Event::Deliver(u8::try_from(index).unwrap()));
            if events.len() == 1 {
                self.faults_of_message(ctx, index, events);
            }
        }
        if self.timer(ctx, i).is_some_and(|at| at <= self.now) {
            events.push(Event::Timer(number));
        }
        if self.ends_at(i).is_some_and(|at| at <= self.now) {
            events.push(Event::CommandEnds(number));
        }
        if let Mode::Holding(holding) = &inst.mode
            && holding.cmd == Cmd::NotStarted
            && holding.holder.may_start(self.boot(ctx, i))
        {
            for variant in 0..ctx.setup.commands.len() {
                events.push(Event::Start(number, u8::try_from(variant).unwrap()));
            }
        }
    }

    pub const fn may_fail(&self, ctx: &Ctx) -> bool {
        self.left.total > 0 && self.now < ctx.setup.faults_until
    }

    fn faults_of_message(&self, ctx: &Ctx, index: usize, events: &mut Vec<Event>) {
        let msg = &self.msgs[index];
        if !self.may_fail(ctx) {
            return;
        }
        let number = u8::try_from(index).unwrap();
        if self.left.slow > 0 {
            events.push(Event::Slow(number));
        }
        if self.left.twice > 0 && !msg.body.is_reply() {
            events.push(Event::Twice(number));
        }
        if self.left.cut > 0 && !self.insts[msg.inst].cut {
            events.push(Event::Cut(u8::try_from(msg.inst).unwrap()));
        }
        if !msg.body.is_reply() {
            self.stop_signal(ctx, msg.inst, events);
        }
    }

    fn faults_of(&self, ctx: &Ctx, i: usize, events: &mut Vec<Event>) {
        let inst = &self.insts[i];
        let number = u8::try_from(i).unwrap();
        if inst.cut {
            events.push(Event::Mend(number));
        }
        if !self.may_fail(ctx) || matches!(inst.mode, Mode::Idle) {
            return;
        }
        if self.left.crash > 0 {
            events.push(Event::Crash(number));
        }
        if self.left.pause > 0 {
            events.push(Event::Pause(number, false));
            if matches!(&inst.mode, Mode::Holding(h) if h.cmd != Cmd::NotStarted) {
                events.push(Event::Pause(number, true));
            }
        }
        self.stop_signal(ctx, i, events);
    }

    fn stop_signal(&self, ctx: &Ctx, i: usize, events: &mut Vec<Event>) {
        let inst = &self.insts[i];
        let busy = matches!(inst.mode, Mode::Claiming(_) | Mode::Holding(_));
        let may = self.may_fail(ctx) && self.left.stop > 0;
        if may && busy && inst.paused.is_none() && !inst.leaving {
            events.push(Event::StopSignal(u8::try_from(i).unwrap()));
        }
    }

    fn faults_of_store(&self, events: &mut Vec<Event>) {
        if self.left.wipe > 0 && self.record.is_some() {
            events.push(Event::Wipe);
        }
        if self.left.back > 0 {
            events.push(Event::SetBack);
        }
        if self.left.rollback > 0 {
            for back in 0..self.past.len() {
                events.push(Event::Rollback(u8::try_from(back).unwrap()));
            }
        }
    }
}
