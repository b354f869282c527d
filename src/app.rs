//! From what was said to what runs: reads the configuration, puts the parts
//! together and hands over to a mode.

use std::cell::{Cell, RefCell};
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::runtime::{Builder, Runtime};

use crate::cli::{self, Request, UsageError};
use crate::clock::{Clock, SystemClock};
use crate::config::{
    self, CommandLine, Config, LockAt, LogFormat, LogLevel, Mode, Next, Surroundings, Task, TlsCa,
    When, held,
};
use crate::event::{Event, Listener};
use crate::exit::{Exit, Leave};
use crate::firing::{Job, RunPolicy, ms};
use crate::info::Info;
use crate::lock::lease::KILL_AFTER;
use crate::lock::{OnRunnerLost, Timing};
use crate::log::{self, Log};
use crate::once_mode::{self, Once};
use crate::process::notify::{self, Notifier};
use crate::process::{self, Inherited, Placement, Signals, Stdin};
use crate::schedule::{Agenda, Problem, Schedule, ZoneChoice, ZoneDb, text};
use crate::schedule_mode::{self, Plan};
use crate::status_mode::{self, Question, Status};
use crate::store::redis::key_of;
use crate::store::redis::tls::{Roots, TlsOptions};
use crate::store::{self, Location, Store, StoreOptions, file};

/// Names looked up at a time; more of them wait for one that hangs.
const LOOKUPS: usize = 8;

/// A record is kept this long at least.
const KEEP_MIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the program and says how to leave. `inherited` is the signal state at
/// the very start of the process.
#[must_use]
pub fn run(inherited: &Inherited) -> Leave {
    match understand() {
        Ok(Said::Print(text)) => print(&text).map_or_else(
            |failure| failure.told(),
            |()| Leave::With(Exit::Success.code()),
        ),
        Ok(Said::Config(config)) => {
            let result = match &config.task {
                Task::Next(next) => print_next(next, config.log_format),
                Task::Status(status) => print_status(status, &config),
                Task::Run(job) => run_job(job, &config, inherited),
            };
            result.unwrap_or_else(|failure| failure.told())
        }
        Err(error) => Failure::Usage(error).told(),
    }
}

/// Why nothing could be done.
enum Failure {
    /// What was asked for cannot work.
    Usage(UsageError),
    /// The store refused or could not be reached.
    Store(store::StoreError),
    /// The system failed solocron itself.
    System(&'static str, io::Error),
}

impl Failure {
    fn usage(text: impl std::fmt::Display) -> Self {
        Self::Usage(UsageError::new(format!("{text}")))
    }

    /// Says so on standard error, and gives the status.
    fn told(&self) -> Leave {
        let (text, exit) = match self {
            Self::Usage(error) => (format!("{error}\nTry 'solocron --help'."), Exit::Usage),
            Self::Store(error) if error.class.is_final() => (error.to_string(), Exit::Refused),
            Self::Store(error) => (error.to_string(), Exit::Unavailable),
            Self::System(what, error) => (format!("{what}: {error}"), Exit::Internal),
        };
        log::say(&format!("solocron: {text}"));
        Leave::With(exit.code())
    }
}

enum Said {
    Print(String),
    Config(Box<Config>),
}

fn understand() -> Result<Said, UsageError> {
    let request = cli::parse(env::args_os(), env::vars_os(), || zone_db().describe())?;
    let words = match request {
        Request::Print(text) => return Ok(Said::Print(text)),
        Request::Go(words) => words,
    };
    let around = Surroundings {
        at_terminal: io::stderr().is_terminal(),
        read_file: &config::store::read_file,
    };
    Config::new(&words, &around).map(|config| Said::Config(Box::new(config)))
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Nobody reading any more is no failure; an answer that is lost is one.
fn printed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::System("cannot write to standard output", error))
        }
        _ => Ok(()),
    }
}

fn zone_db() -> ZoneDb {
    ZoneDb::new(env::var_os("TZDIR").as_deref())
}

fn schedule(when: &When, lock_name: Option<&str>) -> Result<Schedule, Failure> {
    let db = zone_db();
    let choice = ZoneChoice {
        db: &db,
        given: when.tz.as_deref(),
        tz_env: when.tz_variable.as_deref().map(OsStr::new),
    };
    Schedule::parse(&when.expressions, &choice, lock_name).map_err(|error| {
        let text = error.to_string();
        // The schedule does not know that a variable can stand in for --tz.
        Failure::usage(match &error.problem {
            Problem::Zone(zone) if zone.origin != "--tz" => text,
            Problem::Zone(_) | Problem::ZoneConflict { .. } => {
                text.replacen("--tz", &when.tz_name, 1)
            }
            _ => text,
        })
    })
}

fn print_next(next: &Next, format: LogFormat) -> Result<Leave, Failure> {
    let schedule = schedule(&next.when, next.lock_name.as_deref())?;
    let now = SystemClock.wall();
    let after = match &next.from {
        Some(from) => text::parse_from(from, schedule.zone())
            .map_err(|error| Failure::usage(format!("--from: {error}")))?,
        None => now,
    };
    // Without any firing the output would be empty, and nobody told.
    schedule.check_future(after).map_err(Failure::usage)?;
    let to_terminal = io::stdout().is_terminal();
    let mut out = BufWriter::new(io::stdout().lock());
    let count = usize::try_from(next.count).unwrap_or(usize::MAX);
    let written = schedule
        .firings(after)
        .take(count)
        .try_for_each(|(firing, zone)| {
            let line = match format {
                LogFormat::Json => text::json_line(firing, zone, now),
                LogFormat::Text if to_terminal => text::terminal_line(firing, zone, now),
                LogFormat::Text => text::plain_line(firing, zone),
            };
            writeln!(out, "{line}")
        });
    printed(written.and_then(|()| out.flush()))?;
    Ok(Leave::With(Exit::Success.code()))
}

fn print_status(asked: &config::Status, config: &Config) -> Result<Leave, Failure> {
    let lock = &asked.lock;
    let schedule = asked
        .when
        .as_ref()
        .map(|when| schedule(when, Some(&lock.name)));
    let schedule = schedule.transpose()?;
    let next = schedule
        .as_ref()
        .and_then(|schedule| schedule.next(SystemClock.wall()));
    start_log(config);
    let location = location(lock)?;
    let runtime = runtime(&location)?;
    let store = open(lock, &location)?;
    let (record, now) = runtime
        .block_on(status_mode::read(&*store, &SystemClock))
        .map_err(Failure::Store)?;
    let is_redis = matches!(location, Location::Redis(_));
    let key = is_redis.then(|| key_of(&lock.key_prefix, &lock.name));
    let question = Question {
        lock: &lock.name,
        store: store.place(),
        key: key.as_deref(),
        next,
        ended: schedule.is_some() && next.is_none(),
    };
    let status = Status::new(&question, record.as_ref(), now);
    print(&status.render(config.log_format))?;
    Ok(Leave::With(status.exit().code()))
}

/// A runtime on this thread; and another thread where `location` has names to
/// be looked up.
///
/// That one stays: should no thread be to be had later (a limit on processes
/// that a command has reached), the runtime makes do with those it has, but
/// panics if it has none.
fn runtime(location: &Location) -> Result<Runtime, Failure> {
    let build = || {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_keep_alive(Duration::MAX)
            .max_blocking_threads(LOOKUPS)
            .build()?;
        if let Location::Redis(url) = location
            && url.kind.has_names()
        {
            first_thread(&runtime)?;
        }
        Ok(runtime)
    };
    build().map_err(|error: io::Error| Failure::System("cannot set up", error))
}

/// The runtime has no other way than to panic to say that there is no thread.
fn first_thread(runtime: &Runtime) -> io::Result<()> {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let started = panic::catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(|| ())));
    panic::set_hook(loud);
    let none = |_| io::Error::other("no thread to be had (a limit on processes?)");
    started.map(drop).map_err(none)
}

fn start_log(config: &Config) {
    use tracing::level_filters::LevelFilter;
    let level = match config.log_level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = io::stderr().is_terminal() && !plain;
    log::start(config.log_format, level, colour);
}

fn location(lock: &LockAt) -> Result<Location, Failure> {
    Location::parse(&lock.store.text)
        .map_err(|error| Failure::usage(format!("{}: {error}", lock.store.source)))
}

fn open(lock: &LockAt, location: &Location) -> Result<Box<dyn Store>, Failure> {
    let local_dir = match location {
        Location::Local => Some(local_dir()?),
        _ => None,
    };
    let options = StoreOptions {
        lock_name: &lock.name,
        key_prefix: &lock.key_prefix,
        tls: &tls(lock),
        local_dir: local_dir.as_deref(),
    };
    store::open(location, &options).map_err(Failure::usage)
}

fn local_dir() -> Result<PathBuf, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    let (state, home) = (env::var_os("XDG_STATE_HOME"), env::var_os("HOME"));
    file::default_dir(is_root, state.as_deref(), home.as_deref()).map_err(Failure::usage)
}

fn tls(lock: &LockAt) -> TlsOptions {
    let (cert, key) = lock.tls.client.clone().unzip();
    TlsOptions {
        roots: match &lock.tls.ca {
            TlsCa::Bundled => Roots::Bundled,
            TlsCa::System => Roots::System,
            TlsCa::File(path) => Roots::File(path.clone()),
        },
        cert,
        key,
    }
}

fn run_job(said: &config::Job, config: &Config, inherited: &Inherited) -> Result<Leave, Failure> {
    let mut signals = Signals::install(inherited)
        .map_err(|error| Failure::System("cannot catch signals", error))?;
    let schedule = match &said.mode {
        Mode::Schedule { when, .. } => {
            let schedule = schedule(when, Some(&said.lock.name))?;
            schedule
                .check_future(SystemClock.wall())
                .map_err(Failure::usage)?;
            Some(schedule)
        }
        Mode::Once { .. } => None,
    };
    start_log(config);
    // From here on requests wait in the runtime, which the store needs.
    let location = location(&said.lock)?;
    let runtime = runtime(&location)?;
    let store = open(&said.lock, &location)?;
    let command = command(said, &*store, inherited)?;
    let log = Log::new(&said.lock.name, &SystemClock);
    for warning in &config.warnings {
        log.on_event(&Event::Notice {
            text: warning.clone(),
        });
    }
    let job = job(said, schedule.as_ref(), command, &*store, &log);
    let leave = runtime.block_on(async {
        match (&said.mode, schedule) {
            (
                Mode::Schedule {
                    start_deadline,
                    overlap,
                    ..
                },
                Some(schedule),
            ) => {
                let deadline = TimeDelta::from_std(*start_deadline).unwrap_or(TimeDelta::MAX);
                let plan = Plan {
                    agenda: Agenda::new(schedule, SystemClock.wall(), deadline),
                    start_deadline: *start_deadline,
                    overlap: *overlap,
                    notifier: Notifier::from_env(),
                };
                schedule_mode::run(&job, plan, &mut signals).await
            }
            (mode, _) => once_mode::run(&job, once(mode), &mut signals).await,
        }
    });
    // A resolver thread that hangs must not hold up the end of the process.
    runtime.shutdown_background();
    Ok(leave)
}

fn once(mode: &Mode) -> Once {
    match *mode {
        Mode::Once {
            wait,
            once_per,
            skip_exit_code,
        } => Once {
            wait,
            per: once_per,
            skip_exit_code,
        },
        Mode::Schedule { .. } => Once {
            wait: config::Wait::No,
            per: None,
            skip_exit_code: Exit::NotRun.code(),
        },
    }
}

fn job<'a>(
    said: &config::Job,
    schedule: Option<&Schedule>,
    command: process::Spec,
    store: &'a dyn Store,
    log: &'a Log<'_>,
) -> Job<'a> {
    let (on_runner_lost, keep) = match &said.mode {
        Mode::Schedule {
            start_deadline,
            on_runner_lost,
            ..
        } => {
            let gap = schedule.map_or(Duration::ZERO, |schedule| {
                schedule.longest_gap(SystemClock.wall())
            });
            (*on_runner_lost, gap.max(*start_deadline))
        }
        Mode::Once { once_per, .. } => (OnRunnerLost::Skip, once_per.unwrap_or_default()),
    };
    let keep = KEEP_MIN.max(2 * keep.max(said.ttl));
    Job {
        lock_name: said.lock.name.clone(),
        clock: &SystemClock,
        store,
        listener: log,
        timing: Timing::new(said.ttl, said.kill_after.unwrap_or(KILL_AFTER)),
        on_lock_lost: said.on_lock_lost,
        on_runner_lost,
        keep: ms(keep),
        info: info(&said.command, schedule),
        run: RunPolicy {
            command,
            timeout: said.timeout,
            kill_after: said.kill_after,
            stop_signal: process::Signal::from_number(said.stop_signal.number())
                .unwrap_or(process::Signal::TERM),
            on_stop: said.on_stop,
            retries: said.retries,
            retry_delay: said.retry_delay,
        },
        ahead: Cell::new(0),
        told_mark: Cell::new(false),
        told_differences: RefCell::default(),
    }
}

fn info(command: &CommandLine, schedule: Option<&Schedule>) -> Info {
    let words = match command {
        CommandLine::Argv(argv) => argv.as_slice(),
        CommandLine::Shell(line) => std::slice::from_ref(line),
    };
    let command = match command {
        CommandLine::Argv(argv) => argv
            .first()
            .and_then(|program| std::path::Path::new(program).file_name())
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        CommandLine::Shell(_) => "sh -c".to_owned(),
    };
    Info {
        host: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        pid: std::process::id(),
        version: cli::VERSION.to_owned(),
        command,
        digest: Info::digest_of(words),
        schedule: schedule.map(Schedule::expressions),
        zone: schedule.map(|schedule| schedule.zone().name().to_owned()),
    }
}

/// The command with its environment, as far as it is the same for every start.
fn command(
    said: &config::Job,
    store: &dyn Store,
    inherited: &Inherited,
) -> Result<process::Spec, Failure> {
    let lock = &said.lock;
    let digest = held::digest(store.place(), &lock.key_prefix, &lock.name);
    if held::contains(&said.held, &digest) {
        return Err(Failure::usage(format!(
            "lock {:?} is held by the solocron that this one runs in, and would be waited for without end; \
             use another --lock-name, or run the command without solocron",
            lock.name
        )));
    }
    let (argv, shell) = match &said.command {
        CommandLine::Argv(argv) => (argv.clone(), false),
        CommandLine::Shell(line) => (vec![line.clone()], true),
    };
    let kept_back = cli::env::KEPT_BACK.iter().chain(cli::env::TOLD.iter());
    let manager = notify::VARIABLES.iter();
    Ok(process::Spec {
        argv,
        shell,
        env_set: vec![(
            OsString::from(cli::env::HELD),
            OsString::from(held::with(&said.held, &digest)),
        )],
        env_remove: kept_back.chain(manager).map(OsString::from).collect(),
        stdin: match said.mode {
            Mode::Once { .. } => Stdin::Inherit,
            Mode::Schedule { .. } => Stdin::Null,
        },
        placement: Placement::OwnGroup,
        inherited: inherited.clone(),
    })
}
