//! What cron(8) would do, the slow way: look at every second.
//!
//! Shares nothing with the code under test but the zone data. Expressions are
//! made here, as sets of numbers together with their text, never parsed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A small generator of numbers (`SplitMix64`), so that a seed names a run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// From `low` to `high`, both included.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.below(u64::try_from(high - low + 1).unwrap())).unwrap()
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// A field with its text.
#[derive(Debug, Clone)]
pub struct Part {
    pub text: String,
    pub star: bool,
    pub values: BTreeSet<i64>,
}

impl Part {
    pub fn star(low: i64, high: i64) -> Self {
        Self {
            text: "*".into(),
            star: true,
            values: (low..=high).collect(),
        }
    }

    pub fn only(value: i64) -> Self {
        Self {
            text: value.to_string(),
            star: false,
            values: BTreeSet::from([value]),
        }
    }

    /// A field of a fixed expression: `*`, `*/n`, `a-b`, `a` or a list of these.
    fn of(text: &str, low: i64, high: i64) -> Self {
        let mut values = BTreeSet::new();
        for term in text.split(',') {
            let (range, step) = term.split_once('/').unwrap_or((term, "1"));
            let (first, last) = match (range, range.split_once('-')) {
                ("*", _) => (low, high),
                (_, Some((first, last))) => (first.parse().unwrap(), last.parse().unwrap()),
                (one, None) => (one.parse().unwrap(), one.parse().unwrap()),
            };
            values.extend((first..=last).step_by(step.parse().unwrap()));
        }
        Self {
            star: text.starts_with('*'),
            text: text.to_owned(),
            values,
        }
    }

    /// Anything the grammar allows within `low` to `high`.
    pub fn random(random: &mut Random, low: i64, high: i64) -> Self {
        let mut texts = Vec::new();
        let mut values = BTreeSet::new();
        for _ in 0..=random.below(3) {
            let first = random.within(low, high);
            let last = random.within(first, high);
            let step = random.within(1, (high - low) / 2 + 1);
            let (text, from, to, by) = match random.below(6) {
                0 => (format!("*/{step}"), low, high, step),
                1 => (format!("{first}-{last}"), first, last, 1),
                2 => (format!("{first}-{last}/{step}"), first, last, step),
                3 => (format!("{first}/{step}"), first, high, step),
                _ => (format!("{first}"), first, first, 1),
            };
            texts.push(text);
            values.extend((from..=to).step_by(usize::try_from(by).unwrap()));
        }
        let text = texts.join(",");
        Self {
            star: text.starts_with('*'),
            text,
            values,
        }
    }
}

/// An expression of five or six fields.
#[derive(Debug, Clone)]
pub struct Expression {
    pub second: Option<Part>,
    pub minute: Part,
    pub hour: Part,
    pub day: Part,
    pub month: Part,
    pub weekday: Part,
}

impl Expression {
    pub fn text(&self) -> String {
        let fields = [
            &self.minute,
            &self.hour,
            &self.day,
            &self.month,
            &self.weekday,
        ];
        self.second
            .iter()
            .chain(fields)
            .map(|part| part.text.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// A fixed expression of five or six plain fields.
    pub fn of(text: &str) -> Self {
        let fields: Vec<&str> = text.split(' ').collect();
        let (second, rest) = match fields.len() {
            6 => (Some(Part::of(fields[0], 0, 59)), &fields[1..]),
            _ => (None, &fields[..]),
        };
        Self {
            second,
            minute: Part::of(rest[0], 0, 59),
            hour: Part::of(rest[1], 0, 23),
            day: Part::of(rest[2], 1, 31),
            month: Part::of(rest[3], 1, 12),
            weekday: Part::of(rest[4], 0, 6),
        }
    }

    /// Expressions that like to fire near wall time `wall`.
    pub fn near(random: &mut Random, wall: i64) -> Self {
        let (_, month, day, _) = civil(wall.div_euclid(86_400));
        let hour = wall.rem_euclid(86_400) / 3600;
        let second = random.chance(4).then(|| match random.below(3) {
            0 => Part::star(0, 59),
            _ => Part::random(random, 0, 59),
        });
        let any = |random: &mut Random, low, high, near: i64| match random.below(5) {
            0 | 1 => Part::star(low, high),
            2 => Part::only(near),
            3 if near > low => Part {
                text: format!("{}-{near}", near - 1),
                star: false,
                values: (near - 1..=near).collect(),
            },
            _ => Part::random(random, low, high),
        };
        let near_hour = (hour + random.within(-1, 1)).rem_euclid(24);
        let minute = if random.chance(4) {
            Part::star(0, 59)
        } else {
            Part::random(random, 0, 59)
        };
        let hour = any(random, 0, 23, near_hour);
        let day = if random.chance(2) {
            Part::star(1, 31)
        } else {
            any(random, 1, 31, day)
        };
        let month = if random.chance(2) {
            Part::star(1, 12)
        } else {
            any(random, 1, 12, month)
        };
        let mut weekday = if random.chance(2) {
            Part::star(0, 7)
        } else {
            Part::random(random, 0, 7)
        };
        if weekday.values.remove(&7) {
            weekday.values.insert(0);
        }
        Self {
            second,
            minute,
            hour,
            day,
            month,
            weekday,
        }
    }

    pub fn is_wildcard(&self) -> bool {
        self.minute.star || self.hour.star || self.second.as_ref().is_some_and(|part| part.star)
    }

    /// The day rule of crontab(5).
    pub fn day_matches(&self, days: i64) -> bool {
        let (_, month, day, weekday) = civil(days);
        let (day, weekday) = (
            self.day.values.contains(&day),
            self.weekday.values.contains(&weekday),
        );
        self.month.values.contains(&month)
            && if self.day.star || self.weekday.star {
                day && weekday
            } else {
                day || weekday
            }
    }

    fn matches(&self, wall: i64) -> bool {
        let time = wall.rem_euclid(86_400);
        let second = self
            .second
            .as_ref()
            .map_or(time % 60 == 0, |part| part.values.contains(&(time % 60)));
        second
            && self.minute.values.contains(&(time / 60 % 60))
            && self.hour.values.contains(&(time / 3600))
            && self.day_matches(wall.div_euclid(86_400))
    }
}

/// Year, month, day and weekday of a day since the Unix epoch.
pub fn civil(days: i64) -> (i64, i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(366);
    let start = |year: i64| {
        let past = year - 1;
        (year - 1970) * 365 + (past / 4 - past / 100 + past / 400)
            - (1969 / 4 - 1969 / 100 + 1969 / 400)
    };
    while start(year + 1) <= days {
        year += 1;
    }
    let leap = i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    let mut day = days - start(year);
    let lengths = [31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    (year, month, day + 1, (days + 4).rem_euclid(7))
}

/// The offset of every second of a span, as runs.
pub struct Clock {
    changes: Vec<(i64, i64)>,
}

impl Clock {
    pub fn new(zone: &TimeZone, from: i64, to: i64) -> Self {
        let start = Timestamp::from_second(from).unwrap();
        let mut changes = vec![(i64::MIN, i64::from(zone.to_offset(start).seconds()))];
        for change in zone.following(start) {
            if change.timestamp().as_second() > to {
                break;
            }
            changes.push((
                change.timestamp().as_second(),
                i64::from(change.offset().seconds()),
            ));
        }
        Self { changes }
    }

    pub fn wall(&self, instant: i64) -> i64 {
        let (_, offset) = self
            .changes
            .iter()
            .rev()
            .find(|(at, _)| *at <= instant)
            .unwrap();
        instant + offset
    }
}

/// Every firing from `from` to `to`, by looking at each second as cron(8)
/// does: it runs behind a jump forward of less than three hours for fixed
/// jobs, and waits out a jump back of up to three hours.
pub fn firings(expression: &Expression, zone: &TimeZone, from: i64, to: i64) -> Vec<i64> {
    const CORRECTION: i64 = 3 * 3600;
    let wildcard = expression.is_wildcard();
    // Four hours ahead, for a repeat that is under way at the start.
    let clock = Clock::new(zone, from - 2 * CORRECTION, to);
    let mut before = clock.wall(from - CORRECTION - 3600 - 1);
    let mut waits_for = i64::MIN;
    let mut found = Vec::new();
    for instant in from - CORRECTION - 3600..=to {
        let wall = clock.wall(instant);
        let jump = wall - before - 1;
        let mut due = expression.matches(wall);
        if !wildcard {
            if (1..CORRECTION).contains(&jump) {
                due = (before + 1..=wall).any(|left_out| expression.matches(left_out));
            } else if (-CORRECTION..0).contains(&jump) {
                waits_for = before;
            }
            if wall > waits_for {
                waits_for = i64::MIN;
            } else {
                due = false;
            }
        }
        if due && instant >= from {
            found.push(instant);
        }
        before = wall;
    }
    found
}
