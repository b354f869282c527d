//! Durations.

use std::time::Duration;

use super::Wait;
use super::values::{refuse, text};
use crate::cli::UsageError;
use crate::cli::options::Opt;
use crate::cli::words::{Given, Words};

/// Which durations make sense, and why not others.
#[derive(Debug)]
pub struct Range {
    min: Duration,
    min_reason: &'static str,
    max: Duration,
    max_reason: &'static str,
}

/// A hundred years: beyond it, sums of milliseconds would have to be watched.
const LONG: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
const TOO_LONG: &str = "the longest is 100 years";

/// The life of a lease.
pub const TTL: Range = Range {
    min: Duration::from_secs(1),
    min_reason: "the shortest is 1s, as heartbeats need time",
    max: Duration::from_secs(30 * 24 * 60 * 60),
    max_reason: "the longest is 30 days; it is how long the job is blocked after a host died, not \
                 how long it may take",
};
/// A period of a schedule, or a deadline in one.
pub const PERIOD: Range = Range {
    min: Duration::from_secs(1),
    min_reason: "the shortest is 1s",
    max: LONG,
    max_reason: TOO_LONG,
};
/// How long a command may run.
pub const TIMEOUT: Range = Range {
    min: Duration::from_millis(1),
    min_reason: "the shortest is 1ms; leave it out for no limit",
    max: LONG,
    max_reason: TOO_LONG,
};
/// Any time, also none.
pub const SPAN: Range = Range {
    min: Duration::ZERO,
    min_reason: "",
    max: LONG,
    max_reason: TOO_LONG,
};

/// The duration that an option gives.
pub(super) fn duration(
    words: &Words,
    opt: Opt,
    range: &Range,
) -> Result<Option<Duration>, UsageError> {
    words
        .one(opt)
        .map(|given| duration_of(given, range))
        .transpose()
}

fn duration_of(given: &Given, range: &Range) -> Result<Duration, UsageError> {
    let written = text(given)?;
    let written = written.trim();
    match parse_duration(written) {
        Err(told) => refuse(given, told),
        Ok(duration) if duration < range.min => refuse(given, range.min_reason),
        Ok(duration) if duration > range.max => refuse(given, range.max_reason),
        Ok(duration) => Ok(duration),
    }
}

/// The units and how they may be written, a subset of humantime's. It also
/// knows months and years, of which `1M` is too near to `1m`, and parts of a
/// millisecond, which nothing here counts.
const SPELLINGS: [&str; 26] = [
    "ms", "msec", "millis", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute",
    "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days", "w", "wk", "wks", "week",
    "weeks",
];
const UNITS: &str = "the units are ms, s, m, h, d and w, as in 90s, 5m or 1h 30m";

/// Reads a duration, as humantime does, but never a number without a unit nor
/// a unit whose length is not fixed.
pub(super) fn parse_duration(written: &str) -> Result<Duration, String> {
    use humantime::DurationError as Error;
    let number = |c: char| c.is_ascii_digit() || c == '.' || c == ' ';
    if written.is_empty() {
        return Err("it is empty; write a time with its unit, as in 90s, 5m or 1h 30m".to_owned());
    }
    if written.chars().all(number) {
        return Err(format!(
            "{written} has no unit; write {written}s (or {written}m for minutes)"
        ));
    }
    if written.starts_with('-') {
        return Err("a time cannot be negative; write it as in 90s, 5m or 1h 30m".to_owned());
    }
    let duration = humantime::parse_duration(written).map_err(|error| match error {
        Error::UnknownUnit { unit, value, .. } if unit.is_empty() => {
            format!("{value} has no unit; write {value}s (or {value}m for minutes)")
        }
        Error::UnknownUnit { unit, .. } => no_such_unit(&unit),
        Error::NumberOverflow => "that is too long".to_owned(),
        _ => format!("that is no time; {UNITS}"),
    })?;
    let unit = written
        .split(|c: char| !c.is_alphabetic())
        .find(|word| !word.is_empty() && !SPELLINGS.contains(word));
    unit.map_or(Ok(duration), |unit| Err(no_such_unit(unit)))
}

fn no_such_unit(unit: &str) -> String {
    let remedy = match unit.to_ascii_lowercase().as_str() {
        // In this order: M is a month to humantime, and a minute to most people.
        "m" => "write 1m for a minute".to_owned(),
        small if SPELLINGS.contains(&small) => format!("write it small, as in 1{small}"),
        "month" | "months" | "mo" => "months differ in length: write days, as in 30d".to_owned(),
        "y" | "yr" | "yrs" | "year" | "years" => {
            "years differ in length: write days, as in 365d".to_owned()
        }
        _ => UNITS.to_owned(),
    };
    format!("there is no unit `{unit}`; {remedy}")
}

/// Whether a single run waits.
pub(super) fn wait(words: &Words) -> Result<Wait, UsageError> {
    let Some(given) = words.one(Opt::Wait) else {
        return Ok(Wait::No);
    };
    if text(given)?.trim().eq_ignore_ascii_case("forever") {
        return Ok(Wait::Forever);
    }
    match duration_of(given, &SPAN) {
        Ok(Duration::ZERO) => Ok(Wait::No),
        Ok(duration) => Ok(Wait::For(duration)),
        Err(error) => Err(UsageError::new(format!("{error}, or forever"))),
    }
}
