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
    /// An estimate, exact for what crontabs hold: of pauses shorter than an
    /// hour the longest among the first 60 firings, of longer ones the longest
    /// within eight days, of pauses of a day and more the longest within 400
    /// days that have firings, at most 45 years.
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
            if firing - first > YEARS {
                break;
            }
        }
        let days = TimeDelta::days(1);
        let longest = self.widen(longest, first, TimeDelta::hours(1), 200, days * 8);
        let longest = self.widen(longest, first, days, 400, YEARS);
        longest.to_std().unwrap_or(Duration::ZERO)
    }

    /// The longest pause among `longest` and those of at least `step` from
    /// `start` on. A pause that begins within a step after a firing and is
    /// longer than the step spans that step's end, so one look there finds it.
    fn widen(
        &self,
        mut longest: TimeDelta,
        start: DateTime<Utc>,
        step: TimeDelta,
        steps: usize,
        reach: TimeDelta,
    ) -> TimeDelta {
        let mut firing = start;
        for _ in 0..steps {
            let end = firing + step.max(longest);
            let Some(next) = self.next(end) else { break };
            let just_before = next - longest - TimeDelta::seconds(1);
            let no_longer = self.next(just_before).is_some_and(|last| last <= end);
            if !no_longer {
                let last = self.last_in(firing, end).unwrap_or(firing);
                longest = longest.max(next - last);
            }
            firing = next;
            if firing - start > reach {
                break;
            }
        }
        longest
    }
}

/// The weekdays of 29 February come round within 40 years.
const YEARS: TimeDelta = TimeDelta::days(45 * 366);
