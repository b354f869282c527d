//! What the waiting loop is to do now: a pure function of the clock's reading.
//!
//! The search goes on from the last firing dealt with, never from the clock's
//! reading, so that waking early, waking late and a clock that steps cannot
//! make a firing start twice or early. That firing is a high-water mark: at or
//! before it nothing fires again, unless the clock goes back by more than three
//! hours, which cron(8) too takes for a correction to follow.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Count, Schedule};

/// A clock set back further than this is followed: cron(8).
const CORRECTION: TimeDelta = TimeDelta::hours(3);
/// Missed firings are counted up to this number.
const COUNT_LIMIT: u32 = 1000;

/// Firings that were not started and are too late to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// How many.
    pub count: Count,
    /// The earliest of them.
    pub first: DateTime<Utc>,
    /// The latest of them.
    pub last: DateTime<Utc>,
}

/// What is due at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing: ask again at `until`, the instant of the next firing, and
    /// whenever the clock was set.
    Wait {
        /// The next firing.
        until: DateTime<Utc>,
    },
    /// This firing is to be claimed.
    Fire {
        /// The scheduled instant.
        firing: DateTime<Utc>,
        /// Older firings passed over for it.
        missed: Option<Missed>,
        /// It lies before the start of this process.
        startup: bool,
    },
    /// Firings passed, all longer ago than the start deadline.
    Missed(Missed),
    /// The clock went back by more than three hours and is followed from here
    /// on; ask again at once.
    ClockSetBack {
        /// The latest reading of the clock before.
        from: DateTime<Utc>,
        /// The reading now.
        to: DateTime<Utc>,
    },
    /// There is no further firing.
    Ended,
}

/// The state of the waiting loop between two looks at the clock.
#[derive(Debug, Clone)]
pub struct Agenda {
    schedule: Schedule,
    deadline: TimeDelta,
    /// The last firing dealt with: the base of the search, and the mark.
    served: DateTime<Utc>,
    /// The latest reading of the clock.
    latest: DateTime<Utc>,
    started: DateTime<Utc>,
}

impl Agenda {
    /// Starts at `now`. The last firing before is due if it is no older than
    /// `start_deadline`; those before it are not this process's to report.
    #[must_use]
    pub fn new(schedule: Schedule, now: DateTime<Utc>, start_deadline: TimeDelta) -> Self {
        let oldest = now
            .checked_sub_signed(start_deadline)
            .unwrap_or(DateTime::<Utc>::MIN_UTC);
        let served = schedule
            .last_at_or_before(now, oldest)
            .map_or(now, |firing| firing - TimeDelta::nanoseconds(1));
        Self {
            schedule,
            deadline: start_deadline,
            served,
            latest: now,
            started: now,
        }
    }

    /// What is due at `now`. Whatever is returned as due or missed counts as
    /// dealt with.
    pub fn due(&mut self, now: DateTime<Utc>) -> Due {
        if self.latest - now > CORRECTION {
            let from = self.latest;
            self.follow(now);
            return Due::ClockSetBack { from, to: now };
        }
        self.latest = self.latest.max(now);
        let Some(first) = self.schedule.next(self.served) else {
            return Due::Ended;
        };
        if first > now {
            return Due::Wait { until: first };
        }
        let last = self.schedule.last_in(self.served, now).unwrap_or(first);
        // Those before the start are not this process's to report.
        let base = self.served.max(self.started);
        self.served = last;
        if now - last > self.deadline {
            return match self.missed(base, last) {
                Some(missed) => Due::Missed(missed),
                None => self.due(now),
            };
        }
        Due::Fire {
            firing: last,
            missed: self.missed(base, last - TimeDelta::nanoseconds(1)),
            startup: last <= self.started,
        }
    }

    /// The firings after `base` and not after `until`.
    fn missed(&self, base: DateTime<Utc>, until: DateTime<Utc>) -> Option<Missed> {
        let last = self.schedule.last_in(base, until)?;
        let first = self.schedule.next(base)?;
        Some(Missed {
            count: self.schedule.count(base, until, COUNT_LIMIT),
            first,
            last,
        })
    }

    /// The clock was set back to `now`: goes on from there at once, as cron(8)
    /// does for all that has a wildcard. An instant that was started before is
    /// asked for again and refused, since its name is the instant.
    pub fn follow(&mut self, now: DateTime<Utc>) {
        (self.latest, self.served, self.started) = (now, now, now);
    }

    /// The next firing later than `now` and than all dealt with, for preparing
    /// ahead of it.
    #[must_use]
    pub fn peek_next(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.schedule.next(self.served.max(now))
    }

    /// Takes up changed zone rules, see [`Schedule::refresh`].
    pub fn refresh(&mut self) -> bool {
        self.schedule.refresh()
    }

    /// The schedule.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}
