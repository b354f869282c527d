//! A holder under random outages, sleeps and answers.

use std::time::Duration;

use proptest::prelude::*;
use solocron::lock::{Action, Boot, Holder, Loss, Ms, OnLockLost, Timing};

use super::holder::{good, grant, told};
use super::make::ms;

/// What becomes of one heartbeat.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Good,
    Lost(Loss),
    Fails,
}

#[derive(Clone, Debug)]
struct Happening {
    fate: Fate,
    /// After how long, in thousandths of the time a heartbeat may take.
    after: u32,
    /// How long the process oversleeps, in thousandths of the lease.
    sleeps: u32,
}

fn happenings(sleeps: impl Strategy<Value = u32> + Clone) -> impl Strategy<Value = Vec<Happening>> {
    let fate = prop_oneof![
        6 => Just(Fate::Good),
        6 => Just(Fate::Fails),
        1 => Just(Fate::Lost(Loss::Taken)),
        1 => Just(Fate::Lost(Loss::Gone)),
    ];
    let one = (fate, 0_u32..=1_000, sleeps).prop_map(|(fate, after, sleeps)| Happening {
        fate,
        after,
        sleeps,
    });
    prop::collection::vec(one, 1..40)
}

fn timings() -> impl Strategy<Value = Timing> {
    (1_000_u64..200_000, 0_u64..20_000).prop_map(|(ttl, grace)| Timing::new(ms(ttl), ms(grace)))
}

/// The loop around a holder, as the supervisor has it.
struct Run {
    holder: Holder,
    now: Boot,
    seen: Vec<(Boot, Action)>,
}

impl Run {
    fn new(timing: Timing, on_lost: OnLockLost) -> Self {
        Self {
            holder: Holder::new(timing, on_lost, &grant(), Duration::ZERO),
            now: Duration::ZERO,
            seen: Vec::new(),
        }
    }

    /// Does what is due now. Fails if that never ends.
    fn on_time(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..5 {
            if self.holder.wake_at().is_none_or(|at| at > self.now) {
                return Ok(());
            }
            let before = self.holder.clone();
            let actions = self.holder.on_time(self.now);
            prop_assert_ne!(&before, &self.holder, "woken for nothing");
            self.seen
                .extend(actions.into_iter().map(|action| (self.now, action)));
        }
        Err(TestCaseError::fail("always something to do"))
    }

    fn beat_in_flight(&self) -> Option<Boot> {
        let beats = self.seen.iter().rev();
        beats
            .into_iter()
            .find(|(_, action)| *action == Action::Beat)
            .map(|(at, _)| *at)
    }

    /// Runs to the end of the next heartbeat; false if there is none.
    fn step(&mut self, timing: &Timing, what: &Happening) -> Result<bool, TestCaseError> {
        let seen = self.seen.len();
        while !self.seen[seen..]
            .iter()
            .any(|(_, action)| *action == Action::Beat)
        {
            let Some(wake) = self.holder.wake_at() else {
                return Ok(false);
            };
            self.now = self.now.max(wake) + timing.ttl * what.sleeps / 1_000;
            self.on_time()?;
        }
        let sent = self.beat_in_flight().unwrap();
        let answered = sent + timing.beat_timeout * what.after / 1_000;
        while let Some(wake) = self.holder.wake_at().filter(|wake| *wake < answered) {
            self.now = self.now.max(wake);
            self.on_time()?;
        }
        self.now = self.now.max(answered);
        let valid = self.holder.valid_until();
        let until = Ms::try_from((sent + timing.ttl).as_millis()).unwrap();
        let reply = match what.fate {
            Fate::Good => Some(good(until)),
            Fate::Lost(loss) => Some(told(loss)),
            Fate::Fails => None,
        };
        let actions = self.holder.on_beat(sent, reply.as_ref(), self.now);
        self.seen
            .extend(actions.into_iter().map(|action| (self.now, action)));
        prop_assert!(self.holder.valid_until() >= valid, "the lease moved back");
        if matches!(what.fate, Fate::Fails) {
            prop_assert_eq!(self.holder.valid_until(), valid);
        }
        self.on_time()?;
        Ok(true)
    }

    fn first(&self, wanted: impl Fn(Action) -> bool) -> Option<Boot> {
        self.seen
            .iter()
            .find(|(_, action)| wanted(*action))
            .map(|(at, _)| *at)
    }

    fn count(&self, wanted: impl Fn(Action) -> bool) -> usize {
        self.seen
            .iter()
            .filter(|(_, action)| wanted(*action))
            .count()
    }
}

const fn is_stop(action: Action) -> bool {
    matches!(action, Action::Stop(_))
}

fn is_kill(action: Action) -> bool {
    action == Action::Kill
}

/// Heartbeats go wrong from the first on until just before the documented
/// time has passed; the first fails sooner or later, the others take their time.
#[test]
fn the_longest_outage_is_survived_at_its_worst_moment() {
    for ttl in [1_000, 2_000, 3_000, 6_000, 30_000, 60_000, 120_000] {
        let timing = Timing::new(ms(ttl), ms(8_000));
        let end = timing.beat_every + timing.survives();
        for after in 0..=1_000 {
            let mut run = Run::new(timing, OnLockLost::Stop);
            let mut what = Happening {
                fate: Fate::Fails,
                after,
                sleeps: 0,
            };
            while run.holder.wake_at().is_some_and(|at| at < end) {
                run.step(&timing, &what).unwrap();
                what.after = 1_000;
            }
            what = Happening {
                fate: Fate::Good,
                after: 0,
                sleeps: 0,
            };
            run.step(&timing, &what).unwrap();
            assert_eq!(run.count(is_stop), 0, "ttl {ttl}, {after}");
        }
    }
}

proptest! {
    /// Awake, the command is stopped and killed before its lease can lapse,
    /// whatever the store answers.
    #[test]
    fn the_command_never_outlives_its_lease(
        timing in timings(),
        happenings in happenings(Just(0)),
    ) {
        let mut run = Run::new(timing, OnLockLost::Stop);
        for what in &happenings {
            let more = run.step(&timing, what)?;
            let killed = run.first(is_kill);
            if killed.is_none() && run.first(is_stop).is_none() {
                prop_assert!(run.now <= timing.stop_at(run.holder.valid_until()));
            }
            if !more || killed.is_some() {
                break;
            }
        }
        // Nothing is answered any more.
        let end = run.holder.valid_until();
        while run.first(is_kill).is_none()
            && run.step(&timing, &Happening { fate: Fate::Fails, after: 1_000, sleeps: 0 })? {}
        let stopped = run.first(is_stop).expect("stopped");
        let killed = run.first(is_kill).expect("killed");
        prop_assert!(stopped <= killed && killed <= timing.kill_at(end.max(run.holder.valid_until())));
        prop_assert!(killed <= stopped + timing.grace + Duration::from_micros(1));
        prop_assert_eq!(run.count(|action| action == Action::Freeze), 0);
        prop_assert!(run.holder.lost().is_some());
    }

    /// However long it sleeps in between: each thing is done once, in order,
    /// and a halted command never runs past its lease unasked.
    #[test]
    fn a_sleeping_holder_does_each_thing_once(
        timing in timings(),
        happenings in happenings(prop_oneof![3 => Just(0_u32), 1 => 0_u32..3_000]),
        continues in prop::bool::ANY,
    ) {
        let on_lost = if continues { OnLockLost::Continue } else { OnLockLost::Stop };
        let mut run = Run::new(timing, on_lost);
        for what in &happenings {
            if !run.step(&timing, what)? {
                break;
            }
        }
        prop_assert!(run.count(is_stop) <= 1);
        prop_assert!(run.count(is_kill) <= 1);
        let mut halted = false;
        let mut over = false;
        for (at, action) in &run.seen {
            match action {
                Action::Freeze => {
                    prop_assert!(!halted && !over, "{at:?}");
                    halted = true;
                }
                Action::Thaw => {
                    prop_assert!(halted && !over, "{at:?}");
                    halted = false;
                }
                Action::Stop(_) => over = true,
                Action::Kill => prop_assert!(over),
                Action::Beat => {}
                Action::RunOn(_) => prop_assert!(continues),
            }
        }
        prop_assert!(!continues || !halted && !over);
    }

    /// An outage shorter than documented never stops the command, wherever it
    /// begins and however requests fail meanwhile.
    #[test]
    fn a_short_outage_is_survived(
        timing in timings(),
        begins in 0_u32..2_000,
        length in 0_u32..1_000,
        fails in prop::collection::vec(prop_oneof![Just(1_000_u32), 0_u32..=1_000], 64),
    ) {
        let mut run = Run::new(timing, OnLockLost::Stop);
        let begin = timing.ttl * begins / 1_000;
        let end = begin + timing.survives() * length / 1_000;
        for after in fails {
            let next = run.holder.wake_at().unwrap();
            let down = next >= begin && next < end;
            let (fate, after) = if down { (Fate::Fails, after) } else { (Fate::Good, 0) };
            run.step(&timing, &Happening { fate, after, sleeps: 0 })?;
            prop_assert_eq!(run.count(is_stop), 0, "at {:?}", run.now);
        }
    }
}
