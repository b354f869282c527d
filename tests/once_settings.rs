//! Settings, the command's environment, the record, and secrets.

mod support;

use serde_json::Value as Json;
use std::fs;
use std::process::Command;
use support::proc;
use support::{Place, Pty, RedisServer, Solocron, Witness};
use support::{secs, wait_until};

/// This host's name as others see it.
fn host() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
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
fn a_nested_run_in_another_database_is_another_lock() {
    let redis = RedisServer::start();
    let other = format!("{}/1", redis.url());
    let inner = Solocron::at(&other, "x").command(["true"]);
    let outer = Solocron::on(&redis, "x").sh(&inner.shell_line());
    outer.run().assert_code(0).assert_silent();
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
