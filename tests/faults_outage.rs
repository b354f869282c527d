//! Outages of the store of any length under a running command: shorter than the
//! documented bound it survives, in longer ones it is gone before its lease can
//! be over. `SOLOCRON_LONG=1` does it 200 times.

mod support;

use solocron::lock::Timing;
use std::time::{Duration, Instant};
use support::{Mode, Proxy, RedisServer, Running, Solocron, Witness};
use support::{eventually, long, ms, now_ms, proc, secs};

const AT_ONCE: u64 = 8;
const TTL: Duration = Duration::from_secs(3);
const KILL_AFTER: Duration = Duration::from_millis(300);
/// What lies so near the bound is not judged: the test itself takes time.
const BLUR: Duration = Duration::from_millis(60);

/// How the store goes away.
#[derive(Clone, Copy, Debug)]
enum Way {
    Frozen,
    Silent,
    Cut,
}

/// What an outage led to.
#[derive(Debug)]
#[expect(dead_code, reason = "all of it is shown when it is wrong")]
struct Sample {
    way: Way,
    /// from the start of the command to that of the outage
    phase: Duration,
    outage: Duration,
    code: i32,
    /// from the last request that the store took to the end of the command, if it was stopped
    lived: Option<f64>,
}

fn outage(way: Way, phase: Duration, lasts: Duration) -> Sample {
    let redis = RedisServer::start();
    let monitor = redis.monitor();
    let proxy = Proxy::to(redis.port());
    let witness = Witness::default();
    let job = phase + lasts + secs(2);
    // The stop signal is of no use, only SIGKILL is.
    let job = format!(
        "trap '' TERM; sleep {}.{:03}; exit 3",
        job.as_secs(),
        job.subsec_millis()
    );
    let run = Solocron::at(&proxy.url(), "x").args(["--ttl", "3s", "--kill-after", "300ms"]);
    let mut run = run.command(witness.job(&job)).spawn();
    let start = witness.wait_starts(1, secs(8))[0].clone();
    std::thread::sleep(phase);
    let began = (Instant::now(), now_ms());
    match way {
        Way::Frozen => redis.pause(),
        Way::Silent => proxy.set(Mode::Stall),
        Way::Cut => {
            proxy.set(Mode::Refuse);
            proxy.cut();
        }
    }
    let gone = gone_at(&run, start.pid, began.0 + lasts);
    match way {
        Way::Frozen => redis.resume(),
        Way::Silent | Way::Cut => proxy.set(Mode::Pass),
    }
    let outage = began.0.elapsed();
    let code = run.wait(secs(20)).assert_clean().code();
    // What waited in between was taken afterwards.
    let before = |(at, _): &(f64, String)| at * 1_000.0 <= support::witness::f64_of(began.1) + 1.0;
    let last = monitor.named("eval").into_iter().rfind(before);
    let last = last.expect("the claim").0 * 1_000.0;
    Sample {
        way,
        phase,
        outage,
        code,
        lived: gone.map(|at| at - last),
    }
}

/// Waits until `end`; when the command was gone, if it went before.
fn gone_at(run: &Running, pid: i32, end: Instant) -> Option<f64> {
    let left = end.saturating_duration_since(Instant::now());
    let gone = eventually(left, || !proc::alive(pid));
    gone.then(|| {
        let at = support::witness::f64_of(now_ms());
        assert!(
            eventually(ms(500), || run.started().is_empty()),
            "left over: {:?}",
            run.started()
        );
        at
    })
}

impl Sample {
    /// What is wrong with it, if anything.
    fn fault(&self, survives: Duration) -> Option<&'static str> {
        let stopped = self.code == 76;
        if !stopped && self.code != 3 {
            return Some("an odd status");
        }
        if stopped && self.outage + BLUR < survives {
            return Some("not survived");
        }
        if self.outage > TTL + BLUR && self.lived.is_none() {
            return Some("alive when its lease could be over");
        }
        let bound = TTL.as_secs_f64() * 1_000.0;
        self.lived
            .is_some_and(|lived| lived > bound)
            .then_some("it outlived its lease")
    }
}

#[test]
fn a_command_survives_short_outages_and_is_gone_in_time_in_long_ones() {
    let survives = Timing::new(TTL, KILL_AFTER).survives();
    let rounds = if long() { 25 } else { 1 };
    let mut samples = Vec::new();
    for round in 0..rounds {
        let all: Vec<Sample> = std::thread::scope(|scope| {
            let outages: Vec<_> = (0..AT_ONCE)
                .map(|n| {
                    // Spread over lengths and over the time between two heartbeats.
                    let luck = (n * 25 + round) * 7_919 % 1_000;
                    let most = if n % 2 == 0 { 1_300 } else { 4_500 };
                    let length = ms(100 + (n * 137 + round * 271) * 31 % most);
                    let way = [Way::Frozen, Way::Silent, Way::Cut]
                        [usize::try_from((n + round) % 3).expect("small")];
                    scope.spawn(move || outage(way, ms(luck), length))
                })
                .collect();
            outages
                .into_iter()
                .map(|one| one.join().expect("a sample"))
                .collect()
        });
        samples.extend(all);
    }
    let faults: Vec<_> = samples
        .iter()
        .filter_map(|sample| Some((sample.fault(survives)?, sample)))
        .collect();
    let short = samples.iter().filter(|one| one.outage < survives);
    let stopped = samples.iter().filter(|one| one.code == 76).count();
    let longest = samples
        .iter()
        .filter_map(|one| one.lived)
        .fold(0.0, f64::max);
    println!(
        "{} outages, {} shorter than {survives:?}; {stopped} commands stopped, the last {longest:.0} ms after its last heartbeat",
        samples.len(),
        short.count(),
    );
    assert!(
        faults.is_empty(),
        "{} of {}: {faults:#?}",
        faults.len(),
        samples.len()
    );
}
