//! The promises, each in the words in which it is given, with its limits.

use solocron::lock::rules::UNSURE_AFTER;
use solocron::lock::{OnLockLost, Overlap};

use super::setup::{BASE, LEASE_BASE, Role};
use super::trace;
use super::world::{Cmd, Ctx, Holding, Mode, Pause, World};

const ONE_START: &str = "one start per firing: a scheduled instant is started at most once among all \
                         instances that share a lock name";
const ONCE_PER: &str = "once-per: at most one start in the period among all hosts";
const NO_OVERLAP: &str = "no overlap: two commands under one lock name never run at the same time";
const STOPPED_BEFORE: &str = "the command is stopped before anyone else may start: its process group is \
                              stopped before the lease can lapse in the store";
const NOBODY_NEEDED: &str = "nobody is needed: every firing later than the dead holder's lease runs on \
                             another";
const NO_ZOMBIE: &str = "no instance ever gives up or stays as a zombie";
const RERUN_STARTS: &str =
    "on-runner-lost rerun: a firing whose runner died is started again elsewhere";

impl World {
    /// Called when the command of `i` has started.
    pub fn check_start(&mut self, ctx: &Ctx, i: usize) {
        let Mode::Holding(holding) = &self.insts[i].mode else {
            return;
        };
        let grant = holding.grant;
        if let Some(k) = holding.firing {
            self.ghost.starts[k] += 1;
            self.ghost.runner[k] = Some(i);
            let late = grant.started - Self::firing_ms(ctx, k);
            let deadline = i64::try_from(ctx.setup.start_deadline).unwrap();
            // Under queue the deadline counts from the end of the last run or
            // lease.
            let late_after_run = match ctx.setup.hosts[i].role {
                Role::Schedule {
                    overlap: Overlap::Queue,
                    ..
                } => {
                    let lapsed = BASE + (self.ghost.lease_end - LEASE_BASE);
                    late.min(grant.started - self.ghost.freed_at.max(lapsed))
                }
                _ => late,
            };
            // Only the store losing its record or its last writes can break
            // this: after a wipe for claims less than 2 s late, after a
            // rollback within the start deadline.
            let forgotten = (self.ghost.wiped[k] && late <= UNSURE_AFTER)
                || (self.ghost.rolled[k] && late_after_run <= deadline);
            if self.ghost.starts[k] > 1 && !forgotten {
                if ctx.setup.one_start() {
                    self.break_promise(ONE_START);
                } else if self.ghost.ended[k] && !self.ghost.wiped[k] && !self.ghost.rolled[k] {
                    self.break_promise(format!("{ONE_START}: it had ended by itself"));
                }
            }
        }
        if matches!(ctx.setup.hosts[i].role, Role::Once { per: Some(_), .. }) {
            self.ghost.once += 1;
            if self.ghost.once > 1 && self.losses == 0 {
                self.break_promise(ONCE_PER);
            }
        }
        self.check_overlap(ctx, i);
    }

    /// Called when the command of `i` begins to run or runs on.
    pub fn check_overlap(&mut self, ctx: &Ctx, i: usize) {
        for j in 0..self.insts.len() {
            if j == i || !self.runs(j) || self.excused(ctx, j) || self.excused(ctx, i) {
                continue;
            }
            self.break_promise(format!(
                "{NO_OVERLAP}: {} and {}",
                trace::name(i),
                trace::name(j)
            ));
        }
    }

    fn holding(&self, i: usize) -> Option<&Holding> {
        match &self.insts[i].mode {
            Mode::Holding(holding) => Some(holding),
            _ => None,
        }
    }

    /// Whether the command of `i` executes at this moment.
    fn runs(&self, i: usize) -> bool {
        self.insts[i].paused != Some(Pause::WithCommand)
            && self
                .holding(i)
                .is_some_and(|holding| matches!(holding.cmd, Cmd::Running { .. }))
    }

    /// The limits of the promise: the process is frozen for longer than the
    /// rest of its lease; the store lost its record, until the holder's next
    /// heartbeat stops one; `--on-lock-lost continue`.
    fn excused(&self, ctx: &Ctx, i: usize) -> bool {
        let inst = &self.insts[i];
        self.holding(i).is_some_and(|holding| {
            let over = self.boot(ctx, i) >= holding.holder.valid_until();
            let runs_on =
                ctx.setup.on_lost == OnLockLost::Continue && holding.holder.lost().is_some();
            inst.shaken.is_some() || runs_on || (inst.paused.is_some() && over)
        })
    }

    /// While a command runs the store knows that it holds the lock.
    pub fn check_leases(&mut self, ctx: &Ctx) {
        if ctx.setup.on_lost == OnLockLost::Continue {
            return;
        }
        for i in 0..self.insts.len() {
            if let Some(owner) = self.holding(i).map(|holding| holding.owner)
                && self.runs(i)
                && !self.excused(ctx, i)
                && !self.holds(owner)
            {
                self.break_promise(format!("{STOPPED_BEFORE}: {}", trace::name(i)));
            }
        }
    }

    /// Called where nothing follows.
    pub fn check_end(&mut self, ctx: &Ctx) {
        if self.now < ctx.setup.end {
            self.break_promise(NO_ZOMBIE);
        }
        let alive = |world: &Self, i: usize| {
            world.insts[i].paused.is_none() && !matches!(world.insts[i].mode, Mode::Gone)
        };
        if !(0..self.insts.len()).any(|i| alive(self, i)) {
            return;
        }
        for &k in &ctx.setup.must_start {
            if self.ghost.starts[k] == 0 && !self.ghost.held[k] {
                self.break_promise(format!("{NOBODY_NEEDED}: firing {k}"));
            }
        }
        if !ctx.setup.must_rerun {
            return;
        }
        for k in 0..ctx.setup.firings.len() {
            let died =
                self.ghost.runner[k].is_some_and(|i| matches!(self.insts[i].mode, Mode::Gone));
            if died && !self.ghost.finished[k] && self.ghost.grants[k] < 3 {
                self.break_promise(format!("{RERUN_STARTS}: firing {k}"));
            }
        }
    }
}
