//! Durations, names, signals and numbers.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::{DEFAULT_KEY_PREFIX, Wait};
use crate::cli::options::{Opt, Takes};
use crate::cli::words::{Given, Words};
use crate::cli::{UsageError, similar};

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
    min_reason: "leave it out for no limit",
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

fn refuse<T>(given: &Given, what: impl fmt::Display) -> Result<T, UsageError> {
    let name = given.name();
    let value = given.value.to_string_lossy();
    Err(UsageError::new(format!(
        "{name} `{}`: {what}",
        value.escape_debug()
    )))
}

/// The value as text.
pub(super) fn text(given: &Given) -> Result<String, UsageError> {
    match given.value.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => refuse(given, "this is not UTF-8"),
    }
}

/// The value as the path of a file.
pub(super) fn path(given: &Given) -> Result<PathBuf, UsageError> {
    if given.value.is_empty() {
        return refuse(given, "it is empty; write the path of a file");
    }
    Ok(PathBuf::from(&given.value))
}

/// What one of solocron's own variables says.
pub(super) fn text_of_variable(value: Option<&OsString>) -> String {
    value.map_or_else(String::new, |value| value.to_string_lossy().into_owned())
}

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

/// Reads a duration, as humantime does, but never a number without a unit.
fn parse_duration(written: &str) -> Result<Duration, String> {
    use humantime::DurationError as Error;
    const UNITS: &str = "the units are ms, s, m, h, d and w, as in 90s, 5m or 1h 30m";
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
    humantime::parse_duration(written).map_err(|error| match error {
        Error::UnknownUnit { unit, value, .. } if unit.is_empty() => {
            format!("{value} has no unit; write {value}s (or {value}m for minutes)")
        }
        Error::UnknownUnit { unit, .. } => format!("there is no unit `{unit}`; {UNITS}"),
        Error::NumberOverflow => "that is too long".to_owned(),
        _ => format!("that is no time; {UNITS}"),
    })
}

/// The whole number that an option gives.
pub(super) fn number(
    words: &Words,
    opt: Opt,
    allowed: RangeInclusive<u32>,
) -> Result<Option<u32>, UsageError> {
    let Some(given) = words.one(opt) else {
        return Ok(None);
    };
    let parsed = text(given)?.trim().parse::<u32>();
    match parsed {
        Ok(number) if allowed.contains(&number) => Ok(Some(number)),
        _ => refuse(
            given,
            format_args!(
                "write a whole number from {} to {}",
                allowed.start(),
                allowed.end()
            ),
        ),
    }
}

/// What stands for the word that an option gives; the default without it.
/// `meanings` are in the order of the words in the table of options.
pub(super) fn choice<T: Copy + Default>(
    words: &Words,
    opt: Opt,
    meanings: &[T],
) -> Result<T, UsageError> {
    let Some(given) = words.one(opt) else {
        return Ok(T::default());
    };
    let Takes::Choice(_, allowed) = opt.spec().takes else {
        unreachable!("{} takes no choice", opt.flag());
    };
    let written = text(given)?.trim().to_ascii_lowercase();
    if let Some(place) = allowed.iter().position(|word| *word == written) {
        return Ok(meanings[place]);
    }
    let hint = similar::nearest(&written, allowed)
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    refuse(given, format_args!("write {}{hint}", allowed.join(" or ")))
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

/// Longest lock name in bytes.
const NAME_MAX: usize = 200;
/// Longest key prefix in bytes.
const PREFIX_MAX: usize = 100;

/// The lock name, if there is one.
pub(super) fn lock_name(words: &Words) -> Result<Option<String>, UsageError> {
    let Some(given) = words.one(Opt::LockName) else {
        return Ok(None);
    };
    let name = text(given)?;
    if name.is_empty() {
        return refuse(
            given,
            "a lock name is 1 to 200 bytes; write the name of the job",
        );
    }
    if name.len() > NAME_MAX {
        return refuse(
            given,
            format_args!(
                "a lock name is 1 to {NAME_MAX} bytes, and this is {}",
                name.len()
            ),
        );
    }
    if name.chars().any(char::is_control) {
        return refuse(
            given,
            "a lock name has no control characters, such as newlines; write it without",
        );
    }
    Ok(Some(name))
}

/// The error where a lock name is needed and none was given.
pub(super) fn no_lock_name(words: &Words) -> UsageError {
    let misplaced = words.command_has("--lock-name");
    UsageError::new(if misplaced {
        "--lock-name stands after the command and so belongs to the command; write it before"
    } else {
        "--lock-name is missing: the name of the job, the same on all hosts, as in \
         --lock-name nightly-report"
    })
}

/// The start of the record's key.
pub(super) fn key_prefix(words: &Words) -> Result<String, UsageError> {
    let Some(given) = words.one(Opt::KeyPrefix) else {
        return Ok(DEFAULT_KEY_PREFIX.to_owned());
    };
    let prefix = text(given)?;
    if prefix.is_empty() || prefix.len() > PREFIX_MAX {
        return refuse(
            given,
            format_args!("a key prefix is 1 to {PREFIX_MAX} bytes"),
        );
    }
    // In a cluster the part of a key in braces decides where it lives: it is
    // to be the lock name.
    if prefix.contains(['{', '}']) || prefix.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return refuse(
            given,
            "a key prefix has no braces, blanks or control characters",
        );
    }
    Ok(prefix)
}

/// The signal that asks a command to stop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StopSignal(i32);

impl StopSignal {
    /// SIGTERM.
    pub const TERM: Self = Self(libc::SIGTERM);

    /// Its number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// The signals that a program can take as a request to stop: signal(7).
const SIGNALS: [(&str, i32); 19] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
];

/// Signals that cannot ask a program to stop.
const NO_REQUEST: [(&str, i32, &str); 8] = [
    (
        "KILL",
        libc::SIGKILL,
        "no program can catch it; --kill-after says when it is sent",
    ),
    (
        "STOP",
        libc::SIGSTOP,
        "it freezes a program and does not end it",
    ),
    (
        "TSTP",
        libc::SIGTSTP,
        "it freezes a program and does not end it",
    ),
    (
        "TTIN",
        libc::SIGTTIN,
        "it freezes a program and does not end it",
    ),
    (
        "TTOU",
        libc::SIGTTOU,
        "it freezes a program and does not end it",
    ),
    (
        "CONT",
        libc::SIGCONT,
        "it wakes a program and does not end it",
    ),
    (
        "CHLD",
        libc::SIGCHLD,
        "programs get it whenever a child ends",
    ),
    (
        "URG",
        libc::SIGURG,
        "programs ignore it unless they ask for it",
    ),
];

/// The signal to stop a command with.
pub(super) fn stop_signal(words: &Words) -> Result<StopSignal, UsageError> {
    let Some(given) = words.one(Opt::StopSignal) else {
        return Ok(StopSignal::TERM);
    };
    let written = text(given)?.trim().to_ascii_uppercase();
    let name = written.strip_prefix("SIG").unwrap_or(&written);
    let number = name.parse::<i32>().ok();
    let is = |other: &str, its_number: i32| name == other || number == Some(its_number);
    if let Some((_, _, why)) = NO_REQUEST.iter().find(|(other, its, _)| is(other, *its)) {
        return refuse(
            given,
            format_args!("{why}; write TERM, INT, QUIT, HUP or USR1"),
        );
    }
    if let Some((_, number)) = SIGNALS.iter().find(|(other, its)| is(other, *its)) {
        return Ok(StopSignal(*number));
    }
    match real_time(name, number) {
        Some(number) => Ok(StopSignal(number)),
        None => refuse(
            given,
            "there is no such signal; write a name as in TERM, INT, QUIT, HUP or USR1, or its number",
        ),
    }
}

/// A real-time signal, by number or as `RTMIN+3`.
fn real_time(name: &str, number: Option<i32>) -> Option<i32> {
    let (first, last) = (libc::SIGRTMIN(), libc::SIGRTMAX());
    let number = match name.strip_prefix("RTMIN") {
        Some("") => Some(first),
        Some(rest) => rest
            .strip_prefix('+')?
            .parse::<i32>()
            .ok()
            .and_then(|offset| first.checked_add(offset)),
        None => number,
    };
    number.filter(|number| (first..=last).contains(number))
}
