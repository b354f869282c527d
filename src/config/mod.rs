//! Options, checked once and typed; refuses what cannot work.
//!
//! - [`store`]: which store is meant
//! - [`sense`]: options that make no sense together
//! - [`held`]: locks held around this process
//! - [`duration`], [`signal`], [`values`]: single values

pub mod duration;
pub mod held;
mod read;
pub mod sense;
pub mod signal;
pub mod store;
pub mod values;

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

pub use crate::firing::OnStop;
pub use crate::lock::{OnLockLost, OnRunnerLost, Overlap, Wait};
pub use crate::log::Format as LogFormat;

pub use signal::StopSignal;
pub use store::{ReadFile, StoreAddress, StoreSource, TlsCa, TlsFiles};

/// The life of the lease where nothing else is said.
pub const DEFAULT_TTL: Duration = Duration::from_secs(30);
/// How late a firing may start where nothing else is said.
pub const DEFAULT_START_DEADLINE: Duration = Duration::from_secs(60);
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
    /// [`KILL_AFTER`](crate::lock::lease::KILL_AFTER) or never otherwise.
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
    /// Which of the two says it, for messages.
    pub tz_name: String,
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
