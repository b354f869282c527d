//! The environment that stands in for options.

use std::ffi::{OsStr, OsString};

use super::options::{OPTIONS, Opt, Takes};
use super::words::{Origin, Words};
use super::{UsageError, similar};

/// What the name of every variable of solocron's begins with.
pub const PREFIX: &str = "SOLOCRON_";

/// Where the store is, if nothing else says so; the name that platforms give it.
pub const REDIS_URL: &str = "REDIS_URL";
/// The zone of a schedule, if nothing else says so: POSIX, Environment Variables.
pub const TZ: &str = "TZ";

/// Told to the command: the lock name.
pub const LOCK: &str = "SOLOCRON_LOCK";
/// Told to the command: the scheduled instant, RFC 3339 in UTC.
pub const FIRING: &str = "SOLOCRON_FIRING";
/// Told to the command: the fencing token, decimal.
pub const TOKEN: &str = "SOLOCRON_TOKEN";
/// Told to the command: how many times it was started for this firing.
pub const ATTEMPT: &str = "SOLOCRON_ATTEMPT";
/// Told to the command: the locks that are held around it, for a solocron
/// inside it (see [`crate::config::held`]).
pub const HELD: &str = "SOLOCRON_HELD";

/// Variables that solocron sets for the command.
pub const TOLD: [&str; 5] = [LOCK, FIRING, TOKEN, ATTEMPT, HELD];
/// Variables that are kept from the command: a solocron inside it must not
/// take this name and schedule for its own.
pub const KEPT_BACK: [&str; 2] = ["SOLOCRON_LOCK_NAME", "SOLOCRON_CRON"];

/// Adds what the environment says to what the command line says, which goes
/// before. An empty variable counts as unset.
///
/// # Errors
///
/// A switch whose variable is neither on nor off.
pub(super) fn merge(
    words: &mut Words,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(), UsageError> {
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|_| !value.is_empty()) else {
            continue;
        };
        match name {
            REDIS_URL => words.redis_url = Some(value),
            TZ => words.tz = Some(value),
            HELD => words.held = Some(value),
            _ if TOLD.contains(&name) => {}
            _ if name.starts_with(PREFIX) => merge_one(words, name, value)?,
            _ => {}
        }
    }
    Ok(())
}

fn merge_one(words: &mut Words, name: &str, value: OsString) -> Result<(), UsageError> {
    let Some(spec) = OPTIONS.iter().find(|spec| spec.opt.variable() == name) else {
        words.warnings.push(unknown(name));
        return Ok(());
    };
    let opt = spec.opt;
    if !spec.env {
        words.warnings.push(format!(
            "{name} is ignored: {} is not read from the environment",
            opt.flag()
        ));
        return Ok(());
    }
    // Louder and quieter are one dial: either on the command line sets it.
    let given = match opt {
        Opt::Verbose | Opt::Quiet => words.has_flag(Opt::Verbose) || words.has_flag(Opt::Quiet),
        _ => words.has_flag(opt),
    };
    if given {
        return Ok(());
    }
    match spec.takes {
        Takes::Switch if on(name, &value)? => words.add(opt, OsString::new(), Origin::Environment),
        Takes::Switch => {}
        Takes::Count(_) => {
            for _ in 0..count(name, &value)? {
                words.add(opt, OsString::new(), Origin::Environment);
            }
        }
        Takes::Many(_) => {
            for line in lines(&value) {
                words.add(opt, line, Origin::Environment);
            }
        }
        Takes::One(_) | Takes::Choice(..) | Takes::File(_) => {
            words.add(opt, value, Origin::Environment);
        }
    }
    Ok(())
}

fn unknown(name: &str) -> String {
    let names = OPTIONS.iter().filter(|spec| spec.env);
    let hint = similar::nearest(name, names.map(|spec| spec.opt.variable()))
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!("the environment variable {name} means nothing to solocron{hint}")
}

fn on(name: &str, value: &OsStr) -> Result<bool, UsageError> {
    let text = value.to_string_lossy();
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(UsageError::new(format!(
            "{name} is `{text}`, which is neither on nor off; write 1 or 0"
        ))),
    }
}

fn count(name: &str, value: &OsStr) -> Result<u8, UsageError> {
    match value.to_str().and_then(|text| text.trim().parse().ok()) {
        Some(times @ 0..=9) => Ok(times),
        _ => on(name, value).map(u8::from),
    }
}

/// The lines of a value, each one value by itself; none if all are blank.
pub(super) fn lines(value: &OsStr) -> Vec<OsString> {
    let Some(text) = value.to_str() else {
        return vec![value.to_owned()];
    };
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(OsString::from)
        .collect()
}
