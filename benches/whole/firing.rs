//! How late the job of a firing starts, and what a firing asks of the store.

use std::collections::BTreeSet;
use std::process::Child;
use std::thread;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::place::{Place, rounds};
use crate::report::{Report, Sample};
use crate::support::{RedisServer, Signal, proc};

pub fn measure(place: &Place, report: &mut Report) {
    for (instances, most) in [(1, 1.0), (50, 3.0)] {
        let server = RedisServer::start();
        lag(place, report, &server, instances, most);
    }
}

fn lag(place: &Place, report: &mut Report, server: &RedisServer, instances: u32, most: f64) {
    let file = place.path(&format!("fired-{instances}"));
    let start = || {
        let mut command = place.solocron(&server.url(), "lag");
        command.args(["--cron", "* * * * * *", "--"]);
        command.args(place.job(&file)).spawn().expect("it starts")
    };
    let children: Vec<Child> = (0..instances).map(|_| start()).collect();
    // Until all are up and fire by the clock.
    thread::sleep(Duration::from_secs(5));
    let skip = mid_second(|| Place::written(&file).len());
    let before = evals(server);
    thread::sleep(Duration::from_secs(rounds(30) as u64));
    let (after, end) = mid_second(|| (evals(server), Place::written(&file).len()));
    for child in &children {
        proc::signal(i32::try_from(child.id()).expect("a pid"), Signal::TERM);
    }
    for mut child in children {
        let _ = child.wait();
    }
    let written = Place::written(&file);
    let mut sample = Sample::default();
    for (firing, nanos) in &written[skip..end] {
        let firing: DateTime<Utc> = firing.parse().expect("an instant");
        let late = nanos - firing.timestamp_nanos_opt().expect("a near one");
        #[expect(clippy::cast_precision_loss, reason = "small")]
        sample.add(late as f64 / 1e6);
    }
    let firings: BTreeSet<&String> = written.iter().map(|(firing, _)| firing).collect();
    let what = format!("firing, {instances} on one lock");
    report.at_most(format!("{what}: lag of the job"), "ms", sample, most);
    let twice = f64::from(u32::try_from(written.len() - firings.len()).expect("few"));
    report.at_most(format!("{what}: started twice"), "", twice.into(), 0.0);
    #[expect(clippy::cast_precision_loss, reason = "few")]
    let each = (after - before) as f64 / (end - skip) as f64;
    let aim = f64::from(instances + 1);
    report.at_most(format!("{what}: store commands each"), "", each.into(), aim);
}

/// Looks when nothing fires.
fn mid_second<T>(look: impl FnOnce() -> T) -> T {
    let past = Utc::now().timestamp_subsec_millis();
    thread::sleep(Duration::from_millis(u64::from((1500 - past) % 1000)));
    look()
}

fn evals(server: &RedisServer) -> u64 {
    let info = server.cli(&["INFO", "commandstats"]).text();
    let calls = info
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_eval:calls="));
    let calls = calls.and_then(|line| line.split(',').next());
    calls
        .and_then(|calls| calls.parse().ok())
        .unwrap_or_default()
}
