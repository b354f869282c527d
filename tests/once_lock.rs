//! Who gets the lock in once mode: many at once, waiting, once a period.

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::inspect::key;
use support::{Mode, Place, Proxy, RedisServer, Running, Solocron, Witness};
use support::{long, ms, secs, wait_until};

/// A shell line that ends when the file is there.
fn until_file(file: &Path) -> String {
    format!("while [ ! -e '{}' ]; do sleep 0.05; done", file.display())
}

#[test]
fn of_a_hundred_at_once_one_runs_and_99_are_told_75() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let end = witness.path("end");
    let start = |_| {
        Solocron::on(&redis, "x")
            .args(["--ttl", "60s"])
            .command(witness.job(&until_file(&end)))
            .spawn()
    };
    let mut runs: Vec<Running> = (0..100).map(start).collect();
    wait_until(secs(40), "99 have ended", || {
        runs.iter_mut()
            .filter_map(|r| r.has_ended().then_some(()))
            .count()
            == 99
    });
    fs::write(&end, "").expect("file");
    let mut codes: Vec<i32> = runs.iter_mut().map(|r| r.wait(secs(5)).code()).collect();
    codes.sort_unstable();
    assert_eq!((codes[0], codes[1], codes[99]), (0, 75, 75));
    assert_eq!(witness.starts().len(), 1);
    // One claim each and the winner's release: nobody asked twice.
    assert_eq!(redis.calls("eval"), 101);
    redis.assert_free("x", secs(0));
}

#[test]
fn of_a_hundred_at_once_on_one_machine_one_runs() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let witness = Witness::default();
    let end = witness.path("end");
    let start = |_| {
        Solocron::local(dir.path(), "x")
            .args(["--ttl", "60s"])
            .command(witness.job(&until_file(&end)))
            .spawn()
    };
    let mut runs: Vec<Running> = (0..100).map(start).collect();
    wait_until(secs(40), "99 have ended", || {
        runs.iter_mut()
            .filter_map(|r| r.has_ended().then_some(()))
            .count()
            == 99
    });
    fs::write(&end, "").expect("file");
    let mut codes: Vec<i32> = runs.iter_mut().map(|r| r.wait(secs(5)).code()).collect();
    codes.sort_unstable();
    assert_eq!((codes[0], codes[1], codes[99]), (0, 75, 75));
    assert_eq!(witness.starts().len(), 1);
}

#[test]
fn a_loser_needs_one_round_trip_after_connecting() {
    let redis = RedisServer::start();
    let holder = Solocron::on(&redis, "x").sh("exec sleep 60").spawn();
    wait_until(secs(5), "held", || redis.held("x"));
    let proxy = Proxy::to(redis.port());
    Solocron::at(&proxy.url(), "x")
        .command(["true"])
        .run()
        .assert_code(75);
    assert_eq!(proxy.accepted(), 1);
    assert_eq!(proxy.trips(), 1);
    drop(holder);
}

#[test]
fn waiters_get_it_one_after_another() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let start = |_| {
            place
                .run("x")
                .args(["--wait", "forever"])
                .command(witness.job("w tick; sleep 0.4; w tick"))
                .spawn()
        };
        let mut runs: Vec<Running> = (0..4).map(start).collect();
        for run in &mut runs {
            run.wait(secs(20)).assert_code(0).assert_clean();
        }
        let starts = witness.starts();
        assert_eq!(starts.len(), 4);
        witness.assert_no_overlap();
        witness.assert_tokens_rise();
        let ends = witness.of("end");
        for (end, start) in ends.iter().zip(&starts[1..]) {
            assert!(
                start.at - end.at < 1000.0,
                "within 1 s of its being free: {end:?} {start:?}"
            );
        }
    });
}

#[test]
fn names_do_not_hold_each_other_up() {
    Place::for_each(|place| {
        let names = [
            "a",
            "b",
            "a/b",
            "../a",
            "A",
            "a b",
            "ä",
            "{a}",
            "x:{y}",
            &"n".repeat(200),
        ];
        let witness = Witness::default();
        let start = |name: &&str| place.run(name).command(witness.job("sleep 2")).spawn();
        let mut runs: Vec<Running> = names.iter().map(start).collect();
        for run in &mut runs {
            run.wait(secs(20)).assert_code(0);
        }
        assert_eq!(witness.starts().len(), names.len());
    });
}

#[test]
fn a_lock_that_frees_late_is_held_for_a_full_ttl() {
    let redis = RedisServer::start();
    let monitor = redis.monitor();
    let witness = Witness::default();
    let run = |body: &str| {
        Solocron::on(&redis, "x")
            .args(["--ttl", "3s", "--wait", "20s"])
            .command(witness.job(body))
            .spawn()
    };
    let mut first = run("sleep 4");
    witness.wait_starts(1, secs(5));
    let mut second = run("sleep 2");
    first.wait(secs(10)).assert_code(0);
    second.wait(secs(10)).assert_code(0);
    // What counts is the winning request, not the first one: its beat comes a third of the ttl after it.
    let started = witness.starts()[1].at / 1000.0;
    let times: Vec<f64> = monitor.named("eval").iter().map(|(at, _)| *at).collect();
    let claim = times
        .iter()
        .copied()
        .filter(|t| *t <= started)
        .fold(0.0, f64::max);
    let beat = times
        .iter()
        .copied()
        .find(|t| *t > claim)
        .expect("a heartbeat");
    assert!(
        (beat - claim - 1.0).abs() < 0.4,
        "claim {claim}, started {started}, beat {beat}"
    );
}

/// Four hosts do the same line around one instant. The last comes 5 s late; in the sample 1.3 s.
fn around(start: impl Fn(&str) -> Running) -> Vec<i32> {
    let last = if long() { "5" } else { "1" };
    let begin = Instant::now();
    let at = |offset: Duration| {
        std::thread::sleep((begin + offset).saturating_duration_since(Instant::now()));
    };
    let mut runs = vec![start("-0.3s")];
    at(ms(300));
    runs.push(start("0"));
    at(ms(700));
    runs.push(start("+0.4s"));
    at(ms(300) + secs(last.parse().expect("a number")));
    runs.push(start(&format!("+{last}s")));
    runs.iter_mut().map(|r| r.wait(secs(20)).code()).collect()
}

#[test]
fn once_in_a_period_among_four_hosts() {
    std::thread::scope(|scope| {
        for (period, seconds) in [
            ("1m", 60),
            ("5m", 300),
            ("1h", 3600),
            ("8h", 28_800),
            ("1d", 86_400),
        ] {
            scope.spawn(move || once_per(period, seconds));
        }
    });
}

/// Three periods. Instead of the clock the memory of the last run is moved, back by one period each time.
fn once_per(period: &str, seconds: i64) {
    let redis = RedisServer::start();
    let witness = Witness::default();
    for n in 1..=3 {
        let begin = redis.now_ms();
        let start = |skew: &str| {
            let run = Solocron::on(&redis, "x")
                .args(["--once-per", period])
                .skew(skew);
            run.command(witness.job("sleep 0.02")).spawn()
        };
        let mut codes = around(start);
        codes.sort_unstable();
        assert_eq!(codes, [0, 75, 75, 75], "{period}, period {n}");
        assert_eq!(witness.starts().len(), n, "{period}");
        let passed = redis.now_ms() - begin;
        let back = (passed - seconds * 1000).to_string();
        redis.cli(&["HINCRBY", &key("x"), "once", &back]);
    }
}

#[test]
fn the_period_is_over_after_three_quarters() {
    let redis = RedisServer::start();
    let run = || {
        Solocron::on(&redis, "x")
            .args(["--once-per", "1h"])
            .command(["true"])
            .run()
    };
    run().assert_code(0);
    let shift = |by: i64| redis.cli(&["HINCRBY", &key("x"), "once", &(-by * 1000).to_string()]);
    shift(2640);
    run().assert_code(75).assert_silent();
    shift(60);
    run().assert_code(0);
    run().assert_code(75);
    // A run without a period neither asks nor tells.
    Solocron::on(&redis, "x")
        .command(["true"])
        .run()
        .assert_code(0);
    run().assert_code(75);
}

#[test]
fn a_period_holds_for_long_jobs_and_skips_none() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let begin = Instant::now();
        for n in 1..=3u32 {
            let start = |_: &str| {
                let run = place.run("x").args(["--once-per", "3s", "--ttl", "2s"]);
                run.command(witness.job("sleep 2")).spawn()
            };
            let mut codes = around_quickly(start);
            codes.sort_unstable();
            assert_eq!(codes, [0, 75, 75, 75], "period {n}");
            assert_eq!(witness.starts().len(), n as usize);
            std::thread::sleep((begin + secs(3) * n).saturating_duration_since(Instant::now()));
        }
        witness.assert_no_overlap();
    });
}

fn around_quickly(start: impl Fn(&str) -> Running) -> Vec<i32> {
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(start("0"));
        std::thread::sleep(ms(100));
    }
    runs.iter_mut().map(|r| r.wait(secs(20)).code()).collect()
}

#[test]
fn a_lost_reply_to_the_claim_does_not_lose_the_run() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.lose_replies("eval", 0, 1);
    let witness = Witness::default();
    let out = Solocron::at(&proxy.url(), "x")
        .command(witness.job("sleep 0.1"))
        .run();
    out.assert_code(0);
    assert_eq!(proxy.lost(), 1);
    assert_eq!(witness.starts().len(), 1);
    assert!(out.took < secs(2), "{:?}", out.took);
    assert_eq!(redis.record("x")["state"], "done");
}

#[test]
fn a_lost_reply_to_a_heartbeat_is_nothing() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.lose_replies("eval", 1, 1);
    let run = Solocron::at(&proxy.url(), "x")
        .args(["--ttl", "3s"])
        .sh("sleep 4; exit 6");
    run.run().assert_code(6);
    assert_eq!(proxy.lost(), 1);
    assert_eq!(redis.record("x")["state"], "failed");
}

#[test]
fn a_lost_reply_to_the_release_changes_nothing() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.lose_replies("eval", 1, 1);
    let out = Solocron::at(&proxy.url(), "x")
        .sh("sleep 0.2; exit 5")
        .run();
    out.assert_code(5);
    assert_eq!(proxy.lost(), 1);
    assert!(out.took < ms(2200), "{:?}", out.took);
    redis.assert_free("x", secs(0));
}

#[test]
fn a_release_that_fails_changes_nothing_but_the_lease() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    let witness = Witness::default();
    let end = witness.path("end");
    let run = Solocron::at(&proxy.url(), "x").args(["--ttl", "2s"]);
    let mut run = run
        .command(witness.job(&format!("{}; exit 5", until_file(&end))))
        .spawn();
    witness.wait_starts(1, secs(5));
    proxy.set(Mode::Stall);
    fs::write(&end, "").expect("file");
    let out = run.wait(secs(4));
    out.assert_code(5);
    redis.assert_free("x", secs(3));
}

#[test]
fn slow_networks_are_no_obstacle() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.delay(ms(60));
    let out = Solocron::at(&proxy.url(), "x")
        .args(["--ttl", "3s"])
        .sh("sleep 1.5; exit 8")
        .run();
    out.assert_code(8).assert_silent();
}

#[test]
fn a_unix_socket_is_a_way_to_the_store() {
    let redis = RedisServer::start();
    for scheme in ["unix", "redis+unix"] {
        let url = redis
            .unix_url()
            .replace("unix", scheme)
            .replace(&format!("redis.{scheme}"), "redis.sock");
        Solocron::at(&url, "x").sh("exit 4").run().assert_code(4);
    }
    assert_eq!(redis.record("x")["code"], "4");
}

#[test]
fn other_servers_work_the_same() {
    for (label, program) in support::redis::optional_servers() {
        let redis = RedisServer::options().program(&program).start();
        let run = || Solocron::on(&redis, "x").args(["--ttl", "1s"]);
        let out = run().sh("sleep 1.2; exit 4").run();
        assert_eq!(out.code(), 4, "{label}: {}", out.stderr);
        assert_eq!(out.stderr, "", "{label}");
        assert_eq!(redis.record("x")["state"], "failed", "{label}");
        let holder = run().sh("exec sleep 60").spawn();
        wait_until(secs(5), "held", || redis.held("x"));
        assert_eq!(run().command(["true"]).run().code(), 75, "{label}");
        drop(holder);
        assert_eq!(
            run().args(["--wait", "5s"]).command(["true"]).run().code(),
            0,
            "{label}"
        );
    }
}
