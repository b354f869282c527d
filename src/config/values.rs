//! Names, numbers and words.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::DEFAULT_KEY_PREFIX;
use crate::cli::options::{Opt, Takes};
use crate::cli::words::{Given, Words};
use crate::cli::{UsageError, similar};

/// An error about a value, which it shows.
pub(super) fn refuse<T>(given: &Given, what: impl fmt::Display) -> Result<T, UsageError> {
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
    if words.command_has(Opt::LockName) {
        return UsageError::new(
            "--lock-name stands after the command and so belongs to the command; write it before",
        );
    }
    let question = match words.command.first().and_then(|word| word.to_str()) {
        _ if words.command_is_marked => "",
        Some("help") => "; for help write solocron --help",
        Some("version") => "; for the version write solocron --version",
        Some("status") => "; for the state of a lock write solocron --status --lock-name NAME",
        Some("next") => "; for the next firings write solocron --next 5 --cron EXPR",
        _ => "",
    };
    UsageError::new(format!(
        "--lock-name is missing: the name of the job, the same on all hosts, as in \
         --lock-name nightly-report{question}"
    ))
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
            format_args!(
                "a key prefix is 1 to {PREFIX_MAX} bytes; leave it out for {DEFAULT_KEY_PREFIX}"
            ),
        );
    }
    // In a cluster the part of a key in braces decides where it lives: it is
    // to be the lock name.
    if prefix.contains(['{', '}']) || prefix.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return refuse(
            given,
            "a key prefix has no braces, blanks or control characters; write it without, as in shop-test",
        );
    }
    Ok(prefix)
}
