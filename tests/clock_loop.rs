//! The waiting loop of a schedule on clocks of its own: hours pass in moments, clocks are set, the machine sleeps. The
//! commands are real.

mod support;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::rc::Rc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use solocron::clock::{Clock, Sleep, Woken};
use solocron::event::{Event, Listener, Skip};
use solocron::firing::{Job, OnStop, RunPolicy};
use solocron::info::Info;
use solocron::lock::{OnLockLost, OnRunnerLost, Overlap, StoreTime, Timing};
use solocron::process::{Inherited, Placement, Signal, Signals, Spec, Stdin};
use solocron::schedule::{Agenda, Schedule, ZoneChoice, ZoneDb};
use solocron::schedule_mode::{self, Plan};
use solocron::store::memory::MemoryStore;
use support::{long, ms, secs};
use tokio::sync::Notify;

/// How late the loop wakes after each instant it waits for.
const LAG: Duration = Duration::from_micros(700);

/// What somebody sleeps for.
#[derive(Clone, Copy)]
enum Until {
    Wall(DateTime<Utc>),
    Boot(Duration),
    Running(Duration),
}

/// A machine: its clocks, who sleeps, and what its schedule told.
struct Machine {
    wall: Cell<DateTime<Utc>>,
    boot: Cell<Duration>,
    running: Cell<Duration>,
    /// How often the wall clock was set.
    sets: Cell<u32>,
    /// Timers of the wall clock end so much too soon, unless no more is left.
    early: Cell<TimeDelta>,
    sleepers: RefCell<BTreeMap<u64, Until>>,
    sleeps: Cell<u64>,
    moved: Notify,
    /// The command does not end for now.
    held: Cell<bool>,
    told: RefCell<Told>,
}

#[derive(Default)]
struct Told {
    /// firing, and the wall clock at its start
    starts: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// number, first, last
    missed: Vec<(u64, DateTime<Utc>, DateTime<Utc>)>,
    skips: Vec<Skip>,
    /// the command runs
    going_on: bool,
}

impl Listener for Machine {
    fn on_event(&self, event: &Event) {
        let mut told = self.told.borrow_mut();
        match event {
            Event::Started { firing, .. } => {
                told.going_on = true;
                let firing = firing.expect("a firing of the schedule");
                told.starts.push((firing, self.wall.get()));
            }
            Event::Ended { .. } => told.going_on = false,
            Event::Missed {
                count, first, last, ..
            } => told.missed.push((*count, *first, *last)),
            Event::Skipped { skip, .. } => told.skips.push(skip.clone()),
            Event::CannotStart { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
}

impl Clock for Machine {
    fn wall(&self) -> DateTime<Utc> {
        self.wall.get()
    }

    fn boot(&self) -> Duration {
        self.boot.get()
    }

    fn running(&self) -> Duration {
        self.running.get()
    }

    fn until_wall(&self, at: DateTime<Utc>) -> Sleep<'_> {
        Box::pin(self.sleep(Until::Wall(at)))
    }

    fn until_boot(&self, at: Duration) -> Sleep<'_> {
        Box::pin(self.sleep(Until::Boot(at)))
    }

    fn until_running(&self, at: Duration) -> Sleep<'_> {
        Box::pin(self.sleep(Until::Running(at)))
    }
}

/// One who sleeps; awake when dropped.
struct Sleeper<'a>(&'a Machine, u64);

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.sleepers.borrow_mut().remove(&self.1);
    }
}

impl Machine {
    fn new(wall: DateTime<Utc>) -> Rc<Self> {
        Rc::new(Self {
            wall: Cell::new(wall),
            boot: Cell::new(secs(1000)),
            running: Cell::new(secs(900)),
            sets: Cell::new(0),
            early: Cell::new(TimeDelta::zero()),
            sleepers: RefCell::default(),
            sleeps: Cell::new(0),
            moved: Notify::new(),
            held: Cell::new(false),
            told: RefCell::default(),
        })
    }

    async fn sleep(&self, until: Until) -> Woken {
        let id = self.sleeps.replace(self.sleeps.get() + 1);
        self.sleepers.borrow_mut().insert(id, until);
        let _sleeper = Sleeper(self, id);
        let sets = self.sets.get();
        loop {
            let moved = self.moved.notified();
            if self.left(until).is_zero() {
                return Woken::Due;
            }
            if matches!(until, Until::Wall(_)) && self.sets.get() != sets {
                return Woken::ClockSet;
            }
            moved.await;
        }
    }

    fn left(&self, until: Until) -> Duration {
        match until {
            Until::Wall(at) => {
                let (left, early) = (at - self.wall.get(), self.early.get());
                let left = if left > early { left - early } else { left };
                left.to_std().unwrap_or_default()
            }
            Until::Boot(at) => at.saturating_sub(self.boot.get()),
            Until::Running(at) => at.saturating_sub(self.running.get()),
        }
    }

    fn pass(&self, span: Duration) {
        self.wall.set(self.wall.get() + span);
        self.boot.set(self.boot.get() + span);
        self.running.set(self.running.get() + span);
        self.moved.notify_waiters();
    }

    /// The wall clock is set, by so much.
    async fn set_clock(&self, by: TimeDelta) {
        self.wall.set(self.wall.get() + by);
        self.sets.set(self.sets.get() + 1);
        self.moved.notify_waiters();
        self.settle().await;
    }

    /// The machine sleeps: its wall clock and the time since boot go on.
    async fn suspend(&self, span: Duration) {
        self.wall.set(self.wall.get() + span);
        self.boot.set(self.boot.get() + span);
        // The kernel takes the end of a sleep for a clock that was set.
        self.sets.set(self.sets.get() + 1);
        self.moved.notify_waiters();
        self.settle().await;
    }

    /// Waits, in true time, until the loop has done all there is to do; for a command to end as well, unless it is
    /// held.
    async fn settle(&self) {
        loop {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            if self.held.get() || !self.told.borrow().going_on {
                return;
            }
            tokio::time::sleep(ms(1)).await;
        }
    }

    /// Lets time pass, from one end of a sleep to the next.
    async fn live(&self, span: Duration) {
        let end = self.boot.get() + span;
        loop {
            self.settle().await;
            let sleepers = self.sleepers.borrow().values().copied().collect::<Vec<_>>();
            let next = sleepers.into_iter().map(|until| self.left(until)).min();
            let left = end.saturating_sub(self.boot.get());
            match next {
                Some(next) if next + LAG < left => self.pass(next + LAG),
                _ => {
                    self.pass(left);
                    return self.settle().await;
                }
            }
        }
    }

    async fn live_until(&self, wall: &str) {
        let span = (instant(wall) - self.wall.get()).to_std();
        self.live(span.expect("a later time")).await;
    }

    /// The firings that were started, as times of the day.
    fn fired(&self) -> Vec<String> {
        let told = self.told.borrow();
        let times = told.starts.iter().map(|(firing, _)| firing);
        times.map(|at| at.format("%H:%M:%S").to_string()).collect()
    }

    /// What was missed, as `NUMBER FIRST LAST`.
    fn missed(&self) -> Vec<String> {
        let show = |(number, first, last): &(u64, DateTime<Utc>, DateTime<Utc>)| {
            format!(
                "{number} {} {}",
                first.format("%H:%M"),
                last.format("%H:%M")
            )
        };
        self.told.borrow().missed.iter().map(show).collect()
    }

    /// No firing started twice or before its time.
    fn assert_sound(&self) {
        let mut seen = BTreeSet::new();
        for (firing, at) in &self.told.borrow().starts {
            assert!(at >= firing, "{firing} started early, at {at}");
            assert!(seen.insert(*firing), "{firing} started twice");
        }
    }
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse()
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Which clock the store has.
#[derive(Clone, Copy, PartialEq)]
enum StoreClock {
    /// that of the machine, as for the embedded store
    Same,
    /// one that nobody sets
    True,
}

/// A schedule on a machine, and what happens to it.
struct Trial<'a> {
    expr: &'a str,
    zone: &'a str,
    overlap: Overlap,
    command: Vec<OsString>,
    store_clock: StoreClock,
}

impl Default for Trial<'_> {
    fn default() -> Self {
        Self {
            expr: "* * * * *",
            zone: "UTC",
            overlap: Overlap::Skip,
            command: vec!["true".into()],
            store_clock: StoreClock::Same,
        }
    }
}

impl Trial<'_> {
    /// Runs the loop as long as `happens` does.
    fn run(&self, machine: &Rc<Machine>, happens: impl AsyncFnOnce(&Machine)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let inherited = Inherited::capture();
        let store = self.store(machine);
        let job = self.job(machine, &store, inherited.clone());
        runtime.block_on(async {
            let mut signals = Signals::install(&inherited).expect("signals");
            let plan = Plan {
                agenda: Agenda::new(self.schedule(), machine.wall(), TimeDelta::seconds(60)),
                start_deadline: secs(60),
                overlap: self.overlap,
                notifier: None,
            };
            tokio::select! {
                _ = schedule_mode::run(&job, plan, &mut signals) => panic!("the loop ended"),
                () = happens(machine) => {}
            }
        });
        machine.assert_sound();
    }

    fn schedule(&self) -> Schedule {
        let choice = ZoneChoice {
            db: &ZoneDb::new(None),
            given: Some(self.zone),
            tz_env: None,
        };
        Schedule::parse(&[self.expr.to_owned()], &choice, None).expect("a schedule")
    }

    fn store(&self, machine: &Rc<Machine>) -> MemoryStore {
        let (machine, clock) = (Rc::clone(machine), self.store_clock);
        let (wall, boot) = (machine.wall.get(), machine.boot.get());
        MemoryStore::new(Rc::new(move || {
            let wall = match clock {
                StoreClock::Same => machine.wall.get(),
                StoreClock::True => wall + machine.boot.get().saturating_sub(boot),
            };
            StoreTime {
                wall_us: wall.timestamp_micros(),
                lease_ms: i64::try_from(machine.boot.get().as_millis()).expect("near"),
            }
        }))
    }

    fn job<'a>(
        &self,
        machine: &'a Machine,
        store: &'a MemoryStore,
        inherited: Inherited,
    ) -> Job<'a> {
        Job {
            lock_name: "x".into(),
            clock: machine,
            store,
            listener: machine,
            timing: Timing::new(secs(30), secs(8)),
            on_lock_lost: OnLockLost::Stop,
            on_runner_lost: OnRunnerLost::Skip,
            keep: 86_400_000,
            info: Info::default(),
            run: RunPolicy {
                command: Spec {
                    argv: self.command.clone(),
                    shell: false,
                    env_set: Vec::new(),
                    env_remove: Vec::new(),
                    stdin: Stdin::Null,
                    placement: Placement::OwnGroup,
                    inherited,
                },
                timeout: None,
                kill_after: None,
                stop_signal: Signal::TERM,
                on_stop: OnStop::Forward,
                retries: 0,
                retry_delay: secs(1),
            },
            ahead: Cell::new(0),
            told_mark: Cell::new(false),
            told_differences: RefCell::new(HashSet::new()),
        }
    }
}

#[test]
fn a_night_asleep_is_one_late_firing_and_a_number_of_missed_ones() {
    let machine = Machine::new(instant("2026-05-13T20:03:00Z"));
    let trial = Trial {
        expr: "*/5 * * * *",
        ..Trial::default()
    };
    trial.run(&machine, async |machine| {
        machine.live_until("2026-05-13T20:11:00Z").await;
        // Awake 20 s after a firing, and an hour later 70 s after one.
        machine.suspend(secs(9 * 3600 + 4 * 60 + 20)).await;
        assert_eq!(machine.wall(), instant("2026-05-14T05:15:20Z"));
        machine.live_until("2026-05-14T05:26:00Z").await;
        machine.suspend(secs(5 * 60 + 10)).await;
        machine.live_until("2026-05-14T05:36:00Z").await;
    });
    let times = [
        "20:05:00", "20:10:00", "05:15:00", "05:20:00", "05:25:00", "05:35:00",
    ];
    assert_eq!(machine.fired(), times);
    assert_eq!(machine.missed(), ["108 20:15 05:10", "1 05:30 05:30"]);
    let told = machine.told.borrow();
    let late: Vec<_> = told
        .starts
        .iter()
        .map(|(firing, at)| (*at - *firing).num_seconds())
        .collect();
    assert_eq!(late, [0, 0, 20, 0, 0, 0]);
}

#[test]
fn timers_that_end_early_start_nothing_early() {
    let machine = Machine::new(instant("2026-05-13T10:00:01Z"));
    machine.early.set(TimeDelta::milliseconds(40));
    let trial = Trial {
        expr: "*/10 * * * * *",
        ..Trial::default()
    };
    trial.run(&machine, async |machine| machine.live(secs(120)).await);
    // The one a second before the start as well.
    assert_eq!(machine.fired().len(), 13, "{:?}", machine.fired());
    assert!(machine.missed().is_empty());
    // Asleep twice for each firing, and for the connection ahead of it.
    assert!(machine.sleeps.get() < 12 * 8, "{}", machine.sleeps.get());
}

#[test]
fn a_day_and_more_over_a_change_of_the_clocks_is_that_of_cron() {
    // Zone, change, fixed time around it, and its firings within 26 hours.
    let changes: [(&str, &str, &str, &[&str]); 4] = [
        (
            "America/New_York",
            "2026-03-08T07:00:00Z",
            "30 2 * * *",
            &["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"],
        ),
        (
            "America/New_York",
            "2026-11-01T06:00:00Z",
            "30 1 * * *",
            &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"],
        ),
        (
            "Australia/Lord_Howe",
            "2026-10-03T15:30:00Z",
            "15 2 * * *",
            &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
        ),
        (
            "Australia/Lord_Howe",
            "2026-04-04T15:00:00Z",
            "45 1 * * *",
            &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
        ),
    ];
    for (zone, change, fixed, firings) in changes {
        let start = instant(change) - TimeDelta::hours(1) + TimeDelta::seconds(10);
        let run = |expr: &str| {
            let machine = Machine::new(start);
            let trial = Trial {
                expr,
                zone,
                ..Trial::default()
            };
            trial.run(&machine, async |machine| {
                machine.live(secs(26 * 3600)).await;
            });
            assert!(machine.missed().is_empty(), "{expr} in {zone}");
            let told = machine.told.borrow();
            told.starts
                .iter()
                .map(|(firing, _)| *firing)
                .collect::<Vec<_>>()
        };
        let wanted: Vec<_> = firings.iter().map(|at| instant(at)).collect();
        assert_eq!(run(fixed), wanted, "{fixed} in {zone}");
        // Every offset is a multiple of the half hour: all quarters, in both passes, once each.
        let quarters = run("*/15 * * * *");
        let first = instant(change) - TimeDelta::minutes(45);
        let all: Vec<_> = (0..26 * 4)
            .map(|n| first + TimeDelta::minutes(15) * n)
            .collect();
        assert_eq!(quarters, all, "{zone}");
    }
}

/// A clock that is wrong for a while, against a store whose clock is right.
#[test]
fn a_clock_set_wrong_and_right_again_costs_nothing_later() {
    let mut random = 0x5eed_u64;
    let mut next = |below: i64| {
        // xorshift
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        i64::try_from(random >> 16).expect("48 bits") % below
    };
    let machine = Machine::new(instant("2026-05-13T00:00:30Z"));
    let trial = Trial {
        store_clock: StoreClock::True,
        ..Trial::default()
    };
    let mut right = Vec::new();
    let mut steps = Vec::new();
    for _ in 0..if long() { 200 } else { 12 } {
        let far = [3, 90, 3600, 9000][usize::try_from(next(4)).expect("an index")];
        steps.push((next(2 * far) - far, next(180), next(60)));
    }
    trial.run(&machine, async |machine| {
        for (by, wrong_for, more) in steps {
            machine.set_clock(TimeDelta::seconds(by)).await;
            machine
                .live(secs(u64::try_from(wrong_for).expect("a span")))
                .await;
            machine.set_clock(TimeDelta::seconds(-by)).await;
            // What fell due just before it was right again may be left out.
            let from = machine.wall();
            machine
                .live(secs(240 + u64::try_from(more).expect("a span")))
                .await;
            right.push((from, machine.wall(), by));
        }
    });
    let told = machine.told.borrow();
    for (from, to, by) in right {
        let mut at = from.timestamp() / 60 * 60 + 60;
        while at < to.timestamp() {
            let started = told
                .starts
                .iter()
                .any(|(firing, _)| firing.timestamp() == at);
            let at_text = DateTime::from_timestamp(at, 0).expect("near");
            assert!(
                started,
                "{at_text} did not start, after a step of {by} s was undone at {from}"
            );
            at += 60;
        }
    }
}

/// What falls due by a clock that is wrong does not count, as no other host has it due.
#[test]
fn a_clock_set_wrong_during_a_run_keeps_no_later_firing_back() {
    let machine = Machine::new(instant("2026-05-13T10:00:30Z"));
    let dir = tempfile::tempdir().expect("temporary directory");
    let go_on = dir.path().join("go-on");
    let script = format!("while [ ! -e {} ]; do sleep 0.01; done", go_on.display());
    let trial = Trial {
        store_clock: StoreClock::True,
        command: ["sh", "-c", &script].map(OsString::from).to_vec(),
        ..Trial::default()
    };
    trial.run(&machine, async |machine| {
        machine.held.set(true);
        machine.live_until("2026-05-13T10:02:10Z").await;
        machine.set_clock(TimeDelta::hours(2)).await;
        machine.live(secs(120)).await;
        machine.set_clock(TimeDelta::hours(-2)).await;
        machine.live(secs(10)).await;
        std::fs::write(&go_on, "").expect("a file");
        machine.held.set(false);
        machine.settle().await;
        machine.live_until("2026-05-13T10:08:30Z").await;
    });
    let times = ["10:01:00", "10:05:00", "10:06:00", "10:07:00", "10:08:00"];
    assert_eq!(machine.fired(), times);
    let overlapped = |skip: &&Skip| **skip == Skip::Overlapped;
    let told = machine.told.borrow();
    // 10:02 at the right time, 12:02 to 12:04 at the wrong one.
    assert_eq!(
        told.skips.iter().filter(overlapped).count(),
        4,
        "{:?}",
        told.skips
    );
}
