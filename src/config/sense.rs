//! Options that make no sense together.
//!
//! What stands on the command line and has no meaning there is refused. What
//! stands in the environment is a default that several uses may share, a
//! solocron inside a command among them: where it has no meaning it is left
//! aside, with a warning if somebody may have relied on it.

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
    let mut warnings = words.warnings.clone();
    for given in words.given() {
        if given.opt.spec().uses.contains(&asked) {
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
    Ok((asked, warnings))
}

fn asked(words: &Words) -> Result<Use, UsageError> {
    match (words.has(Opt::Next), words.has(Opt::Status)) {
        (true, true) => Err(UsageError::new(
            "--next and --status are two questions; ask one at a time",
        )),
        (true, false) if !words.has(Opt::Cron) => {
            Err(UsageError::new("--next needs a schedule: add --cron EXPR"))
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
        (Use::Once, _) => {
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
