//! One term of a field: `*`, a value or a range with an optional step, `H`, or a
//! day that needs a calendar.

use super::days::DayRule;
use super::field::{Field, FieldError};
use super::hash;

const OUT_OF_RANGE: &str = "is out of range";

/// One term of a field while it is read.
pub(super) struct Term<'a> {
    pub field: Field,
    pub text: &'a str,
    pub lock_name: Option<&'a str>,
}

impl Term<'_> {
    pub fn error(
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
    pub fn plain(&self) -> Result<(u16, u16, usize), FieldError> {
        let (base, step) = match self.text.split_once('/') {
            None => (self.text, None),
            Some((base, step)) => (base, Some(self.step(step)?)),
        };
        if let Some(rest) = base.strip_prefix('H') {
            return self.hashed(rest, step);
        }
        if base.is_empty() {
            return Err(self.error(
                self.text,
                "lacks the values before the slash",
                "write them, like */5 or 10-40/5",
            ));
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
            return Err(self.error(self.text, "lacks the step after the slash", remedy));
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.error(self.text, "has a step that is not a number", remedy));
        }
        match text.parse::<u32>() {
            Ok(0) => Err(self.error(
                self.text,
                "has the step 0, which is no step",
                "write a step from 1, or * for every value",
            )),
            Ok(step) => Ok(step as usize),
            Err(_) => Err(self.error(self.text, "has a step that is too large", remedy)),
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
        if base == "-" {
            return Err(self.error(
                base,
                "stands between blanks, which separate fields",
                "write the range without blanks, like 1-5",
            ));
        }
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
            return Err(self.error(
                base,
                "is a range that runs backwards",
                format!(
                    "write the smaller value first, or {}",
                    self.around(first, low, last, high)
                ),
            ));
        }
        Ok((low, high))
    }

    /// What a range over the end of the field was probably meant to say.
    fn around(&self, first: &str, low: u16, last: &str, high: u16) -> String {
        let (field_low, field_high) = self.field.range();
        let upper = match low {
            _ if low == field_high => first.to_owned(),
            _ => format!("{first}-{field_high}"),
        };
        let lower = match high {
            _ if high == field_low => last.to_owned(),
            _ => format!("{field_low}-{last}"),
        };
        format!("a list: {upper},{lower}")
    }

    /// A number or, where the field has names, a name.
    fn value(&self, text: &str) -> Result<u16, FieldError> {
        let (low, high) = self.field.range();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse::<u64>().unwrap_or(u64::MAX);
            return match u16::try_from(number) {
                Ok(value) if (low..=high).contains(&value) => Ok(value),
                _ => Err(self.error(text, OUT_OF_RANGE, self.in_range_remedy(number))),
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
            (Field::Second, 60) => "write 0 for the full minute".into(),
            (Field::Minute, 60) => "write 0 for the full hour".into(),
            (Field::Hour, 24) => "write 0 for midnight".into(),
            (Field::Weekday, _) => "write 0 or 7 for Sunday, 1 for Monday".into(),
            _ => format!("write a number from {low} to {high}"),
        }
    }

    fn unknown(&self, text: &str) -> FieldError {
        let numbers = "write a number, a range like 1-5, a list like 1,5 or a step like */5";
        if let Some(short) = self.field.shortened(text) {
            return self.error(
                text,
                "is no name that cron knows",
                format!("write its first three letters, {short}"),
            );
        }
        if let Some(owner) = [Field::Month, Field::Weekday]
            .into_iter()
            .find(|other| other.named(text).is_some())
        {
            return self.error(
                text,
                format!("is a name for the {owner} field"),
                "the order is minute hour day-of-month month day-of-week",
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

    /// The error of a value within a term that needs a calendar, naming all of
    /// the term.
    fn ruled(&self, error: FieldError) -> FieldError {
        if error.reason == OUT_OF_RANGE {
            return error;
        }
        self.unknown(self.text)
    }

    /// `H`, `H(a-b)`, each with an optional step.
    fn hashed(&self, rest: &str, step: Option<usize>) -> Result<(u16, u16, usize), FieldError> {
        let remedy = "write H, H/15, H(0-7) or H(0-29)/10";
        if self.field == Field::Year {
            return Err(self.error(
                self.text,
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
                return Err(self.error(self.text, "is not a form of H", remedy));
            };
            self.bounds(&format!("{first}-{last}"), first, last)?
        };
        let Some(lock_name) = self.lock_name else {
            return Err(self.error(
                self.text,
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
    pub fn day_rule(&self) -> Result<Option<DayRule>, FieldError> {
        let upper = self.text.to_ascii_uppercase();
        match self.field {
            Field::Day => self.day_of_month_rule(&upper),
            Field::Weekday => self.weekday_rule(&upper),
            _ => Ok(None),
        }
    }

    fn day_of_month_rule(&self, upper: &str) -> Result<Option<DayRule>, FieldError> {
        match upper {
            "L" => return Ok(Some(DayRule::Last)),
            "LW" => return Ok(Some(DayRule::LastWorkday)),
            _ => {}
        }
        let Some(day) = upper.strip_suffix('W') else {
            return Ok(None);
        };
        if day.is_empty() || !day.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.error(self.text, "is not a value", self.calendar_remedy()));
        }
        let day = self.value(day).map_err(|error| self.ruled(error))?;
        Ok(Some(DayRule::NearestWorkday(u32::from(day))))
    }

    fn weekday_rule(&self, upper: &str) -> Result<Option<DayRule>, FieldError> {
        if upper == "L" {
            return Err(self.error(
                self.text,
                "lacks the day whose last occurrence it means",
                self.calendar_remedy(),
            ));
        }
        if let Some((day, nth)) = upper.split_once('#') {
            let day = self.value(day).map_err(|error| self.ruled(error))?;
            return match nth {
                "1" | "2" | "3" | "4" | "5" => Ok(Some(DayRule::Nth {
                    weekday: u32::from(day % 7),
                    nth: u32::from(nth.as_bytes()[0] - b'0'),
                })),
                _ => Err(self.error(
                    self.text,
                    "asks for a week that no month has",
                    "write 1 to 5 after the #, like 5#2 for the second Friday",
                )),
            };
        }
        let Some(day) = upper.strip_suffix('L') else {
            return Ok(None);
        };
        let day = self.value(day).map_err(|error| self.ruled(error))?;
        Ok(Some(DayRule::LastWeekday(u32::from(day % 7))))
    }
}
