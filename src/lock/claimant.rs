//! What a claimant does with an answer: start, ask again, or leave it.

use std::time::Duration;

use super::lease::Boot;
use super::record::Ms;
use super::rules::{ClaimReply, Grant, OnRunnerLost, Overlap, Verdict};

/// First pause before asking a busy lock again; it doubles up to
/// [`PAUSE_MAX`].
pub const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Longest pause before asking a busy lock again.
pub const PAUSE_MAX: Duration = Duration::from_secs(1);
/// After a failed request: the first pause, doubling up to [`PAUSE_MAX`].
pub const RETRY_MIN: Duration = Duration::from_millis(100);
/// How long a single run tries to reach its store when it does not wait.
pub const REACH_WITHIN: Duration = Duration::from_secs(5);
/// A firing this far ahead of the store's clock is worth a warning.
pub const EARLY_WARNING: Ms = 10_000;

/// How long a single run waits for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wait {
    /// It does not.
    #[default]
    No,
    /// This long.
    For(Duration),
    /// Without end.
    Forever,
}

/// What a claimant puts up with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Patience {
    /// A scheduled firing.
    Firing {
        /// Behind an earlier run.
        overlap: Overlap,
        /// When its runner dies.
        on_runner_lost: OnRunnerLost,
        /// How late it may start.
        start_deadline: Duration,
        /// What is left of that when the claim begins.
        left: Duration,
    },
    /// A single run.
    Once(Wait),
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Next {
    /// The lock is ours: start the command.
    Start(Grant),
    /// Ask again at this instant.
    Ask(Boot),
    /// Leave it.
    End(Refusal),
}

/// Why a claim ended without a start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// Another run holds the lock.
    Busy,
    /// It was still held when the time to wait was over.
    WaitOver,
    /// It was started elsewhere, spent, overtaken, or had its run in this period.
    Done,
    /// It runs elsewhere at this moment.
    Running,
    /// Its runner died and it is not started again.
    Orphaned,
    /// It lies this many milliseconds behind the store's clock.
    Late(Ms),
    /// It lies this many milliseconds ahead of the store's clock.
    Early(Ms),
    /// The store may have forgotten that it ran.
    Unsure,
    /// This claim was given up or its run has ended.
    Closed,
    /// The store could not be reached in time.
    Unreachable,
    /// The store refuses, and asking again cannot help.
    Refused,
}

/// One claim from its first request to a start or a refusal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claimant {
    patience: Patience,
    wait_until: Option<Boot>,
    reach_until: Option<Boot>,
    pause: Duration,
    retry: Duration,
}

impl Claimant {
    /// A claim that begins at `now`.
    #[must_use]
    pub fn new(patience: Patience, now: Boot) -> Self {
        let (wait_until, reach_until) = match patience {
            Patience::Firing { left, .. } => (None, Some(now + left)),
            Patience::Once(Wait::No) => (None, Some(now + REACH_WITHIN)),
            Patience::Once(Wait::For(span)) => (Some(now + span), Some(now + span)),
            Patience::Once(Wait::Forever) => (None, None),
        };
        Self {
            patience,
            wait_until,
            reach_until,
            pause: PAUSE_MIN,
            retry: RETRY_MIN,
        }
    }

    /// When the claim gives up on a store that does not answer; none for never.
    #[must_use]
    pub const fn reach_until(&self) -> Option<Boot> {
        self.reach_until
    }

    /// Decides on an answer that came at `now`. `luck`, of 0 to 255, spreads
    /// claimants that would otherwise ask at the same moment.
    pub fn on_reply(&mut self, reply: &ClaimReply, now: Boot, luck: u8) -> Next {
        self.retry = RETRY_MIN;
        let next = self.decide(reply, now, luck);
        // The store has that long from the next request on, which may lie a
        // whole lease ahead.
        if let (Next::Ask(at), Patience::Firing { start_deadline, .. }) = (next, self.patience) {
            self.reach_until = self.reach_until.max(Some(at + start_deadline));
        }
        next
    }

    fn decide(&mut self, reply: &ClaimReply, now: Boot, luck: u8) -> Next {
        match reply.verdict {
            Verdict::Granted(grant) => Next::Start(grant),
            Verdict::Busy => self.on_busy(reply, now, luck),
            Verdict::Early(by) => self.on_early(by, now),
            Verdict::Running => self.on_running(left_of(reply), now, luck),
            Verdict::Late(by) => Next::End(Refusal::Late(by)),
            Verdict::Done => Next::End(Refusal::Done),
            Verdict::Orphaned => Next::End(Refusal::Orphaned),
            Verdict::Unsure => Next::End(Refusal::Unsure),
            Verdict::Void | Verdict::Stale => Next::End(Refusal::Closed),
        }
    }

    /// Decides on a request that failed at `now`; `is_final` if asking again
    /// cannot help.
    pub fn on_failure(&mut self, is_final: bool, now: Boot) -> Next {
        // A schedule outlives a wrong password; a single run does not.
        if is_final && matches!(self.patience, Patience::Once(_)) {
            return Next::End(Refusal::Refused);
        }
        let at = now + self.retry;
        self.retry = (self.retry * 2).min(PAUSE_MAX);
        match self.reach_until {
            Some(end) if now >= end => Next::End(if is_final {
                Refusal::Refused
            } else {
                Refusal::Unreachable
            }),
            Some(end) => Next::Ask(at.min(end)),
            None => Next::Ask(at),
        }
    }

    fn on_busy(&mut self, reply: &ClaimReply, now: Boot, luck: u8) -> Next {
        let by_firing = reply.before.as_ref().is_some_and(|r| r.firing.is_some());
        let leave = match self.patience {
            Patience::Once(wait) => wait == Wait::No,
            Patience::Firing { overlap, .. } => overlap == Overlap::Skip && by_firing,
        };
        if leave {
            return Next::End(Refusal::Busy);
        }
        if self.wait_until.is_some_and(|end| now >= end) {
            return Next::End(Refusal::WaitOver);
        }
        let at = now + spread(self.pause.min(left_of(reply)), luck);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Next::Ask(self.wait_until.map_or(at, |end| at.min(end)))
    }

    fn on_early(&self, by: Ms, now: Boot) -> Next {
        let Patience::Firing { start_deadline, .. } = self.patience else {
            return Next::End(Refusal::Early(by));
        };
        let ahead = span(by);
        if ahead > start_deadline {
            Next::End(Refusal::Early(by))
        } else {
            Next::Ask(now + ahead)
        }
    }

    fn on_running(&self, left: Duration, now: Boot, luck: u8) -> Next {
        match self.patience {
            Patience::Firing {
                on_runner_lost: OnRunnerLost::Rerun,
                ..
            } => Next::Ask(now + left + Duration::from_millis(1 + u64::from(luck))),
            _ => Next::End(Refusal::Running),
        }
    }
}

/// What is left of the lease that stands in the way.
fn left_of(reply: &ClaimReply) -> Duration {
    reply
        .before
        .as_ref()
        .map_or(Duration::ZERO, |record| span(record.left(reply.now)))
}

fn span(ms: Ms) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// Three quarters to the whole of `pause`, and never nothing.
fn spread(pause: Duration, luck: u8) -> Duration {
    let full = pause.max(Duration::from_millis(10));
    full * 3 / 4 + full / 4 * u32::from(luck) / 255
}
