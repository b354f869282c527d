//! The seven fields: names, ranges, and how one field is read.
//!
//! A field is a list of terms separated by commas; a term is `*`, a value or
//! a range of two values, each with an optional `/step`: crontab(5) of Vixie
//! cron and cronie. The day fields also know the terms of [`super::days`],
//! and all but the year know `H`, see [`super::hash`].

use std::collections::BTreeSet;
use std::fmt;

use super::days::DayRule;
use super::hash;

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
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

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
    fn hash_range(self) -> (u16, u16) {
        match self {
            Self::Day => (1, 28),
            Self::Weekday => (0, 6),
            other => other.range(),
        }
    }

    pub(super) fn is_day(self) -> bool {
        matches!(self, Self::Day | Self::Weekday)
    }

    fn named(self, word: &str) -> Option<u16> {
        let (names, base): (&[&str], u16) = match self {
            Self::Month => (&MONTHS, 1),
            Self::Weekday => (&WEEKDAYS, 0),
            _ => return None,
        };
        (base..)
            .zip(names)
            .find_map(|(number, name)| name.eq_ignore_ascii_case(word).then_some(number))
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
        spec.insert(field, (low..=high).step_by(1));
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
        let reader = Reader {
            field,
            term,
            lock_name,
        };
        if term.is_empty() {
            return Err(reader.error(
                text,
                "has an empty list item",
                "write the values with one comma between two of them, like 1,2",
            ));
        }
        if let Some(rule) = reader.day_rule()? {
            spec.rules.push(rule);
        } else {
            let (low, high, step) = reader.plain()?;
            spec.insert(field, (low..=high).step_by(step));
        }
    }
    Ok(spec)
}

/// One term of a field while it is read.
struct Reader<'a> {
    field: Field,
    term: &'a str,
    lock_name: Option<&'a str>,
}

impl Reader<'_> {
    fn error(
        &self,
        text: &str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> FieldError {
        FieldError {
            field: self.field,
            text: text.to_owned(),
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }

    /// First, last and step of a term without calendar rules.
    fn plain(&self) -> Result<(u16, u16, usize), FieldError> {
        let (base, step) = match self.term.split_once('/') {
            None => (self.term, None),
            Some((base, step)) => (base, Some(self.step(step)?)),
        };
        if let Some(rest) = base.strip_prefix('H') {
            return self.hashed(rest, step);
        }
        let (field_low, field_high) = self.field.range();
        let (low, high) = if base == "*" {
            (field_low, field_high)
        } else if base.starts_with('*') {
            return Err(self.glued_star(base));
        } else if let Some((first, last)) = base.split_once('-') {
            self.bounds(base, first, last)?
        } else {
            let value = self.value(base)?;
            let last = if step.is_some() { field_high } else { value };
            (value, last)
        };
        Ok((low, high, step.unwrap_or(1)))
    }

    fn step(&self, text: &str) -> Result<usize, FieldError> {
        let remedy = "write a whole number from 1 after the slash, like */5";
        if text.is_empty() {
            return Err(self.error(self.term, "lacks the step after the slash", remedy));
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.error(self.term, "has a step that is not a number", remedy));
        }
        match text.parse::<u32>() {
            Ok(0) => Err(self.error(
                self.term,
                "has the step 0, which is no step",
                "write a step from 1, or * for every value",
            )),
            Ok(step) => Ok(step as usize),
            Err(_) => Err(self.error(self.term, "has a step that is too large", remedy)),
        }
    }

    fn glued_star(&self, base: &str) -> FieldError {
        let rest = &base[1..];
        let remedy = if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("write */{rest} for every {rest}th value, or *,{rest}, or {rest} alone")
        } else {
            "write * alone, or * with a step, like */5".to_owned()
        };
        self.error(
            base,
            "joins * to something, but * stands alone or before a /step",
            remedy,
        )
    }

    /// Both ends of a range. A weekday range may end in Sunday.
    fn bounds(&self, base: &str, first: &str, last: &str) -> Result<(u16, u16), FieldError> {
        let remedy = "write first-last, like 1-5";
        if first.is_empty() {
            return Err(self.error(
                base,
                "begins with a minus, but there are no negative values",
                remedy,
            ));
        }
        if last.is_empty() {
            return Err(self.error(base, "is a range without an end", remedy));
        }
        if last == "*" || last.starts_with('-') {
            return Err(self.error(base, "is a range without a legal end", remedy));
        }
        let low = self.value(first)?;
        let mut high = self.value(last)?;
        if self.field == Field::Weekday && high == 0 && low > 0 {
            high = 7;
        }
        if low > high {
            let (field_low, field_high) = self.field.range();
            return Err(self.error(
                base,
                "is a range that runs backwards",
                format!(
                    "write the smaller value first, or two ranges: {first}-{field_high},{field_low}-{last}"
                ),
            ));
        }
        Ok((low, high))
    }

    /// A number or, where the field has names, a name.
    fn value(&self, text: &str) -> Result<u16, FieldError> {
        let (low, high) = self.field.range();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse::<u64>().unwrap_or(u64::MAX);
            return match u16::try_from(number) {
                Ok(value) if (low..=high).contains(&value) => Ok(value),
                _ => Err(self.error(text, "is out of range", self.in_range_remedy(number))),
            };
        }
        if let Some(value) = self.field.named(text) {
            return Ok(value);
        }
        Err(self.unknown(text))
    }

    fn in_range_remedy(&self, number: u64) -> String {
        let (low, high) = self.field.range();
        match (self.field, number) {
            (Field::Second | Field::Minute, 60) => {
                "write 0 for the full minute or hour, or */n for every n".into()
            }
            (Field::Hour, 24) => "write 0 for midnight".into(),
            (Field::Weekday, _) => "write 0 or 7 for Sunday, 1 for Monday".into(),
            _ => format!("write a number from {low} to {high}"),
        }
    }

    fn unknown(&self, text: &str) -> FieldError {
        let numbers = "write a number, a range like 1-5, a list like 1,5 or a step like */5";
        let lower = text.to_ascii_lowercase();
        let full = MONTHS
            .iter()
            .chain(&WEEKDAYS)
            .find(|name| lower.starts_with(**name));
        if let Some(name) = full
            && self.field.named(name).is_some()
        {
            return self.error(
                text,
                "is no name that cron knows",
                format!("write its first three letters, {name}"),
            );
        }
        match text {
            "?" => self.error(
                text,
                "stands for any day, alone and in a day field",
                "write *",
            ),
            "h" => self.error(
                text,
                "is not a value",
                "write a capital H for a hashed value",
            ),
            _ if text.contains('~') => self.error(
                text,
                "is a random range, which would differ from host to host",
                "write H(first-last), which is the same on every host",
            ),
            _ if text.contains(['L', 'W', '#', 'l', 'w']) && self.field.is_day() => {
                self.error(text, "is not a value", self.calendar_remedy())
            }
            _ => self.error(text, "is not a value", numbers),
        }
    }

    fn calendar_remedy(&self) -> &'static str {
        if self.field == Field::Day {
            "write L for the last day, LW for the last working day, 15W for the working day nearest the 15th"
        } else {
            "write 5L for the last Friday, 5#2 for the second Friday of the month"
        }
    }

    /// `H`, `H(a-b)`, each with an optional step.
    fn hashed(&self, rest: &str, step: Option<usize>) -> Result<(u16, u16, usize), FieldError> {
        let remedy = "write H, H/15, H(0-7) or H(0-29)/10";
        if self.field == Field::Year {
            return Err(self.error(
                self.term,
                "is hashed, which a year cannot be",
                "write the year",
            ));
        }
        let (low, high) = if rest.is_empty() {
            self.field.hash_range()
        } else {
            let bounds = rest
                .strip_prefix('(')
                .and_then(|rest| rest.strip_suffix(')'))
                .and_then(|rest| rest.split_once('-'));
            let Some((first, last)) = bounds else {
                return Err(self.error(self.term, "is not a form of H", remedy));
            };
            self.bounds(&format!("{first}-{last}"), first, last)?
        };
        let Some(lock_name) = self.lock_name else {
            return Err(self.error(
                self.term,
                "is derived from the lock name, which is missing",
                "give --lock-name NAME, or write a number",
            ));
        };
        let number = hash::number(lock_name, self.field);
        let span = u64::from(high - low) + 1;
        let choices = step.map_or(span, |step| span.min(step as u64));
        let offset = u16::try_from(number % choices).unwrap_or(0);
        match step {
            None => Ok((low + offset, low + offset, 1)),
            Some(step) => Ok((low + offset, high, step)),
        }
    }

    /// A term that needs a calendar: `L`, `LW`, `15W`, `5L`, `5#2`.
    fn day_rule(&self) -> Result<Option<DayRule>, FieldError> {
        let upper = self.term.to_ascii_uppercase();
        match self.field {
            Field::Day => self.day_of_month_rule(&upper),
            Field::Weekday => self.weekday_rule(&upper),
            _ => Ok(None),
        }
    }

    fn day_of_month_rule(&self, upper: &str) -> Result<Option<DayRule>, FieldError> {
        match upper {
            "L" => return Ok(Some(DayRule::Last)),
            "LW" | "WL" => return Ok(Some(DayRule::LastWorkday)),
            _ => {}
        }
        let Some(day) = upper.strip_suffix('W') else {
            return Ok(None);
        };
        if day.is_empty() || !day.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.error(self.term, "is not a value", self.calendar_remedy()));
        }
        let day = self.value(day)?;
        Ok(Some(DayRule::NearestWorkday(u32::from(day))))
    }

    fn weekday_rule(&self, upper: &str) -> Result<Option<DayRule>, FieldError> {
        if upper == "L" {
            return Err(self.error(
                self.term,
                "lacks the day whose last occurrence it means",
                self.calendar_remedy(),
            ));
        }
        if let Some((day, nth)) = upper.split_once('#') {
            let day = self.value(day)?;
            return match nth {
                "1" | "2" | "3" | "4" | "5" => Ok(Some(DayRule::Nth {
                    weekday: u32::from(day % 7),
                    nth: u32::from(nth.as_bytes()[0] - b'0'),
                })),
                _ => Err(self.error(
                    self.term,
                    "asks for a week that no month has",
                    "write 1 to 5 after the #, like 5#2 for the second Friday",
                )),
            };
        }
        let Some(day) = upper.strip_suffix('L') else {
            return Ok(None);
        };
        let day = self.value(day)?;
        Ok(Some(DayRule::LastWeekday(u32::from(day % 7))))
    }
}
