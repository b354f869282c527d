//! `kill -9` of whoever runs a firing, at any moment: what becomes of the firing,
//! and of those after it. `SOLOCRON_LONG=1` does it 200 times.

mod support;

use support::fleet::{at, sleep_until, soon, text_of};
use support::witness::f64_of;
use support::{Entry, eventually, long, ms, now_ms, secs, wait_for};
use support::{Fleet, RedisServer, Signal, Solocron, Witness};

/// Done at the same time, each under a lock of its own.
const AT_ONCE: u64 = 8;
const TTL: i64 = 2_000;

/// What a kill at some moment led to.
struct Sample {
    name: String,
    rerun: bool,
    /// milliseconds after the start
    moment: u64,
    due: i64,
    /// the firing that is later than the dead runner's lease
    later: i64,
    first: Entry,
    /// the lease's end
    until: i64,
    starts: Vec<Entry>,
}

/// Lets three instances run a firing, kills whoever has it, and waits for the one after it.
fn kill_at(redis: &RedisServer, name: &str, rerun: bool, moment: u64) -> Sample {
    let witness = Witness::default();
    let due = soon(ms(1_500));
    let later = due + 6_000;
    let make = || {
        let run = Solocron::on(redis, name)
            .args(at(&[due, later]))
            .args(["--ttl", "2s"]);
        let run = if rerun {
            run.args(["--on-runner-lost", "rerun"])
        } else {
            run
        };
        let first = text_of(due);
        run.command(witness.job(&format!(
            "[ $SOLOCRON_FIRING = {first} ] && [ $SOLOCRON_ATTEMPT = 1 ] && exec sleep 60; :"
        )))
    };
    let fleet = Fleet::of(&["a", "b", "c"], make);
    let first = witness.wait_starts(1, secs(8))[0].clone();
    std::thread::sleep(ms(moment));
    fleet.member(&first.label).signal(Signal::KILL);
    let until = wait_for(secs(2), "the runner is dead", || {
        let dead = !support::proc::alive(fleet.member(&first.label).pid());
        dead.then(|| redis.record(name)["until"].parse().expect("ms"))
    });
    assert!(
        eventually(secs(1), || !support::proc::alive(first.pid)),
        "{name}: the command lives on"
    );
    sleep_until(later);
    let _ = eventually(secs(3), || {
        witness
            .starts()
            .iter()
            .any(|start| start.firing == Some(later))
    });
    std::thread::sleep(ms(200));
    Sample {
        name: name.to_owned(),
        rerun,
        moment,
        due,
        later,
        first,
        until,
        starts: witness.starts(),
    }
}

impl Sample {
    /// What is wrong with it, if anything.
    fn fault(&self) -> Option<String> {
        let of = |firing: i64| -> Vec<&Entry> {
            self.starts
                .iter()
                .filter(|s| s.firing == Some(firing))
                .collect()
        };
        let (again, later) = (of(self.due), of(self.later));
        let wrong = |what: String| {
            Some(format!(
                "{} rerun {} killed after {} ms: {what}: {:#?}",
                self.name, self.rerun, self.moment, self.starts
            ))
        };
        if later.len() != 1 || later[0].at > f64_of(self.later + 1_000) {
            return wrong("the later firing is not on time".to_owned());
        }
        if !self.rerun {
            return (again.len() != 1).then(|| wrong("started again".to_owned()))?;
        }
        let [_, second] = again[..] else {
            return wrong("not started twice".to_owned());
        };
        let after = second.at - f64_of(self.until);
        // The lease's end is told in whole milliseconds.
        if !(-2.0..=1_000.0).contains(&after) {
            return wrong(format!("{after} ms after the lease's end"));
        }
        if second.attempt != 2 || second.token <= self.first.token {
            return wrong("attempt or token".to_owned());
        }
        None
    }
}

#[test]
fn a_killed_runners_firing_starts_again_or_never_and_later_ones_on_time() {
    let rounds = if long() { 25 } else { 1 };
    let redis = RedisServer::start();
    let mut samples = Vec::new();
    for round in 0..rounds {
        // Spread over the heartbeats, a third of the ttl apart.
        let step = 2_000 / AT_ONCE;
        let luck = u64::try_from(now_ms()).expect("after 1970") % step;
        let all: Vec<Sample> = std::thread::scope(|scope| {
            let redis = &redis;
            let kills: Vec<_> = (0..AT_ONCE)
                .map(|n| {
                    let rerun = (n + round) % 2 == 0;
                    scope.spawn(move || {
                        kill_at(redis, &format!("r{round}-{n}"), rerun, n * step + luck)
                    })
                })
                .collect();
            kills
                .into_iter()
                .map(|one| one.join().expect("a sample"))
                .collect()
        });
        samples.extend(all);
    }
    let faults: Vec<_> = samples.iter().filter_map(Sample::fault).collect();
    let reruns = samples.iter().filter(|sample| sample.rerun).count();
    let mut after: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.rerun && sample.fault().is_none())
        .map(|sample| {
            let second = sample.starts.iter().find(|s| s.attempt == 2);
            second.expect("a rerun").at - f64_of(sample.until)
        })
        .collect();
    after.sort_by(f64::total_cmp);
    println!(
        "{} kills, {reruns} under rerun, started again after the lease's end: {:?} ms",
        samples.len(),
        after
            .first()
            .zip(after.get(after.len() / 2))
            .zip(after.last())
    );
    assert!(
        faults.is_empty(),
        "{} of {}: {faults:#?}",
        faults.len(),
        samples.len()
    );
    assert!(
        samples
            .iter()
            .all(|one| one.until <= one.due + 2 * TTL + 1_500)
    );
}
