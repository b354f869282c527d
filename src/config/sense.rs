//! Options that make no sense together.
//!
//! What stands on the command line and has no meaning there is refused. What
//! stands in the environment is a default that several uses may share, a
//! solocron inside a command among them: where it has no meaning it is left
//! aside, with a warning if somebody may have relied on it.

use std::ffi::OsString;
use std::path::Path;

use super::duration;
use crate::cli::UsageError;
use crate::cli::options::{Opt, Use};
use crate::cli::words::{Given, Origin, Words};

/// Finds out what is asked for, and refuses options that have no meaning then;
/// with warnings about variables that are left aside.
///
/// # Errors
///
/// The first combination that makes no sense.
pub fn check(words: &Words) -> Result<(Use, Vec<String>), UsageError> {
    let asked = asked(words)?;
    check_quotes(words)?;
    let mut warnings = words.warnings.clone();
    for given in words.given() {
        if has_meaning(given.opt, asked, words) {
            continue;
        }
        let told = senseless(given, asked, words);
        match given.origin {
            Origin::Flag => return Err(UsageError::new(told)),
            Origin::Environment if asked == Use::Schedule => {
                warnings.push(format!("{told}; it is ignored"));
            }
            Origin::Environment => {}
        }
    }
    check_command(words, asked)?;
    check_pairs(words, asked)?;
    warnings.extend(misplaced(words, asked));
    Ok((asked, warnings))
}

fn has_meaning(opt: Opt, asked: Use, words: &Words) -> bool {
    let zone_of_nothing = opt == Opt::Tz && !words.has(Opt::Cron);
    opt.spec().uses.contains(&asked) && !zone_of_nothing
}

/// Without quotes a shell makes several words of an expression, of which all
/// but the first become the command.
fn check_quotes(words: &Words) -> Result<(), UsageError> {
    let Some(behind) = words.command.first() else {
        return Ok(());
    };
    for given in words.all(Opt::Cron) {
        let text = given.value.to_string_lossy();
        let is_one_word = !text.trim().is_empty() && !text.trim().contains([' ', '\t']);
        let is_whole = text.trim().starts_with('@') && !text.trim().eq_ignore_ascii_case("@every");
        // A quote of its own is told by the schedule.
        let is_quoted = text.trim().starts_with(['"', '\'']);
        if given.origin == Origin::Flag && is_one_word && !is_whole && !is_quoted {
            let example = if text.trim().starts_with('@') {
                "'@every 90m'"
            } else {
                "'0 3 * * *'"
            };
            return Err(UsageError::new(format!(
                "--cron `{}`: this is only the first word of a schedule, and `{}` was taken for \
                 the command; put the whole expression in quotes, as in --cron {example}",
                text.escape_debug(),
                behind.to_string_lossy().escape_debug()
            )));
        }
    }
    Ok(())
}

/// Whether a word is a crontab expression at first sight.
fn looks_like_a_schedule(word: &str) -> bool {
    let fields = word.split_whitespace().count();
    let begins = |c: char| c.is_ascii_digit() || c == '*';
    let named = |c: char| c.is_ascii_alphabetic();
    match word.strip_prefix('@') {
        Some(name) => name.starts_with(named),
        None => (5..=7).contains(&fields) && word.starts_with(begins),
    }
}

/// A warning about an option that says when a command starts, but stands
/// after the command. Commands may have options of the same name: only one
/// with a value that solocron would understand is told about, and none behind
/// `--` or a solocron inside the command.
fn misplaced(words: &Words, asked: Use) -> Option<String> {
    let is_solocron = |word: &OsString| Path::new(word).file_name() == Some("solocron".as_ref());
    if asked != Use::Once || words.command_is_marked || words.command.iter().any(is_solocron) {
        return None;
    }
    let is_meant = |opt: &Opt| {
        words.value_in_command(*opt).is_some_and(|value| match opt {
            Opt::Cron => looks_like_a_schedule(value),
            _ => duration::parse_duration(value).is_ok(),
        })
    };
    let flag = [Opt::Cron, Opt::OncePer].into_iter().find(is_meant)?.flag();
    Some(format!(
        "{flag} stands after the command and so belongs to the command; write it before, or, if \
         it is meant so, write -- before the command"
    ))
}

fn asked(words: &Words) -> Result<Use, UsageError> {
    match (words.has(Opt::Next), words.has(Opt::Status)) {
        (true, true) => Err(UsageError::new(
            "--next and --status are two questions; ask one at a time",
        )),
        (true, false) if !words.has(Opt::Cron) => {
            let word = words.command.first().and_then(|word| word.to_str());
            Err(UsageError::new(
                match word.filter(|word| looks_like_a_schedule(word)) {
                    Some(word) => format!("--next needs a schedule: write --cron before '{word}'"),
                    None => "--next needs a schedule: add --cron EXPR".to_owned(),
                },
            ))
        }
        (true, false) => Ok(Use::Next),
        (false, true) => Ok(Use::Status),
        (false, false) if words.has(Opt::Cron) => Ok(Use::Schedule),
        (false, false) => Ok(Use::Once),
    }
}

fn senseless(given: &Given, asked: Use, words: &Words) -> String {
    let name = given.name();
    match (asked, given.opt) {
        (_, Opt::From) => format!("{name} needs --next N: it says from when firings are printed"),
        (Use::Once, _) | (Use::Status, Opt::Tz) => {
            format!("{name} is for a schedule: add --cron EXPR, or leave {name} out")
        }
        (Use::Schedule, opt) => {
            let reason = match opt {
                Opt::Wait => "a firing that finds the lock held follows --overlap",
                Opt::OncePer => "each firing starts once anyhow",
                _ => "the status of a schedule does not tell of one firing",
            };
            format!(
                "{name} is for a single run and has no meaning with {}: {reason}",
                schedule_name(words)
            )
        }
        (Use::Next, _) => {
            format!("{name} has no meaning with --next, which only prints a schedule")
        }
        (Use::Status, _) => {
            format!("{name} has no meaning with --status, which only looks at a lock")
        }
    }
}

fn schedule_name(words: &Words) -> String {
    let Some(cron) = words.one(Opt::Cron) else {
        return Opt::Cron.flag();
    };
    match cron.origin {
        Origin::Flag => cron.name(),
        Origin::Environment => format!(
            "{0} (for a single run write {0}= before solocron)",
            cron.name()
        ),
    }
}

fn check_command(words: &Words, asked: Use) -> Result<(), UsageError> {
    let told = match (asked, words.command.first()) {
        (Use::Next, Some(word)) => format!(
            "--next runs no command; leave out `{}` and what follows",
            word.to_string_lossy()
        ),
        (Use::Status, Some(word)) => format!(
            "--status runs no command; leave out `{}` and what follows",
            word.to_string_lossy()
        ),
        (Use::Once | Use::Schedule, None) => {
            "there is no command; write it after the options, as in \
             `solocron --lock-name NAME -- COMMAND`; `solocron -h` lists the options"
                .to_owned()
        }
        _ => return Ok(()),
    };
    Err(UsageError::new(told))
}

fn check_pairs(words: &Words, asked: Use) -> Result<(), UsageError> {
    if words.has_flag(Opt::Store) && words.has_flag(Opt::StoreFile) {
        return Err(UsageError::new(
            "--store and --store-file both name the store; give one",
        ));
    }
    let runs = matches!(asked, Use::Once | Use::Schedule);
    if runs && words.has_flag(Opt::RetryDelay) && !words.has(Opt::Retries) {
        return Err(UsageError::new(
            "--retry-delay needs --retries N: without it nothing is tried again",
        ));
    }
    Ok(())
}
