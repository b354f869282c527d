//! Questions about stretches of time: the last firing, how many, how far apart.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Schedule;

/// A number of firings, counted up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// How many were counted.
    pub number: u32,
    /// There are more.
    pub more: bool,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let more = if self.more { "more than " } else { "" };
        write!(f, "{more}{}", self.number)
    }
}

impl Schedule {
    /// The latest firing from `not_before` to `now`, both included.
    ///
    /// It halves the span: as long as a firing follows the middle by `now`, the
    /// latest one lies in the later half.
    #[must_use]
    pub fn last_at_or_before(
        &self,
        now: DateTime<Utc>,
        not_before: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let before = not_before - TimeDelta::nanoseconds(1);
        self.last_in(before, now)
    }

    /// The latest firing later than `after` and not later than `until`.
    pub(super) fn last_in(
        &self,
        after: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let due = |from| self.next(from).filter(|firing| *firing <= until);
        let mut found = due(after)?;
        let mut end = until;
        while end - found > TimeDelta::seconds(1) {
            let middle = found + (end - found) / 2;
            match due(middle) {
                Some(later) => found = later,
                None => end = middle,
            }
        }
        Some(due(found).unwrap_or(found))
    }

    /// How many firings lie after `after` and not after `until`, counted up to
    /// `limit`.
    #[must_use]
    pub fn count(&self, after: DateTime<Utc>, until: DateTime<Utc>, limit: u32) -> Count {
        let mut from = after;
        for number in 0..=limit {
            match self.next(from).filter(|firing| *firing <= until) {
                Some(_) if number == limit => break,
                Some(firing) => from = firing,
                None => {
                    return Count {
                        number,
                        more: false,
                    };
                }
            }
        }
        Count {
            number: limit,
            more: true,
        }
    }

    /// The longest span between two consecutive firings after `from`; zero
    /// when there are fewer than two.
    ///
    /// An estimate that is exact for what crontabs hold. For eight days from the
    /// first firing every pause of an hour or more is found; then, in steps of a day and
    /// for 400 steps that have firings (a year and more; many decades for rare dates),
    /// every pause of a day or more. A longest pause below an hour is that of
    /// the first firings.
    #[must_use]
    pub fn longest_gap(&self, from: DateTime<Utc>) -> Duration {
        let Some(first) = self.next(from) else {
            return Duration::ZERO;
        };
        let mut longest = TimeDelta::zero();
        let mut firing = first;
        for _ in 0..60 {
            let Some(next) = self.next(firing) else { break };
            longest = longest.max(next - firing);
            firing = next;
        }
        let week = first + TimeDelta::days(8);
        self.widen(&mut longest, first, TimeDelta::hours(1), |firing, _| {
            firing < week
        });
        self.widen(&mut longest, first, TimeDelta::days(1), |_, steps| {
            steps < 400
        });
        longest.to_std().unwrap_or(Duration::ZERO)
    }

    /// Raises `longest` to the longest pause of at least `step` from `start`.
    /// A pause longer than `step` that begins within a step of a firing spans
    /// that step's end, so one look there finds it.
    fn widen(
        &self,
        longest: &mut TimeDelta,
        start: DateTime<Utc>,
        step: TimeDelta,
        goes_on: impl Fn(DateTime<Utc>, u32) -> bool,
    ) {
        let mut firing = start;
        let mut steps = 0;
        while goes_on(firing, steps) {
            let reach = firing + step.max(*longest);
            let Some(next) = self.next(reach) else { break };
            if next - firing > *longest {
                let last = self.last_in(firing, reach).unwrap_or(firing);
                *longest = (*longest).max(next - last);
            }
            firing = next;
            steps += 1;
        }
    }
}
