//! How long a holder may believe in its lease, and what it must do before the
//! end.
//!
//! Instants are spans since the host's boot on a clock that counts suspend. A
//! holder never compares its own clock with the store's: it only relies on
//! both running at the same rate to one per cent.

use std::time::Duration;

/// An instant as the span since boot, suspend included.
pub type Boot = Duration;

/// The time a forced stop has for the command when `--kill-after` says nothing.
pub const KILL_AFTER: Duration = Duration::from_secs(8);
/// After the lock is lost for certain another host may run: this long at most
/// until the command is killed.
pub const LOST_GRACE_MAX: Duration = Duration::from_secs(2);

/// The spans that follow from the length of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timing {
    /// The length of the lease.
    pub ttl: Duration,
    /// From the stop signal to SIGKILL when the lease runs out.
    pub grace: Duration,
    /// What is kept between SIGKILL and the end of the lease.
    pub margin: Duration,
    /// From one good heartbeat to the next.
    pub beat_every: Duration,
    /// How long a heartbeat may take.
    pub beat_timeout: Duration,
    /// From a failed heartbeat to the next.
    pub beat_retry: Duration,
}

impl Timing {
    /// The spans for a lease of `ttl` whose command gets up to `kill_after` to
    /// end by itself.
    #[must_use]
    pub fn new(ttl: Duration, kill_after: Duration) -> Self {
        Self {
            ttl,
            grace: kill_after.min(ttl / 4),
            margin: Duration::from_millis(250).min(ttl / 20),
            beat_every: ttl / 3,
            beat_timeout: (ttl / 10).min(Duration::from_secs(2)),
            beat_retry: (ttl / 10).min(Duration::from_secs(1)),
        }
    }

    /// Until when a good reply to a request written at `sent` makes the lease
    /// valid: a hundredth for clocks that run apart, and 20 ms for a store that
    /// reads its clock coarsely.
    #[must_use]
    pub fn valid_until(&self, sent: Boot) -> Boot {
        (sent + self.ttl).saturating_sub(self.ttl / 100 + Duration::from_millis(20))
    }

    /// When the command is told to stop if no heartbeat is answered.
    #[must_use]
    pub fn stop_at(&self, valid_until: Boot) -> Boot {
        valid_until.saturating_sub(self.grace + self.margin)
    }

    /// When the command is killed if no heartbeat is answered.
    #[must_use]
    pub fn kill_at(&self, valid_until: Boot) -> Boot {
        valid_until.saturating_sub(self.margin)
    }

    /// Whether enough is left of a lease to start a command under it at `now`.
    #[must_use]
    pub fn may_start(&self, valid_until: Boot, now: Boot) -> bool {
        now + self.grace + self.margin + self.ttl / 10 <= valid_until
    }

    /// From the stop signal to SIGKILL once the lock is known to be lost.
    #[must_use]
    pub fn lost_grace(&self) -> Duration {
        self.grace.min(LOST_GRACE_MAX)
    }

    /// When the next heartbeat is due after one sent at `sent` has failed.
    #[must_use]
    pub fn retry_at(&self, sent: Boot, now: Boot) -> Boot {
        (sent + self.beat_retry).max(now + self.beat_retry / 10)
    }

    /// A store outage shorter than this is always survived: it may begin right
    /// before a heartbeat, and end just after the last that fails was sent.
    #[must_use]
    pub fn survives(&self) -> Duration {
        let last_try = self.retry_at(Duration::ZERO, self.beat_timeout);
        self.valid_until(Duration::ZERO)
            .saturating_sub(self.grace + self.margin + self.beat_every + last_try)
    }
}
