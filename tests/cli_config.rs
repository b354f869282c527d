//! Words understood: what each means, and what is refused and how.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use solocron::cli::{Request, parse};
use solocron::config::{
    CommandLine, Config, Job, LogFormat, LogLevel, Mode, OnLockLost, OnStop, StoreSource,
    Surroundings, Task, TlsCa, Wait, store,
};
use solocron::lock::{OnRunnerLost, Overlap};

/// What files there are, and whether there is a terminal.
#[derive(Default, Clone, Copy)]
struct Around<'a> {
    terminal: bool,
    file: &'a [u8],
}

fn config_around(args: &[&str], env: &[(&str, &str)], around: Around) -> Result<Config, String> {
    let args = ["solocron"].iter().chain(args).map(OsString::from);
    let env = env
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let read_file = |path: &Path| {
        if path == Path::new("/missing") {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        Ok(around.file.to_vec())
    };
    let request = parse(args, env, String::new).map_err(|error| error.to_string())?;
    let Request::Go(words) = request else {
        panic!("printed");
    };
    let around = Surroundings {
        at_terminal: around.terminal,
        read_file: &read_file,
    };
    Config::new(&words, &around).map_err(|error| error.to_string())
}

fn config(args: &[&str], env: &[(&str, &str)]) -> Result<Config, String> {
    config_around(args, env, Around::default())
}

fn refused(args: &[&str]) -> String {
    match config(args, &[]) {
        Ok(config) => panic!("{args:?} passed: {config:?}"),
        Err(error) => error,
    }
}

/// A job with what is always needed, and these options.
fn job_of(options: &[&str], env: &[(&str, &str)]) -> Result<Job, String> {
    let mut args = vec!["--lock-name", "a", "--store", "local"];
    args.extend(options);
    args.push("true");
    config(&args, env).map(|config| match config.task {
        Task::Run(job) => *job,
        other => panic!("{other:?}"),
    })
}

fn job(options: &[&str]) -> Job {
    job_of(options, &[]).unwrap_or_else(|error| panic!("{options:?}: {error}"))
}

fn job_refused(options: &[&str]) -> String {
    match job_of(options, &[]) {
        Ok(job) => panic!("{options:?} passed: {job:?}"),
        Err(error) => error,
    }
}

const CRON: [&str; 2] = ["--cron", "* * * * *"];

fn scheduled<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&CRON[..], options].concat()
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let once = job(&[]);
    assert_eq!(once.ttl, Duration::from_secs(30));
    assert_eq!(once.lock.key_prefix, "solocron");
    assert_eq!(once.on_lock_lost, OnLockLost::Stop);
    assert_eq!(once.on_stop, OnStop::Forward);
    assert_eq!(once.stop_signal.number(), 15);
    assert_eq!((once.timeout, once.kill_after), (None, None));
    assert_eq!(
        (once.retries, once.retry_delay),
        (0, Duration::from_secs(1))
    );
    assert_eq!(once.command, CommandLine::Argv(vec!["true".into()]));
    let expected = Mode::Once {
        wait: Wait::No,
        once_per: None,
        skip_exit_code: 75,
    };
    assert_eq!(once.mode, expected);
    let Mode::Schedule {
        when,
        start_deadline,
        overlap,
        on_runner_lost,
    } = job(&CRON).mode
    else {
        panic!("not a schedule");
    };
    assert_eq!(when.expressions, ["* * * * *"]);
    assert_eq!(when.tz, None);
    assert_eq!(start_deadline, Duration::from_secs(60));
    assert_eq!(
        (overlap, on_runner_lost),
        (Overlap::Skip, OnRunnerLost::Skip)
    );
}

#[test]
fn values_are_understood() {
    let options = "--ttl=1m30s --on-lock-lost continue --timeout 1.5h --kill-after 0s \
                   --stop-signal int --on-stop FINISH --retries 3 --retry-delay 250ms \
                   --wait 10m --once-per 1d --skip-exit-code 0 --key-prefix app:cron";
    let once = job(&options.split(' ').collect::<Vec<_>>());
    assert_eq!(once.ttl, Duration::from_secs(90));
    assert_eq!(once.on_lock_lost, OnLockLost::Continue);
    assert_eq!(once.timeout, Some(Duration::from_secs(5400)));
    assert_eq!(once.kill_after, Some(Duration::ZERO));
    assert_eq!(once.stop_signal.number(), 2);
    assert_eq!(once.on_stop, OnStop::Finish);
    assert_eq!(
        (once.retries, once.retry_delay),
        (3, Duration::from_millis(250))
    );
    assert_eq!(once.lock.key_prefix, "app:cron");
    let expected = Mode::Once {
        wait: Wait::For(Duration::from_secs(600)),
        once_per: Some(Duration::from_secs(86_400)),
        skip_exit_code: 0,
    };
    assert_eq!(once.mode, expected);
    let options = "--cron @daily --tz Asia/Tokyo --start-deadline 5m --overlap queue \
                   --on-runner-lost rerun";
    let options: Vec<_> = options.split(' ').collect();
    let Mode::Schedule {
        when,
        start_deadline,
        overlap,
        on_runner_lost,
    } = job(&scheduled(&options)).mode
    else {
        panic!("not a schedule");
    };
    assert_eq!(when.expressions, ["* * * * *", "@daily"]);
    assert_eq!(when.tz.as_deref(), Some("Asia/Tokyo"));
    assert_eq!(start_deadline, Duration::from_secs(300));
    assert_eq!(
        (overlap, on_runner_lost),
        (Overlap::Queue, OnRunnerLost::Rerun)
    );
}

#[test]
fn waits() {
    for (given, wait) in [
        ("forever", Wait::Forever),
        ("Forever", Wait::Forever),
        ("0s", Wait::No),
        ("5s", Wait::For(Duration::from_secs(5))),
    ] {
        let Mode::Once { wait: read, .. } = job(&["--wait", given]).mode else {
            panic!("not once");
        };
        assert_eq!(read, wait, "{given}");
    }
    assert_eq!(
        job_refused(&["--wait", "5"]),
        "--wait `5`: 5 has no unit; write 5s (or 5m for minutes), or forever"
    );
}

#[test]
fn bad_durations_are_refused_with_what_to_write() {
    const UNITS: &str = "the units are ms, s, m, h, d and w, as in 90s, 5m or 1h 30m";
    const NEGATIVE: &str = "a time cannot be negative; write it as in 90s, 5m or 1h 30m";
    for (opt, value, why) in [
        (
            "--ttl",
            "30",
            "30 has no unit; write 30s (or 30m for minutes)",
        ),
        ("--ttl", "0", "0 has no unit; write 0s (or 0m for minutes)"),
        (
            "--ttl",
            "1h 30",
            "30 has no unit; write 30s (or 30m for minutes)",
        ),
        ("--ttl", "0s", "the shortest is 1s, as heartbeats need time"),
        (
            "--ttl",
            "999ms",
            "the shortest is 1s, as heartbeats need time",
        ),
        (
            "--ttl",
            "31d",
            "the longest is 30 days; it is how long the job is blocked after a host died, not how \
             long it may take",
        ),
        ("--ttl", "-5s", NEGATIVE),
        ("--ttl", "--w", NEGATIVE),
        (
            "--ttl",
            "",
            "it is empty; write a time with its unit, as in 90s, 5m or 1h 30m",
        ),
        (
            "--ttl",
            "5 parsecs",
            &format!("there is no unit `parsecs`; {UNITS}"),
        ),
        ("--ttl", "soon", &format!("that is no time; {UNITS}")),
        (
            "--timeout",
            "0s",
            "the shortest is 1ms; leave it out for no limit",
        ),
        ("--timeout", "40000d", "the longest is 100 years"),
        ("--once-per", "99999999999999999w", "that is too long"),
        (
            "--once-per",
            "5",
            "5 has no unit; write 5s (or 5m for minutes)",
        ),
    ] {
        let told = job_refused(&[opt, value]);
        assert_eq!(told, format!("{opt} `{value}`: {why}"));
    }
}

#[test]
fn only_units_of_a_fixed_length_are_units() {
    const UNITS: &str = "the units are ms, s, m, h, d and w, as in 90s, 5m or 1h 30m";
    const MONTH: &str = "months differ in length: write days, as in 30d";
    const YEAR: &str = "years differ in length: write days, as in 365d";
    for (value, unit, remedy) in [
        ("1M", "M", "write 1m for a minute"),
        ("1h 30M", "M", "write 1m for a minute"),
        ("1h30M5s", "M", "write 1m for a minute"),
        ("1.5M", "M", "write 1m for a minute"),
        ("2month", "month", MONTH),
        ("2 months", "months", MONTH),
        ("1mo", "mo", MONTH),
        ("1y", "y", YEAR),
        ("1yr", "yr", YEAR),
        ("1Y", "Y", YEAR),
        ("1year 2s", "year", YEAR),
        ("1D", "D", "write it small, as in 1d"),
        ("1H", "H", "write it small, as in 1h"),
        ("5S", "S", "write it small, as in 1s"),
        ("1W", "W", "write it small, as in 1w"),
        ("1Min", "Min", "write it small, as in 1min"),
        ("1us", "us", UNITS),
        ("1µs", "µs", UNITS),
        ("1ns", "ns", UNITS),
    ] {
        for opt in ["--ttl", "--timeout", "--once-per", "--kill-after"] {
            assert_eq!(
                job_refused(&[opt, value]),
                format!("{opt} `{value}`: there is no unit `{unit}`; {remedy}")
            );
        }
    }
    for (value, seconds) in [
        ("1500ms", 1.5),
        ("1msec 2 millis", 0.003),
        ("1s 1sec 1secs 1second 1seconds", 5.0),
        ("1m 1min 1mins 1minute 1minutes", 300.0),
        ("1h 1hr 1hrs 1hour 1hours", 18_000.0),
        ("1d 1day 1days", 259_200.0),
        ("1w 1wk 1wks 1week 1weeks", 3_024_000.0),
    ] {
        let read = job(&["--timeout", value]).timeout;
        assert_eq!(read, Some(Duration::from_secs_f64(seconds)), "{value}");
    }
}

#[test]
fn bad_values_are_refused_with_what_to_write() {
    const SIGNALS: &str = "write TERM, INT, QUIT, HUP or USR1";
    for (opt, value, why) in [
        (
            "--skip-exit-code",
            "600",
            "write a whole number from 0 to 255",
        ),
        (
            "--skip-exit-code",
            "-1",
            "write a whole number from 0 to 255",
        ),
        ("--skip-exit-code", "", "write a whole number from 0 to 255"),
        (
            "--retries",
            "many",
            "write a whole number from 0 to 1000000",
        ),
        (
            "--on-stop",
            "finsh",
            "write forward or finish; did you mean finish?",
        ),
        ("--log-format", "xml", "write text or json"),
        (
            "--stop-signal",
            "KILL",
            &format!("no program can catch it; --kill-after says when it is sent; {SIGNALS}"),
        ),
        (
            "--stop-signal",
            "19",
            &format!("it freezes a program and does not end it; {SIGNALS}"),
        ),
        (
            "--stop-signal",
            "TREM",
            "there is no such signal; write a name as in TERM, INT, QUIT, HUP or USR1, or its number",
        ),
        (
            "--key-prefix",
            "",
            "a key prefix is 1 to 100 bytes; leave it out for solocron",
        ),
        (
            "--key-prefix",
            "a{b}",
            "a key prefix has no braces, blanks or control characters; write it without, as in shop-test",
        ),
    ] {
        let told = job_refused(&[opt, value]);
        assert_eq!(told, format!("{opt} `{value}`: {why}"));
    }
}

#[test]
fn stop_signals() {
    for (given, number) in [
        ("TERM", 15),
        ("SIGTERM", 15),
        ("sigterm", 15),
        ("15", 15),
        ("quit", 3),
        ("USR1", 10),
        ("WINCH", 28),
        ("RTMIN+3", 37),
        ("SIGRTMIN", 34),
        ("64", 64),
    ] {
        let read = job(&["--stop-signal", given]).stop_signal.number();
        assert_eq!(read, number, "{given}");
    }
    for wrong in [
        "0",
        "-15",
        "65",
        "32",
        "SIG",
        "",
        "RTMIN+99",
        "RTMIN+",
        "SIGSIGTERM",
        "CHLD",
    ] {
        job_refused(&["--stop-signal", wrong]);
    }
}

#[test]
fn lock_names() {
    let named = |name: &str| config(&["--store", "local", "--lock-name", name, "true"], &[]);
    let longest = "n".repeat(200);
    for good in ["a", "nightly report", "jöb", "{a}:b/c", "-", &longest] {
        assert!(named(good).is_ok(), "{good}");
    }
    assert_eq!(
        named("a\nb").unwrap_err(),
        "--lock-name `a\\nb`: a lock name has no control characters, such as newlines; write it \
         without"
    );
    assert_eq!(
        named("").unwrap_err(),
        "--lock-name ``: a lock name is 1 to 200 bytes; write the name of the job"
    );
    let error = named(&"ö".repeat(101)).unwrap_err();
    assert!(
        error.ends_with("a lock name is 1 to 200 bytes, and this is 202"),
        "{error}"
    );
    assert_eq!(
        refused(&["--store", "local", "true"]),
        "--lock-name is missing: the name of the job, the same on all hosts, as in --lock-name \
         nightly-report"
    );
    assert_eq!(
        refused(&["--store", "local", "true", "--lock-name", "a"]),
        "--lock-name stands after the command and so belongs to the command; write it before"
    );
}

#[test]
fn options_of_another_use_are_refused_with_the_reason() {
    const FROM: &str = "--from needs --next N: it says from when firings are printed";
    for (opt, value, why) in [
        (
            "--wait",
            "5m",
            "a firing that finds the lock held follows --overlap",
        ),
        ("--once-per", "5m", "each firing starts once anyhow"),
        (
            "--skip-exit-code",
            "0",
            "the status of a schedule does not tell of one firing",
        ),
    ] {
        let told = format!("{opt} is for a single run and has no meaning with --cron: {why}");
        assert_eq!(job_refused(&scheduled(&[opt, value])), told);
    }
    for (opt, value) in [
        ("--start-deadline", "5m"),
        ("--overlap", "skip"),
        ("--on-runner-lost", "skip"),
        ("--tz", "UTC"),
    ] {
        let told = format!("{opt} is for a schedule: add --cron EXPR, or leave {opt} out");
        assert_eq!(job_refused(&[opt, value]), told);
    }
    assert_eq!(
        refused(&[
            "--status",
            "--lock-name",
            "a",
            "--store",
            "local",
            "--tz=foo"
        ]),
        "--tz is for a schedule: add --cron EXPR, or leave --tz out"
    );
    assert_eq!(job_refused(&["--from", "2026-01-01T00:00:00Z"]), FROM);
    assert_eq!(job_refused(&scheduled(&["--from", "now"])), FROM);
    assert_eq!(
        refused(&["--next", "1", "--cron", "@daily", "--store", "local"]),
        "--store has no meaning with --next, which only prints a schedule"
    );
    assert_eq!(
        refused(&[
            "--status",
            "--lock-name",
            "a",
            "--store",
            "local",
            "--ttl",
            "5s"
        ]),
        "--ttl has no meaning with --status, which only looks at a lock"
    );
}

#[test]
fn options_that_need_or_exclude_each_other_are_refused() {
    for (options, told) in [
        (
            &["--next", "5"][..],
            "--next needs a schedule: add --cron EXPR",
        ),
        (
            &["--next", "5", "--status"],
            "--next and --status are two questions; ask one at a time",
        ),
        (
            &["--retry-delay", "5s"],
            "--retry-delay needs --retries N: without it nothing is tried again",
        ),
        (
            &["--store-file", "/x"],
            "--store and --store-file both name the store; give one",
        ),
        (
            &["--tls-ca", "system"],
            "--tls-ca is for TLS, which the store's URL (from --store) does not ask for; begin it \
             with rediss://",
        ),
        (
            &["--status"],
            "--status runs no command; leave out `true` and what follows",
        ),
    ] {
        assert_eq!(job_refused(options), told, "{options:?}");
    }
    let base = ["--lock-name", "a", "--store", "local"];
    assert_eq!(
        refused(&base),
        "there is no command; write it after the options, as in `solocron --lock-name NAME -- \
         COMMAND`; `solocron -h` lists the options"
    );
    assert_eq!(
        refused(&["--next", "1", "--cron", "@daily", "true"]),
        "--next runs no command; leave out `true` and what follows"
    );
    for schedule in ["0 3 * * *", "*/5 * * * * *", "@daily"] {
        assert_eq!(
            refused(&["--next", "2", schedule]),
            format!("--next needs a schedule: write --cron before '{schedule}'")
        );
    }
    assert_eq!(
        refused(&["--next", "0", "--cron", "@daily"]),
        "--next `0`: write a whole number from 1 to 1000000"
    );
    assert_eq!(
        refused(&[&base[..], &["--shell", "a", "b"]].concat()),
        "--shell takes the command as one string and was given 2 words; put quotes around the \
         whole line, as in --shell 'a | b'"
    );
}

#[test]
fn a_schedule_without_quotes_is_refused() {
    let told = |first, second, example| {
        format!(
            "--cron `{first}`: this is only the first word of a schedule, and `{second}` was \
             taken for the command; put the whole expression in quotes, as in --cron {example}"
        )
    };
    for (words, first, second) in [
        ("--cron 0 3 * * * -- true", "0", "3"),
        ("--next 2 --cron */5 bin etc home", "*/5", "bin"),
        ("--cron=H 3 * * * --lock-name a true", "H", "3"),
        (
            "--cron @daily --cron CRON_TZ=UTC 0 3 * * *",
            "CRON_TZ=UTC",
            "0",
        ),
    ] {
        let words: Vec<_> = words.split(' ').collect();
        assert_eq!(refused(&words), told(first, second, "'0 3 * * *'"));
    }
    assert_eq!(
        refused(&["--cron", "@every", "5m", "--", "true"]),
        told("@every", "5m", "'@every 90m'")
    );
    // Told by the schedule itself, or good.
    for whole in ["@daily", "@every 5m", "0 3", "", "'0"] {
        assert!(job_of(&["--cron", whole], &[]).is_ok(), "{whole}");
    }
    assert!(job_of(&[], &[("SOLOCRON_CRON", "5")]).is_ok());
}

#[test]
fn options_after_the_command_are_told_about() {
    const WHY: &str = "stands after the command and so belongs to the command";
    for opt in ["--store", "--store-file", "--store=redis://h"] {
        let error = refused(&["--lock-name", "a", "true", opt, "redis://h"]);
        let flag = opt.split('=').next().expect("a flag");
        assert!(
            error.ends_with(&format!("; {flag} {WHY}, write it before")),
            "{error}"
        );
    }
    let warnings = |command: &str| {
        let words = command.split('_');
        let args: Vec<_> = "--lock-name a --store local"
            .split(' ')
            .chain(words)
            .collect();
        config(&args, &[]).expect("a job").warnings
    };
    for (command, flag) in [
        ("./manage.py_y_--cron_* * * * *", "--cron"),
        ("./manage.py_y_--cron=@daily", "--cron"),
        ("./manage.py_--once-per_5m", "--once-per"),
    ] {
        assert_eq!(
            warnings(command),
            [format!(
                "{flag} {WHY}; write it before, or, if it is meant so, write -- before the command"
            )]
        );
    }
    // It may be an option of the command.
    for command in [
        "--_./manage.py_--cron_* * * * *",
        "./manage.py_--cron_nightly",
        "./manage.py_--cron",
        "./manage.py_--crontab=@daily",
        "./manage.py_--once-per_page",
        "nice_/bin/solocron_--lock-name_b_--cron_* * * * *_true",
        "--cron_@daily_./manage.py_--cron_@daily",
    ] {
        assert_eq!(warnings(command), [] as [&str; 0], "{command}");
    }
}

#[test]
fn questions_that_look_like_commands_are_answered() {
    for (word, remedy) in [
        ("help", "solocron --help"),
        ("version", "solocron --version"),
        ("status", "solocron --status --lock-name NAME"),
        ("next", "solocron --next 5 --cron EXPR"),
    ] {
        let error = refused(&[word]);
        assert!(error.starts_with("--lock-name is missing"), "{error}");
        assert!(error.ends_with(remedy), "{error}");
        assert!(!refused(&["--", word]).ends_with(remedy));
    }
}

#[test]
fn a_zone_is_told_by_the_name_it_was_given_under() {
    let name = |options: &[&str], env: &[(&str, &str)]| {
        let job = job_of(&scheduled(options), env).expect("a schedule");
        match job.mode {
            Mode::Schedule { when, .. } => when.tz_name,
            Mode::Once { .. } => panic!("not a schedule"),
        }
    };
    let env = [("SOLOCRON_TZ", "foo")];
    assert_eq!(name(&["--tz", "foo"], &env), "--tz");
    assert_eq!(name(&[], &env), "SOLOCRON_TZ");
}

#[test]
fn defaults_in_the_environment_serve_several_uses() {
    let env = [
        ("SOLOCRON_START_DEADLINE", "5m"),
        ("SOLOCRON_TZ", "UTC"),
        ("SOLOCRON_OVERLAP", "queue"),
        ("SOLOCRON_TLS_CA", "system"),
        ("SOLOCRON_RETRY_DELAY", "1s"),
    ];
    assert!(job_of(&[], &env).is_ok());

    let env = [
        ("SOLOCRON_CRON", "@daily"),
        ("SOLOCRON_TTL", "5m"),
        ("SOLOCRON_STORE", "local"),
    ];
    let next = config(&["--next", "3"], &env).expect("firings");
    assert_eq!(next.warnings, [] as [&str; 0]);
}

#[test]
fn the_environment_is_named_where_it_is_wrong() {
    const WHY: &str = "a firing that finds the lock held follows --overlap";
    let args = [
        "--store",
        "local",
        "--lock-name",
        "a",
        "--cron",
        "@daily",
        "true",
    ];
    let told = config(&args, &[("SOLOCRON_WAIT", "5m")]).expect("a schedule");
    assert_eq!(
        told.warnings,
        [format!(
            "SOLOCRON_WAIT is for a single run and has no meaning with --cron: {WHY}; it is ignored"
        )]
    );
    assert_eq!(
        job_of(&["--wait", "5m"], &[("SOLOCRON_CRON", "@daily")]).unwrap_err(),
        format!(
            "--wait is for a single run and has no meaning with SOLOCRON_CRON (for a single run \
             write SOLOCRON_CRON= before solocron): {WHY}"
        )
    );
    assert_eq!(
        job_of(&[], &[("SOLOCRON_TTL", "30")]).unwrap_err(),
        "SOLOCRON_TTL `30`: 30 has no unit; write 30s (or 30m for minutes)"
    );
}

#[test]
fn the_nearest_word_names_the_store() {
    let file = Around {
        file: b"\n redis://file \nsecond line\n",
        ..Around::default()
    };
    let both = [
        ("SOLOCRON_STORE", "redis://env"),
        ("REDIS_URL", "redis://url"),
    ];
    let file_and_url = [("SOLOCRON_STORE_FILE", "/f"), both[1]];
    let option = |name: &str| StoreSource::Option(name.to_owned());
    let from_file = StoreSource::File(PathBuf::from("/f"));
    for (options, env, text, source) in [
        (
            &["--store", " redis://flag"][..],
            &both[..],
            "redis://flag",
            option("--store"),
        ),
        (
            &["--store-file", "/f"],
            &both,
            "redis://file",
            from_file.clone(),
        ),
        (&[], &both, "redis://env", option("SOLOCRON_STORE")),
        (&[], &both[1..], "redis://url", StoreSource::RedisUrl),
        (&[], &file_and_url, "redis://file", from_file),
    ] {
        let args = [&["--lock-name", "a"], options, &["true"]].concat();
        let config = config_around(&args, env, file).expect("a store");
        let Task::Run(job) = config.task else {
            panic!("no job");
        };
        assert_eq!(job.lock.store.text, text);
        assert_eq!(job.lock.store.source, source);
        assert_eq!(config.warnings, [] as [&str; 0]);
    }
}

#[test]
fn without_a_store_only_a_terminal_gets_the_embedded_one() {
    let args = ["--lock-name", "a", "true"];
    assert_eq!(
        refused(&args),
        "no store is named, and a lock that only this machine knows protects nothing from other \
         hosts; set REDIS_URL or --store redis://HOST, or --store local if there is only this \
         machine"
    );
    let terminal = Around {
        terminal: true,
        ..Around::default()
    };
    let config = config_around(&args, &[], terminal).expect("the embedded store");
    let Task::Run(job) = config.task else {
        panic!("no job");
    };
    assert_eq!(job.lock.store.text, "local");
    assert_eq!(config.warnings.len(), 1);
    assert!(config.warnings[0].contains("on this machine only"));
}

#[test]
fn what_names_no_store_is_refused() {
    let args = ["--lock-name", "a", "--store-file", "/f", "true"];
    for (file, why) in [
        (&b""[..], "it is empty"),
        (b" \n\t\n", "it is empty"),
        (b"\xff", "it is not text"),
    ] {
        let around = Around {
            file,
            ..Around::default()
        };
        assert_eq!(
            config_around(&args, &[], around).unwrap_err(),
            format!("--store-file /f: {why}; its first line is to be the store's URL")
        );
    }
    let error = refused(&["--lock-name", "a", "--store-file", "/missing", "true"]);
    assert!(error.starts_with("--store-file /missing: "), "{error}");
    assert_eq!(
        refused(&["--lock-name", "a", "--store", "", "true"]),
        "--store is empty; write redis://HOST, or local for this machine only"
    );
    let both = [("SOLOCRON_STORE", "local"), ("SOLOCRON_STORE_FILE", "/f")];
    assert_eq!(
        config(&["--lock-name", "a", "true"], &both).unwrap_err(),
        "SOLOCRON_STORE and SOLOCRON_STORE_FILE both name the store; give one"
    );
}

#[test]
fn real_files_are_read_up_to_a_bound() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("url");
    std::fs::write(&path, "redis://h\n").expect("written");
    assert_eq!(store::read_file(&path).expect("read"), b"redis://h\n");
    let bound = usize::try_from(store::FILE_MAX).expect("fits");
    std::fs::write(&path, vec![b'x'; bound]).expect("written");
    assert_eq!(store::read_file(&path).expect("read").len(), bound);
    std::fs::write(&path, vec![b'x'; bound + 1]).expect("written");
    assert!(store::read_file(&path).is_err());
    assert!(store::read_file(&dir.path().join("none")).is_err());
    assert!(store::read_file(dir.path()).is_err());
}

#[test]
fn files_for_tls() {
    let with = |options: &[&str]| {
        let args = [&["--lock-name", "a", "--store"], options, &["true"]].concat();
        config(&args, &[]).map(|config| match config.task {
            Task::Run(job) => job.lock.tls,
            other => panic!("{other:?}"),
        })
    };
    for url in [
        "rediss://h",
        "rediss-sentinel://h/m",
        "REDISS-cluster://h",
        "valkeys://h",
    ] {
        let tls = with(&[url, "--tls-ca", "system"]).expect("TLS");
        assert_eq!((tls.ca, tls.client), (TlsCa::System, None), "{url}");
    }
    let files = "rediss://h --tls-ca /ca --tls-cert /c --tls-key /k";
    let tls = with(&files.split(' ').collect::<Vec<_>>()).expect("TLS");
    assert_eq!(tls.ca, TlsCa::File("/ca".into()));
    assert_eq!(tls.client, Some(("/c".into(), "/k".into())));
    for (opt, value, told) in [
        (
            "--tls-cert",
            "/c",
            "--tls-cert needs --tls-key: the private key of the certificate",
        ),
        (
            "--tls-key",
            "/k",
            "--tls-key needs --tls-cert: the certificate that the key is for",
        ),
        (
            "--tls-ca",
            "",
            "--tls-ca ``: it is empty; write the path of a file",
        ),
    ] {
        assert_eq!(with(&["rediss://h", opt, value]).unwrap_err(), told);
    }
    assert!(with(&["redis://h/rediss://", "--tls-ca", "/ca"]).is_err());
}

#[test]
fn firings_to_print() {
    let next = |from: &str| {
        let args = "--next 3 --cron @daily --tz UTC --from";
        let args: Vec<_> = args.split(' ').chain([from]).collect();
        config(&args, &[("TZ", "Asia/Tokyo")]).map(|config| match config.task {
            Task::Next(next) => next,
            other => panic!("{other:?}"),
        })
    };
    let read = next("2026-03-08T01:25:00-05:00").expect("an instant");
    assert_eq!(read.count, 3);
    assert_eq!(read.lock_name, None);
    assert_eq!(read.when.tz.as_deref(), Some("UTC"));
    assert_eq!(read.when.tz_variable.as_deref(), Some("Asia/Tokyo"));
    assert_eq!(read.from.as_deref(), Some("2026-03-08T01:25:00-05:00"));
}

#[test]
fn status_takes_a_lock_and_perhaps_a_schedule() {
    let base = ["--status", "--lock-name", "a", "--store", "local"];
    let with = |more: &[&str]| {
        let read = config(&[&base[..], more].concat(), &[]).expect("a status");
        match read.task {
            Task::Status(status) => (status, read.log_format),
            other => panic!("{other:?}"),
        }
    };
    let (status, format) = with(&["--log-format", "json"]);
    assert_eq!((status.lock.name.as_str(), format), ("a", LogFormat::Json));
    assert_eq!(status.when, None);
    assert!(with(&["--cron", "@daily"]).0.when.is_some());
}

#[test]
fn a_crontab_line_is_silent_and_a_schedule_is_not() {
    let level = |options: &[&str], terminal| {
        let args = [
            &["--lock-name", "a", "--store", "local"],
            options,
            &["true"],
        ]
        .concat();
        let around = Around {
            terminal,
            ..Around::default()
        };
        config_around(&args, &[], around).expect("a job").log_level
    };
    assert_eq!(level(&[], false), LogLevel::Warn);
    assert_eq!(level(&[], true), LogLevel::Info);
    assert_eq!(level(&CRON, false), LogLevel::Info);
    assert_eq!(level(&["-v"], false), LogLevel::Info);
    assert_eq!(level(&["-vv"], true), LogLevel::Trace);
    assert_eq!(level(&["-vvvvvv"], true), LogLevel::Trace);
    assert_eq!(level(&["-q"], false), LogLevel::Error);
    assert_eq!(level(&["-qq"], false), LogLevel::Off);
    assert_eq!(level(&["-qqqq"], false), LogLevel::Off);
}

#[test]
fn no_secret_is_shown_by_debug() {
    let file = Around {
        file: b"redis://:hunter2@h",
        ..Around::default()
    };
    for (options, env) in [
        (&["--store", "redis://:hunter2@h"][..], &[][..]),
        (&["--store-file", "/f"], &[]),
        (&[], &[("REDIS_URL", "redis://:hunter2@h")]),
    ] {
        let args = [&["--lock-name", "a"], options, &["true"]].concat();
        let config = config_around(&args, env, file).expect("a job");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}

#[test]
fn a_shell_line_is_one_word() {
    assert_eq!(job(&["--shell"]).command, CommandLine::Shell("true".into()));
}

#[test]
fn what_is_held_around_is_passed_on() {
    let inner = job_of(&[], &[("SOLOCRON_HELD", "abc")]).expect("a job");
    assert_eq!(inner.held, "abc");
    assert_eq!(job(&[]).held, "");
}

const SOME_WORDS: &str = "--ttl --wait --cron --next --from --status --store local --lock-name a \
     -- true -v --stop-signal --retries -1 5s --log-format --shell --tls-ca rediss://h @daily \
     forever --once-per --key-prefix";

proptest! {
    #[test]
    fn any_words_are_understood_or_refused_in_one_line(
        args in prop::collection::vec(prop_oneof![
            prop::sample::select(SOME_WORDS.split_whitespace().collect::<Vec<_>>())
                .prop_map(str::to_owned),
            ".{0,12}",
        ], 0..10),
        terminal: bool,
    ) {
        let mut all = vec![OsString::from("solocron")];
        all.extend(args.iter().map(OsString::from));
        let around = Surroundings { at_terminal: terminal, read_file: &|_| Ok(Vec::new()) };
        let read = match parse(all, [], String::new) {
            Ok(Request::Go(words)) => Config::new(&words, &around).map(|_| ()),
            Ok(Request::Print(_)) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = read {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }
}
