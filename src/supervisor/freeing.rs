//! The end of a run: what is told of it to the store, which frees the lock.

use std::cell::Cell;
use std::time::Duration;

use super::{End, Run};
use crate::event::{Event, StopCause};
use crate::firing::{FREE_TIMEOUT, Granted, sleep_until};
use crate::lock::rules::Outcome;
use crate::lock::{Boot, EndedRun, Free, FreeReply, Loss, Lost, Ms, OnRunnerLost};

/// From a failed try to free the lock to the next; it doubles up to
/// [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(100);
/// The longest pause between two tries.
const RETRY_MAX: Duration = Duration::from_millis(500);

/// What a schedule and its run tell each other of firings that fall due behind
/// the run.
#[derive(Debug, Default)]
pub struct Behind {
    spent: Cell<Ms>,
    closed: Cell<bool>,
}

impl Behind {
    /// A firing fell due that is not to be started any more; heartbeats and the
    /// freeing tell the store. False when the run has ended and only its lock is
    /// not free yet: the firing is for whoever has the lock next.
    #[must_use]
    pub fn spend(&self, firing: Ms) -> bool {
        if self.is_closed() {
            return false;
        }
        self.spent.set(self.spent.get().max(firing));
        true
    }

    /// The clock was set back to this instant: what was spent and lies ahead
    /// comes again in its time.
    pub fn forget_after(&self, now: Ms) {
        self.spent.set(self.spent.get().min(now));
    }

    /// Whether the run has ended and only its lock is not free yet.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// A run begins.
    pub(super) fn open(&self) {
        self.closed.set(false);
    }

    /// The last firing that was spent.
    pub(super) const fn spent(&self) -> Ms {
        self.spent.get()
    }
}

impl Run<'_> {
    /// Frees the lock, which changes nothing about the run's result.
    ///
    /// Should the store not answer, it is asked again: for [`FREE_TIMEOUT`]
    /// where somebody waits for solocron to exit, and until the lease is over
    /// by itself in a schedule, which would hold up all instances meanwhile.
    pub(super) async fn free(&mut self, end: &End) {
        self.behind.closed.set(true);
        let free = self.free_request(end);
        let mut until = self.free_until();
        let mut pause = RETRY_MIN;
        loop {
            let left = until.saturating_sub(self.job.clock.boot());
            let answer = self.job.store.free(&free, left.min(FREE_TIMEOUT)).await;
            let error = match answer {
                Ok(FreeReply::NotMine) => return self.tell_not_mine(),
                Ok(_) => return,
                Err(error) => error,
            };
            let again = self.job.clock.boot() + pause;
            pause = (pause * 2).min(RETRY_MAX);
            if error.class.is_final() || !self.wait_to_free(again, &mut until).await {
                return self.job.tell(&Event::NotFreed {
                    error: error.message,
                });
            }
        }
    }

    /// Until when it makes sense to ask, from now on.
    fn free_until(&self) -> Boot {
        let soon = self.job.clock.boot() + FREE_TIMEOUT;
        if self.firing().is_none() || self.stopped_by.is_some() {
            soon
        } else {
            soon.max(self.holder.valid_until())
        }
    }

    /// Waits for the next try at `at`; false where it would come too late.
    async fn wait_to_free(&mut self, at: Boot, until: &mut Boot) -> bool {
        let clock = self.job.clock;
        loop {
            self.drain_signals();
            if self.stopped_by.is_some() {
                *until = self.free_until().min(*until);
            }
            if at >= *until {
                return false;
            }
            tokio::select! {
                biased;
                Some(caught) = self.signals.recv() => self.note_signal(&caught),
                () = sleep_until(clock, at) => return true,
            }
        }
    }

    fn free_request(&self, end: &End) -> Free {
        let Granted { claim, grant, .. } = &self.granted;
        let (outcome, code) = self.outcome(end);
        Free {
            owner: claim.owner,
            run: Some(EndedRun {
                token: grant.token,
                mark_told: self.mark(),
                firing: claim.wanted.firing(),
                attempt: self.attempt,
                grants: grant.grants,
                started: grant.started,
                once: self.once(),
                outcome,
                code,
                info: claim.info.clone(),
            }),
            keep: claim.keep,
        }
    }

    /// The record is not this run's any more. Where nobody has told yet, it is
    /// told now.
    fn tell_not_mine(&self) {
        if self.holder.lost().is_some() {
            return;
        }
        if self.job.clock.boot() < self.holder.valid_until() {
            self.job.tell(&Event::Healed);
        } else {
            self.tell_lost(Lost::Told(Loss::Taken), "the command had ended");
        }
    }

    fn outcome(&self, end: &End) -> (Outcome, Option<i32>) {
        let reruns = self.job.on_runner_lost == OnRunnerLost::Rerun && self.firing().is_some();
        match end {
            End::Ran { ended, cause, .. } => {
                let status = ended.status();
                let ours = matches!(cause, Some(StopCause::Signal | StopCause::LockLost));
                let outcome = match status {
                    0 if *cause != Some(StopCause::LockLost) => Outcome::Done,
                    _ if ours && reruns => Outcome::Rerun,
                    _ => Outcome::Failed,
                };
                (outcome, Some(status))
            }
            End::CannotStart(error) => (Outcome::Failed, Some(error.status())),
            End::Withdrawn | End::NotKept if !self.started_any => (Outcome::NotStarted, None),
            End::Withdrawn | End::NotKept | End::LostBetween | End::Failed(_) => {
                (Outcome::Failed, None)
            }
        }
    }
}
