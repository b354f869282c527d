//! Runs that end while the store is away: their lock is freed once it is back.

mod support;

use support::fleet::{at, firings, sleep_until, soon};
use support::witness::f64_of;
use support::{Fleet, RedisServer, Signal, Solocron, Witness};
use support::{ms, secs, wait_until};

/// A run that ends while the store is away for three seconds of its nine seconds' lease.
fn ends_while_the_store_is_away(policy: &str) {
    let mut redis = RedisServer::options().persistent().start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let run = Solocron::on(&redis, "x")
            .args(at(&[due, due + 5_000]))
            .args(["--ttl", "9s", "--on-runner-lost", policy]);
        run.command(witness.job("sleep 1"))
    };
    let fleet = Fleet::of(&["a", "b"], make);
    witness.wait_starts(1, secs(6));
    sleep_until(due + 600);
    redis.kill();
    sleep_until(due + 3_600);
    redis.start_again();
    wait_until(secs(2), "the end is told", || {
        redis.record("x")["state"] == "done"
    });
    let starts = witness.wait_starts(2, secs(4));
    assert!(
        starts[1].at < f64_of(due + 6_000),
        "{} ms late",
        starts[1].at - f64_of(due + 5_000)
    );
    sleep_until(due + 6_500);
    let messages = fleet.messages();
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due, due + 5_000]);
    assert!(!messages.contains("could not be freed"), "{messages}");
}

#[test]
fn the_end_of_a_run_is_told_once_the_store_is_back() {
    ends_while_the_store_is_away("skip");
}

#[test]
fn what_has_ended_while_the_store_was_away_is_not_run_again() {
    ends_while_the_store_is_away("rerun");
}

#[test]
fn a_firing_that_falls_due_while_the_lock_is_being_freed_is_started() {
    let mut redis = RedisServer::options().persistent().start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let run = Solocron::on(&redis, "x")
        .args(at(&[due, due + 2_000]))
        .args(["--ttl", "9s"]);
    let mut fleet = Fleet::default();
    fleet.join("a", run.command(witness.job("sleep 1")));
    witness.wait_starts(1, secs(6));
    sleep_until(due + 600);
    redis.kill();
    sleep_until(due + 3_000);
    redis.start_again();
    witness.wait_starts(2, secs(2));
    fleet.stop();
    assert_eq!(firings(&witness.starts()), [due, due + 2_000]);
}

#[test]
fn a_stop_does_not_wait_for_a_store_that_is_away() {
    let mut redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let run = Solocron::on(&redis, "x")
        .args(at(&[due]))
        .args(["--ttl", "30s"]);
    let mut run = run.command(witness.job("sleep 0.5")).spawn();
    witness.wait_starts(1, secs(6));
    redis.kill();
    wait_until(secs(2), "it has ended", || run.stderr().contains("ended"));
    std::thread::sleep(secs(2));
    assert!(
        !run.stderr().contains("could not be freed"),
        "{}",
        run.stderr()
    );
    run.signal(Signal::TERM);
    run.wait(ms(1_700)).assert_code(0).assert_clean();
}

#[test]
fn a_single_run_frees_its_lock_after_a_short_failure() {
    let mut redis = RedisServer::options().persistent().start();
    let witness = Witness::default();
    let end = witness.path("end");
    let line = format!(
        "while [ ! -e '{}' ]; do sleep 0.02; done; exit 3",
        end.display()
    );
    let mut run = Solocron::on(&redis, "x")
        .command(witness.job(&line))
        .spawn();
    witness.wait_starts(1, secs(5));
    redis.kill();
    std::fs::write(&end, "").expect("file");
    wait_until(secs(2), "it has ended", || witness.of("end").len() == 1);
    std::thread::sleep(ms(100));
    redis.start_again();
    run.wait(secs(3)).assert_code(3);
    assert_eq!(redis.record("x")["state"], "failed");
}
