//! The command line and the environment, told apart into words.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use solocron::cli::options::{OPTIONS, Opt};
use solocron::cli::words::Words;
use solocron::cli::{Request, parse};

fn os(text: &[u8]) -> OsString {
    OsStr::from_bytes(text).to_owned()
}

fn request(args: &[&str], env: &[(&str, &str)]) -> Result<Request, String> {
    let args = ["solocron"].iter().chain(args).map(OsString::from);
    let env = env
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    parse(args, env, || "rules of today".to_owned()).map_err(|error| error.to_string())
}

fn words(args: &[&str], env: &[(&str, &str)]) -> Words {
    match request(args, env) {
        Ok(Request::Go(words)) => *words,
        Ok(Request::Print(text)) => panic!("printed {text}"),
        Err(error) => panic!("{error}"),
    }
}

fn refused(args: &[&str], env: &[(&str, &str)]) -> String {
    match request(args, env) {
        Ok(_) => panic!("{args:?} {env:?} passed"),
        Err(error) => error,
    }
}

fn printed(args: &[&str], env: &[(&str, &str)]) -> String {
    match request(args, env) {
        Ok(Request::Print(text)) => text,
        _ => panic!("{args:?} printed nothing"),
    }
}

fn values(words: &Words, opt: Opt) -> Vec<&str> {
    words
        .all(opt)
        .map(|given| given.value.to_str().expect("UTF-8"))
        .collect()
}

#[test]
fn options_end_at_the_first_word_that_is_none() {
    for (args, command) in [
        (
            &["-v", "echo", "-v", "--help"][..],
            &["echo", "-v", "--help"][..],
        ),
        (&["-v", "--", "echo", "-v"], &["echo", "-v"]),
        (&["--", "-odd"], &["-odd"]),
        (&["--", "--", "x"], &["--", "x"]),
        (&["echo", "--", "a"], &["echo", "--", "a"]),
        (&["echo", "a", "--ttl", "5s"], &["echo", "a", "--ttl", "5s"]),
        (&["--ttl", "5s", "echo", ""], &["echo", ""]),
        (&["--shell", "a | b"], &["a | b"]),
        (&["--ttl=5s", "x"], &["x"]),
        (&["-vvq", "x"], &["x"]),
        (&["--", ""], &[""]),
        (&[], &[]),
    ] {
        assert_eq!(words(args, &[]).command, command, "{args:?}");
    }
}

#[test]
fn a_command_may_be_any_bytes() {
    let args = ["solocron", "--", "printf"].map(OsString::from);
    let args = args.into_iter().chain([os(b"\xff\xfe")]);
    let Ok(Request::Go(words)) = parse(args, [], String::new) else {
        panic!("refused");
    };
    assert_eq!(words.command, [os(b"printf"), os(b"\xff\xfe")]);
}

#[test]
fn mistakes_are_told_in_one_line_with_what_to_write() {
    for (args, told) in [
        (
            &["--lokc-name", "x"][..],
            "unknown option --lokc-name; did you mean --lock-name?",
        ),
        (
            &["--lokc-name=x"],
            "unknown option --lokc-name; did you mean --lock-name?",
        ),
        (
            &["--frobnicate"],
            "unknown option --frobnicate; `solocron -h` lists all",
        ),
        (&["--hepl"], "unknown option --hepl; did you mean --help?"),
        (
            &["-n", "x"],
            "unknown option -n; the only short options are -h, -V, -v and -q, and options of the \
             command stand after the command",
        ),
        (&["--ttl"], "--ttl needs a value: write --ttl <DUR>"),
        (
            &["--lock-name"],
            "--lock-name needs a value: write --lock-name <NAME>",
        ),
        (
            &["--overlap"],
            "--overlap needs a value: write --overlap <skip|queue>",
        ),
        (
            &["--shell=yes", "x"],
            "--shell takes no value: write --shell alone",
        ),
        (
            &["--lock", "a"],
            "unknown option --lock; did you mean --lock-name?",
        ),
        (
            &["--name=a"],
            "unknown option --name; did you mean --lock-name?",
        ),
        (
            &["--deadline", "1m"],
            "unknown option --deadline; did you mean --start-deadline?",
        ),
        (
            &["--lost", "stop"],
            "unknown option --lost; did you mean --on-lock-lost or --on-runner-lost?",
        ),
        (
            &["--tls"],
            "unknown option --tls; did you mean --tls-ca, --tls-cert or --tls-key?",
        ),
        (
            &["--schedule", "@daily"],
            "unknown option --schedule; did you mean --cron?",
        ),
        (
            &["--timezone=UTC"],
            "unknown option --timezone; did you mean --tz?",
        ),
        (&["--x"], "unknown option --x; `solocron -h` lists all"),
        (
            &["--ttl", "5s", "--ttl", "6s", "x"],
            "--ttl is given twice; give it once",
        ),
    ] {
        assert_eq!(refused(args, &[]), told, "{args:?}");
    }
}

#[test]
fn an_option_is_no_value() {
    for (args, told) in [
        (
            &["--next", "--cron", "0 3 * * *"][..],
            "--next needs a value, and `--cron` stands there: write --next 5 --cron",
        ),
        (
            &["--lock-name", "--ttl=5s", "true"],
            "--lock-name needs a value, and `--ttl=5s` stands there: write --lock-name <NAME> --ttl=5s",
        ),
        (
            &["--lock-name", "--", "true"],
            "--lock-name needs a value, and `--` stands there: write --lock-name <NAME> --",
        ),
        (
            &["--cron", "-v", "--", "true"],
            "--cron needs a value, and `-v` stands there: write --cron <EXPR> -v",
        ),
        (
            &["--tz", "--help"],
            "--tz needs a value, and `--help` stands there: write --tz <ZONE> --help",
        ),
        (
            &["--store-file", "--cron", "@daily"],
            "--store-file needs a value: write --store-file <PATH>",
        ),
    ] {
        assert_eq!(refused(args, &[]), told, "{args:?}");
    }
    let words = words(&["--lock-name", "-", "--key-prefix", "--x", "true"], &[]);
    assert_eq!(values(&words, Opt::LockName), ["-"]);
    assert_eq!(values(&words, Opt::KeyPrefix), ["--x"]);
}

#[test]
fn a_schedule_may_have_several_lines_and_begin_with_a_hyphen() {
    for (given, read) in [
        ("0 1 * * *\n0 2 * * *\n", &["0 1 * * *", "0 2 * * *"][..]),
        ("\n 0 1 * * *\r\n\n", &["0 1 * * *"]),
        ("-1 * * * *", &["-1 * * * *"]),
        ("", &[""]),
        ("\n", &["\n"]),
    ] {
        let words = words(&["--cron", given, "true"], &[]);
        assert_eq!(values(&words, Opt::Cron), read, "{given:?}");
    }
    let words = words(
        &["--cron", "@daily\n@hourly", "--cron", "@weekly", "x"],
        &[],
    );
    assert_eq!(values(&words, Opt::Cron), ["@daily", "@hourly", "@weekly"]);
}

#[test]
fn two_hyphens_mark_the_command() {
    for (args, marked) in [
        (&["--", "x", "y"][..], true),
        (&["-v", "--", "x"], true),
        (&["x", "--", "y"], false),
        (&["x"], false),
        (&["--ttl", "5s", "x", "--"], false),
        (&[], false),
    ] {
        assert_eq!(words(args, &[]).command_is_marked, marked, "{args:?}");
    }
}

#[test]
fn help_and_version_go_before_everything() {
    assert_eq!(printed(&["-V"], &[]), "solocron 0.1.0\n");
    assert_eq!(
        printed(&["--version"], &[]),
        "solocron 0.1.0\ntime zone data: rules of today\n"
    );
    assert!(printed(&["-h"], &[]).contains("--lock-name"));
    assert!(printed(&["--ttl", "nonsense", "--help"], &[]).contains("Exit status:"));
}

#[test]
fn help_shows_every_option_and_no_value_of_the_environment() {
    let secret = [
        ("SOLOCRON_STORE", "redis://:hunter2@h"),
        ("REDIS_URL", "redis://:hunter2@h"),
        ("SOLOCRON_LOCK_NAME", "hunter2"),
    ];
    for flag in ["-h", "--help"] {
        let help = printed(&[flag], &secret);
        assert!(!help.contains("hunter2"));
        for spec in OPTIONS {
            assert!(help.contains(&spec.opt.flag()), "{}", spec.name);
            assert!(help.contains(spec.heading), "{}", spec.heading);
        }
        for line in help.lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }
    let secret_words = words(&["x"], &secret);
    assert!(!format!("{:?}", secret_words.given()).contains("hunter2"));
}

#[test]
fn the_environment_stands_in_for_options() {
    let env = [
        ("SOLOCRON_TTL", "1m"),
        ("SOLOCRON_START_DEADLINE", "5m"),
        ("SOLOCRON_CRON", "\n0 1 * * *\n\n  0 2 * * *  \r\n"),
        ("SOLOCRON_SHELL", "Yes"),
        ("SOLOCRON_QUIET", "2"),
        ("SOLOCRON_OVERLAP", ""),
        ("REDIS_URL", ""),
        ("TZ", "Europe/Berlin"),
        ("PATH", "/bin"),
    ];
    let words = words(&["x"], &env);
    assert_eq!(values(&words, Opt::Ttl), ["1m"]);
    assert_eq!(values(&words, Opt::StartDeadline), ["5m"]);
    assert_eq!(values(&words, Opt::Cron), ["0 1 * * *", "0 2 * * *"]);
    assert!(words.has(Opt::Shell));
    assert!(!words.has_flag(Opt::Shell));
    assert_eq!(words.all(Opt::Quiet).count(), 2);
    assert!(!words.has(Opt::Overlap));
    assert_eq!(words.redis_url, None);
    assert_eq!(words.tz.as_deref(), Some(OsStr::new("Europe/Berlin")));
    assert_eq!(words.warnings, [] as [&str; 0]);
}

#[test]
fn the_command_line_goes_before_the_environment() {
    let env = [
        ("SOLOCRON_TTL", "1m"),
        ("SOLOCRON_CRON", "0 1 * * *"),
        ("SOLOCRON_QUIET", "1"),
    ];
    let words = words(&["--ttl", "2m", "--cron", "0 3 * * *", "-v", "x"], &env);
    assert_eq!(values(&words, Opt::Ttl), ["2m"]);
    assert_eq!(values(&words, Opt::Cron), ["0 3 * * *"]);
    assert!(!words.has(Opt::Quiet));
}

#[test]
fn switches_in_the_environment_are_on_or_off() {
    let shell = |value| words(&["x"], &[("SOLOCRON_SHELL", value)]).has(Opt::Shell);
    for on in ["1", "true", "TRUE", "yes", "on", " on "] {
        assert!(shell(on), "{on}");
    }
    for off in ["0", "false", "No", "off", ""] {
        assert!(!shell(off), "{off}");
    }
    assert_eq!(
        refused(&["x"], &[("SOLOCRON_SHELL", "ja")]),
        "SOLOCRON_SHELL is `ja`, which is neither on nor off; write 1 or 0"
    );
    assert_eq!(
        refused(&["x"], &[("SOLOCRON_VERBOSE", "10")]),
        "SOLOCRON_VERBOSE is `10`, which is neither on nor off; write 1 or 0"
    );
}

#[test]
fn unknown_variables_are_warned_about() {
    for (name, told) in [
        (
            "SOLOCRON_TLL",
            Some(
                "the environment variable SOLOCRON_TLL means nothing to solocron; \
                 did you mean SOLOCRON_TTL?",
            ),
        ),
        (
            "SOLOCRON_FAVOURITE_COLOUR",
            Some("the environment variable SOLOCRON_FAVOURITE_COLOUR means nothing to solocron"),
        ),
        (
            "SOLOCRON_STATUS",
            Some("SOLOCRON_STATUS is ignored: --status is not read from the environment"),
        ),
        ("SOLOCRON_LOCK", None),
        ("SOLOCRON_FIRING", None),
        ("SOLOCRON_TOKEN", None),
        ("SOLOCRON_ATTEMPT", None),
        ("SOLOCRON_HELD", None),
        ("SOLOCRONX", None),
    ] {
        let words = words(&["x"], &[(name, "1")]);
        assert_eq!(words.warnings.first().map(String::as_str), told, "{name}");
    }
}

#[test]
fn every_option_has_a_variable_of_its_own() {
    let all: std::collections::HashSet<String> =
        OPTIONS.iter().map(|spec| spec.opt.variable()).collect();
    assert_eq!(all.len(), OPTIONS.len());
    assert_eq!(Opt::StartDeadline.variable(), "SOLOCRON_START_DEADLINE");
}
