//! Once mode when the store, the host or the clock fails under a running command.

mod support;

use std::fs;
use std::time::Duration;
use support::witness::{f64_of, now_ms};
use support::{Mode, Place, Proxy, RedisServer, Running, Signal, Solocron, Witness};
use support::{eventually, long, ms, secs, wait_for, wait_until};

/// Milliseconds of a duration as the witness counts them.
fn millis(d: Duration) -> f64 {
    d.as_secs_f64() * 1000.0
}

/// A job that ignores TERM, tells its life every 50 ms and has a child.
const STUBBORN: &str = "trap 'w term' TERM; sleep 100 & while :; do w tick; sleep 0.05; done";

#[test]
fn a_short_outage_is_survived() {
    // The longest outage that is always survived depends on the ttl: about 30 s for 60s, 5 s for 12s here.
    let (ttl, outage, job) = if long() {
        ("60s", 15, 40)
    } else {
        ("12s", 4, 9)
    };
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", ttl, "--kill-after", "1s"]);
    let mut run = run
        .command(witness.job(&format!("sleep {job}; exit 3")))
        .spawn();
    witness.wait_starts(1, secs(5));
    std::thread::sleep(secs(2));
    redis.pause();
    std::thread::sleep(secs(outage));
    redis.resume();
    let out = run.wait(secs(60));
    out.assert_code(3).assert_clean();
    redis.assert_free("x", secs(0));
}

#[test]
fn a_restarted_server_with_a_memory_is_survived() {
    let mut redis = RedisServer::options().persistent().start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", "9s", "--kill-after", "500ms"]);
    let mut run = run.command(witness.job("sleep 6; exit 3")).spawn();
    witness.wait_starts(1, secs(5));
    let token = redis.record("x")["token"].clone();
    redis.kill();
    std::thread::sleep(secs(2));
    redis.start_again();
    run.wait(secs(20)).assert_code(3);
    let record = redis.record("x");
    assert_eq!(
        (record["state"].as_str(), &record["token"]),
        ("failed", &token)
    );
}

#[test]
fn a_long_outage_ends_the_whole_group_before_the_lease_can_lapse() {
    let redis = RedisServer::start();
    let monitor = redis.monitor();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", "6s", "--kill-after", "1s"]);
    let mut run = run.command(witness.job(STUBBORN)).spawn();
    witness.wait_starts(1, secs(5));
    wait_until(secs(1), "the claim is seen", || {
        !monitor.named("eval").is_empty()
    });
    redis.pause();
    // The last request the server took is the claim: its lease ends 6 s after it.
    let last = monitor.named("eval").last().expect("the claim").0 * 1000.0;
    let out = run.wait(secs(10));
    out.assert_code(76)
        .assert_clean()
        .assert_says(&["lock lost"]);
    let term = witness.of("term");
    assert_eq!(term.len(), 1);
    assert!(
        term[0].at < last + 5000.0,
        "TERM {} ms after the last beat",
        term[0].at - last
    );
    let tick = witness.of("tick").last().expect("ticks").at;
    assert!(
        tick < last + 6000.0,
        "alive {} ms after the last beat",
        tick - last
    );
    redis.resume();
}

#[test]
fn without_grace_a_lease_of_a_second_is_kept_as_well() {
    let redis = RedisServer::start();
    let monitor = redis.monitor();
    let witness = Witness::default();
    let mut run = Solocron::on(&redis, "x")
        .args(["--ttl", "1s"])
        .command(witness.job(STUBBORN))
        .spawn();
    witness.wait_starts(1, secs(5));
    redis.pause();
    let out = run.wait(secs(4));
    out.assert_code(76).assert_clean();
    let last = monitor.named("eval").last().expect("the claim").0 * 1000.0;
    let tick = witness.of("tick").last().expect("ticks").at;
    assert!(
        tick < last + 1000.0,
        "alive {} ms after the last beat",
        tick - last
    );
    redis.resume();
}

#[test]
fn cut_and_half_open_connections_end_the_same_way() {
    let redis = RedisServer::start();
    std::thread::scope(|scope| {
        for (name, mode) in [("refuse", Mode::Refuse), ("stall", Mode::Stall)] {
            let redis = &redis;
            scope.spawn(move || {
                let proxy = Proxy::to(redis.port());
                let witness = Witness::default();
                let run =
                    Solocron::at(&proxy.url(), name).args(["--ttl", "2s", "--kill-after", "300ms"]);
                let mut run = run.command(witness.job(STUBBORN)).spawn();
                let start = witness.wait_starts(1, secs(5))[0].at;
                proxy.set(mode);
                proxy.cut();
                let out = run.wait(secs(5));
                out.assert_code(76).assert_clean();
                let tick = witness.of("tick").last().expect("ticks").at;
                assert!(tick < start + 2700.0, "{name}: {} ms", tick - start);
            });
        }
    });
}

#[test]
fn replies_that_stay_out_end_the_run_though_the_store_extends_it() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    let witness = Witness::default();
    let run = Solocron::at(&proxy.url(), "x").args(["--ttl", "2s", "--kill-after", "300ms"]);
    let mut run = run.command(witness.job(STUBBORN)).spawn();
    witness.wait_starts(1, secs(5));
    proxy.set(Mode::StallReplies);
    run.wait(secs(5)).assert_code(76).assert_clean();
}

#[test]
fn on_lock_lost_continue_lets_the_command_end() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", "1s", "--on-lock-lost", "continue"]);
    let mut run = run
        .command(witness.job("trap 'w term' TERM; sleep 3; exit 4"))
        .spawn();
    witness.wait_starts(1, secs(5));
    redis.pause();
    let out = run.wait(secs(8));
    out.assert_code(4)
        .assert_clean()
        .assert_says(&["lock lost"]);
    assert!(witness.of("term").is_empty());
    let told = out
        .stderr
        .lines()
        .filter(|l| l.contains("lock lost"))
        .count();
    assert_eq!(told, 1, "{}", out.stderr);
    redis.resume();
}

#[test]
fn a_wipe_is_healed_within_a_third_of_the_ttl() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", "3s"]);
    let mut run = run.command(witness.job("sleep 3; exit 3")).spawn();
    witness.wait_starts(1, secs(5));
    let before = redis.record("x");
    redis.cli(&["FLUSHALL"]);
    wait_until(ms(1300), "the record is back", || {
        !redis.record("x").is_empty()
    });
    let after = redis.record("x");
    assert_eq!(
        (&after["owner"], &after["token"]),
        (&before["owner"], &before["token"])
    );
    assert_eq!(after["state"], "run");
    // Nobody else gets it now.
    Solocron::on(&redis, "x")
        .command(["true"])
        .run()
        .assert_code(75);
    run.wait(secs(8)).assert_code(3);
    redis.assert_free("x", secs(0));
}

#[test]
fn a_wipe_just_before_the_end_is_no_error() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let end = witness.path("end");
    let line = format!(
        "while [ ! -e '{}' ]; do sleep 0.05; done; exit 3",
        end.display()
    );
    let mut run = Solocron::on(&redis, "x")
        .command(witness.job(&line))
        .spawn();
    witness.wait_starts(1, secs(5));
    redis.cli(&["FLUSHALL"]);
    fs::write(&end, "").expect("file");
    run.wait(secs(5)).assert_code(3);
    redis.assert_free("x", secs(0));
}

#[test]
fn a_full_server_does_not_end_a_run() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let mut run = Solocron::on(&redis, "x")
        .args(["--ttl", "2s"])
        .command(witness.job("sleep 4; exit 3"))
        .spawn();
    witness.wait_starts(1, secs(5));
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let out = run.wait(secs(10));
    out.assert_code(3);
    assert_eq!(redis.record("x")["code"], "3", "also the end is told");
}

#[test]
fn a_full_server_still_grants() {
    let redis = RedisServer::start();
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    Solocron::on(&redis, "x")
        .sh("exit 3")
        .run()
        .assert_code(3)
        .assert_silent();
    assert_eq!(redis.record("x")["code"], "3");
}

#[test]
fn eviction_policies_are_warned_about_or_avoided() {
    let redis = RedisServer::options()
        .args(&["--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"])
        .start();
    let out = Solocron::on(&redis, "x")
        .args(["--ttl", "1s"])
        .sh("sleep 1.5")
        .run();
    out.assert_code(0).assert_says(&["allkeys"]);
    assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    let out = Solocron::on(&redis, "y")
        .args(["--ttl", "1s"])
        .sh("sleep 1.5")
        .run();
    out.assert_code(0).assert_silent();
    assert_eq!(
        redis.cli(&["PTTL", "solocron:{y}"]).text(),
        "-1",
        "no expiry, else it goes first"
    );
}

#[test]
fn kill_9_takes_the_command_along_and_frees_the_lock_within_a_ttl() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let mut run = place
            .run("x")
            .args(["--ttl", "3s"])
            .command(witness.job("exec sleep 60"))
            .spawn();
        let pid = witness.wait_starts(1, secs(5))[0].pid;
        run.signal(Signal::KILL);
        let killed = now_ms();
        wait_until(secs(1), "the command is dead", || {
            !support::proc::alive(pid)
        });
        assert_eq!(run.wait(secs(1)).code(), 137);
        assert!(place.held("x"), "until the lease is over");
        let next = place
            .run("x")
            .args(["--wait", "10s"])
            .command(witness.job(":"))
            .run();
        next.assert_code(0).assert_says(&["never ended"]);
        let after = witness.starts()[1].at - f64_of(killed);
        assert!(after < millis(ms(4000)), "{after} ms after the kill");
    });
}

/// Starts a run that is frozen once its command runs.
fn frozen(place: &Place, witness: &Witness, ttl: &str) -> Running {
    let run = place.run("x").label("a").args(["--ttl", ttl]);
    let run = run
        .command(
            witness
                .job("i=0; while [ $i -lt 100 ]; do w tick; sleep 0.05; i=$((i+1)); done; exit 3"),
        )
        .spawn();
    witness.wait_starts(1, secs(5));
    run.signal(Signal::STOP);
    run
}

#[test]
fn a_frozen_holder_that_lost_the_lock_ends_its_command() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let mut run = frozen(place, &witness, "1s");
        let next = place
            .run("x")
            .label("b")
            .args(["--wait", "10s", "--ttl", "9s"]);
        let mut next = next.command(witness.job("sleep 4; exit 5")).spawn();
        witness.wait_starts(2, secs(5));
        run.signal(Signal::CONT);
        let thawed = now_ms();
        let out = run.wait(secs(3));
        out.assert_code(76)
            .assert_clean()
            .assert_says(&["lock lost"]);
        let ticks = witness.of("tick");
        let last = ticks.iter().rfind(|t| t.label == "a").expect("ticks").at - f64_of(thawed);
        assert!(last < 500.0, "it worked on for {last} ms");
        // What it had is the other's by now.
        assert!(place.held("x"));
        next.wait(secs(8)).assert_code(5);
        place.assert_free("x");
    });
}

#[test]
fn a_frozen_holder_that_nobody_replaced_goes_on() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let mut run = frozen(place, &witness, "1s");
        std::thread::sleep(secs(2));
        run.signal(Signal::CONT);
        run.wait(secs(12)).assert_code(3).assert_clean();
        assert!(witness.of("tick").len() >= 100);
    });
}

#[test]
fn a_late_grant_never_starts_a_command() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.set(Mode::StallReplies);
    let witness = Witness::default();
    let run = Solocron::at(&proxy.url(), "x").args(["--ttl", "1s", "--wait", "10s"]);
    let mut run = run.command(witness.job("exit 3")).spawn();
    wait_until(secs(3), "granted", || redis.held("x"));
    // Its lease is over when the reply comes: a fresh one is needed.
    std::thread::sleep(ms(1200));
    proxy.set(Mode::Pass);
    run.wait(secs(10)).assert_code(3);
    let record = redis.record("x");
    let start = witness.starts()[0].clone();
    assert_eq!(record["token"], start.token.to_string());
    let ended: f64 = record["ended"].parse().expect("ms");
    assert!(start.at <= ended);
}

#[test]
fn a_server_that_forgets_is_healed_with_the_same_token() {
    let mut redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", "6s", "--kill-after", "500ms"]);
    let mut run = run.command(witness.job("sleep 5; exit 3")).spawn();
    let start = witness.wait_starts(1, secs(5))[0].clone();
    redis.kill();
    redis.start_again();
    let record = wait_for(secs(4), "the record is back", || {
        Some(redis.record("x")).filter(|r| !r.is_empty())
    });
    assert_eq!(record["token"], start.token.to_string());
    run.wait(secs(8)).assert_code(3);
    assert!(eventually(secs(0), || !redis.held("x")));
}
