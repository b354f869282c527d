//! What is said and what passes through in once mode.

mod support;

use serde_json::Value as Json;
use std::fs;
use std::process::Command;
use support::proc;
use support::{Mode, Place, Proxy, Pty, RedisServer, Running, Solocron, Witness};
use support::{eventually, ms, secs, wait_until};

/// This host's name as others see it.
fn host() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

fn hold(place: &Place, lock: &str) -> Running {
    let run = place
        .run(lock)
        .args(["--ttl", "20s"])
        .sh("exec sleep 60")
        .spawn();
    wait_until(secs(10), "the holder holds", || place.held(lock));
    run
}

/// The words of a run as they are typed, to be run in a terminal.
fn words(run: &Solocron) -> Vec<String> {
    [
        "sh".into(),
        "-c".into(),
        format!("exec {}", run.shell_line()),
    ]
    .to_vec()
}

#[test]
fn busy_on_a_terminal_names_lock_holder_age_and_time_left() {
    Place::for_each(|place| {
        let holder = hold(place, "publish");
        let mut pty = Pty::run(&words(&place.run("publish").command(["true"])));
        assert_eq!(pty.wait(secs(10)), 75);
        let screen = pty.screen();
        for word in [
            "publish",
            &host(),
            &format!("pid {}", holder.pid()),
            "held by",
            "lease ends in",
        ] {
            assert!(screen.contains(word), "no {word:?} in {screen}");
        }
        assert_eq!(screen.trim().lines().count(), 1, "{screen}");
    });
}

#[test]
fn status_tells_the_holder_and_the_last_run() {
    Place::for_each(|place| {
        let status = |format: &str| {
            place
                .run("job")
                .args(["--status", "--log-format", format])
                .run()
        };
        let json = |code: i32| -> Json {
            let out = status("json");
            out.assert_code(code);
            serde_json::from_str(&out.out()).unwrap_or_else(|e| panic!("{e}: {}", out.out()))
        };
        // Nothing known yet.
        status("text").assert_code(0).assert_silent();
        json(0);
        let holder = hold(place, "job");
        let text = status("text");
        text.assert_code(75);
        for word in ["job", &host(), &holder.pid().to_string()] {
            assert!(text.out().contains(word), "no {word:?} in {}", text.out());
        }
        let held = json(75).to_string();
        assert!(
            held.contains(&format!("\"pid\":{}", holder.pid())),
            "{held}"
        );
        assert!(held.contains(&host()), "{held}");
        drop(holder);
        // The holder is dead: nobody holds once its lease is over or was never freed.
        place.run("other").sh("exit 3").run().assert_code(3);
        let out = place
            .run("other")
            .args(["--status", "--log-format", "json"])
            .run();
        out.assert_code(0);
        assert!(
            out.out().contains("failed") && out.out().contains('3'),
            "{}",
            out.out()
        );
    });
}

#[test]
fn status_without_a_store_is_69() {
    let url = format!("redis://127.0.0.1:{}", support::redis::free_port());
    let out = Solocron::at(&url, "x").arg("--status").run();
    out.assert_code(69).assert_says(&["127.0.0.1"]);
}

#[test]
fn streams_pass_byte_for_byte() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut wanted = b"{\"json\": 1}\n".to_vec();
    wanted.extend(vec![b'x'; 1024 * 1024]);
    wanted.extend(b"\n\xff\xfe no final newline");
    let file = dir.path().join("bytes");
    fs::write(&file, &wanted).expect("file");
    let place = &Place::each()[1];
    let line = format!(
        "cat '{0}'; head -c 70 '{0}' >&2; test -t 1 || echo off >&2",
        file.display()
    );
    let out = place.run("bytes").sh(&line).run();
    out.assert_code(0);
    assert!(out.stdout == wanted, "stdout differs");
    assert_eq!(out.stderr.as_bytes(), [&wanted[..70], b"off\n"].concat());
    let mut pty = Pty::run(&words(
        &place
            .run("tty")
            .sh("test -t 0 && test -t 1 && test -t 2 && exit 5"),
    ));
    assert_eq!(pty.wait(secs(10)), 5, "{}", pty.screen());
}

#[test]
fn stdin_is_the_callers() {
    let place = &Place::each()[1];
    let witness = Witness::default();
    let file = witness.path("input");
    fs::write(&file, "to the command\n").expect("file");
    let out = place.run("stdin").stdin(&file).command(["cat"]).run();
    assert_eq!(out.out(), "to the command\n");
}

#[test]
fn the_command_sees_its_environment_and_directory() {
    Place::for_each(|place| {
        let dir = tempfile::tempdir().expect("temporary directory");
        let run = Solocron::default()
            .env("SOLOCRON_LOCK_NAME", "job")
            .env("SOLOCRON_STORE", &place.url());
        let out = run
            .env("SOLOCRON_CRON", "")
            .env("MINE", "kept")
            .current_dir(dir.path())
            .sh("env; pwd")
            .run();
        out.assert_code(0);
        let text = out.out();
        let has = |line: &str| text.lines().any(|l| l == line);
        assert!(
            has("SOLOCRON_LOCK=job") && has("SOLOCRON_ATTEMPT=1") && has("MINE=kept"),
            "{text}"
        );
        assert!(has(&dir.path().display().to_string()), "{text}");
        for name in ["SOLOCRON_LOCK_NAME=", "SOLOCRON_CRON=", "SOLOCRON_FIRING="] {
            assert!(
                !text.lines().any(|l| l.starts_with(name)),
                "{name} in {text}"
            );
        }
        let token = text
            .lines()
            .find_map(|l| l.strip_prefix("SOLOCRON_TOKEN="))
            .expect("token");
        // The store's clock in microseconds is the least a token can be.
        assert!(
            token.parse::<u64>().expect("decimal") > 1_700_000_000_000_000,
            "{token}"
        );
    });
}

#[test]
fn a_nested_run_of_the_same_lock_is_refused() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let inner = |lock: &str| {
            let run = place
                .run(lock)
                .args(["--wait", "10s"])
                .command(witness.job(":"));
            place.run("outer").sh(&run.shell_line()).run()
        };
        let out = inner("outer");
        assert!(out.took < secs(3), "refused at once: {:?}", out.took);
        assert_ne!(out.code(), 0);
        out.assert_says(&["outer"]);
        assert!(witness.starts().is_empty());
        inner("inner").assert_code(0);
        assert_eq!(witness.starts().len(), 1);
    });
}

#[test]
fn log_lines_follow_level_and_format() {
    let place = &Place::each()[0];
    let run = |options: &[&str]| place.run("job").args(options).command(["true"]).run();
    run(&[]).assert_code(0).assert_silent();
    let out = run(&["-v"]);
    out.assert_says(&["job", "started", "ended"]);
    assert!(out.stderr.lines().count() <= 3, "{}", out.stderr);
    let out = run(&["-v", "--log-format", "json"]);
    assert!(out.stderr.lines().count() >= 2, "{}", out.stderr);
    for line in out.stderr.lines() {
        let json: Json = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(json.is_object());
    }
    let _holder = hold(place, "job");
    run(&["-v"]).assert_code(75).assert_says(&["held by"]);
    run(&["-q"]).assert_code(75).assert_silent();
}

#[test]
fn settings_come_from_flag_then_environment_then_default() {
    let redis = RedisServer::start();
    let ttl = |run: Solocron| -> i64 {
        let run = run
            .env("SOLOCRON_LOCK_NAME", "env")
            .sh("exec sleep 0.3")
            .spawn();
        let record = support::wait_for(secs(5), "a record", || {
            Some(redis.record("env")).filter(|r| r.get("state").is_some_and(|s| s == "run"))
        });
        drop(run);
        redis.cli(&["FLUSHALL"]);
        record["until"].parse::<i64>().expect("ms") - record["started"].parse::<i64>().expect("ms")
    };
    let base = || Solocron::default().env("SOLOCRON_STORE", &redis.url());
    assert_eq!(ttl(base()), 30_000);
    assert_eq!(ttl(base().env("SOLOCRON_TTL", "7s")), 7_000);
    assert_eq!(
        ttl(base().env("SOLOCRON_TTL", "7s").args(["--ttl", "9s"])),
        9_000
    );
    assert_eq!(
        ttl(base().env("SOLOCRON_TTL", "")),
        30_000,
        "empty is unset"
    );
    let by_url = Solocron::default()
        .env("REDIS_URL", &redis.url())
        .env("SOLOCRON_STORE", "");
    assert_eq!(ttl(by_url), 30_000, "REDIS_URL");
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    fs::write(file.path(), format!("{}\n", redis.url())).expect("file");
    assert_eq!(
        ttl(Solocron::default().arg("--store-file").arg(file.path())),
        30_000,
        "--store-file"
    );
    let bad = base()
        .env("SOLOCRON_TTL", "30")
        .lock("env")
        .command(["true"])
        .run();
    bad.assert_code(2).assert_says(&["SOLOCRON_TTL", "30s"]);
}

#[test]
fn unknown_variables_are_warned_about() {
    let place = &Place::each()[1];
    let out = place
        .run("x")
        .env("SOLOCRON_TLL", "30s")
        .command(["true"])
        .run();
    out.assert_code(0).assert_says(&["SOLOCRON_TLL"]);
    // What solocron gives its commands is known to a nested run.
    let inner = place.run("inner").command(["true"]);
    place
        .run("outer")
        .sh(&inner.shell_line())
        .run()
        .assert_code(0)
        .assert_silent();
}

#[test]
fn key_prefix_moves_the_record() {
    let redis = RedisServer::start();
    Solocron::on(&redis, "x")
        .args(["--key-prefix", "mine"])
        .command(["true"])
        .run()
        .assert_code(0);
    assert_eq!(
        redis
            .cli(&["KEYS", "*"])
            .items()
            .iter()
            .map(support::Value::text)
            .collect::<Vec<_>>(),
        ["mine:{x}"]
    );
}

#[test]
fn the_record_tells_the_run_and_outlives_it() {
    let redis = RedisServer::start();
    Solocron::on(&redis, "x").sh("exit 3").run().assert_code(3);
    let record = redis.record("x");
    assert_eq!(
        (record["state"].as_str(), record["code"].as_str()),
        ("failed", "3")
    );
    let info: Json = serde_json::from_str(&record["info"]).expect("JSON");
    assert_eq!(info["host"], host());
    assert!(
        info["pid"].is_u64() && info["version"].is_string(),
        "{info}"
    );
    assert!(!record["info"].contains("exit"), "no arguments: {info}");
    let left: i64 = redis
        .cli(&["PTTL", "solocron:{x}"])
        .text()
        .parse()
        .expect("ms");
    assert!(left > 86_000_000, "{left}");
    Solocron::on(&redis, "x")
        .command(["true"])
        .run()
        .assert_code(0);
    let after = redis.record("x");
    assert_eq!(
        (after["state"].as_str(), after["code"].as_str()),
        ("done", "0")
    );
    let token =
        |r: &std::collections::BTreeMap<String, String>| r["token"].parse::<u64>().expect("token");
    assert!(token(&after) > token(&record));
    redis.cli(&["FLUSHALL"]);
    Solocron::on(&redis, "x")
        .command(["true"])
        .run()
        .assert_code(0);
    assert!(
        token(&redis.record("x")) > token(&after),
        "also over a wipe"
    );
}

#[test]
fn secrets_are_never_told() {
    let redis = RedisServer::options().password("s3cret").start();
    let dead = format!("redis://:s3cret@127.0.0.1:{}", support::redis::free_port());
    let wrong = redis.url_as("nobody", "s3cret-too");
    for url in [&redis.url_as("", "s3cret"), &dead, &wrong] {
        for level in ["-q", "-v", "-vv", "-vvv"] {
            for format in ["text", "json"] {
                let run =
                    Solocron::at(url, "x").args([level, "--log-format", format, "--wait", "200ms"]);
                let out = run.sh("exit 1").run();
                assert!(
                    !out.stderr.contains("s3cret"),
                    "{url} {level}: {}",
                    out.stderr
                );
            }
        }
        let out = Solocron::at(url, "x").arg("--status").run();
        assert!(!out.stderr.contains("s3cret") && !out.out().contains("s3cret"));
    }
    let everything = format!("{:?}", redis.record("x"));
    assert!(!everything.contains("s3cret"), "{everything}");
}

#[test]
fn a_store_file_keeps_the_secret_out_of_ps() {
    let redis = RedisServer::options().password("s3cret").start();
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    fs::write(file.path(), redis.url_as("", "s3cret")).expect("file");
    let run = Solocron::default()
        .arg("--store-file")
        .arg(file.path())
        .lock("x")
        .sh("exec sleep 60")
        .spawn();
    wait_until(secs(5), "held", || redis.held("x"));
    let out = Command::new("ps")
        .args(["-e", "-o", "pid,args"])
        .output()
        .expect("ps");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let ours: Vec<_> = text
        .lines()
        .filter(|l| l.contains(&file.path().display().to_string()))
        .collect();
    assert!(!ours.is_empty(), "{text}");
    for p in run.tree() {
        assert!(!proc::cmdline(p.pid).join(" ").contains("s3cret"));
    }
}

#[test]
fn a_background_process_is_left_alone_with_one_warning() {
    Place::for_each(|place| {
        let mut run = place
            .run("bg")
            .sh("sleep 60 & echo started; exit 0")
            .spawn();
        let out = run.wait(secs(5));
        out.assert_code(0).assert_says(&["left"]);
        assert!(out.took < secs(2), "{:?}", out.took);
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        assert_eq!(out.out(), "started\n");
        assert_eq!(run.started().len(), 1, "the sleep lives");
        place.assert_free("bg");
    });
}

#[test]
fn failed_commands_are_tried_again_under_one_lease() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let options = ["--retries", "2", "--retry-delay", "100ms"];
        let out = place
            .run("r")
            .args(options)
            .command(witness.job("[ $SOLOCRON_ATTEMPT = 3 ]"))
            .run();
        out.assert_code(0);
        let starts = witness.starts();
        assert_eq!(
            starts.iter().map(|s| s.attempt).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        assert!(
            starts.iter().all(|s| s.token == starts[0].token),
            "{starts:?}"
        );
        assert!(starts[1].at - starts[0].at > 100.0);
        let out = place
            .run("r")
            .args(options)
            .command(witness.job("exit 4"))
            .run();
        out.assert_code(4);
        assert_eq!(witness.starts().len(), 6);
    });
}

#[test]
fn a_message_that_cannot_be_written_is_no_error() {
    let place = &Place::each()[1];
    for target in [">&-", ">/dev/full", "| true"] {
        let inner = place.run("x").arg("-vv").sh("sleep 0.2; exit 0");
        let line = format!("{{ {} 2>&1; echo $? >&3; }} {target}", inner.shell_line());
        let out = Solocron::program("bash".as_ref())
            .args(["-c", &format!("exec 3>&1; {line}")])
            .run();
        assert_eq!(out.out(), "0\n", "{target}: {}", out.stderr);
    }
}

#[test]
fn a_flood_of_store_errors_is_one_line() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.set(Mode::Refuse);
    let run = Solocron::at(&proxy.url(), "x")
        .args(["--wait", "3s", "-v"])
        .command(["true"]);
    let out = run.run();
    out.assert_code(69);
    assert!(proxy.accepted() > 2, "it tries again: {}", proxy.accepted());
    assert!(out.stderr.lines().count() <= 3, "{}", out.stderr);
}

#[test]
fn at_a_terminal_the_embedded_store_is_the_default_with_a_warning() {
    // /var/lib is covered so that nothing is left on the machine; a user has a directory of its own.
    let dir = tempfile::tempdir().expect("temporary directory");
    let run = Solocron::default()
        .lock("x")
        .env("XDG_STATE_HOME", &dir.path().display().to_string());
    let line = run.sh("exit 3").shell_line();
    let mut pty = if rustix::process::geteuid().is_root() {
        Pty::run(&[
            "unshare",
            "-m",
            "sh",
            "-c",
            &format!("mount -t tmpfs none /var/lib && {line}"),
        ])
    } else {
        Pty::run(&["sh", "-c", &line])
    };
    assert_eq!(pty.wait(secs(10)), 3, "{}", pty.screen());
    let screen = pty.screen().to_lowercase();
    assert!(screen.contains("this machine"), "{screen}");
}

#[test]
fn no_colour_where_none_is_wanted() {
    let place = &Place::each()[1];
    let run = |no_color: bool| {
        let run = place.run("x").arg("-v").command(["true"]);
        let run = if no_color {
            run.env("NO_COLOR", "1")
        } else {
            run
        };
        let mut pty = Pty::run(&words(&run));
        assert_eq!(pty.wait(secs(10)), 0);
        pty.screen()
    };
    assert!(!run(true).contains('\u{1b}'));
    let out = place.run("x").arg("-v").command(["true"]).run();
    assert!(!out.stderr.contains('\u{1b}'), "{}", out.stderr);
}

#[test]
fn nothing_is_left_over_after_a_quick_run() {
    Place::for_each(|place| {
        let mut run = place.run("x").command(["true"]).spawn();
        run.wait(secs(5)).assert_code(0).assert_clean();
        assert!(eventually(ms(100), || run.started().is_empty()));
        place.assert_free("x");
    });
}
