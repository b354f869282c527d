//! Day terms that need a calendar: `L`, `LW`, `15W`, `5L`, `5#2`.
//!
//! Their meaning is that of Quartz and supercronic, with cron's numbers for
//! weekdays (0 is Sunday). A working day is Monday to Friday; the nearest one
//! to a given day lies in the same month; a month without the given day has
//! none.

use chrono::{Datelike, NaiveDate};

/// A day term that plain numbers cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayRule {
    /// `L`: the last day of the month.
    Last,
    /// `LW`: the last Monday to Friday of the month.
    LastWorkday,
    /// `15W`: the Monday to Friday nearest that day, in the same month.
    NearestWorkday(u32),
    /// `5L`: the last such weekday of the month, 0 is Sunday.
    LastWeekday(u32),
    /// `5#2`: the nth such weekday of the month.
    Nth {
        /// 0 is Sunday.
        weekday: u32,
        /// 1 to 5.
        nth: u32,
    },
}

impl DayRule {
    /// Whether the rule picks this date.
    #[must_use]
    pub fn matches(self, date: NaiveDate) -> bool {
        let (day, last) = (date.day(), last_day(date));
        let weekday = date.weekday().num_days_from_sunday();
        match self {
            Self::Last => day == last,
            Self::LastWorkday => day == nearest_workday(date, last, last),
            Self::NearestWorkday(wanted) => {
                wanted <= last && day == nearest_workday(date, wanted, last)
            }
            Self::LastWeekday(wanted) => weekday == wanted && day + 7 > last,
            Self::Nth {
                weekday: wanted,
                nth,
            } => weekday == wanted && (day - 1) / 7 + 1 == nth,
        }
    }

    /// The weekday the rule is bound to, 0 is Sunday.
    pub(super) fn weekday(self) -> Option<u32> {
        match self {
            Self::LastWeekday(weekday) | Self::Nth { weekday, .. } => Some(weekday),
            _ => None,
        }
    }

    /// First and last day of a month the rule can ever pick.
    pub(super) fn span(self) -> (u16, u16) {
        match self {
            Self::Last => (28, 31),
            Self::LastWorkday => (26, 31),
            Self::NearestWorkday(day) => {
                let day = u16::try_from(day).unwrap_or(31);
                (day.saturating_sub(2).max(1), (day + 2).min(31))
            }
            Self::LastWeekday(_) => (22, 31),
            Self::Nth { nth, .. } => {
                let nth = u16::try_from(nth).unwrap_or(5);
                (nth * 7 - 6, (nth * 7).min(31))
            }
        }
    }
}

fn last_day(date: NaiveDate) -> u32 {
    u32::from(date.num_days_in_month())
}

/// The day of `date`'s month that is the Monday to Friday nearest `wanted`.
fn nearest_workday(date: NaiveDate, wanted: u32, last: u32) -> u32 {
    let shift = i64::from(wanted) - i64::from(date.day());
    let weekday = (i64::from(date.weekday().num_days_from_sunday()) + shift).rem_euclid(7);
    match weekday {
        6 if wanted == 1 => 3,
        6 => wanted - 1,
        0 if wanted == last => wanted - 2,
        0 => wanted + 1,
        _ => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(rule: DayRule, year: i32, month: u32) -> Vec<u32> {
        (1..=31)
            .filter_map(|day| NaiveDate::from_ymd_opt(year, month, day))
            .filter(|date| rule.matches(*date))
            .map(|date| date.day())
            .collect()
    }

    #[test]
    fn picks_the_days_of_2026() {
        // 2026-02-28 is a Saturday, 2026-05-31 a Sunday, 2026-08-01 a Saturday.
        assert_eq!(days(DayRule::Last, 2026, 2), [28]);
        assert_eq!(days(DayRule::Last, 2028, 2), [29]);
        assert_eq!(days(DayRule::LastWorkday, 2026, 2), [27]);
        assert_eq!(days(DayRule::LastWorkday, 2026, 5), [29]);
        assert_eq!(days(DayRule::LastWorkday, 2026, 6), [30]);
        assert_eq!(days(DayRule::NearestWorkday(1), 2026, 8), [3]);
        assert_eq!(days(DayRule::NearestWorkday(1), 2026, 3), [2]);
        assert_eq!(days(DayRule::NearestWorkday(15), 2026, 8), [14]);
        assert_eq!(days(DayRule::NearestWorkday(15), 2026, 3), [16]);
        assert_eq!(days(DayRule::NearestWorkday(15), 2026, 4), [15]);
        assert_eq!(days(DayRule::NearestWorkday(31), 2026, 5), [29]);
        assert_eq!(days(DayRule::NearestWorkday(31), 2026, 6), [0; 0]);
        assert_eq!(days(DayRule::LastWeekday(5), 2026, 5), [29]);
        assert_eq!(days(DayRule::LastWeekday(0), 2026, 5), [31]);
        let fifth = DayRule::Nth { weekday: 5, nth: 5 };
        assert_eq!(days(fifth, 2026, 5), [29]);
        assert_eq!(days(fifth, 2026, 6), [0; 0]);
        assert_eq!(days(DayRule::Nth { weekday: 1, nth: 1 }, 2026, 6), [1]);
    }

    /// The span is what the crate is asked for; a rule outside it would be lost.
    #[test]
    fn stays_within_its_span() {
        let mut rules = vec![DayRule::Last, DayRule::LastWorkday];
        rules.extend((1..=31).map(DayRule::NearestWorkday));
        rules.extend((0..7).map(DayRule::LastWeekday));
        rules.extend(
            (0..7).flat_map(|weekday| (1..=5).map(move |nth| DayRule::Nth { weekday, nth })),
        );
        for rule in rules {
            let (low, high) = rule.span();
            for month in (2001..2029).flat_map(|year| (1..=12).map(move |month| (year, month))) {
                let picked = days(rule, month.0, month.1);
                assert!(picked.len() <= 1, "{rule:?} {month:?}");
                for day in picked {
                    assert!(
                        (u32::from(low)..=u32::from(high)).contains(&day),
                        "{rule:?} {month:?} {day}"
                    );
                }
            }
        }
    }
}
