//! The seven fields: names, ranges, and how one field is read.
//!
//! A field is a list of terms separated by commas; a term is `*`, a value or
//! a range of two values, each with an optional `/step`: crontab(5) of Vixie
//! cron and cronie. The day fields also know the terms of [`super::days`],
//! and all but the year know `H`, see [`super::hash`].

use std::collections::BTreeSet;
use std::fmt;

use super::days::DayRule;
use super::term::Term;

/// A field of an expression, in the order in which seven fields are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// 0 to 59; only in expressions of six or seven fields.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    Day,
    /// 1 to 12 or `jan` to `dec`.
    Month,
    /// 0 to 7 or `sun` to `sat`; 0 and 7 are Sunday.
    Weekday,
    /// 1970 to 2100; only in expressions of seven fields.
    Year,
}

/// All fields in the order in which seven fields are written.
pub const FIELDS: [Field; 7] = [
    Field::Second,
    Field::Minute,
    Field::Hour,
    Field::Day,
    Field::Month,
    Field::Weekday,
    Field::Year,
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

impl Field {
    /// The name used in messages, and in the hash behind `H`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day-of-month",
            Self::Month => "month",
            Self::Weekday => "day-of-week",
            Self::Year => "year",
        }
    }

    /// Smallest and largest legal number.
    #[must_use]
    pub fn range(self) -> (u16, u16) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 7),
            Self::Year => (1970, 2100),
        }
    }

    /// The legal range in words.
    #[must_use]
    pub fn legal(self) -> &'static str {
        match self {
            Self::Second => "seconds are 0 to 59",
            Self::Minute => "minutes are 0 to 59",
            Self::Hour => "hours are 0 to 23",
            Self::Day => "days of the month are 1 to 31",
            Self::Month => "months are 1 to 12 or jan to dec",
            Self::Weekday => "days of the week are 0 to 7 or sun to sat, 0 and 7 are Sunday",
            Self::Year => "years are 1970 to 2100",
        }
    }

    /// What `H` ranges over: days stop at 28 so that no month is left out.
    pub(super) fn hash_range(self) -> (u16, u16) {
        match self {
            Self::Day => (1, 28),
            Self::Weekday => (0, 6),
            other => other.range(),
        }
    }

    pub(super) fn is_day(self) -> bool {
        matches!(self, Self::Day | Self::Weekday)
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::Weekday => &WEEKDAYS,
            _ => &[],
        }
    }

    /// The number of a name: its first three letters, in any case.
    pub(super) fn named(self, word: &str) -> Option<u16> {
        (self.range().0..)
            .zip(self.names())
            .find_map(|(number, name)| name[..3].eq_ignore_ascii_case(word).then_some(number))
    }

    /// The name that a longer spelling (`thurs`, `thursday`) stands for.
    pub(super) fn shortened(self, word: &str) -> Option<&'static str> {
        let lower = word.to_ascii_lowercase();
        let longer = |name: &&&str| lower.len() > 3 && name.starts_with(&lower);
        self.names().iter().find(longer).map(|name| &name[..3])
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why one field was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field.
    pub field: Field,
    /// The offending part of it, as given.
    pub text: String,
    /// What is wrong with it; reads on after the quoted text.
    pub reason: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} field: {} {}, {}; {}",
            self.field,
            super::error::quote(&self.text),
            self.reason,
            self.field.legal(),
            self.remedy
        )
    }
}

/// A field as understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldSpec {
    /// It begins with `*` (or is `?`): the star bit of cron(8).
    pub star: bool,
    /// The plain numbers; weekdays 0 to 6.
    pub values: BTreeSet<u16>,
    /// The terms that need a calendar; day fields only.
    pub rules: Vec<DayRule>,
}

impl FieldSpec {
    /// The field matches every value there is.
    pub fn is_full(&self, field: Field) -> bool {
        let (low, high) = match field {
            Field::Weekday => (0, 6),
            other => other.range(),
        };
        self.values.len() == usize::from(high - low) + 1
    }

    pub fn star(field: Field) -> Self {
        let (low, high) = field.range();
        let mut spec = Self::none(true);
        spec.insert(field, low..=high);
        spec
    }

    pub fn only(value: u16) -> Self {
        let mut spec = Self::none(false);
        spec.values.insert(value);
        spec
    }

    fn none(star: bool) -> Self {
        Self {
            star,
            values: BTreeSet::new(),
            rules: Vec::new(),
        }
    }

    fn insert(&mut self, field: Field, values: impl Iterator<Item = u16>) {
        let sunday = |value| {
            if field == Field::Weekday && value == 7 {
                0
            } else {
                value
            }
        };
        self.values.extend(values.map(sunday));
    }
}

/// Reads one field. `lock_name` is what `H` is derived from.
///
/// # Errors
/// The first term that is not understood or out of range; `H` without a name.
pub(super) fn parse(
    field: Field,
    text: &str,
    lock_name: Option<&str>,
) -> Result<FieldSpec, FieldError> {
    if text == "?" && field.is_day() {
        return Ok(FieldSpec::star(field));
    }
    let mut spec = FieldSpec::none(text.starts_with('*'));
    for term in text.split(',') {
        let term = Term {
            field,
            text: term,
            lock_name,
        };
        if term.text.is_empty() {
            return Err(term.error(
                text,
                "has an empty list item",
                "write the values with one comma between two of them, like 1,2",
            ));
        }
        if let Some(rule) = term.day_rule()? {
            spec.rules.push(rule);
        } else {
            let (low, high, step) = term.plain()?;
            spec.insert(field, (low..=high).step_by(step));
        }
    }
    Ok(spec)
}
