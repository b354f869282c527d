//! From wall times to instants: the rule of cron(8) for changes of the clock.
//!
//! Between two changes of a zone's offset, wall time and real time run in
//! step. The search walks from one such stretch to the next:
//!
//! - A *wildcard* schedule fires at every real instant whose wall clock
//!   matches: what a gap leaves out is not made up, what comes twice fires
//!   twice.
//! - A *fixed* schedule whose time falls into a gap shorter than three hours
//!   fires once at the gap's end; in a stretch repeated for at most three hours
//!   it fires in the first pass only.
//! - Larger changes are corrections of the clock: both kinds follow it.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::naive::Naive;

/// Seconds; cron(8) takes changes of this size and more for corrections.
const CORRECTION: i64 = 3 * 3600;
const DAY: i64 = 86_400;
/// How far the search goes, in seconds: the calendar repeats after 400 years.
const HORIZON: i64 = 400 * 366 * DAY;

/// A change of the offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    /// The first second of the new offset, since the Unix epoch.
    at: i64,
    before: i64,
    after: i64,
}

impl Change {
    fn step(self) -> i64 {
        self.after - self.before
    }

    /// Wall time is repeated, and fixed schedules skip the second pass.
    fn repeats_briefly(self) -> bool {
        (-CORRECTION..0).contains(&self.step())
    }

    /// Wall time is left out, and fixed schedules make it up.
    fn skips_briefly(self) -> bool {
        (1..CORRECTION).contains(&self.step())
    }

    /// The largest wall time not to be looked at after the change.
    fn floor(self, wildcard: bool) -> i64 {
        if !wildcard && self.repeats_briefly() {
            self.at + self.before - 1
        } else {
            self.at + self.after - 1
        }
    }
}

/// The rules of a zone, asked in seconds.
#[derive(Clone, Copy)]
struct Rules<'a>(&'a TimeZone);

impl Rules<'_> {
    fn offset(self, instant: i64) -> Option<i64> {
        let timestamp = Timestamp::from_second(instant).ok()?;
        Some(i64::from(self.0.to_offset(timestamp).seconds()))
    }

    fn change_after(self, instant: i64) -> Option<Change> {
        let timestamp = Timestamp::from_second(instant).ok()?;
        let next = self.0.following(timestamp).next()?;
        self.change(next.timestamp(), next.offset())
    }

    fn last_change(self, instant: i64) -> Option<Change> {
        let timestamp = Timestamp::from_second(instant + 1).ok()?;
        let last = self.0.preceding(timestamp).next()?;
        self.change(last.timestamp(), last.offset())
    }

    fn change(self, at: Timestamp, after: jiff::tz::Offset) -> Option<Change> {
        Some(Change {
            at: at.as_second(),
            before: self.offset(at.as_second() - 1)?,
            after: i64::from(after.seconds()),
        })
    }

    /// The wall time at an instant; for a fixed schedule in a second pass, the
    /// wall time the first pass ended with.
    fn floor(self, instant: i64, offset: i64, wildcard: bool) -> i64 {
        let wall = instant + offset;
        if wildcard {
            return wall;
        }
        self.last_change(instant)
            .filter(|change| change.repeats_briefly())
            .map_or(wall, |change| wall.max(change.floor(wildcard)))
    }
}

/// The first firing later than `after`, both in seconds since the Unix epoch.
pub(super) fn next(naive: &Naive, wildcard: bool, zone: &TimeZone, after: i64) -> Option<i64> {
    let rules = Rules(zone);
    let mut from = after;
    let mut offset = rules.offset(from)?;
    let mut floor = rules.floor(from, offset, wildcard);
    // The first match later than `floor`; none counts as infinitely far.
    let mut wall = naive.next(floor).unwrap_or(i64::MAX);
    while from < after.saturating_add(HORIZON) {
        let Some(change) = rules.change_after(from) else {
            return (wall < i64::MAX).then(|| wall - offset);
        };
        if wall < change.at.saturating_add(offset) {
            return Some(wall - offset);
        }
        if !wildcard && change.skips_briefly() && wall < change.at + change.after {
            return Some(change.at);
        }
        // A repeat may bring back wall times before `from`, if it is near.
        let settled = change.step() >= 0 || change.at - from > 2 * DAY;
        if settled && wall == i64::MAX {
            return None;
        }
        if settled && wall.saturating_sub(offset) > change.at + 4 * DAY {
            // Nothing until shortly before `wall`: skip the changes between.
            from = wall - 2 * DAY;
            offset = rules.offset(from)?;
            floor = rules.floor(from, offset, wildcard);
            continue;
        }
        from = change.at;
        offset = change.after;
        let new_floor = change.floor(wildcard);
        if new_floor < floor || new_floor >= wall {
            wall = naive.next(new_floor).unwrap_or(i64::MAX);
        }
        floor = new_floor;
    }
    None
}
