//! Several instances of one schedule.

use super::running::{Outcome, Running};
use super::solocron::Solocron;
use super::wait::secs;
use super::witness::{Entry, now_ms};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::time::Duration;

/// Options for a firing every second.
pub const EACH_SECOND: [&str; 4] = ["--tz", "UTC", "--cron", "* * * * * *"];

/// Instances by label.
#[derive(Debug, Default)]
pub struct Fleet {
    members: BTreeMap<String, Running>,
}

impl Fleet {
    /// Starts one instance for each wrong clock (`0` for a right one), which is its label as well.
    #[must_use]
    pub fn skewed(skews: &[&str], make: impl Fn() -> Solocron) -> Self {
        let start = |skew: &&str| ((*skew).to_owned(), make().skew(skew).label(skew).spawn());
        Self {
            members: skews.iter().map(start).collect(),
        }
    }

    /// Starts instances with right clocks.
    #[must_use]
    pub fn of(labels: &[&str], make: impl Fn() -> Solocron) -> Self {
        let mut fleet = Self::default();
        for label in labels {
            fleet.join(label, make());
        }
        fleet
    }

    /// Starts one more.
    pub fn join(&mut self, label: &str, run: Solocron) {
        self.members
            .insert(label.to_owned(), run.label(label).spawn());
    }

    /// Kills an instance with all it started, as the end of its host would.
    pub fn kill(&mut self, label: &str) {
        self.members.remove(label).expect("a member").kill_all();
    }

    /// One instance.
    #[must_use]
    pub fn member(&self, label: &str) -> &Running {
        &self.members[label]
    }

    /// The labels of those that are left.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// Fails the test when one ended by itself.
    #[track_caller]
    pub fn assert_all_run(&mut self) {
        for (label, run) in &mut self.members {
            assert!(!run.has_ended(), "{label} ended: {}", run.stderr());
        }
    }

    /// All messages of all instances.
    #[must_use]
    pub fn messages(&self) -> String {
        let part = |(label, run): (&String, &Running)| format!("--- {label}\n{}", run.stderr());
        self.members.iter().map(part).collect::<Vec<_>>().concat()
    }

    /// Sends TERM to all and waits; fails the test when one does not end with 0, cleanly, within 10 s.
    #[track_caller]
    pub fn stop(mut self) -> BTreeMap<String, Outcome> {
        self.assert_all_run();
        for run in self.members.values() {
            run.signal(Signal::TERM);
        }
        let end = |(label, mut run): (String, Running)| {
            let out = run.wait(secs(10));
            out.assert_code(0).assert_clean();
            (label, out)
        };
        self.members.into_iter().map(end).collect()
    }
}

/// A full second at least `ahead` from now, in milliseconds since the epoch.
#[must_use]
pub fn soon(ahead: Duration) -> i64 {
    let at = now_ms() + i64::try_from(ahead.as_millis()).expect("near");
    (at + 999) / 1000 * 1000
}

/// Options for a schedule in UTC that fires at these instants (of this year) only.
#[must_use]
pub fn at(instants: &[i64]) -> Vec<String> {
    let mut args = vec!["--tz".to_owned(), "UTC".to_owned()];
    for instant in instants {
        let time = jiff::Timestamp::from_millisecond(*instant).expect("a near time");
        let expr = time.strftime("%-S %-M %-H %-d %-m *").to_string();
        args.extend(["--cron".to_owned(), expr]);
    }
    args
}

/// Sleeps until the true time shows `instant`.
pub fn sleep_until(instant: i64) {
    if let Ok(left) = u64::try_from(instant - now_ms()) {
        std::thread::sleep(Duration::from_millis(left));
    }
}

/// The firings of these starts, in order of their time.
#[must_use]
pub fn firings(starts: &[Entry]) -> Vec<i64> {
    let mut starts = starts.to_vec();
    starts.sort_by(|a, b| a.at.total_cmp(&b.at));
    starts
        .iter()
        .map(|s| s.firing.expect("a scheduled start"))
        .collect()
}

/// An instant as the command sees its firing.
#[must_use]
pub fn text_of(instant: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(instant).expect("a near time");
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
