//! A schedule of every second on the true clock: punctual, and stopped for a while.

mod support;

use crate::support::fleet::{EACH_SECOND, at, sleep_until, soon};
use crate::support::witness::f64_of;
use crate::support::{Entry, Place, Signal, Solocron, Witness};
use crate::support::{long, now_ms, proc, secs};
use std::collections::BTreeSet;

/// Firings told in messages of one kind: `missed the firing A`, `missed N firings, A to B`, `firing A not started: ...`.
fn told(messages: &str, kind: &str) -> Vec<i64> {
    let mut all = Vec::new();
    for line in messages.lines() {
        let instants: Vec<i64> = line
            .split([' ', ','])
            .skip(1)
            .filter_map(|word| word.parse::<jiff::Timestamp>().ok())
            .map(jiff::Timestamp::as_millisecond)
            .collect();
        match instants[..] {
            [firing] if line.contains(kind) => all.push(firing),
            [first, last] if line.contains(kind) => {
                let seconds = (first..=last).step_by(1000).collect::<Vec<_>>();
                let number = format!("missed {} firings", seconds.len());
                assert!(line.contains(&number), "{number}: {line}");
                all.extend(seconds);
            }
            _ => {}
        }
    }
    all
}

#[test]
fn eight_seconds_stopped_are_one_late_firing_and_a_number_of_missed_ones() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let run = place.run("x").args(EACH_SECOND).arg("-v");
        let mut run = run.command(witness.job(":")).spawn();
        witness.wait_starts(2, secs(8));
        // In the middle of a second nothing is under way.
        let stop = soon(secs(1)) + 500;
        sleep_until(stop);
        run.signal(Signal::STOP);
        sleep_until(stop + 8000);
        run.signal(Signal::CONT);
        sleep_until(stop + 10_000);
        run.signal(Signal::TERM);
        let out = run.wait(secs(5));
        out.assert_code(0).assert_clean();
        witness.assert_once_each();
        let starts = witness.starts();
        let firing = |n: usize| starts[n].firing.expect("a firing");
        let (first, last) = (firing(0), firing(starts.len() - 1));
        for start in &starts {
            assert!(
                start.at >= f64_of(start.firing.expect("a firing")),
                "early: {start:?}"
            );
        }
        let late = |s: &&Entry| s.at - f64_of(s.firing.expect("a firing")) > 1000.0;
        assert!(starts.iter().filter(late).count() <= 1, "{starts:#?}");
        // Each second was started, missed or told as skipped, and one of these only.
        let mut all: Vec<i64> = starts.iter().filter_map(|s| s.firing).collect();
        let missed = told(&out.stderr, "missed ");
        assert!((6..=8).contains(&missed.len()), "{}", out.stderr);
        all.extend(missed);
        all.extend(told(&out.stderr, "not started"));
        all.retain(|at| (first..=last).contains(at));
        let every: BTreeSet<i64> = (first..=last).step_by(1000).collect();
        assert_eq!(all.len(), every.len(), "{}", out.stderr);
        assert_eq!(
            all.into_iter().collect::<BTreeSet<_>>(),
            every,
            "{}",
            out.stderr
        );
    });
}

#[test]
fn every_second_starts_on_time() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let witness = Witness::default();
    let run = Solocron::local(dir.path(), "x").args(EACH_SECOND);
    let mut run = run.command(witness.job(":")).spawn();
    let first = soon(secs(2));
    let last = first + if long() { 60_000 } else { 10_000 };
    sleep_until(last + 900);
    run.signal(Signal::TERM);
    run.wait(secs(5)).assert_code(0).assert_clean();
    witness.assert_once_each();
    witness.assert_every(1000, first, last);
    let mut late = Vec::new();
    for start in witness
        .starts()
        .into_iter()
        .filter(|s| s.firing >= Some(first))
    {
        late.push(start.at - f64_of(start.firing.expect("a firing")));
    }
    late.sort_by(f64::total_cmp);
    assert!(late[0] >= 0.0, "early by {} ms", -late[0]);
    println!(
        "late, in ms: median {:.1}, most {:.1}",
        late[late.len() / 2],
        late[late.len() - 1]
    );
    assert!(late[late.len() / 2] < 250.0, "{late:?}");
}

#[test]
fn on_the_embedded_store_an_idle_schedule_sleeps_too() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let day = (now_ms() / 86_400_000 + 15) * 86_400_000;
    let run = Solocron::local(dir.path(), "x").args(at(&[day]));
    let mut run = run.command(["true"]).spawn();
    std::thread::sleep(secs(2));
    let before = proc::voluntary_switches(run.pid());
    std::thread::sleep(secs(if long() { 60 } else { 10 }));
    assert_eq!(proc::voluntary_switches(run.pid()), before, "wake-ups");
    run.signal(Signal::USR1);
    run.signal(Signal::TERM);
    run.wait(secs(2)).assert_code(0).assert_clean();
}
