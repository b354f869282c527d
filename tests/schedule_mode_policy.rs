//! What a schedule does with firings that are late, blocked or fail, and what it refuses.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use support::fleet::{EACH_SECOND, at, firings, sleep_until, soon, text_of};
use support::witness::f64_of;
use support::{Fleet, Place, RedisServer, Signal, Solocron, Witness};
use support::{eventually, ms, now_ms, secs, wait_until};

#[test]
fn a_restart_of_all_instances_over_a_firing_starts_it_once_and_late() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let next = due + 4000;
    let make = || {
        Solocron::on(&redis, "x")
            .args(at(&[due, next]))
            .command(witness.job(":"))
    };
    let fleet = Fleet::of(&["a", "b", "c"], make);
    witness.wait_starts(1, secs(6));
    sleep_until(next - 1000);
    fleet.stop();
    sleep_until(next + 2000);
    let fleet = Fleet::of(&["a", "b", "c"], make);
    let starts = witness.wait_starts(2, secs(5));
    std::thread::sleep(secs(1));
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due, next]);
    assert!(starts[1].at >= f64_of(next + 2000));
}

#[test]
fn a_first_start_claims_what_has_just_been_due() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(1));
    let run = |lock: &str, options: &[&str]| {
        let run = Solocron::on(&redis, lock).args(at(&[due])).args(options);
        run.label(lock).command(witness.job(":")).spawn()
    };
    sleep_until(due + 1200);
    let fresh = run("fresh", &[]);
    let strict = run("strict", &["--start-deadline", "1s"]);
    sleep_until(due + 3000);
    // Nothing is known of this lock, and whether it ran cannot be told any more.
    let unsure = run("unsure", &[]);
    sleep_until(due + 4500);
    let labels: Vec<String> = witness.starts().into_iter().map(|s| s.label).collect();
    assert_eq!(labels, ["fresh"]);
    assert!(!unsure.stderr().is_empty() && !strict.stderr().is_empty());
    drop(fresh);
}

#[test]
fn skip_drops_what_falls_due_behind_a_long_run() {
    overlap("skip", |due| vec![due]);
}

#[test]
fn queue_keeps_the_newest_that_falls_due_behind_a_long_run() {
    overlap("queue", |due| vec![due, due + 2000]);
}

/// One and two instances, two firings due behind the run of another.
fn overlap(policy: &str, wanted: impl Fn(i64) -> Vec<i64>) {
    let redis = RedisServer::start();
    let due = soon(secs(2));
    let mut all = Vec::new();
    for labels in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        let witness = Witness::default();
        let lock = format!("x{}", labels.len());
        let make = || {
            let run = Solocron::on(&redis, &lock)
                .args(at(&[due, due + 1000, due + 2000]))
                .args(["--overlap", policy]);
            let body = format!("[ $SOLOCRON_FIRING != {} ] || sleep 3.5", text_of(due));
            run.command(witness.job(&body))
        };
        let fleet = Fleet::of(labels, make);
        all.push((fleet, witness));
    }
    sleep_until(due + 6500);
    for (fleet, witness) in all {
        let messages = fleet.messages();
        fleet.stop();
        assert_eq!(firings(&witness.starts()), wanted(due), "{messages}");
        witness.assert_no_overlap();
    }
}

#[test]
fn a_run_by_hand_blocks_a_firing_and_does_not_spend_it() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let due = soon(secs(2));
        let make = || place.run("x").args(at(&[due])).command(witness.job(":"));
        let fleet = Fleet::of(&["a", "b"], make);
        let mut hand = place.run("x").sh("sleep 3.5").spawn();
        wait_until(secs(2), "held", || place.held("x"));
        hand.wait(secs(8)).assert_code(0);
        let ended = now_ms();
        assert!(ended > due, "it blocked the firing");
        let starts = witness.wait_starts(1, secs(3));
        std::thread::sleep(ms(1500));
        fleet.stop();
        assert_eq!(firings(&witness.starts()), [due]);
        assert!(starts[0].at >= f64_of(ended) - 100.0);
    });
}

#[test]
fn a_command_that_cannot_start_fails_its_firing_only() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let script = witness.path("job");
    let lines = format!(
        "#!/bin/sh\necho ran >>'{}'\n",
        witness.path("ran").display()
    );
    fs::write(&script, lines).expect("file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).expect("mode");
    let ran = || {
        fs::read_to_string(witness.path("ran"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    let mut run = Solocron::on(&redis, "x")
        .args(EACH_SECOND)
        .command([&script])
        .spawn();
    wait_until(secs(5), "a failure is told", || {
        run.stderr().contains("job")
    });
    assert!(!eventually(ms(1500), || run.has_ended()));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("mode");
    wait_until(secs(3), "the next firing runs", || ran() > 0);
    run.signal(Signal::TERM);
    run.wait(secs(2)).assert_code(0);
}

#[test]
fn retries_end_when_the_next_firing_is_due() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let run = Solocron::on(&redis, "x").args(at(&[due, due + 2000, due + 4000]));
    let run = run
        .args(["--retries", "100", "--retry-delay", "450ms"])
        .label("a");
    let run = run
        .command(witness.job("[ $SOLOCRON_ATTEMPT = 100 ]"))
        .spawn();
    sleep_until(due + 5000);
    drop(run);
    let by_firing = witness.by_firing();
    assert_eq!(by_firing.len(), 3, "{by_firing:#?}");
    for (firing, starts) in by_firing.iter().take(2) {
        assert!(starts.len() >= 3, "{starts:#?}");
        let last = starts.last().expect("starts").at;
        assert!(last < f64_of(firing + 2000) + 100.0, "{starts:#?}");
        assert!(
            starts
                .iter()
                .enumerate()
                .all(|(i, s)| s.attempt as usize == i + 1),
            "{starts:#?}"
        );
    }
}

#[test]
fn the_command_of_a_schedule_sees_its_firing_and_no_stdin() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let input = witness.path("input");
    fs::write(&input, "not for the command\n").expect("file");
    let due = soon(secs(2));
    let run = Solocron::on(&redis, "x").args(at(&[due])).stdin(&input);
    let body = "cat; echo firing $SOLOCRON_FIRING $SOLOCRON_LOCK; printf 'a\\377\\376' ; echo err >&2; env | grep -c ^SOLOCRON_CRON";
    let mut run = run
        .env("SOLOCRON_CRON", "")
        .command(witness.job(body))
        .spawn();
    wait_until(secs(6), "it ended", || witness.of("end").len() == 1);
    run.signal(Signal::TERM);
    let out = run.wait(secs(2));
    out.assert_code(0);
    let wanted = [
        format!("firing {} x\n", text_of(due)).as_bytes(),
        b"a\xff\xfe0\n",
    ]
    .concat();
    assert_eq!(out.stdout, wanted, "{}", out.out());
    assert!(out.stderr.lines().any(|l| l == "err"));
}

#[test]
fn other_jobs_under_the_name_are_warned_about_once() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    Solocron::on(&redis, "x").sh("true").run().assert_code(0);
    let run = Solocron::on(&redis, "x")
        .args(EACH_SECOND)
        .command(["env", "true"])
        .spawn();
    std::thread::sleep(secs(5));
    let told = run
        .stderr()
        .lines()
        .filter(|l| l.contains("name of its own"))
        .count();
    assert_eq!(told, 1, "{}", run.stderr());
    drop(witness);
}

#[test]
fn next_prints_firings_without_a_store() {
    let run = Solocron::default().args(["--cron", "0 12 * * *", "--tz", "UTC", "--next", "2"]);
    let out = run.args(["--from", "2026-01-01T00:00:00Z"]).run();
    out.assert_code(0);
    let lines: Vec<_> = out.out().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].contains("2026-01-01T12:00") && lines[1].contains("2026-01-02T12:00"),
        "{lines:?}"
    );
}

#[test]
fn status_tells_the_next_firing() {
    let place = &Place::each()[1];
    let out = place
        .run("x")
        .args(["--tz", "UTC", "--cron", "0 12 1 1 *", "--status"])
        .run();
    out.assert_code(0);
    assert!(out.out().contains("-01-01T12:00"), "{}", out.out());
}

#[test]
fn schedules_that_cannot_work_are_refused() {
    let dir: PathBuf = "/nonexistent".into();
    let cases: &[(&[&str], &str)] = &[
        (&["--cron", "61 * * * *"], "61"),
        (&["--cron", "* * *"], "field"),
        (&["--cron", "0 0 30 2 *"], "never"),
        (
            &["--cron", "* * * * *", "--tz", "Europe/Nowhere"],
            "Europe/Nowhere",
        ),
        (&["--cron", "* * * * *", "--wait", "5s"], "--wait"),
        (&["--cron", "* * * * *", "--once-per", "1h"], "--once-per"),
        (&["--cron", "@reboot"], "@reboot"),
        (&["--from", "2026-01-01T00:00:00Z"], "--next"),
    ];
    for (options, word) in cases {
        let out = Solocron::local(&dir, "x")
            .args(*options)
            .command(["true"])
            .run();
        assert_eq!(out.code(), 2, "{options:?}: {}", out.stderr);
        out.assert_says(&[word]);
    }
}
