//! Many on one lock: all at once, and one after the other.

use std::ffi::OsString;
use std::fs;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{Place, installed, quiet, rounds};
use crate::report::{Report, Sample};
use crate::support::{RedisServer, Signal, proc, secs, wait_until};

const CROWD: usize = 300;

pub fn measure(place: &Place, report: &mut Report) {
    let server = RedisServer::start();
    let (mut ours, mut peer) = (Sample::default(), Sample::default());
    for round in 0..rounds(7).min(20) {
        let lock = format!("crowd-{round}");
        ours.add(all_at_once(place, &lock, || {
            place.solocron(&server.url(), &lock)
        }));
        if installed("flock") {
            let file = place.path(&format!("flock-{round}"));
            peer.add(all_at_once(place, &format!("f{round}"), || {
                let mut command = quiet("flock");
                command.args(["-n", "-E", "75"]).arg(&file);
                command
            }));
        }
    }
    let what = format!("{CROWD} processes on one lock, one runs");
    if installed("flock") {
        report.note(format!("{what}: flock -n"), "s", peer.clone());
        report.against(what, "s", ours, &[("flock", &peer, Some(1.0))]);
    } else {
        report.note(what, "s", ours);
    }
    hand_over(place, report, &server);
}

/// Seconds until all but one are refused. One, and no more than one, runs.
fn all_at_once(place: &Place, name: &str, prefix: impl Fn() -> Command) -> f64 {
    let mark = place.path(&format!("ran-{name}"));
    let line = format!("echo >>{}; exec sleep 60", mark.display());
    let start = Instant::now();
    let spawn = |_| {
        let mut command = prefix();
        // flock takes no `--`.
        command
            .args(["sh", "-c", &line])
            .spawn()
            .expect("it starts")
    };
    let mut left: Vec<Child> = (0..CROWD).map(spawn).collect();
    while left.len() > 1 {
        left.retain_mut(|child| match child.try_wait().expect("a child") {
            None => true,
            Some(status) => {
                assert_eq!(status.code(), Some(75), "refused");
                false
            }
        });
        thread::sleep(Duration::from_millis(1));
    }
    let took = start.elapsed().as_secs_f64();
    for mut child in left {
        // flock passes no signal on: its command goes first.
        let pid = i32::try_from(child.id()).expect("a pid");
        for descendant in proc::descendants(pid) {
            proc::signal(descendant.pid, Signal::TERM);
        }
        let _ = child.wait();
    }
    assert_eq!(
        fs::read_to_string(&mark).unwrap_or_default(),
        "\n",
        "one ran"
    );
    took
}

/// From the end of the holder's command to the start of the next one's.
fn hand_over(place: &Place, report: &mut Report, server: &RedisServer) {
    let mut sample = Sample::default();
    let mut asked = Sample::default();
    for round in 0..rounds(12).min(30) {
        let lock = format!("hand-{round}");
        let file = place.path(&lock);
        let [job, out] = place.job(&file);
        // Not in step with anybody's polling.
        let pause = format!("sleep 2.{}; exec \"$@\"", round * 37 % 100);
        let words = ["sh".into(), "-c".into(), pause.into(), "-".into()];
        let run = |words: &[OsString]| {
            let mut command = place.solocron(&server.url(), &lock);
            command.args(["--wait", "30s", "--"]).args(words);
            command.args([&job, &out]).spawn().expect("it starts")
        };
        let mut holder = run(&words);
        wait_until(secs(5), "the lock is held", || {
            let key = format!("solocron:{{{lock}}}");
            server.cli(&["EXISTS", &key]).text() == "1"
        });
        let (begun, before) = (Instant::now(), commands(server));
        let mut next = run(&[]);
        let _ = holder.wait();
        asked.add((commands(server) - before) / begun.elapsed().as_secs_f64());
        let _ = next.wait();
        let written = Place::written(&file);
        assert_eq!(written.len(), 2, "both ran");
        #[expect(clippy::cast_precision_loss, reason = "small")]
        sample.add((written[1].1 - written[0].1) as f64 / 1e9);
    }
    report.at_most("hand-over with --wait", "s", sample, 1.0);
    report.note(
        "hand-over: store commands a second while waiting",
        "",
        asked,
    );
}

fn commands(server: &RedisServer) -> f64 {
    let info = server.cli(&["INFO", "commandstats"]).text();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_eval:calls="));
    let calls = line.and_then(|line| line.split(',').next());
    calls.and_then(|calls| calls.parse().ok()).unwrap_or(0.0)
}
