//! A schedule when the store is down, forgets or answers late, and when an instance freezes.

mod support;

use support::fleet::{at, firings, sleep_until, soon, text_of};
use support::witness::f64_of;
use support::{Fleet, Proxy, RedisServer, Signal, Solocron, Witness};
use support::{eventually, long, ms, now_ms, secs, wait_until};

/// Every two seconds.
const EACH_OTHER: [&str; 4] = ["--tz", "UTC", "--cron", "*/2 * * * * *"];

#[test]
fn a_restarted_store_costs_no_instance_and_no_later_firing() {
    let mut redis = RedisServer::options().persistent().start();
    let witness = Witness::default();
    let make = || {
        Solocron::on(&redis, "x")
            .args(EACH_OTHER)
            .args(["--ttl", "5s"])
            .command(witness.job(":"))
    };
    let mut fleet = Fleet::of(&["a", "b", "c"], make);
    witness.wait_starts(1, secs(6));
    let port = format!(":{}", redis.port());
    let before: Vec<usize> = fleet
        .labels()
        .iter()
        .map(|l| about(&fleet, l, &port))
        .collect();
    redis.kill();
    std::thread::sleep(secs(if long() { 20 } else { 6 }));
    fleet.assert_all_run();
    redis.start_again();
    let up = now_ms();
    let first = (up / 2000 + 1) * 2000;
    sleep_until(first + 7200);
    let told: Vec<_> = fleet
        .labels()
        .iter()
        .map(|l| (l.clone(), about(&fleet, l, &port)))
        .collect();
    let messages = fleet.messages();
    fleet.stop();
    witness.assert_once_each();
    witness.assert_no_overlap();
    let seen: Vec<i64> = firings(&witness.starts())
        .into_iter()
        .filter(|f| *f >= first)
        .collect();
    assert_eq!(seen, [0, 2, 4, 6].map(|n| first + n * 1000), "{messages}");
    for ((label, after), before) in told.iter().zip(before) {
        // It is told that the store is gone; as long as the reason stays the same, once a minute.
        let lines = after - before;
        assert!(
            (1..=2).contains(&lines),
            "{label} said it {lines} times:\n{messages}"
        );
        assert!(
            fleet_says_back(&messages, label),
            "{label} tells of the end:\n{messages}"
        );
    }
}

/// Lines of an instance that name the server's port.
fn about(fleet: &Fleet, label: &str, port: &str) -> usize {
    fleet
        .member(label)
        .stderr()
        .lines()
        .filter(|l| l.contains(port))
        .count()
}

/// Whether the part of this instance tells that the store is back.
fn fleet_says_back(messages: &str, label: &str) -> bool {
    let part = messages
        .split("--- ")
        .find(|p| p.starts_with(&format!("{label}\n")));
    part.is_some_and(|p| p.contains("again"))
}

#[test]
fn instances_that_start_without_a_store_wait_for_it() {
    let mut redis = RedisServer::start();
    redis.kill();
    let witness = Witness::default();
    let make = || {
        Solocron::on(&redis, "x")
            .args(EACH_OTHER)
            .command(witness.job(":"))
    };
    let mut fleet = Fleet::of(&["a", "b", "c"], make);
    std::thread::sleep(secs(4));
    fleet.assert_all_run();
    redis.start_again();
    let first = (now_ms() / 2000 + 1) * 2000;
    sleep_until(first + 5200);
    fleet.stop();
    witness.assert_once_each();
    witness.assert_every(2000, first, first + 4000);
}

#[test]
fn a_frozen_store_costs_no_later_firing() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let make = || {
        Solocron::on(&redis, "x")
            .args(EACH_OTHER)
            .args(["--ttl", "5s"])
            .command(witness.job(":"))
    };
    let mut fleet = Fleet::of(&["a", "b", "c"], make);
    witness.wait_starts(1, secs(6));
    redis.pause();
    std::thread::sleep(secs(5));
    redis.resume();
    let first = (now_ms() / 2000 + 1) * 2000;
    sleep_until(first + 5200);
    fleet.assert_all_run();
    fleet.stop();
    // Claims that were given up may have reached the server: they were given back.
    witness.assert_once_each();
    witness.assert_every(2000, first, first + 4000);
}

#[test]
fn a_wrong_password_is_77_at_the_start() {
    let redis = RedisServer::options().password("right").start();
    let run = |url: &str| {
        Solocron::at(url, "x")
            .args(EACH_OTHER)
            .command(["true"])
            .spawn()
    };
    run(&redis.url_as("", "wrong"))
        .wait(secs(8))
        .assert_code(77)
        .assert_says(&["password"]);
    let mut good = run(&redis.url_as("", "right"));
    std::thread::sleep(secs(3));
    assert!(!good.has_ended(), "{}", good.stderr());
}

#[test]
fn a_wipe_between_two_hosts_starts_nothing_twice() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        Solocron::on(&redis, "x")
            .args(at(&[due]))
            .command(witness.job(":"))
    };
    let fleet = Fleet::skewed(&["0", "-3s"], make);
    witness.wait_starts(1, secs(6));
    sleep_until(due + 1000);
    redis.cli(&["FLUSHALL"]);
    sleep_until(due + 4500);
    let late = fleet.member("-3s").stderr();
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due]);
    assert!(
        late.contains(&text_of(due)[11..19]),
        "an unsure firing is a warning: {late}"
    );
}

#[test]
fn a_lost_reply_to_the_claim_starts_once_on_time() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.lose_replies("eval", 0, 1);
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        Solocron::at(&proxy.url(), "x")
            .args(at(&[due]))
            .command(witness.job(":"))
    };
    let fleet = Fleet::of(&["a"], make);
    let starts = witness.wait_starts(1, secs(6));
    std::thread::sleep(secs(1));
    fleet.stop();
    assert_eq!(proxy.lost(), 1);
    assert_eq!(witness.starts().len(), 1);
    let late = starts[0].at - f64_of(due);
    assert!(late < 2000.0, "{late} ms late");
    assert_eq!(redis.record("x")["state"], "done");
}

#[test]
fn a_frozen_runner_neither_takes_nor_ends_what_is_anothers() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let run = Solocron::on(&redis, "x").args(at(&[due])).args([
            "--ttl",
            "3s",
            "--on-runner-lost",
            "rerun",
        ]);
        run.command(witness.job("sleep 5"))
    };
    let fleet = Fleet::of(&["a", "b"], make);
    let start = witness.wait_starts(1, secs(6))[0].clone();
    std::thread::sleep(ms(500));
    let frozen = fleet.member(&start.label);
    frozen.signal(Signal::STOP);
    let again = witness.wait_starts(2, secs(6))[1].clone();
    assert_eq!((again.firing, again.attempt), (Some(due), 2));
    assert_ne!(again.label, start.label);
    // The first job has ended by itself meanwhile, the second one runs.
    sleep_until(due + 7000);
    let before = redis.record("x");
    frozen.signal(Signal::CONT);
    let told = eventually(secs(2), || frozen.stderr().contains("lock lost"));
    assert!(told, "not told: {}", frozen.stderr());
    let after = redis.record("x");
    assert_eq!(
        (&after["owner"], &after["token"]),
        (&before["owner"], &again.token.to_string())
    );
    assert_eq!(after["state"], "run");
    wait_until(secs(6), "the second one ended", || {
        redis.record("x")["state"] == "done"
    });
    assert_eq!(redis.record("x")["owner"], before["owner"]);
    std::thread::sleep(ms(300));
    fleet.stop();
    assert_eq!(witness.starts().len(), 2);
}

#[test]
fn a_lock_lost_in_a_run_ends_the_run_and_not_the_schedule() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let run = Solocron::on(&redis, "x")
        .args(at(&[due, due + 8000]))
        .args(["--ttl", "2s", "--kill-after", "300ms"]);
    let body =
        "trap 'w term' TERM; [ $(wc -l <\"$0\") -gt 1 ] || while :; do w tick; sleep 0.05; done";
    let body = body.replace("$0", &witness.file().display().to_string());
    let mut run = run.command(witness.job(&body)).spawn();
    witness.wait_starts(1, secs(6));
    redis.pause();
    wait_until(secs(4), "lock lost", || run.stderr().contains("lock lost"));
    wait_until(secs(2), "the command is gone", || run.started().is_empty());
    redis.resume();
    witness.wait_starts(2, secs(10));
    assert!(!run.has_ended());
}

#[test]
fn idle_instances_sleep() {
    let redis = RedisServer::start();
    // Two weeks and more ahead.
    let day = (now_ms() / 86_400_000 + 15) * 86_400_000;
    let witness = Witness::default();
    let mut run = Solocron::on(&redis, "x")
        .args(at(&[day]))
        .command(witness.job(":"))
        .spawn();
    std::thread::sleep(secs(2));
    let monitor = redis.monitor();
    let before = support::proc::voluntary_switches(run.pid());
    std::thread::sleep(secs(if long() { 60 } else { 5 }));
    assert_eq!(
        support::proc::voluntary_switches(run.pid()),
        before,
        "wake-ups"
    );
    let mut commands = monitor.commands();
    assert_eq!(redis.clients(), 1, "connections besides the monitor");
    commands.retain(|(_, text)| !text.contains("unix:"));
    assert!(commands.is_empty(), "{commands:?}");
    run.signal(Signal::TERM);
    run.wait(ms(700)).assert_code(0).assert_clean();
}

#[test]
fn a_connection_is_made_ahead_of_a_firing_and_given_up_after_it() {
    // From the start it is kept if the first firing is under a minute off.
    let (ahead, before) = if long() { (70, 0) } else { (4, 1) };
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(ahead));
    let run = Solocron::on(&redis, "x")
        .args(at(&[due]))
        .command(witness.job(":"))
        .spawn();
    sleep_until(due - 3000);
    assert_eq!(redis.clients(), before);
    sleep_until(due - 500);
    assert_eq!(redis.clients(), 1, "made ahead of the firing");
    witness.wait_starts(1, secs(3));
    wait_until(secs(3), "it is given up", || redis.clients() == 0);
    drop(run);
}

#[test]
fn a_clock_set_back_by_less_than_three_hours_is_followed() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let dir = tempfile::tempdir().expect("directory");
    let offset = dir.path().join("offset");
    std::fs::write(&offset, "+7200\n").expect("offset");
    let mut run = Solocron::on(&redis, "x")
        .args(["--tz", "UTC", "--cron", "*/2 * * * * *"])
        .skew("0")
        .env(
            "LD_PRELOAD",
            support::solocron::faketime().to_str().expect("text"),
        )
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("FAKETIME_TIMESTAMP_FILE", offset.to_str().expect("text"))
        .env("FAKETIME_NO_CACHE", "1")
        .command(witness.job("true"))
        .spawn();
    wait_until(secs(8), "the wrong clock is told", || {
        run.stderr().contains("ahead of the store")
    });
    assert!(witness.starts().is_empty());
    std::fs::write(&offset, "+0\n").expect("offset");
    witness.wait_starts(2, secs(12));
    assert!(run.stderr().contains("was set back"), "{}", run.stderr());
    witness.assert_once_each();
    run.signal(Signal::TERM);
    run.wait(secs(3)).assert_code(0);
}
