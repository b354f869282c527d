//! Matching wall times, without any zone.
//!
//! The crate `cron` searches the calendar. It is handed plain number lists in
//! its own seven-field form, where Sunday is 1, and wall time dressed as UTC,
//! so that it sees neither gaps nor repeats. What it cannot do is done here:
//! cron's rule that two restricted day fields widen each other (two plans,
//! merged), the terms of [`super::days`] (a filter over a superset of days),
//! and years outside 1970 to 2100 (looked up in a year of the same shape).
//!
//! A wall time is the number of seconds since 1970-01-01T00:00:00 on the wall.

use std::fmt::Write as _;
use std::str::FromStr as _;

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::days::DayRule;
use super::field::{Field, FieldSpec};
use super::parse::Calendar;

const DAY: i64 = 86_400;
/// The years the crate `cron` knows.
const KNOWN_YEARS: std::ops::RangeInclusive<i32> = 1970..=2100;

/// The wall times a calendar expression matches.
#[derive(Debug, Clone)]
pub(super) struct Naive {
    plans: Vec<Plan>,
}

/// One conjunction of fields.
#[derive(Debug, Clone)]
struct Plan {
    crate_schedule: cron::Schedule,
    filter: Option<Filter>,
    /// The year field is `*`: the calendar goes on past the crate's years.
    any_year: bool,
}

/// Day fields of which at least one has rules.
#[derive(Debug, Clone)]
struct Filter {
    day: Option<FieldSpec>,
    weekday: Option<FieldSpec>,
}

impl Filter {
    fn matches(&self, date: NaiveDate) -> bool {
        let field = |spec: &Option<FieldSpec>, number: u32| {
            spec.as_ref().is_none_or(|spec| {
                u16::try_from(number).is_ok_and(|number| spec.values.contains(&number))
                    || spec.rules.iter().any(|rule| rule.matches(date))
            })
        };
        field(&self.day, date.day()) && field(&self.weekday, date.weekday().num_days_from_sunday())
    }
}

impl Naive {
    /// Prepares the search. Plans that never match are left out: each would be
    /// searched for 400 years in vain, again and again.
    pub fn new(calendar: &Calendar) -> Self {
        let day = calendar.get(Field::Day);
        let weekday = calendar.get(Field::Weekday);
        let plans = if day.star || weekday.star {
            vec![Plan::new(calendar, Some(day), Some(weekday))]
        } else {
            vec![
                Plan::new(calendar, Some(day), None),
                Plan::new(calendar, None, Some(weekday)),
            ]
        };
        Self {
            plans: plans.into_iter().flatten().filter(Plan::fires).collect(),
        }
    }

    /// Whether any wall time matches.
    pub fn fires(&self) -> bool {
        !self.plans.is_empty()
    }

    /// The first matching wall time later than `after`, if there is one within
    /// 400 years.
    pub fn next(&self, after: i64) -> Option<i64> {
        self.plans.iter().filter_map(|plan| plan.next(after)).min()
    }
}

impl Plan {
    fn new(
        calendar: &Calendar,
        day: Option<&FieldSpec>,
        weekday: Option<&FieldSpec>,
    ) -> Option<Self> {
        let days = days_asked(day, weekday);
        let weekdays = weekdays_asked(weekday);
        if days.is_empty() || weekdays.is_empty() {
            return None;
        }
        let plain = |field| {
            list(
                calendar.get(field).values.iter().copied(),
                calendar.get(field).is_full(field),
            )
        };
        let year = calendar.get(Field::Year);
        let text = format!(
            "{} {} {} {} {} {} {}",
            plain(Field::Second),
            plain(Field::Minute),
            plain(Field::Hour),
            list(days.iter().copied(), days.len() == 31),
            plain(Field::Month),
            list(
                weekdays.iter().map(|weekday| weekday + 1),
                weekdays.len() == 7
            ),
            plain(Field::Year),
        );
        let ruled = |spec: Option<&FieldSpec>| spec.filter(|spec| !spec.rules.is_empty()).cloned();
        let filter = Filter {
            day: ruled(day),
            weekday: ruled(weekday),
        };
        Some(Self {
            crate_schedule: cron::Schedule::from_str(&text).ok()?,
            filter: (filter.day.is_some() || filter.weekday.is_some()).then_some(filter),
            any_year: year.star && year.is_full(Field::Year),
        })
    }

    /// Every shape of year occurs within the crate's years, so they are enough
    /// to tell.
    fn fires(&self) -> bool {
        let last_year = *KNOWN_YEARS.end();
        let mut after = year_start(*KNOWN_YEARS.start()) - 1;
        while let Some(wall) = self.crate_next(after) {
            if self.accepts(wall) {
                return true;
            }
            if year_of(wall) > last_year {
                break;
            }
            after = day_end(wall);
        }
        false
    }

    fn next(&self, after: i64) -> Option<i64> {
        let limit = after.saturating_add(400 * 366 * DAY);
        let mut after = after;
        while after < limit {
            let wall = self.search(after)?;
            if self.accepts(wall) {
                return Some(wall);
            }
            after = day_end(wall);
        }
        None
    }

    fn accepts(&self, wall: i64) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.matches(at(wall).date_naive()))
    }

    /// As [`Plan::next`], without the filter.
    fn search(&self, after: i64) -> Option<i64> {
        if !self.any_year {
            return self.crate_next(after.max(year_start(*KNOWN_YEARS.start()) - 1));
        }
        let mut after = after;
        let first = year_of(after + 1);
        if KNOWN_YEARS.contains(&first) {
            if let Some(wall) = self.crate_next(after) {
                return Some(wall);
            }
            after = year_start(*KNOWN_YEARS.end() + 1) - 1;
        }
        let first = year_of(after + 1);
        for year in first..=first + 400 {
            if KNOWN_YEARS.contains(&year) {
                return self.search(after);
            }
            let start = year_start(year);
            let twin = same_shape(year);
            let shift = start - year_start(twin);
            if let Some(wall) = self.crate_next(after.max(start - 1) - shift)
                && year_of(wall) == twin
            {
                return Some(wall + shift);
            }
            after = year_start(year + 1) - 1;
        }
        None
    }

    fn crate_next(&self, after: i64) -> Option<i64> {
        let wall = self.crate_schedule.after(&at(after)).next()?;
        Some(wall.timestamp())
    }
}

/// The days of the month worth asking the crate for: all that may match.
fn days_asked(day: Option<&FieldSpec>, weekday: Option<&FieldSpec>) -> Vec<u16> {
    let may_match = |spec: Option<&FieldSpec>, plain: &dyn Fn(&FieldSpec) -> bool, number: u16| {
        spec.is_none_or(|spec| {
            plain(spec)
                || spec.rules.iter().any(|rule| {
                    let (low, high) = rule.span();
                    (low..=high).contains(&number)
                })
        })
    };
    (1..=31)
        .filter(|number| may_match(day, &|spec| spec.values.contains(number), *number))
        .filter(|number| may_match(weekday, &|spec| !spec.values.is_empty(), *number))
        .collect()
}

/// The weekdays worth asking the crate for, 0 is Sunday.
fn weekdays_asked(weekday: Option<&FieldSpec>) -> Vec<u16> {
    let Some(spec) = weekday else {
        return (0..7).collect();
    };
    let bound = |rule: &DayRule| rule.weekday();
    (0..7)
        .filter(|number| {
            spec.values.contains(number)
                || spec
                    .rules
                    .iter()
                    .filter_map(bound)
                    .any(|weekday| weekday == u32::from(*number))
        })
        .collect()
}

fn list(values: impl Iterator<Item = u16>, full: bool) -> String {
    if full {
        return "*".to_owned();
    }
    let mut text = String::new();
    for value in values {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{value}");
    }
    text
}

fn at(wall: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(wall, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

fn year_of(wall: i64) -> i32 {
    at(wall).year()
}

fn year_start(year: i32) -> i64 {
    NaiveDate::from_ymd_opt(year, 1, 1).map_or(i64::MAX, |date| {
        i64::from(date.num_days_from_ce() - EPOCH_FROM_CE) * DAY
    })
}

/// Days from 0001-01-01, counted as day 1, to 1970-01-01.
const EPOCH_FROM_CE: i32 = 719_163;

fn day_end(wall: i64) -> i64 {
    wall - wall.rem_euclid(DAY) + DAY - 1
}

/// A year within the crate's years with the same length and weekdays: the 28
/// years from 2001 contain all fourteen shapes.
fn same_shape(year: i32) -> i32 {
    let shape = |year| {
        NaiveDate::from_ymd_opt(year, 1, 1).map(|first| (first.leap_year(), first.weekday()))
    };
    (2001..=2028)
        .find(|twin| shape(*twin) == shape(year))
        .unwrap_or(2001)
}
