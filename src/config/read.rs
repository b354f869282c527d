//! From words to a [`Config`].

use super::{
    CommandLine, Config, DEFAULT_RETRY_DELAY, DEFAULT_START_DEADLINE, DEFAULT_TTL, Job, LockAt,
    LogFormat, LogLevel, Mode, Next, OnLockLost, OnRunnerLost, OnStop, Overlap, Status,
    Surroundings, Task, When, duration, sense, signal, store, values,
};
use crate::cli::UsageError;
use crate::cli::options::{Opt, Use};
use crate::cli::words::{Given, Words};

impl Config {
    /// Understands what was said.
    ///
    /// # Errors
    ///
    /// Whatever cannot work, by name, with the reason and the remedy.
    pub fn new(words: &Words, around: &Surroundings<'_>) -> Result<Self, UsageError> {
        let (asked, mut warnings) = sense::check(words)?;
        let task = match asked {
            Use::Next => Task::Next(next(words)?),
            Use::Status => Task::Status(status(words, around, &mut warnings)?),
            Use::Once | Use::Schedule => {
                Task::Run(Box::new(job(words, asked, around, &mut warnings)?))
            }
        };
        let level = if asked == Use::Schedule || around.at_terminal {
            LogLevel::Info
        } else {
            LogLevel::Warn
        };
        Ok(Self {
            task,
            log_format: values::choice(words, Opt::LogFormat, &[LogFormat::Text, LogFormat::Json])?,
            log_level: level.moved(
                words.all(Opt::Verbose).count(),
                words.all(Opt::Quiet).count(),
            ),
            warnings,
        })
    }
}

fn job(
    words: &Words,
    asked: Use,
    around: &Surroundings<'_>,
    warnings: &mut Vec<String>,
) -> Result<Job, UsageError> {
    let mode = match asked {
        Use::Schedule => schedule_mode(words)?,
        _ => once_mode(words)?,
    };
    let span = |opt, range| duration::duration(words, opt, range);
    Ok(Job {
        lock: lock_at(words, around, warnings)?,
        mode,
        ttl: span(Opt::Ttl, &duration::TTL)?.unwrap_or(DEFAULT_TTL),
        on_lock_lost: values::choice(
            words,
            Opt::OnLockLost,
            &[OnLockLost::Stop, OnLockLost::Continue],
        )?,
        command: command_line(words)?,
        timeout: span(Opt::Timeout, &duration::TIMEOUT)?,
        kill_after: span(Opt::KillAfter, &duration::SPAN)?,
        stop_signal: signal::stop_signal(words)?,
        on_stop: values::choice(words, Opt::OnStop, &[OnStop::Forward, OnStop::Finish])?,
        retries: values::number(words, Opt::Retries, 0..=1_000_000)?.unwrap_or(0),
        retry_delay: span(Opt::RetryDelay, &duration::SPAN)?.unwrap_or(DEFAULT_RETRY_DELAY),
        held: values::text_of_variable(words.held.as_ref()),
    })
}

fn once_mode(words: &Words) -> Result<Mode, UsageError> {
    let skip = values::number(words, Opt::SkipExitCode, 0..=255)?;
    Ok(Mode::Once {
        wait: duration::wait(words)?,
        once_per: duration::duration(words, Opt::OncePer, &duration::PERIOD)?,
        skip_exit_code: skip.map_or(crate::exit::Exit::NotRun.code(), |code| {
            u8::try_from(code).unwrap_or(u8::MAX)
        }),
    })
}

fn schedule_mode(words: &Words) -> Result<Mode, UsageError> {
    let deadline = duration::duration(words, Opt::StartDeadline, &duration::PERIOD)?;
    Ok(Mode::Schedule {
        when: when(words)?,
        start_deadline: deadline.unwrap_or(DEFAULT_START_DEADLINE),
        overlap: values::choice(words, Opt::Overlap, &[Overlap::Skip, Overlap::Queue])?,
        on_runner_lost: values::choice(
            words,
            Opt::OnRunnerLost,
            &[OnRunnerLost::Skip, OnRunnerLost::Rerun],
        )?,
    })
}

fn when(words: &Words) -> Result<When, UsageError> {
    let expressions = words.all(Opt::Cron).map(values::text);
    Ok(When {
        expressions: expressions.collect::<Result<_, _>>()?,
        tz: words.one(Opt::Tz).map(values::text).transpose()?,
        tz_name: words
            .one(Opt::Tz)
            .map_or_else(|| Opt::Tz.flag(), Given::name),
        tz_variable: words
            .tz
            .as_ref()
            .map(|zone| zone.to_string_lossy().into_owned()),
    })
}

fn next(words: &Words) -> Result<Next, UsageError> {
    Ok(Next {
        count: values::number(words, Opt::Next, 1..=1_000_000)?.unwrap_or(1),
        from: words.one(Opt::From).map(values::text).transpose()?,
        when: when(words)?,
        lock_name: values::lock_name(words)?,
    })
}

fn status(
    words: &Words,
    around: &Surroundings<'_>,
    warnings: &mut Vec<String>,
) -> Result<Status, UsageError> {
    let scheduled = words.has(Opt::Cron);
    Ok(Status {
        lock: lock_at(words, around, warnings)?,
        when: scheduled.then(|| when(words)).transpose()?,
    })
}

fn lock_at(
    words: &Words,
    around: &Surroundings<'_>,
    warnings: &mut Vec<String>,
) -> Result<LockAt, UsageError> {
    let name = values::lock_name(words)?.ok_or_else(|| values::no_lock_name(words))?;
    let store = store::address(words, around, warnings)?;
    Ok(LockAt {
        name,
        tls: store::tls(words, &store)?,
        store,
        key_prefix: values::key_prefix(words)?,
    })
}

fn command_line(words: &Words) -> Result<CommandLine, UsageError> {
    let command = &words.command;
    if !words.has(Opt::Shell) {
        return Ok(CommandLine::Argv(command.clone()));
    }
    match command.as_slice() {
        [line] => Ok(CommandLine::Shell(line.clone())),
        _ => Err(UsageError::new(format!(
            "--shell takes the command as one string and was given {} words; put quotes around \
             the whole line, as in --shell 'a | b'",
            command.len()
        ))),
    }
}
