//! Exit statuses in once mode, on Redis and on the embedded store.

mod support;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::inspect::key;
use support::redis::free_port;
use support::witness::{f64_of, now_ms};
use support::{Place, RedisServer, Running, Solocron, Witness};
use support::{eventually, ms, secs, wait_until};

/// Starts a run that holds `lock` until the file `end` is there.
fn hold(place: &Place, lock: &str, end: &Path) -> Running {
    let line = format!("while [ ! -e '{}' ]; do sleep 0.05; done", end.display());
    let run = place.run(lock).sh(&line).spawn();
    wait_until(secs(10), "the holder holds", || place.held(lock));
    run
}

#[test]
fn every_status_of_the_command_passes_through() {
    Place::for_each(|place| {
        let codes: Vec<i32> = (0..=255).collect();
        for chunk in codes.chunks(16) {
            let start = |&code: &i32| {
                let line = format!("exit {code}");
                (code, place.run(&format!("s{code}")).sh(&line).spawn())
            };
            let runs: Vec<_> = chunk.iter().map(start).collect();
            for (code, mut run) in runs {
                let out = run.wait(secs(20));
                assert_eq!(out.status.code(), Some(code), "{}", out.stderr);
            }
        }
    });
}

#[test]
fn death_by_a_signal_is_told_as_128_and_the_signal() {
    Place::for_each(|place| {
        let signals = [
            ("HUP", 1),
            ("INT", 2),
            ("QUIT", 3),
            ("KILL", 9),
            ("USR1", 10),
            ("SEGV", 11),
            ("TERM", 15),
        ];
        for (name, number) in signals {
            let out = place.run("died").sh(&format!("kill -{name} $$")).run();
            assert_eq!(
                out.status.code(),
                Some(128 + number),
                "{name}: {}",
                out.stderr
            );
            place.assert_free("died");
        }
    });
}

/// Files that cannot be run, or only by a shell: name, what a run ends with, words of the message.
fn odd_files(dir: &Path) -> Vec<(String, i32, Vec<&'static str>)> {
    let file = |name: &str, bytes: &[u8], mode: u32| {
        let path = dir.join(name);
        fs::write(&path, bytes).expect("file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("mode");
        path.display().to_string()
    };
    fs::create_dir(dir.join("directory")).expect("directory");
    vec![
        ("/no/such/file".into(), 127, vec!["/no/such/file"]),
        ("no-such-command".into(), 127, vec!["no-such-command"]),
        (
            file("plain", b"#!/bin/sh\nexit 0\n", 0o644),
            126,
            vec!["plain"],
        ),
        (
            dir.join("directory").display().to_string(),
            126,
            vec!["directory"],
        ),
        (
            file("orphan", b"#!/no/such/interpreter\n", 0o755),
            127,
            vec!["orphan", "/no/such/interpreter"],
        ),
        (file("script", b"x=5\nexit $x\n", 0o755), 5, vec![]),
        (
            file(
                "garbage",
                b"\x01\x00\x02\x00\xff\xfe\x00\x03\x80\x90",
                0o755,
            ),
            126,
            vec!["garbage"],
        ),
    ]
}

#[test]
fn commands_that_cannot_start_are_named_and_free_the_lock() {
    Place::for_each(|place| {
        let dir = tempfile::tempdir().expect("temporary directory");
        for (command, code, words) in odd_files(dir.path()) {
            let out = place
                .run("start")
                .arg("--ttl")
                .arg("60s")
                .command([&command])
                .run();
            out.assert_code(code).assert_says(&words).assert_clean();
            place.assert_free("start");
        }
    });
}

#[test]
fn a_busy_lock_is_75_and_silent_without_a_terminal() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let end = witness.path("end");
        let mut holder = hold(place, "busy", &end);
        let second = |options: &[&str]| {
            place
                .run("busy")
                .args(options)
                .command(witness.job(":"))
                .run()
        };
        second(&[]).assert_code(75).assert_silent();
        second(&["--skip-exit-code", "0"])
            .assert_code(0)
            .assert_silent();
        second(&["--skip-exit-code", "11"]).assert_code(11);
        let out = second(&["--wait", "1s"]);
        out.assert_code(75).assert_says(&["busy", "held by"]);
        assert!(
            out.took >= ms(1000) && out.took < ms(1900),
            "{:?}",
            out.took
        );
        assert!(witness.starts().is_empty(), "the job never runs");
        let mut waiting = place
            .run("busy")
            .args(["--wait", "20s"])
            .command(witness.job("exit 2"))
            .spawn();
        std::thread::sleep(ms(300));
        fs::write(&end, "").expect("file");
        holder.wait(secs(5)).assert_code(0);
        let ended = now_ms();
        waiting.wait(secs(5)).assert_code(2);
        let after = witness.starts()[0].at - f64_of(ended);
        assert!(after < 1000.0, "started {after} ms after the lock was free");
    });
}

#[test]
fn an_unreachable_store_is_69_after_5_seconds_or_the_wait() {
    let witness = Witness::default();
    let url = format!("redis://127.0.0.1:{}", free_port());
    let mut patient = Solocron::at(&url, "x").command(witness.job(":")).spawn();
    let out = Solocron::at(&url, "x")
        .args(["--wait", "1s"])
        .command(witness.job(":"))
        .run();
    out.assert_code(69).assert_says(&["127.0.0.1", "refused"]);
    assert!(out.took >= ms(900) && out.took < ms(2500), "{:?}", out.took);
    let out = patient.wait(secs(10));
    out.assert_code(69).assert_says(&["127.0.0.1", "refused"]);
    assert!(
        out.took >= ms(4500) && out.took < ms(7000),
        "{:?}",
        out.took
    );
    assert!(witness.starts().is_empty());
}

#[test]
fn a_silent_store_is_69_as_well() {
    // Connections are taken by the kernel, nobody answers.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let url = format!(
        "redis://127.0.0.1:{}",
        silent.local_addr().expect("own address").port()
    );
    let out = Solocron::at(&url, "x")
        .args(["--wait", "1s"])
        .command(["true"])
        .run();
    out.assert_code(69).assert_says(&["127.0.0.1"]);
    assert!(out.took < ms(3500), "{:?}", out.took);
}

#[test]
fn a_directory_that_cannot_be_made_is_no_store() {
    let out = Solocron::at("file:///proc/none/locks", "x")
        .args(["--wait", "1s"])
        .command(["true"])
        .run();
    out.assert_code(69).assert_says(&["/proc/none"]);
}

#[test]
fn what_the_server_refuses_is_77() {
    let redis = RedisServer::options().password("right").start();
    let run = |url: &str| Solocron::at(url, "x").command(["true"]).run();
    run(&redis.url_as("", "right")).assert_code(0);
    run(&redis.url_as("", "wrong"))
        .assert_code(77)
        .assert_says(&["127.0.0.1", "password"]);
    run(&redis.url())
        .assert_code(77)
        .assert_says(&["127.0.0.1", "password"]);
    redis.cli(&["ACL", "SETUSER", "poor", "on", ">pw", "~*", "-@all", "+get"]);
    run(&redis.url_as("poor", "pw"))
        .assert_code(77)
        .assert_says(&["127.0.0.1", "ACL SETUSER"]);
    redis.cli(&["ACL", "SETUSER", "other", "on", ">pw", "~other:*", "+@all"]);
    run(&redis.url_as("other", "pw"))
        .assert_code(77)
        .assert_says(&["127.0.0.1", "ACL SETUSER"]);
}

#[test]
fn the_documented_permissions_are_enough() {
    let redis = RedisServer::start();
    let user = "ACL SETUSER min on >pw resetchannels ~solocron:* -@all +eval +hset +hget +hmget +hgetall +pexpire \
        +persist +time";
    redis.cli(&user.split_whitespace().collect::<Vec<_>>());
    let run = || Solocron::at(&redis.url_as("min", "pw"), "x").args(["--ttl", "1s"]);
    run().sh("sleep 1.5").run().assert_code(0).assert_silent();
    Solocron::at(&redis.url_as("min", "pw"), "x")
        .arg("--status")
        .run()
        .assert_code(0);
    run()
        .args(["--once-per", "1h"])
        .command(["true"])
        .run()
        .assert_code(0);
    run()
        .args(["--once-per", "1h"])
        .command(["true"])
        .run()
        .assert_code(75);
    // Asking for the eviction policy is optional and may be denied.
    let denied = format!("{:?}", redis.cli(&["ACL", "LOG"]));
    assert!(
        !denied
            .replace("Bulk(\"info\")", "")
            .contains("Bulk(\"object\"), Bulk("),
        "{denied}"
    );
}

#[test]
fn a_directory_of_another_user_is_77() {
    // The binary and the directory must be within reach of a user without rights.
    let dir = tempfile::tempdir().expect("temporary directory");
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode");
    };
    open(dir.path(), 0o755);
    let binary = dir.path().join("solocron");
    fs::copy(env!("CARGO_BIN_EXE_solocron"), &binary).expect("copy");
    let store = dir.path().join("store");
    fs::create_dir(&store).expect("directory");
    let url = format!("file://{}", store.display());
    let mut run = Solocron::program(&binary)
        .args(["--store", &url])
        .lock("x")
        .command(["true"]);
    if rustix::process::geteuid().is_root() {
        open(&store, 0o700);
        run = run.under([
            "setpriv",
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
        ]);
    } else {
        open(&store, 0o000);
    }
    let out = run.run();
    open(&store, 0o700);
    out.assert_code(77)
        .assert_says(&[&store.display().to_string()]);
}

#[test]
fn a_run_past_its_time_is_124_or_137_with_its_whole_group() {
    Place::for_each(|place| {
        let limits = ["--ttl", "10s", "--timeout", "1s", "--kill-after", "1s"];
        let mut polite = place
            .run("polite")
            .args(limits)
            .sh("sleep 7771; true")
            .spawn();
        let deaf = "trap '' TERM; while :; do sleep 0.1; done";
        let mut deaf = place.run("deaf").args(limits).sh(deaf).spawn();
        let out = polite.wait(secs(10));
        out.assert_code(124)
            .assert_clean()
            .assert_says(&["timeout"]);
        assert!(
            out.took >= ms(1000) && out.took < ms(2500),
            "{:?}",
            out.took
        );
        place.assert_free("polite");
        let out = deaf.wait(secs(10));
        out.assert_code(137).assert_clean();
        assert!(
            out.took >= ms(2000) && out.took < ms(3500),
            "{:?}",
            out.took
        );
        place.assert_free("deaf");
    });
}

#[test]
fn a_command_within_its_time_keeps_its_status() {
    let place = &Place::each()[1];
    let out = place.run("x").args(["--timeout", "20s"]).sh("exit 9").run();
    out.assert_code(9).assert_silent();
}

#[test]
fn a_lock_taken_by_another_is_76() {
    let redis = RedisServer::start();
    let mut run = Solocron::on(&redis, "x")
        .args(["--ttl", "3s"])
        .sh("sleep 30; true")
        .spawn();
    wait_until(secs(5), "held", || redis.held("x"));
    let until = (redis.now_ms() + 2900).to_string();
    let token = (redis.now_ms() * 1000 + 60_000_000).to_string();
    let other = "0123456789abcdef0123456789abcdef";
    redis.cli(&[
        "HSET",
        &key("x"),
        "owner",
        other,
        "token",
        &token,
        "until",
        &until,
    ]);
    let out = run.wait(secs(5));
    out.assert_code(76)
        .assert_clean()
        .assert_says(&["lock lost"]);
    assert!(
        out.took < ms(3000),
        "stopped by the next heartbeat: {:?}",
        out.took
    );
    assert_eq!(redis.record("x")["owner"], other);
    assert_eq!(
        redis.record("x")["until"],
        until,
        "another's lease stays as it is"
    );
}

#[test]
fn a_store_directory_that_is_gone_is_76() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let store = dir.path().join("store");
    let witness = Witness::default();
    let job = witness.job("sleep 30");
    let run = Solocron::local(&store, "x")
        .args(["--ttl", "3s", "--kill-after", "500ms"])
        .command(job);
    let mut run = run.spawn();
    witness.wait_starts(1, secs(5));
    fs::rename(&store, dir.path().join("away")).expect("renamed");
    fs::write(&store, "").expect("a file in its place");
    let out = run.wait(secs(6));
    out.assert_code(76)
        .assert_clean()
        .assert_says(&["lock lost"]);
    assert!(out.took < ms(4300), "{:?}", out.took);
    assert!(eventually(secs(1), || run.started().is_empty()));
}
