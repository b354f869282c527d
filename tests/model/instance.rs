//! An instance's side of the world: the production claimant and holder, and
//! the loop around them.

use std::time::Duration;

use solocron::lock::rules::Outcome;
use solocron::lock::{
    Action, BeatReply, ClaimReply, Claimant, Grant, Holder, Next, OnRunnerLost, Owner, Patience,
    Verdict,
};

use super::requests::{beat_of, claim_of, free_of, give_up};
use super::setup::{CLAIM_TIMEOUT, Role};
use super::trace::{self, note};
use super::world::{Ask, Body, Claiming, Cmd, Ctx, Holding, Mode, Msg, World};

impl World {
    pub fn on_timer(&mut self, ctx: &Ctx, i: usize) {
        let boot = self.boot(ctx, i);
        let due = self.newest_due(ctx, i);
        match self.insts[i].mode.clone() {
            Mode::Gone => {}
            Mode::Idle => self.begin_claim(ctx, i, due),
            Mode::Claiming(claiming) if due.is_some() => {
                self.end_claim(ctx, i, &claiming);
                self.begin_claim(ctx, i, due);
            }
            Mode::Claiming(mut claiming) => match claiming.ask {
                Ask::Sent { .. } => {
                    note(|| format!("{} gives up on its request", trace::name(i)));
                    claiming.unsettled = true;
                    let next = claiming.claimant.on_failure(false, boot);
                    self.go_on(ctx, i, claiming, boot, next);
                }
                Ask::At(_) => self.ask(ctx, i, claiming),
            },
            Mode::Holding(mut holding) => {
                if holding.holder.wake_at().is_some_and(|at| at <= boot) {
                    let actions = holding.holder.on_time(boot);
                    self.obey(ctx, i, holding, actions);
                } else if let Some((sent, timeout)) = holding.beat
                    && timeout <= boot
                {
                    note(|| format!("{} gives up on its heartbeat", trace::name(i)));
                    holding.beat = None;
                    let actions = holding.holder.on_beat(sent, None, boot);
                    self.obey(ctx, i, holding, actions);
                }
            }
        }
    }

    /// The newest firing that is due by the instance's own clock and that it
    /// has not dealt with.
    fn newest_due(&self, ctx: &Ctx, i: usize) -> Option<usize> {
        let host = ctx.setup.hosts[i];
        let next = self.insts[i].next;
        match host.role {
            Role::Once { at, .. } => (next == 0 && at <= self.now).then_some(0),
            Role::Schedule { .. } => {
                let wall = i64::try_from(self.now).unwrap() + host.skew;
                let due = |k: &usize| i64::try_from(ctx.setup.firings[*k]).unwrap() <= wall;
                (next..ctx.setup.firings.len()).rfind(due)
            }
        }
    }

    fn begin_claim(&mut self, ctx: &Ctx, i: usize, due: Option<usize>) {
        let Some(k) = due else { return };
        let now = self.boot(ctx, i);
        let host = ctx.setup.hosts[i];
        let inst = &mut self.insts[i];
        inst.next = k + 1;
        inst.mode = Mode::Idle;
        let deadline = Duration::from_millis(ctx.setup.start_deadline);
        let (firing, patience) = match host.role {
            Role::Once { wait, .. } => (None, Patience::Once(wait)),
            Role::Schedule {
                overlap,
                on_runner_lost,
            } => {
                let wall = i64::try_from(self.now).unwrap() + host.skew;
                let late = wall - i64::try_from(ctx.setup.firings[k]).unwrap();
                let late = Duration::from_millis(u64::try_from(late).unwrap());
                let Some(left) = deadline.checked_sub(late) else {
                    return;
                };
                let patience = Patience::Firing {
                    overlap,
                    on_runner_lost,
                    start_deadline: deadline,
                    left,
                };
                (Some(k), patience)
            }
        };
        inst.claims += 1;
        inst.shaken = None;
        let owner = Owner(u128::try_from((i + 1) * 10).unwrap() + u128::from(inst.claims));
        let claiming = Claiming {
            firing,
            owner,
            claimant: Claimant::new(patience, now),
            ask: Ask::At(now),
            unsettled: false,
        };
        self.ask(ctx, i, claiming);
    }

    fn ask(&mut self, ctx: &Ctx, i: usize, mut claiming: Claiming) {
        let at = self.boot(ctx, i);
        let claim = claim_of(ctx, i, &claiming);
        note(|| {
            format!(
                "{} claims {:?} as {}",
                trace::name(i),
                claiming.firing,
                claim.owner.0
            )
        });
        self.send(ctx, i, Body::Claim(claim));
        claiming.ask = Ask::Sent {
            at,
            timeout: at + Duration::from_millis(CLAIM_TIMEOUT),
        };
        self.insts[i].mode = Mode::Claiming(claiming);
    }

    /// What the claimant decided about the request written at `sent`.
    fn go_on(&mut self, ctx: &Ctx, i: usize, mut claiming: Claiming, sent: Duration, next: Next) {
        match next {
            Next::Ask(at) => {
                claiming.ask = Ask::At(at);
                self.insts[i].mode = Mode::Claiming(claiming);
            }
            Next::End(refusal) => {
                note(|| format!("{} leaves it: {refusal:?}", trace::name(i)));
                self.end_claim(ctx, i, &claiming);
            }
            Next::Start(grant) => self.begin_holding(ctx, i, &claiming, sent, &grant),
        }
    }

    fn begin_holding(
        &mut self,
        ctx: &Ctx,
        i: usize,
        claiming: &Claiming,
        sent: Duration,
        grant: &Grant,
    ) {
        let now = self.boot(ctx, i);
        let from = ctx.rules.lease_from(sent, now);
        let holder = Holder::new(ctx.setup.timing(), ctx.setup.on_lost, grant, from);
        let holding = Holding {
            firing: claiming.firing,
            owner: claiming.owner,
            grant: *grant,
            holder,
            beat: None,
            cmd: Cmd::NotStarted,
            stopped: false,
        };
        self.keep(ctx, i, holding);
    }

    /// Goes on holding: where too little is left to start, a heartbeat first.
    fn keep(&mut self, ctx: &Ctx, i: usize, mut holding: Holding) {
        let now = self.boot(ctx, i);
        if holding.cmd == Cmd::NotStarted && !holding.holder.may_start(now) {
            holding.holder.beat_now(now);
        }
        self.insts[i].mode = Mode::Holding(holding);
    }

    /// Leaves a claim, and has it forgotten if it might still be granted.
    fn end_claim(&mut self, ctx: &Ctx, i: usize, claiming: &Claiming) {
        self.insts[i].mode = Mode::Idle;
        if claiming.unsettled || matches!(claiming.ask, Ask::Sent { .. }) {
            self.insts[i]
                .given_up
                .push((claiming.owner, claiming.firing));
            let free = give_up(claiming.owner);
            self.send(ctx, i, Body::Free(free));
        }
    }

    pub fn on_reply(&mut self, ctx: &Ctx, msg: Msg) {
        match msg.body {
            Body::Claimed(owner, reply) => self.on_claimed(ctx, msg.inst, owner, msg.sent, &reply),
            Body::Beaten(owner, reply) => self.on_beaten(ctx, msg.inst, owner, msg.sent, &reply),
            _ => {}
        }
    }

    fn on_claimed(
        &mut self,
        ctx: &Ctx,
        i: usize,
        owner: Owner,
        sent: Duration,
        reply: &ClaimReply,
    ) {
        let now = self.boot(ctx, i);
        match self.insts[i].mode.clone() {
            Mode::Claiming(mut claiming) if claiming.owner == owner => {
                let current = matches!(claiming.ask, Ask::Sent { at, .. } if at == sent);
                if current || ctx.setup.late_replies {
                    if current {
                        claiming.ask = Ask::At(now);
                    }
                    let next = claiming.claimant.on_reply(reply, now, 0);
                    self.go_on(ctx, i, claiming, sent, next);
                }
            }
            Mode::Gone => {}
            _ => {
                let given_up = &self.insts[i].given_up;
                let claim = given_up.iter().find(|(given_up, _)| *given_up == owner);
                if let (Some((_, firing)), Verdict::Granted(grant)) = (claim, reply.verdict) {
                    let firing = *firing;
                    let mark = grant.mark;
                    let free = free_of(ctx, i, owner, firing, &grant, mark, Outcome::NotStarted);
                    self.send(ctx, i, Body::Free(free));
                }
            }
        }
    }

    fn on_beaten(&mut self, ctx: &Ctx, i: usize, owner: Owner, sent: Duration, reply: &BeatReply) {
        let now = self.boot(ctx, i);
        let Mode::Holding(mut holding) = self.insts[i].mode.clone() else {
            return;
        };
        if holding.owner != owner {
            return;
        }
        let current = holding.beat.is_some_and(|(at, _)| at == sent);
        if !current && !ctx.setup.late_replies {
            return;
        }
        if current {
            holding.beat = None;
        }
        let since = self.insts[i].shaken;
        if reply.held.is_ok() && since.is_some_and(|since| reply.now.lease_ms >= since) {
            self.insts[i].shaken = None;
        }
        let actions = holding
            .holder
            .on_beat(ctx.rules.lease_from(sent, now), Some(reply), now);
        self.obey(ctx, i, holding, actions);
    }

    fn obey(&mut self, ctx: &Ctx, i: usize, mut holding: Holding, actions: Vec<Action>) {
        let now = self.boot(ctx, i);
        for action in ctx.rules.obey(actions) {
            note(|| format!("{} does {action:?}", trace::name(i)));
            let started = holding.cmd != Cmd::NotStarted;
            match (action, holding.cmd) {
                (Action::Beat, _) => {
                    let timeout = now + ctx.setup.timing().beat_timeout;
                    holding.beat = Some((now, timeout));
                    self.send(ctx, i, Body::Beat(beat_of(ctx, i, &holding)));
                }
                (Action::Stop(_) | Action::RunOn(_), _) if !started => {
                    self.finish(ctx, i, &holding, Outcome::NotStarted);
                    return;
                }
                (
                    Action::Stop(_),
                    Cmd::Running {
                        stubborn: false, ..
                    },
                )
                | (Action::Kill, _) => {
                    holding.stopped = true;
                    self.insts[i].mode = Mode::Holding(holding);
                    self.command_over(ctx, i);
                    return;
                }
                (Action::Stop(_), _) => holding.stopped = true,
                (Action::Freeze, Cmd::Running { ends, stubborn }) => {
                    holding.cmd = Cmd::Halted { ends, stubborn };
                }
                (Action::Thaw, Cmd::Halted { ends, stubborn }) => {
                    holding.cmd = Cmd::Running { ends, stubborn };
                    self.insts[i].mode = Mode::Holding(holding.clone());
                    self.check_overlap(ctx, i);
                }
                _ => {}
            }
        }
        self.keep(ctx, i, holding);
    }

    pub fn start(&mut self, ctx: &Ctx, i: usize, variant: usize) {
        let command = ctx.setup.commands[variant];
        let now = self.now;
        let Mode::Holding(holding) = &mut self.insts[i].mode else {
            return;
        };
        holding.cmd = Cmd::Running {
            ends: command.takes.map(|takes| now + takes),
            stubborn: command.stubborn,
        };
        note(|| format!("{} starts the command: {command:?}", trace::name(i)));
        self.check_start(ctx, i);
    }

    /// The command is reaped: free, then the next firing.
    pub fn command_over(&mut self, ctx: &Ctx, i: usize) {
        let Mode::Holding(holding) = self.insts[i].mode.clone() else {
            return;
        };
        let reruns = matches!(
            ctx.setup.hosts[i].role,
            Role::Schedule {
                on_runner_lost: OnRunnerLost::Rerun,
                ..
            }
        );
        if let (false, Some(k)) = (holding.stopped, holding.firing) {
            self.ghost.finished[k] = true;
        }
        let outcome = match (holding.stopped, reruns) {
            (false, _) => Outcome::Done,
            (true, false) => Outcome::Failed,
            (true, true) => Outcome::Rerun,
        };
        self.finish(ctx, i, &holding, outcome);
    }

    fn finish(&mut self, ctx: &Ctx, i: usize, holding: &Holding, outcome: Outcome) {
        note(|| format!("{} has ended: {outcome:?}", trace::name(i)));
        let mark = holding.holder.mark_told();
        let free = free_of(
            ctx,
            i,
            holding.owner,
            holding.firing,
            &holding.grant,
            mark,
            outcome,
        );
        self.send(ctx, i, Body::Free(free));
        self.insts[i].shaken = None;
        self.insts[i].mode = Mode::Idle;
        if self.insts[i].leaving {
            self.gone(i);
        }
    }

    /// Ends an instance; replies to it arrive nowhere.
    pub fn gone(&mut self, i: usize) {
        self.insts[i].mode = Mode::Gone;
        self.insts[i].paused = None;
        self.msgs
            .retain(|msg| msg.inst != i || !msg.body.is_reply());
    }

    /// Runs again after a pause: time comes first, then what has arrived.
    pub fn resume(&mut self, ctx: &Ctx, i: usize) {
        self.insts[i].paused = None;
        if let Mode::Holding(mut holding) = self.insts[i].mode.clone() {
            let actions = holding.holder.on_time(self.boot(ctx, i));
            self.obey(ctx, i, holding, actions);
        }
    }

    pub fn on_stop_signal(&mut self, ctx: &Ctx, i: usize) {
        self.insts[i].leaving = true;
        match self.insts[i].mode.clone() {
            Mode::Idle | Mode::Gone => self.gone(i),
            Mode::Claiming(claiming) => {
                self.end_claim(ctx, i, &claiming);
                self.gone(i);
            }
            Mode::Holding(mut holding) => match holding.cmd {
                Cmd::NotStarted => self.finish(ctx, i, &holding, Outcome::NotStarted),
                Cmd::Running { stubborn: true, .. } | Cmd::Halted { .. } => {}
                Cmd::Running { .. } => {
                    holding.stopped = true;
                    self.insts[i].mode = Mode::Holding(holding);
                    self.command_over(ctx, i);
                }
            },
        }
    }
}
