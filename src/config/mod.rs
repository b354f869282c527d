//! Options, checked once and typed; refuses what cannot work.
//!
//! - [`values`]: durations, names, signals, numbers
//! - [`store`]: which store is meant
//! - [`sense`]: options that make no sense together
//! - [`held`]: locks held around this process

pub mod held;
pub mod sense;
pub mod store;
pub mod values;

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use crate::cli::UsageError;
use crate::cli::options::{Opt, Use};
use crate::cli::words::Words;
pub use crate::firing::OnStop;
pub use crate::lock::{OnLockLost, OnRunnerLost, Overlap, Wait};
pub use crate::log::Format as LogFormat;

pub use store::{ReadFile, StoreAddress, StoreSource, TlsCa, TlsFiles};
pub use values::StopSignal;

/// The life of the lease where nothing else is said.
pub const DEFAULT_TTL: Duration = Duration::from_secs(30);
/// How late a firing may start where nothing else is said.
pub const DEFAULT_START_DEADLINE: Duration = Duration::from_secs(60);
/// From the stop signal to SIGKILL after a time-out or a lost lock, where
/// nothing else is said. It fits into the 10 s that a container is given.
pub const DEFAULT_KILL_AFTER: Duration = Duration::from_secs(8);
/// Time before a retry where nothing else is said.
pub const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The start of a record's key where nothing else is said.
pub const DEFAULT_KEY_PREFIX: &str = "solocron";

/// All that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// What is to be done.
    pub task: Task,
    /// The form of own messages, and of what `--status` and `--next` print.
    pub log_format: LogFormat,
    /// The least important messages that are told.
    pub log_level: LogLevel,
    /// What is odd and does no harm; to be told as warnings.
    pub warnings: Vec<String>,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Task {
    /// Run a command.
    Run(Box<Job>),
    /// Print the next firings.
    Next(Next),
    /// Print what the store knows.
    Status(Status),
}

/// A command to run under a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The lock.
    pub lock: LockAt,
    /// When it is run.
    pub mode: Mode,
    /// The life of the lease without a heartbeat.
    pub ttl: Duration,
    /// What happens to the command when the lease cannot be kept.
    pub on_lock_lost: OnLockLost,
    /// The command.
    pub command: CommandLine,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// From the stop signal to SIGKILL, if the user said so;
    /// [`DEFAULT_KILL_AFTER`] or never otherwise.
    pub kill_after: Option<Duration>,
    /// The signal that asks the command to stop.
    pub stop_signal: StopSignal,
    /// What happens when solocron is told to stop.
    pub on_stop: OnStop,
    /// How many times a failed command is started again.
    pub retries: u32,
    /// The time before that.
    pub retry_delay: Duration,
    /// The locks that are held around this process, as [`held`] writes them.
    pub held: String,
}

/// A lock name in a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockAt {
    /// The lock name.
    pub name: String,
    /// The store.
    pub store: StoreAddress,
    /// Files for TLS.
    pub tls: TlsFiles,
    /// The start of the record's key.
    pub key_prefix: String,
}

/// When a command is run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Once, at once.
    Once {
        /// Whether it waits for the lock.
        wait: Wait,
        /// The period in which it starts once among all hosts.
        once_per: Option<Duration>,
        /// The status when it was not run.
        skip_exit_code: u8,
    },
    /// On a schedule.
    Schedule {
        /// The schedule.
        when: When,
        /// How late a firing may start.
        start_deadline: Duration,
        /// What happens behind an earlier run.
        overlap: Overlap,
        /// What happens when a runner died.
        on_runner_lost: OnRunnerLost,
    },
}

/// A schedule as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct When {
    /// The expressions, at least one.
    pub expressions: Vec<String>,
    /// What `--tz` or its variable says.
    pub tz: Option<String>,
    /// What `TZ` says.
    pub tz_variable: Option<String>,
}

/// Firings to print.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Next {
    /// How many.
    pub count: u32,
    /// The instant after which they are, as it was written; now if none.
    pub from: Option<String>,
    /// The schedule.
    pub when: When,
    /// The lock name, for `H` in the schedule.
    pub lock_name: Option<String>,
}

/// A lock to tell about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// The lock.
    pub lock: LockAt,
    /// The schedule whose next firing is told too.
    pub when: Option<When>,
}

/// The command as it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandLine {
    /// A program and its arguments; never empty.
    Argv(Vec<OsString>),
    /// A line for `/bin/sh -c`.
    Shell(OsString),
}

/// How important a message must be to be told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LogLevel {
    /// Nothing is told.
    Off,
    /// What went wrong.
    Error,
    /// What needs a look.
    Warn,
    /// What happens: a line when a firing starts and one when it ends.
    Info,
    /// Why it happens.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    const ALL: [Self; 6] = [
        Self::Off,
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    fn moved(self, louder: usize, quieter: usize) -> Self {
        let place = (self as usize + louder).saturating_sub(quieter);
        Self::ALL[place.min(Self::ALL.len() - 1)]
    }
}

/// What is around the process and decides what words mean.
pub struct Surroundings<'a> {
    /// Whether standard error is a terminal.
    pub at_terminal: bool,
    /// Reads a file, up to [`store::FILE_MAX`] bytes.
    pub read_file: ReadFile<'a>,
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at a terminal: {}", self.at_terminal)
    }
}

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
    let duration = |opt, range| values::duration(words, opt, range);
    Ok(Job {
        lock: lock_at(words, around, warnings)?,
        mode,
        ttl: duration(Opt::Ttl, &values::TTL)?.unwrap_or(DEFAULT_TTL),
        on_lock_lost: values::choice(
            words,
            Opt::OnLockLost,
            &[OnLockLost::Stop, OnLockLost::Continue],
        )?,
        command: command_line(words)?,
        timeout: duration(Opt::Timeout, &values::TIMEOUT)?,
        kill_after: duration(Opt::KillAfter, &values::SPAN)?,
        stop_signal: values::stop_signal(words)?,
        on_stop: values::choice(words, Opt::OnStop, &[OnStop::Forward, OnStop::Finish])?,
        retries: values::number(words, Opt::Retries, 0..=1_000_000)?.unwrap_or(0),
        retry_delay: duration(Opt::RetryDelay, &values::SPAN)?.unwrap_or(DEFAULT_RETRY_DELAY),
        held: values::text_of_variable(words.held.as_ref()),
    })
}

fn once_mode(words: &Words) -> Result<Mode, UsageError> {
    let skip = values::number(words, Opt::SkipExitCode, 0..=255)?;
    Ok(Mode::Once {
        wait: values::wait(words)?,
        once_per: values::duration(words, Opt::OncePer, &values::PERIOD)?,
        skip_exit_code: skip.map_or(crate::exit::Exit::NotRun.code(), |code| {
            u8::try_from(code).unwrap_or(u8::MAX)
        }),
    })
}

fn schedule_mode(words: &Words) -> Result<Mode, UsageError> {
    let deadline = values::duration(words, Opt::StartDeadline, &values::PERIOD)?;
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
