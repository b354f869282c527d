//! The options, as one table: the parser, the environment, the help texts, the
//! manual page, the completions and the README's table all come from it.

/// An option.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // Each is named and explained in the table below.
pub enum Opt {
    LockName,
    Ttl,
    Store,
    StoreFile,
    KeyPrefix,
    TlsCa,
    TlsCert,
    TlsKey,
    OnLockLost,
    Cron,
    Tz,
    StartDeadline,
    Overlap,
    OnRunnerLost,
    Wait,
    OncePer,
    SkipExitCode,
    Shell,
    Timeout,
    KillAfter,
    StopSignal,
    OnStop,
    Retries,
    RetryDelay,
    LogFormat,
    Verbose,
    Quiet,
    Next,
    From,
    Status,
}

/// How an option takes its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// One value.
    One(&'static str),
    /// One value for each time it is given.
    Many(&'static str),
    /// One of these words.
    Choice(&'static str, &'static [&'static str]),
    /// A file.
    File(&'static str),
    /// Nothing: it is on or off.
    Switch,
    /// Nothing: every time counts.
    Count(char),
}

/// What solocron can be asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Run a command once.
    Once,
    /// Run a command on a schedule.
    Schedule,
    /// Print the next firings.
    Next,
    /// Print what the store knows.
    Status,
}

/// What there is to say about an option.
#[derive(Debug)]
pub struct Spec {
    /// Which option it is.
    pub opt: Opt,
    /// Its name without the hyphens.
    pub name: &'static str,
    /// The heading that it stands under.
    pub heading: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// The uses that it makes sense with.
    pub uses: &'static [Use],
    /// Whether the environment can give it.
    pub env: bool,
    /// Its value when it is not given, for the documentation; empty if none.
    pub default: &'static str,
    /// What it means, in a line.
    pub help: &'static str,
    /// What else there is to know, for the long help and the manual page.
    pub more: &'static str,
}

impl Opt {
    /// What there is to say about it.
    #[must_use]
    pub fn spec(self) -> &'static Spec {
        &OPTIONS[self as usize]
    }

    /// Its name as it is given on the command line.
    #[must_use]
    pub fn flag(self) -> String {
        format!("--{}", self.spec().name)
    }

    /// The environment variable that stands in for it.
    #[must_use]
    pub fn variable(self) -> String {
        let name = self.spec().name.replace('-', "_");
        format!("{}{}", super::env::PREFIX, name.to_ascii_uppercase())
    }
}

impl Spec {
    /// The value as the usage shows it; empty for a switch.
    #[must_use]
    pub const fn value_name(&self) -> &'static str {
        match self.takes {
            Takes::One(name) | Takes::Many(name) | Takes::File(name) | Takes::Choice(name, _) => {
                name
            }
            Takes::Switch | Takes::Count(_) => "",
        }
    }
}

const LOCK: &str = "Lock and store";
const SCHEDULE: &str = "Schedule";
const ONCE: &str = "Single run";
const COMMAND: &str = "Command";
const OUTPUT: &str = "Output";
/// The heading of what only prints something.
pub const LOOK: &str = "Look only";

const RUNS: &[Use] = &[Use::Once, Use::Schedule];
const STORES: &[Use] = &[Use::Once, Use::Schedule, Use::Status];
const SCHEDULES: &[Use] = &[Use::Schedule, Use::Next, Use::Status];
const ALL: &[Use] = &[Use::Once, Use::Schedule, Use::Next, Use::Status];

/// Every option, in the order of [`Opt`].
pub static OPTIONS: &[Spec] = &[
    Spec {
        opt: Opt::LockName,
        name: "lock-name",
        heading: LOCK,
        takes: Takes::One("NAME"),
        uses: ALL,
        env: true,
        default: "",
        help: "Name of the job: of all instances with one name, one runs the command",
        more: "1 to 200 bytes without control characters. One name is one job: give two jobs two names, and all instances of a job the same one.",
    },
    Spec {
        opt: Opt::Ttl,
        name: "ttl",
        heading: LOCK,
        takes: Takes::One("DUR"),
        uses: RUNS,
        env: true,
        default: "30s",
        help: "Life of the lock without a heartbeat; not how long the job may take",
        more: "At least 1s. The lock is renewed every third of it for as long as the command runs. It is how long the job is blocked after a host died, and it decides which outage of the store a running command survives: about 10 s with 30s, 30 s with 60s, 69 s with 2m.",
    },
    Spec {
        opt: Opt::Store,
        name: "store",
        heading: LOCK,
        takes: Takes::One("URL"),
        uses: STORES,
        env: true,
        default: "REDIS_URL",
        help: "Where the lock lives: redis://HOST, local, ...",
        more: "redis://USER:PASSWORD@HOST:PORT/DB, rediss:// for TLS, unix:///path.sock, redis-sentinel://HOST,HOST/MASTER/DB, redis-cluster://HOST,HOST (rediss- for both with TLS), local for the instances of one user on this machine, file:///DIR for the same in another directory. \
               Without --store, --store-file and REDIS_URL, the lock is local at a terminal and an error elsewhere.",
    },
    Spec {
        opt: Opt::StoreFile,
        name: "store-file",
        heading: LOCK,
        takes: Takes::File("PATH"),
        uses: STORES,
        env: true,
        default: "",
        help: "File whose first line is the store's URL, for secrets",
        more: "",
    },
    Spec {
        opt: Opt::KeyPrefix,
        name: "key-prefix",
        heading: LOCK,
        takes: Takes::One("TEXT"),
        uses: STORES,
        env: true,
        default: "solocron",
        help: "Start of the key in the store; the key is TEXT:{NAME}",
        more: "",
    },
    Spec {
        opt: Opt::TlsCa,
        name: "tls-ca",
        heading: LOCK,
        takes: Takes::File("FILE|system"),
        uses: STORES,
        env: true,
        default: "bundled roots",
        help: "Certificates to trust for rediss://: a PEM file, or the system's",
        more: "",
    },
    Spec {
        opt: Opt::TlsCert,
        name: "tls-cert",
        heading: LOCK,
        takes: Takes::File("FILE"),
        uses: STORES,
        env: true,
        default: "",
        help: "Client certificate for rediss://, a PEM file",
        more: "",
    },
    Spec {
        opt: Opt::TlsKey,
        name: "tls-key",
        heading: LOCK,
        takes: Takes::File("FILE"),
        uses: STORES,
        env: true,
        default: "",
        help: "Private key of the client certificate, a PEM file",
        more: "",
    },
    Spec {
        opt: Opt::OnLockLost,
        name: "on-lock-lost",
        heading: LOCK,
        takes: Takes::Choice("stop|continue", &["stop", "continue"]),
        uses: RUNS,
        env: true,
        default: "stop",
        help: "What to do with the command when the lock cannot be kept",
        more: "stop ends the command before another instance may start. continue lets it run on, and two may then run at the same time.",
    },
    Spec {
        opt: Opt::Cron,
        name: "cron",
        heading: SCHEDULE,
        takes: Takes::Many("EXPR"),
        uses: SCHEDULES,
        env: true,
        default: "run once",
        help: "Crontab schedule, such as '*/5 * * * *'; may be given several times",
        more: "Five fields as in crontab(5), or @hourly and its like, @every DUR; six fields put seconds first, seven add the year. L, W, # and ? in the day fields. H is a number made from the lock name, the same on every host. CRON_TZ=ZONE before the fields names a zone. \
               Several expressions are one schedule that fires whenever any of them does; in the environment they are separated by newlines.",
    },
    Spec {
        opt: Opt::Tz,
        name: "tz",
        heading: SCHEDULE,
        takes: Takes::One("ZONE"),
        uses: SCHEDULES,
        env: true,
        default: "TZ, else the system's, else UTC",
        help: "Time zone of the schedule, such as Europe/Berlin",
        more: "",
    },
    Spec {
        opt: Opt::StartDeadline,
        name: "start-deadline",
        heading: SCHEDULE,
        takes: Takes::One("DUR"),
        uses: &[Use::Schedule],
        env: true,
        default: "60s",
        help: "How late a firing may still start",
        more: "It bridges an outage of the store, a restart of every instance and a suspended machine. A firing later than this is given up with a warning.",
    },
    Spec {
        opt: Opt::Overlap,
        name: "overlap",
        heading: SCHEDULE,
        takes: Takes::Choice("skip|queue", &["skip", "queue"]),
        uses: &[Use::Schedule],
        env: true,
        default: "skip",
        help: "A firing that falls due while an earlier run holds the lock",
        more: "skip leaves it out. queue keeps one, the newest, and starts it when the run ends.",
    },
    Spec {
        opt: Opt::OnRunnerLost,
        name: "on-runner-lost",
        heading: SCHEDULE,
        takes: Takes::Choice("skip|rerun", &["skip", "rerun"]),
        uses: &[Use::Schedule],
        env: true,
        default: "skip",
        help: "A firing whose runner died in the middle",
        more: "skip leaves it. rerun starts it again on another instance once the lock has run out, up to three times in all.",
    },
    Spec {
        opt: Opt::Wait,
        name: "wait",
        heading: ONCE,
        takes: Takes::One("DUR|forever"),
        uses: &[Use::Once],
        env: true,
        default: "do not wait",
        help: "Wait for the lock",
        more: "",
    },
    Spec {
        opt: Opt::OncePer,
        name: "once-per",
        heading: ONCE,
        takes: Takes::One("DUR"),
        uses: &[Use::Once],
        env: true,
        default: "",
        help: "Start at most once in this period among all hosts: the period of the crontab line",
        more: "For a crontab line that is the same on many hosts: give the time between two of its firings, such as 5m for */5 or 1d for a daily job. Hosts' clocks may differ by up to a quarter of it. A run that failed counts as well: no other host tries again in this period.",
    },
    Spec {
        opt: Opt::SkipExitCode,
        name: "skip-exit-code",
        heading: ONCE,
        takes: Takes::One("N"),
        uses: &[Use::Once],
        env: true,
        default: "75",
        help: "Exit status when the command was not run; a fleet may want 0",
        more: "",
    },
    Spec {
        opt: Opt::Shell,
        name: "shell",
        heading: COMMAND,
        takes: Takes::Switch,
        uses: RUNS,
        env: true,
        default: "off",
        help: "COMMAND is one string for /bin/sh -c",
        more: "",
    },
    Spec {
        opt: Opt::Timeout,
        name: "timeout",
        heading: COMMAND,
        takes: Takes::One("DUR"),
        uses: RUNS,
        env: true,
        default: "no limit",
        help: "Stop a command that runs longer",
        more: "",
    },
    Spec {
        opt: Opt::KillAfter,
        name: "kill-after",
        heading: COMMAND,
        takes: Takes::One("DUR"),
        uses: RUNS,
        env: true,
        default: "8s, on a signal never",
        help: "Time from the stop signal to SIGKILL",
        more: "After --timeout or a lost lock it is 8s unless given, and never longer than the lock allows. When solocron itself is told to stop, there is no SIGKILL unless this is given: whoever sent the signal decides.",
    },
    Spec {
        opt: Opt::StopSignal,
        name: "stop-signal",
        heading: COMMAND,
        takes: Takes::One("SIG"),
        uses: RUNS,
        env: true,
        default: "TERM",
        help: "Signal that the command is sent first when solocron stops it",
        more: "",
    },
    Spec {
        opt: Opt::OnStop,
        name: "on-stop",
        heading: COMMAND,
        takes: Takes::Choice("forward|finish", &["forward", "finish"]),
        uses: RUNS,
        env: true,
        default: "forward",
        help: "On TERM, INT, QUIT or HUP: pass it on, or let the running command end",
        more: "",
    },
    Spec {
        opt: Opt::Retries,
        name: "retries",
        heading: COMMAND,
        takes: Takes::One("N"),
        uses: RUNS,
        env: true,
        default: "0",
        help: "Start a failed command again up to N times, under the same lock",
        more: "",
    },
    Spec {
        opt: Opt::RetryDelay,
        name: "retry-delay",
        heading: COMMAND,
        takes: Takes::One("DUR"),
        uses: RUNS,
        env: true,
        default: "1s",
        help: "Time before each retry",
        more: "",
    },
    Spec {
        opt: Opt::LogFormat,
        name: "log-format",
        heading: OUTPUT,
        takes: Takes::Choice("text|json", &["text", "json"]),
        uses: ALL,
        env: true,
        default: "text",
        help: "Form of solocron's own messages (on stderr), of --status and of --next",
        more: "",
    },
    Spec {
        opt: Opt::Verbose,
        name: "verbose",
        heading: OUTPUT,
        takes: Takes::Count('v'),
        uses: ALL,
        env: true,
        default: "",
        help: "Say more; twice for still more",
        more: "A schedule, and a single run at a terminal, tell when a command starts and ends. A single run elsewhere says only what is wrong, so that cron sends no mail about a good run.",
    },
    Spec {
        opt: Opt::Quiet,
        name: "quiet",
        heading: OUTPUT,
        takes: Takes::Count('q'),
        uses: ALL,
        env: true,
        default: "",
        help: "Say less; twice for still less",
        more: "",
    },
    Spec {
        opt: Opt::Next,
        name: "next",
        heading: LOOK,
        takes: Takes::One("N"),
        uses: &[Use::Next],
        env: false,
        default: "",
        help: "Print the next N firings of --cron, one a line, and exit",
        more: "Needs neither store nor command; --lock-name only for a schedule with H.",
    },
    Spec {
        opt: Opt::From,
        name: "from",
        heading: LOOK,
        takes: Takes::One("TIME"),
        uses: &[Use::Next],
        env: false,
        default: "now",
        help: "With --next: the firings after this instant, such as 2026-03-29T00:00:00+01:00",
        more: "Without an offset it is the time in the schedule's zone.",
    },
    Spec {
        opt: Opt::Status,
        name: "status",
        heading: LOOK,
        takes: Takes::Switch,
        uses: &[Use::Status],
        env: false,
        default: "",
        help: "Print what the store knows of --lock-name and exit",
        more: "Tells holder, host, pid, age, what is left of the lock, the last firing and its result, the fencing token and the mark; with --cron also the next firing. Exits with 0 when the lock is free, 75 when it is held, 69 when the store cannot be reached.",
    },
];
