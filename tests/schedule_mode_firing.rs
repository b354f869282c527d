//! One start per firing, whoever is late, early, slow or dead.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use support::fleet::{EACH_SECOND, at, firings, sleep_until, soon, text_of};
use support::witness::f64_of;
use support::{Fleet, Place, RedisServer, Signal, Solocron, Witness};
use support::{long, ms, now_ms, secs, wait_until};

/// How many seconds a run of many firings lasts.
fn span() -> i64 {
    if long() { 60 } else { 8 }
}

/// Lets a fleet run over `seconds` firings, one a second, and checks that each started once and none early.
fn each_second_once(fleet: Fleet, witness: &Witness, seconds: i64) {
    let first = soon(secs(3));
    let last = first + seconds * 1000;
    sleep_until(last + 850);
    let messages = fleet.messages();
    fleet.stop();
    let check = catch_unwind(AssertUnwindSafe(|| {
        witness.assert_once_each();
        witness.assert_every(1000, first, last);
        witness.assert_none_early();
        witness.assert_no_overlap();
        witness.assert_tokens_rise();
    }));
    assert!(check.is_ok(), "see above; messages:\n{messages}");
}

#[test]
fn three_instances_start_a_quick_job_once_a_second() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let make = || {
        Solocron::on(&redis, "x")
            .args(EACH_SECOND)
            .command(witness.job(":"))
    };
    each_second_once(Fleet::of(&["a", "b", "c"], make), &witness, span());
    redis.assert_free("x", secs(0));
}

#[test]
fn ten_instances_with_wrong_clocks_start_a_quick_job_once_a_second() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let make = || {
        Solocron::on(&redis, "x")
            .args(EACH_SECOND)
            .command(witness.job(":"))
    };
    let skews = [
        "0", "-0.3s", "-1s", "-2s", "-3s", "-4s", "-5s", "+0.5s", "+1s", "+2s",
    ];
    each_second_once(Fleet::skewed(&skews, make), &witness, span());
}

#[test]
fn three_instances_on_one_machine_start_a_quick_job_once_a_second() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let witness = Witness::default();
    let make = || {
        Solocron::local(dir.path(), "x")
            .args(EACH_SECOND)
            .command(witness.job(":"))
    };
    each_second_once(Fleet::of(&["a", "b", "c"], make), &witness, span());
}

/// A scheduler as the usual ones are: it takes a key for each firing and deletes it when the job has ended.
const STAND_IN: &str = r#"
port=$1 off=$2; shift 3
while :; do
    now=$(($(date +%s%N) + off * 1000000))
    due=$((now / 1000000000 + 1))
    wait=$((due * 1000000000 - now))
    sleep "0.$(printf %09d $wait)"
    if [ "$(redis-cli -p $port SET stand-in 1 NX PX 30000)" = OK ]; then
        SOLOCRON_FIRING=$(date -u -d @$due +%Y-%m-%dT%H:%M:%SZ) SOLOCRON_TOKEN=$now SOLOCRON_ATTEMPT=1 "$@"
        redis-cli -p $port DEL stand-in >/dev/null
    fi
done
"#;

#[test]
fn a_key_that_is_deleted_at_the_end_fails_the_test_of_wrong_clocks() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let port = redis.port().to_string();
    let mut fleet = Fleet::default();
    // The server's own client hangs with a faked clock: the offset is added in the script.
    for offset in ["0", "-400", "-1200"] {
        let shell =
            Solocron::program("bash".as_ref()).args(["-c", STAND_IN, "stand-in", &port, offset]);
        fleet.join(offset, shell.command(witness.job(":")));
    }
    let first = soon(secs(3));
    sleep_until(first + 4000);
    drop(fleet);
    let firings = witness.by_firing();
    assert!(firings.len() >= 4, "{firings:?}");
    let doubled = firings.values().filter(|starts| starts.len() > 1).count();
    assert!(
        doubled * 2 > firings.len(),
        "most seconds start more than once: {firings:#?}"
    );
    assert!(catch_unwind(AssertUnwindSafe(|| witness.assert_once_each())).is_err());
}

#[test]
fn losers_say_nothing_about_anothers_ordinary_run() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let make = || {
        let run = Solocron::on(&redis, "x").args([
            "--tz",
            "UTC",
            "--cron",
            "*/2 * * * * *",
            "--ttl",
            "30s",
        ]);
        run.command(witness.job("sleep 0.02"))
    };
    let fleet = Fleet::skewed(&["0", "-0.3s", "-2s", "-5s", "+2s"], make);
    let first = (now_ms() / 2000 + 2) * 2000;
    let last = first + if long() { 60_000 } else { 8000 };
    sleep_until(last + 1500);
    let outs = fleet.stop();
    witness.assert_once_each();
    witness.assert_every(2000, first, last);
    witness.assert_none_early();
    let starts = witness.starts();
    for (label, out) in outs {
        let won = starts.iter().filter(|s| s.label == label).count();
        // A start line, an end line and a line at the start and the end of the instance.
        let lines = out.stderr.lines().count();
        assert!(
            lines <= 2 * won + 5,
            "{label} won {won} and said {lines} lines:\n{}",
            out.stderr
        );
    }
}

#[test]
fn the_mark_outlives_release_and_lease() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let run = Solocron::on(&redis, "x")
            .args(at(&[due]))
            .args(["--ttl", "2s", "-vv"]);
        run.command(witness.job("sleep 0.02"))
    };
    let first = Fleet::of(&["a"], make);
    witness.wait_starts(1, secs(6));
    first.stop();
    // More than two leases later a host comes to the same instant by its own clock.
    sleep_until(due + 5000);
    let second = Fleet::skewed(&["-7s"], make);
    sleep_until(due + 8500);
    second.stop();
    assert_eq!(witness.starts().len(), 1);
    let left: i64 = redis
        .cli(&["PTTL", "solocron:{x}"])
        .text()
        .parse()
        .expect("ms");
    assert!(left == -1 || left > 3_600_000, "{left}");
    assert_eq!(redis.record("x")["mark"], due.to_string());
}

#[test]
fn the_death_of_whoever_runs_costs_no_later_firing() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let make = || {
        let run = Solocron::on(&redis, "x").args([
            "--tz",
            "UTC",
            "--cron",
            "*/3 * * * * *",
            "--ttl",
            "2s",
        ]);
        run.command(witness.job("sleep 0.5"))
    };
    let mut fleet = Fleet::of(&["a", "b", "c", "d"], make);
    // The first may start late, from before all of them: its lease may reach
    // over the next firing.
    let mut seen = witness.wait_starts(2, secs(9)).len();
    while fleet.labels().len() > 1 {
        let label = witness.starts().last().expect("a start").label.clone();
        fleet.kill(&label);
        seen = witness.wait_starts(seen + 1, secs(5)).len();
        fleet.assert_all_run();
    }
    // A new one joins in, and the last of the old ones dies while it runs.
    fleet.join("new", make());
    witness.wait_starts(seen + 1, secs(5));
    let old = fleet
        .labels()
        .into_iter()
        .find(|l| l != "new")
        .expect("the last old one");
    fleet.kill(&old);
    let killed = now_ms();
    witness.wait_starts(seen + 3, secs(12));
    fleet.stop();
    let all = firings(&witness.starts());
    witness.assert_once_each();
    witness.assert_no_overlap();
    witness.assert_tokens_rise();
    witness.assert_every(3000, all[1], *all.last().expect("firings"));
    assert!(
        witness
            .starts()
            .iter()
            .any(|s| s.label == "new" && s.firing > Some(killed))
    );
}

#[test]
fn kill_9_leaves_the_firing_and_the_next_one_tells_of_it() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let due = soon(secs(2));
        let make = || {
            let run = place
                .run("x")
                .args(at(&[due, due + 4000]))
                .args(["--ttl", "2s"]);
            run.command(witness.job(&format!(
                "[ $SOLOCRON_FIRING = {} ] && exec sleep 60; :",
                text_of(due)
            )))
        };
        let mut fleet = Fleet::of(&["a", "b"], make);
        let start = witness.wait_starts(1, secs(6))[0].clone();
        std::thread::sleep(ms(500));
        fleet.member(&start.label).signal(Signal::KILL);
        wait_until(secs(1), "the command is dead", || {
            !support::proc::alive(start.pid)
        });
        fleet.kill(&start.label);
        let starts = witness.wait_starts(2, secs(6));
        assert_eq!(firings(&starts), [due, due + 4000]);
        assert!(starts[1].at < f64_of(due + 4500), "on time");
        wait_until(secs(2), "told", || fleet.messages().contains("never ended"));
        fleet.stop();
        assert_eq!(witness.starts().len(), 2);
    });
}

#[test]
fn rerun_starts_the_firing_of_a_dead_runner_again() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(2));
    let make = || {
        let run = Solocron::on(&redis, "x").args(at(&[due])).args([
            "--ttl",
            "2s",
            "--on-runner-lost",
            "rerun",
        ]);
        run.command(witness.job("[ $SOLOCRON_ATTEMPT = 1 ] && exec sleep 60; :"))
    };
    let mut fleet = Fleet::of(&["a", "b", "c"], make);
    let start = witness.wait_starts(1, secs(6))[0].clone();
    std::thread::sleep(ms(1000));
    fleet.kill(&start.label);
    let until: i64 = redis.record("x")["until"].parse().expect("ms");
    let again = witness.wait_starts(2, secs(6))[1].clone();
    std::thread::sleep(secs(1));
    fleet.stop();
    assert_eq!(witness.starts().len(), 2);
    assert_eq!((again.firing, again.attempt), (Some(due), 2));
    assert!(again.token > start.token);
    assert!(
        again.at >= f64_of(until) - 20.0,
        "{} ms before the lease's end",
        f64_of(until) - again.at
    );
    assert!(
        again.at <= f64_of(until) + 1000.0,
        "{} ms after the lease's end",
        again.at - f64_of(until)
    );
}
