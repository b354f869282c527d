//! What a step does to the world.

use solocron::lock::Record;
use solocron::lock::rules::EARLY_TOLERANCE;

use super::events::Event;
use super::setup::{Faults, LEASE_BASE};
use super::trace::{self, note};
use super::world::{Ctx, Mode, Pause, World};

/// How many versions of the record a rollback may go back.
const PAST_MAX: usize = 2;

impl World {
    /// The world after one step.
    pub fn apply(&self, ctx: &Ctx, event: Event) -> Self {
        let mut next = self.clone();
        next.step(ctx, event);
        next.check_leases(ctx);
        next
    }

    fn step(&mut self, ctx: &Ctx, event: Event) {
        match event {
            Event::Advance => self.advance(ctx),
            Event::Deliver(index) => {
                let msg = self.msgs.swap_remove(usize::from(index));
                self.deliver(ctx, msg);
            }
            Event::Timer(i) => self.on_timer(ctx, usize::from(i)),
            Event::Start(i, variant) => self.start(ctx, usize::from(i), usize::from(variant)),
            Event::CommandEnds(i) => self.command_over(ctx, usize::from(i)),
            Event::Slow(index) => {
                self.fault(|left| &mut left.slow);
                let msg = &mut self.msgs[usize::from(index)];
                msg.held = Some(self.now);
                note(|| format!("held up: {}", trace::message(msg)));
            }
            Event::Twice(index) => {
                self.fault(|left| &mut left.twice);
                let mut copy = self.msgs[usize::from(index)].clone();
                copy.held = Some(self.now);
                note(|| format!("will arrive twice: {}", trace::message(&copy)));
                self.msgs.push(copy);
            }
            Event::Crash(i) => {
                self.fault(|left| &mut left.crash);
                note(|| format!("{} dies, its command with it", trace::name(i.into())));
                self.gone(usize::from(i));
            }
            Event::Pause(i, with_command) => {
                self.fault(|left| &mut left.pause);
                let pause = if with_command {
                    Pause::WithCommand
                } else {
                    Pause::Alone
                };
                note(|| format!("{} is paused: {pause:?}", trace::name(i.into())));
                self.insts[usize::from(i)].paused = Some(pause);
            }
            Event::Resume(i) => {
                note(|| format!("{} runs again", trace::name(i.into())));
                self.resume(ctx, usize::from(i));
            }
            Event::Cut(i) => {
                self.fault(|left| &mut left.cut);
                note(|| format!("{} is cut off from the store", trace::name(i.into())));
                let i = usize::from(i);
                self.insts[i].cut = true;
                self.msgs.retain(|msg| msg.inst != i || msg.held.is_some());
            }
            Event::Mend(i) => {
                note(|| format!("{} reaches the store again", trace::name(i.into())));
                self.insts[usize::from(i)].cut = false;
            }
            Event::StopSignal(i) => {
                self.fault(|left| &mut left.stop);
                note(|| format!("{} is told to stop", trace::name(i.into())));
                self.on_stop_signal(ctx, usize::from(i));
            }
            Event::Wipe => {
                self.fault(|left| &mut left.wipe);
                note(|| "the store loses the record".to_owned());
                self.lose_record(None, true);
            }
            Event::SetBack => {
                self.fault(|left| &mut left.back);
                note(|| format!("the store's clock is set back by {} ms", ctx.setup.set_back));
                self.back += ctx.setup.set_back;
            }
            Event::Rollback(back) => {
                self.fault(|left| &mut left.rollback);
                let old = self.past[usize::from(back)].clone();
                note(|| format!("the store goes back to {}", trace::record(old.as_ref())));
                self.lose_record(old, false);
            }
        }
    }

    fn fault(&mut self, kind: impl FnOnce(&mut Faults) -> &mut u8) {
        self.left.total -= 1;
        *kind(&mut self.left) -= 1;
    }

    /// On to the next moment at which anything can happen.
    fn advance(&mut self, ctx: &Ctx) {
        let mut next = ctx.setup.end;
        for i in 0..self.insts.len() {
            if self.insts[i].paused.is_none() {
                next = next.min(self.timer(ctx, i).unwrap_or(next));
                next = next.min(self.ends_at(i).unwrap_or(next));
            }
        }
        let any_time = (self.may_fail(ctx) && self.left.stop > 0)
            || self.msgs.iter().any(|msg| msg.held.is_some())
            || self.insts.iter().any(|inst| inst.paused.is_some());
        if any_time {
            next = next.min((self.now / ctx.setup.step + 1) * ctx.setup.step);
        }
        self.notice_leases(ctx, next);
        self.now = next;
        self.msgs.retain(|msg| {
            msg.held
                .is_none_or(|since| since + ctx.setup.max_age > next)
        });
    }

    /// Whether a lease stands in the way is known when a firing falls due by
    /// the store's clock, or a little before. (A loss moves it by a
    /// millisecond.)
    fn notice_leases(&mut self, ctx: &Ctx, next: u64) {
        let from = self.store_time().lease_ms - 2;
        let to = self.store_time_at(next).lease_ms;
        for k in 0..ctx.setup.firings.len() {
            let at = LEASE_BASE + i64::try_from(ctx.setup.firings[k]).unwrap();
            let other = self.ghost.lease_for != Some(k);
            let held = self.ghost.lease_end > at - EARLY_TOLERANCE;
            if from < at && at <= to && held && other {
                self.ghost.held[k] = true;
            }
        }
    }

    fn lose_record(&mut self, record: Option<Record>, wipe: bool) {
        let was = self.record.as_ref().and_then(|record| record.owner);
        self.losses += 1;
        let since = Some(self.store_time().lease_ms);
        for inst in &mut self.insts {
            match &inst.mode {
                Mode::Holding(_) => inst.shaken = since,
                Mode::Claiming(claiming) if Some(claiming.owner) == was => inst.shaken = since,
                _ => {}
            }
        }
        for k in 0..self.ghost.grants.len() {
            let lost = self.ghost.grants[k] > 0;
            if wipe {
                self.ghost.wiped[k] |= lost;
            } else {
                self.ghost.rolled[k] |= lost;
            }
        }
        self.ghost.freed.clear();
        self.past.clear();
        self.record = record;
    }

    pub fn write(&mut self, record: Option<Record>) {
        if self.left.rollback > 0 && self.left.total > 0 && self.record != record {
            self.past.insert(0, self.record.clone());
            self.past.truncate(PAST_MAX);
        } else {
            self.past.clear();
        }
        self.record = record;
    }
}
