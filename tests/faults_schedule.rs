//! A schedule whose store forgets, fills up, or is slow or away at the instant.

mod support;

use support::fleet::{at, firings, sleep_until, soon, text_of};
use support::witness::f64_of;
use support::{Fleet, Proxy, RedisServer, Signal, Solocron, Witness};
use support::{eventually, ms, now_ms, secs, wait_until};

#[test]
fn a_wipe_in_mid_run_is_healed_and_a_late_host_starts_nothing() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let run = Solocron::on(&redis, "x")
            .args(at(&[due]))
            .args(["--ttl", "3s"]);
        run.command(witness.job("sleep 6"))
    };
    let fleet = Fleet::skewed(&["0", "-4s"], make);
    let start = witness.wait_starts(1, secs(6))[0].clone();
    sleep_until(due + 1_000);
    let owner = redis.record("x")["owner"].clone();
    redis.cli(&["FLUSHALL"]);
    // A third of the ttl, and what sending takes.
    wait_until(ms(1_300), "the record is back", || {
        !redis.record("x").is_empty()
    });
    let record = redis.record("x");
    assert_eq!(
        (&record["owner"], &record["token"]),
        (&owner, &start.token.to_string())
    );
    // The late host comes to the instant meanwhile. Shortly before the end it is forgotten again.
    sleep_until(due + 5_900);
    redis.cli(&["FLUSHALL"]);
    wait_until(secs(3), "it ends by itself", || {
        witness.of("end").len() == 1
    });
    sleep_until(due + 8_000);
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due]);
    assert_eq!(redis.record("x")["mark"], due.to_string());
}

#[test]
fn a_wipe_just_before_the_end_starts_nothing_on_a_late_host() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let run = Solocron::on(&redis, "x")
            .args(at(&[due]))
            .args(["--ttl", "6s"]);
        run.command(witness.job("sleep 1"))
    };
    let fleet = Fleet::skewed(&["0", "-3s"], make);
    witness.wait_starts(1, secs(6));
    sleep_until(due + 900);
    redis.cli(&["FLUSHALL"]);
    sleep_until(due + 4_000);
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due]);
    assert_eq!(redis.record("x")["mark"], due.to_string());
}

#[test]
fn a_full_server_costs_no_firing() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let run = Solocron::on(&redis, "x")
            .args(at(&[due, due + 4_000]))
            .args(["--ttl", "2s"]);
        run.command(witness.job("sleep 2"))
    };
    let fleet = Fleet::of(&["a", "b"], make);
    witness.wait_starts(1, secs(6));
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    witness.wait_starts(2, secs(8));
    wait_until(secs(4), "both end by themselves", || {
        witness.of("end").len() == 2
    });
    wait_until(secs(2), "the end is told", || {
        redis.record("x")["state"] == "done"
    });
    fleet.stop();
    witness.assert_once_each();
    witness.assert_no_overlap();
    assert_eq!(firings(&witness.starts()), [due, due + 4_000]);
}

#[test]
fn a_store_that_is_away_at_the_instant_delays_the_firing() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    // Of a job that it has never run a store does not know what it has forgotten.
    let before = soon(secs(2));
    let due = before + 2_000;
    let make = || {
        Solocron::on(&redis, "x")
            .args(at(&[before, due]))
            .command(witness.job(":"))
    };
    let fleet = Fleet::of(&["a", "b", "c"], make);
    witness.wait_starts(1, secs(6));
    sleep_until(due - 300);
    redis.pause();
    sleep_until(due + 3_000);
    assert_eq!(witness.starts().len(), 1);
    redis.resume();
    let back = f64_of(now_ms());
    let start = witness.wait_starts(2, secs(4))[1].clone();
    assert!(start.at < back + 2_000.0, "{} ms late", start.at - back);
    std::thread::sleep(secs(2));
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [before, due]);
    assert_eq!(redis.record("x")["state"], "done");
}

#[test]
fn a_firing_is_missed_with_a_word_when_the_store_is_away_beyond_the_deadline() {
    let mut redis = RedisServer::options().persistent().start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let run = Solocron::on(&redis, "x")
            .args(at(&[due, due + 6_000]))
            .args(["--start-deadline", "2s"]);
        run.command(witness.job(":"))
    };
    let mut fleet = Fleet::of(&["a", "b"], make);
    sleep_until(due - 300);
    redis.kill();
    sleep_until(due + 4_000);
    fleet.assert_all_run();
    let firing = text_of(due);
    for label in fleet.labels() {
        let text = fleet.member(&label).stderr();
        let told = text
            .lines()
            .any(|l| l.contains(&firing) && l.contains("not started"));
        assert!(told, "{label}: {text}");
    }
    redis.start_again();
    witness.wait_starts(1, secs(5));
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due + 6_000]);
}

#[test]
fn networks_of_different_slowness_start_a_firing_once() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let all = [due, due + 2_000, due + 4_000];
    let delays = [("a", 0), ("b", 60), ("c", 180)];
    let proxies = delays.map(|(label, by)| {
        let proxy = Proxy::to(redis.port());
        proxy.delay(ms(by));
        (label, proxy)
    });
    let mut fleet = Fleet::default();
    for (label, proxy) in &proxies {
        let run = Solocron::at(&proxy.url(), "x")
            .args(at(&all))
            .args(["--ttl", "9s"]);
        fleet.join(label, run.command(witness.job("sleep 0.1")));
    }
    let ended = |count: usize| witness.of("end").len() == count;
    wait_until(secs(6), "one run has ended", || ended(1));
    // The quickest is slow from here on: others win.
    proxies[0].1.delay(ms(300));
    wait_until(secs(9), "three runs have ended", || ended(3));
    std::thread::sleep(ms(500));
    fleet.stop();
    assert_eq!(firings(&witness.starts()), all);
    witness.assert_no_overlap();
    witness.assert_tokens_rise();
}

#[test]
fn lost_replies_to_heartbeat_and_release_cost_nothing() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    let witness = Witness::default();
    let due = soon(secs(2));
    let run = Solocron::at(&proxy.url(), "x")
        .args(at(&[due, due + 3_000]))
        .args(["--ttl", "3s"]);
    let fleet = {
        let mut fleet = Fleet::default();
        fleet.join("a", run.command(witness.job("sleep 1.5")));
        fleet
    };
    witness.wait_starts(1, secs(6));
    proxy.lose_replies("eval", 0, 1);
    wait_until(secs(2), "the reply to the heartbeat is lost", || {
        proxy.lost() == 1
    });
    sleep_until(due + 1_350);
    proxy.lose_replies("eval", 0, 1);
    wait_until(secs(2), "the reply to the release is lost", || {
        proxy.lost() == 2
    });
    assert!(eventually(ms(500), || redis.record("x")["state"] == "done"));
    witness.wait_starts(2, secs(5));
    wait_until(secs(3), "both end by themselves", || {
        witness.of("end").len() == 2
    });
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due, due + 3_000]);
}

#[test]
fn instances_that_sleep_over_the_instant_start_the_firing_once_when_they_wake() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let before = soon(secs(2));
    let due = before + 2_000;
    let make = || {
        Solocron::on(&redis, "x")
            .args(at(&[before, due]))
            .command(witness.job(":"))
    };
    let fleet = Fleet::of(&["a", "b", "c"], make);
    witness.wait_starts(1, secs(6));
    sleep_until(due - 300);
    let all = |signal| {
        for label in fleet.labels() {
            fleet.member(&label).signal(signal);
        }
    };
    all(Signal::STOP);
    sleep_until(due + 2_500);
    all(Signal::CONT);
    let woken = f64_of(now_ms());
    let start = witness.wait_starts(2, secs(4))[1].clone();
    assert!(
        start.at < woken + 1_000.0,
        "{} ms after waking",
        start.at - woken
    );
    std::thread::sleep(secs(1));
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [before, due]);
}

#[test]
fn a_runner_that_sleeps_past_its_lease_leaves_the_next_firing_to_another() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let later = due + 4_000;
    let make = || {
        let run = Solocron::on(&redis, "x").args(at(&[due, later])).args([
            "--ttl",
            "2s",
            "--kill-after",
            "300ms",
        ]);
        run.command(
            witness.job("i=0; while [ $i -lt 40 ]; do w tick; sleep 0.05; i=$((i+1)); done"),
        )
    };
    let fleet = Fleet::of(&["a", "b"], make);
    let start = witness.wait_starts(1, secs(6))[0].clone();
    std::thread::sleep(ms(500));
    let frozen = fleet.member(&start.label);
    let started = frozen.started();
    frozen.signal(Signal::STOP);
    for one in &started {
        support::proc::signal(one.pid, Signal::STOP);
    }
    let next = witness.wait_starts(2, secs(6))[1].clone();
    assert_ne!(next.label, start.label);
    assert!(
        next.at < f64_of(later + 500),
        "{} ms late",
        next.at - f64_of(later)
    );
    // The other one runs when this one wakes.
    std::thread::sleep(ms(500));
    frozen.signal(Signal::CONT);
    for one in &started {
        support::proc::signal(one.pid, Signal::CONT);
    }
    let woken = f64_of(now_ms());
    wait_until(secs(3), "the other one ends by itself", || {
        witness.of("end").iter().any(|end| end.label == next.label)
    });
    let ticks = witness.of("tick");
    let last = ticks
        .iter()
        .rfind(|tick| tick.label == start.label)
        .expect("ticks")
        .at
        - woken;
    assert!(last < 500.0, "it worked on for {last} ms");
    let told = fleet.member(&start.label).stderr();
    assert!(told.contains("lock lost"), "{told}");
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due, later]);
    assert_eq!(redis.record("x")["token"], next.token.to_string());
}

#[test]
fn a_server_that_throws_away_keys_is_warned_about_once() {
    let redis = RedisServer::options()
        .args(&["--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"])
        .start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let all = [due, due + 1_000, due + 2_000];
        Solocron::on(&redis, "x")
            .args(at(&all))
            .command(witness.job(":"))
    };
    let fleet = Fleet::of(&["a", "b"], make);
    witness.wait_starts(3, secs(8));
    for (label, out) in fleet.stop() {
        let warnings = out
            .stderr
            .lines()
            .filter(|line| line.contains("allkeys-lru"));
        assert_eq!(warnings.count(), 1, "{label}: {}", out.stderr);
    }
}
