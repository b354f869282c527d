//! A schedule on a kernel whose clock is set under it: a user-mode Linux on the root of this machine, read-only. Only there
//! may a test set a clock, and there an armed timer is cancelled as on any Linux.
#![cfg(target_arch = "x86_64")] // where there is such a kernel

mod support;

use chrono::{DateTime, TimeDelta, Utc};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use support::{eventually, proc, secs};
use tempfile::TempDir;

/// What every guest does first and last. Nothing happens to a machine that is not one.
const GUEST: &str = r#"#!/bin/sh
[ $$ = 1 ] || exit 1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TZ=UTC
mount -t proc proc /proc
grep -q 'User Mode Linux' /proc/cpuinfo || exit 1
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs @DIR@/run
cd @DIR@/run

# Sets the clock: to a time of the day, or on by seconds.
to() { date -s "2026-05-13 $1" >/dev/null; }
by() { date -s "@$(date +%s.%N | awk "{ printf \"%.9f\", \$1 + $1 }")" >/dev/null; }

# Sleeps until a time of the day. In the middle of a second no firing is under way.
at() { sleep "$(date -d "2026-05-13 $1" +%s.%N | awk "{ left = \$1 - $(date +%s.%N); print left < 0 ? 0 : left }")"; }

# Starts an instance: its name, its lock, its options. The job goes on with the line $work.
start() {
    name=$1 lock=$2
    shift 2
    NAME=$name '@SOLOCRON@' --store file://@DIR@/run/store --lock-name "$lock" --ttl 5s --on-stop finish -v "$@" -- \
        sh -c "echo \"RAN \$NAME \$SOLOCRON_FIRING\" >>@DIR@/run/ran; $work" 2>"$name" &
    pids="$pids $!"
    names="$names $name"
}

# Lets the kernel sleep until it is woken from outside.
suspend() { echo SUSPEND; echo freeze >/sys/power/state; }

pids= names= work=:
@STORY@
kill -TERM $pids
wait
cat ran
for name in $names; do sed "s/^/SAID $name /" "$name"; done
echo END
echo o >/proc/sysrq-trigger
sleep 30
"#;

/// A machine in a machine; gone when dropped.
struct Guest {
    dir: TempDir,
    child: Child,
}

impl Guest {
    /// Boots a guest that runs these shell lines.
    fn boot(story: &str) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().to_str().expect("UTF-8");
        fs::create_dir(dir.path().join("run")).expect("a folder");
        let script = GUEST
            .replace("@STORY@", story.trim())
            .replace("@SOLOCRON@", env!("CARGO_BIN_EXE_solocron"))
            .replace("@DIR@", path);
        let init = dir.path().join("init");
        fs::write(&init, script).expect("the script");
        fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).expect("its mode");
        let console = File::create(dir.path().join("console")).expect("the console");
        let child = Command::new("linux.uml")
            .args(["mem=128M", "root=/dev/root", "rootfstype=hostfs"])
            .args(["hostfs=/", "ro", "quiet", "con=null", "con0=null,fd:1"])
            .args([&format!("uml_dir={path}/"), "umid=guest"])
            .arg(format!("init={}", init.display()))
            // Its memory is a file there: the usual place is small in containers.
            .env("TMPDIR", dir.path())
            .stdin(Stdio::null())
            .stdout(console.try_clone().expect("a descriptor"))
            .stderr(console)
            .process_group(0)
            .spawn()
            .expect("linux.uml of user-mode-linux; run tests/run, it installs what the tests need");
        Self { dir, child }
    }

    fn console(&self) -> String {
        let bytes = fs::read(self.dir.path().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    fn waits_for(&self, line: &str) {
        let seen = || self.console().lines().any(|l| l == line);
        assert!(
            eventually(secs(120), seen),
            "no {line}:\n{}",
            self.console()
        );
    }

    /// Wakes the guest's kernel from its sleep.
    fn wake(&self) {
        let file = self.dir.path().join("guest/pid");
        let pid = fs::read_to_string(file).expect("the pid of the guest");
        proc::signal(pid.trim().parse().expect("a pid"), Signal::USR1);
    }

    /// What happened in the guest, once it is over.
    fn over(self) -> Story {
        self.waits_for("END");
        let console = self.console();
        println!("{console}");
        Story::read(&console)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It ends by itself, and its processes with it.
        let gone = eventually(secs(2), || matches!(self.child.try_wait(), Ok(Some(_))));
        if !gone && let Ok(group) = i32::try_from(self.child.id()) {
            let _ = kill_process_group(Pid::from_raw(group).expect("a group"), Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// A start, as solocron told it with the guest's clock, which nobody can have set meanwhile.
#[derive(Debug, Clone, Copy)]
struct Start {
    firing: DateTime<Utc>,
    told: DateTime<Utc>,
}

impl Start {
    fn late(self) -> TimeDelta {
        self.told - self.firing
    }
}

/// Number, first and last of firings that were missed.
type Missed = (u32, DateTime<Utc>, DateTime<Utc>);

/// What instances did and said in a guest.
struct Story {
    console: String,
    /// by instance, in order
    starts: BTreeMap<String, Vec<Start>>,
    /// by instance
    missed: BTreeMap<String, Vec<Missed>>,
    /// by instance: firings told as not started
    skipped: BTreeMap<String, Vec<DateTime<Utc>>>,
}

impl Story {
    fn read(console: &str) -> Self {
        let mut story = Self {
            console: console.to_owned(),
            starts: BTreeMap::new(),
            missed: BTreeMap::new(),
            skipped: BTreeMap::new(),
        };
        for line in console.lines().filter_map(|l| l.strip_prefix("SAID ")) {
            story.take(line);
        }
        // What was told is what ran.
        let ran = console.lines().filter_map(|l| l.strip_prefix("RAN "));
        let mut ran: Vec<_> = ran.map(str::to_owned).collect();
        let mut told: Vec<_> = story
            .starts
            .iter()
            .flat_map(|(name, starts)| starts.iter().map(move |start| (name, start.firing)))
            .map(|(name, firing)| format!("{name} {}", firing.format("%Y-%m-%dT%H:%M:%SZ")))
            .collect();
        ran.sort_unstable();
        told.sort_unstable();
        assert_eq!(ran, told, "{console}");
        story
    }

    /// Reads `NAME TIME solocron LEVEL: LOCK: TEXT`.
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let (name, told) = (words[0].to_owned(), instant(words[1]));
        match words[5..] {
            ["firing", firing, "started", ..] => {
                let firing = instant(firing);
                self.starts
                    .entry(name)
                    .or_default()
                    .push(Start { firing, told });
            }
            ["firing", firing, "not", "started:", ..] => {
                self.skipped.entry(name).or_default().push(instant(firing));
            }
            ["missed", "the", "firing", firing] => {
                let firing = instant(firing);
                let missed = self.missed.entry(name).or_default();
                missed.push((1, firing, firing));
            }
            ["missed", number, .., first, "to", last] => {
                let number = number.parse().expect("a number");
                let missed = self.missed.entry(name).or_default();
                missed.push((number, instant(first), instant(last)));
            }
            _ => {}
        }
    }

    fn starts(&self, name: &str) -> Vec<Start> {
        self.starts.get(name).cloned().unwrap_or_default()
    }

    /// The firings of an instance, as times of the day, those late by more than a second with how many seconds.
    fn fired(&self, name: &str) -> Vec<String> {
        let show = |start: &Start| {
            let time = start.firing.format("%H:%M:%S");
            match start.late().num_seconds() {
                0 => time.to_string(),
                late => format!("{time}+{late}"),
            }
        };
        self.starts(name).iter().map(show).collect()
    }

    fn missed(&self, name: &str) -> Vec<String> {
        let missed = self.missed.get(name).cloned().unwrap_or_default();
        let time = |at: DateTime<Utc>| at.format("%H:%M").to_string();
        let show =
            |(number, first, last): &Missed| format!("{number} {}-{}", time(*first), time(*last));
        missed.iter().map(show).collect()
    }

    /// No instance started a firing early or later than its deadline, and none twice among those of one lock.
    fn assert_sound(&self, locks: &[&[&str]]) {
        for names in locks {
            let mut firings = BTreeSet::new();
            for start in names.iter().flat_map(|name| self.starts(name)) {
                assert!(
                    start.late() >= TimeDelta::zero(),
                    "early: {start:?}\n{}",
                    self.console
                );
                assert!(
                    start.late() <= TimeDelta::seconds(61),
                    "late: {start:?}\n{}",
                    self.console
                );
                assert!(
                    firings.insert(start.firing),
                    "twice: {start:?}\n{}",
                    self.console
                );
            }
        }
    }

    /// Of an instance that fires every second: each instant between its first and its last start is started, told as
    /// skipped, or among the missed ones, and only one of them.
    fn assert_accounted(&self, name: &str) {
        let starts: Vec<_> = self.starts(name).iter().map(|s| s.firing).collect();
        let skipped = self.skipped.get(name).cloned().unwrap_or_default();
        let missed = self.missed.get(name).cloned().unwrap_or_default();
        let mut at = *starts.iter().min().expect("starts");
        let last = *starts.iter().max().expect("starts");
        while at <= last {
            let count = starts.iter().filter(|s| **s == at).count()
                + skipped.iter().filter(|s| **s == at).count()
                + missed.iter().filter(|m| (m.1..=m.2).contains(&at)).count();
            assert_eq!(
                count, 1,
                "{name}: {at} is told {count} times\n{}",
                self.console
            );
            at += TimeDelta::seconds(1);
        }
    }

    /// How many starts of an instance came more than a second after their instant.
    fn late(&self, name: &str) -> usize {
        let late = |start: &Start| start.late() > TimeDelta::seconds(1);
        self.starts(name).into_iter().filter(late).count()
    }
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse()
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Every second, every minute in two instances, every hour with two start deadlines.
const INSTANCES: &str = "
to 09:59:58.4
start second second --cron '* * * * * *'
start minute-a minute --cron '* * * * *'
start minute-b minute --cron '* * * * *'
start hour hour --cron '0 * * * *'
start strict strict --cron '0 * * * *' --start-deadline 5s
";
const LOCKS: [&[&str]; 4] = [
    &["second"],
    &["minute-a", "minute-b"],
    &["hour"],
    &["strict"],
];

#[test]
fn a_clock_set_forward_starts_the_last_firing_late_and_misses_the_others() {
    let guest = Guest::boot(&format!(
        "{INSTANCES}
        at 10:00:01.5   # 10:00:00 was on time
        by 3600
        at 11:00:03.5
        to 11:59:10.5   # a minute's firing is 10 s late
        at 11:59:11.5
        by 90           # over 12:00:00
        at 12:00:43.5
        suspend
        sleep 2"
    ));
    guest.waits_for("SUSPEND");
    std::thread::sleep(secs(6));
    guest.wake();
    let story = guest.over();
    story.assert_sound(&LOCKS);
    // The timer of an hour ended with the step, else the firings were an hour late.
    let hour = story.fired("hour");
    assert_eq!(hour[0], "10:00:00", "{}", story.console);
    assert!(hour[1].starts_with("11:00:00+"), "{hour:?}");
    assert!(hour[2].starts_with("12:00:00+4"), "{hour:?}");
    assert_eq!(hour.len(), 3);
    assert!(
        story.missed("hour").is_empty(),
        "{:?}",
        story.missed("hour")
    );
    // 40 s are too late for a deadline of 5 s, 2 s are not.
    let strict = story.fired("strict");
    assert!(
        strict.len() == 2 && strict[1].starts_with("11:00:00+"),
        "{strict:?}"
    );
    assert_eq!(story.missed("strict"), ["1 12:00-12:00"]);
    // One of the two starts each, and both count the same.
    let mut minutes: Vec<_> = ["minute-a", "minute-b"]
        .iter()
        .flat_map(|name| story.starts(name))
        .map(|start| start.firing.format("%H:%M").to_string())
        .collect();
    minutes.sort_unstable();
    assert_eq!(
        minutes,
        ["10:00", "11:00", "11:59", "12:00"],
        "{}",
        story.console
    );
    for name in ["minute-a", "minute-b"] {
        assert_eq!(
            story.missed(name),
            ["59 10:01-10:59", "58 11:01-11:58"],
            "{name}"
        );
    }
    story.assert_accounted("second");
    // One for each of the three steps and the sleep, unless a run was under way.
    assert!(story.late("second") <= 4, "{:?}", story.fired("second"));
    let slept = story.missed["second"].last().expect("the sleep").0;
    assert!((4..=20).contains(&slept), "{slept} missed asleep");
}

#[test]
fn a_clock_set_back_starts_nothing_again() {
    let guest = Guest::boot(&format!(
        "{INSTANCES}
        work='case $SOLOCRON_FIRING in *T10:00:0[0-2]*) sleep 1.2 ;; esac'
        start long long --cron '* * * * * *'
        at 10:00:01.5   # 10:00:00 was on time
        by -2
        at 10:00:03.5   # 10:00:00 came again
        by -3600
        at 09:00:05.5   # 09:00:00 is long past
        to 09:59:59.5
        at 10:00:05.5   # 10:00:00 came a third time
        to 04:59:58.5   # too far for a mistake
        at 05:00:02.5"
    ));
    let story = guest.over();
    story.assert_sound(&LOCKS);
    story.assert_sound(&[&["long"]]);
    for name in ["hour", "strict"] {
        assert_eq!(story.fired(name)[0], "10:00:00", "{}", story.console);
        assert!(story.missed(name).is_empty(), "{}", story.console);
    }
    let second = story.fired("second");
    let (before, after): (Vec<_>, Vec<_>) = second.iter().partition(|time| time.as_str() > "09");
    // Nothing between the steps and the second after the last one started before.
    assert!(
        before.iter().any(|time| time.as_str() >= "10:00:04"),
        "{before:?}"
    );
    assert!(before.is_sorted(), "{before:?}");
    assert!(story.late("second") <= 2, "{second:?}");
    // Five hours are followed: what the mark of the record keeps back is the first firing alone.
    assert!(after.len() >= 3, "{second:?}\n{}", story.console);
    for name in LOCKS.concat() {
        let told = format!("SAID {name} ");
        let mut said = story.console.lines().filter(|l| l.starts_with(&told));
        assert!(
            said.any(|l| l.contains("clock was set back by 5h")),
            "{name}"
        );
    }
    // What fell due behind a run at the old time is forgotten too.
    let long = story.fired("long");
    let after = long.iter().filter(|time| time.as_str() < "09").count();
    assert!(after >= 2, "{long:?}\n{}", story.console);
    let reset = |lock: &str| format!("{lock}: the store's clock was set back");
    for lock in ["second", "long"] {
        assert_eq!(
            story.console.matches(&reset(lock)).count(),
            1,
            "{lock}\n{}",
            story.console
        );
    }
}
