//! Every promise about the lock, in every order of events: the production
//! rules, claimant and holder, explored breadth first.

mod events;
mod explore;
mod instance;
mod promises;
mod requests;
mod rules;
mod setup;
mod step;
mod store;
mod trace;
mod world;

use explore::explore;
use rules::{
    BlindDelete, DeleteMine, GrantsAfterFree, HealsLate, HealsOver, LeaseFromReply, MarkCleared,
    NoStop, NoVoid, NotIdempotent, Production, Rules, UnsureMarks,
};
use setup::{Faults, QUEUE, RERUN, Role, SKIP, Setup, host};
use solocron::lock::{OnLockLost, Wait};

fn holds(name: &str, setup: &Setup) {
    let start = std::time::Instant::now();
    let found = explore(setup, &Production);
    println!("{name}: {} worlds in {:?}", found.worlds, start.elapsed());
    assert!(found.broken.is_none(), "{}", found.story());
}

/// `short`, or `long` with `SOLOCRON_LONG=1`.
fn bound(short: u8, long: u8) -> u8 {
    let long_wanted = std::env::var_os("SOLOCRON_LONG").is_some_and(|value| value == "1");
    if long_wanted { long } else { short }
}

fn finds(name: &str, setup: &Setup, rules: &dyn Rules, promise: &str) {
    holds(name, setup);
    let found = explore(setup, rules);
    let (what, _) = found.broken.as_ref().expect("the fault is not found");
    assert!(what.contains(promise), "{}", found.story());
    println!(
        "{name}, found in {} worlds: {}",
        found.worlds,
        found.story()
    );
}

const NONE: Faults = Faults {
    total: 0,
    slow: 0,
    twice: 0,
    crash: 0,
    pause: 0,
    stop: 0,
    cut: 0,
    back: 0,
    wipe: 0,
    rollback: 0,
};

/// The policies, each with how many faults are explored at once: as many as
/// the states that its claimants pass through allow.
fn policies(short: u8, long: u8) -> [(Role, u8); 3] {
    [
        (SKIP, bound(short, long)),
        (RERUN, bound(short.min(1), long)),
        (QUEUE, bound(short.min(1), long.min(2))),
    ]
}

/// Explores one kind of trouble under each policy.
fn explore_policies(
    name: &str,
    (short, long): (u8, u8),
    faults: Faults,
    change: impl Fn(&mut Setup),
) {
    for (role, total) in policies(short, long) {
        let mut setup = Setup::new(role);
        setup.faults = Faults { total, ..faults };
        change(&mut setup);
        holds(name, &setup);
    }
}

#[test]
fn without_a_fault_each_firing_starts_once() {
    explore_policies("no fault", (0, 0), NONE, |setup| {
        setup.must_start = vec![0, 1];
    });
}

#[test]
fn a_message_that_is_late_lost_or_doubled_costs_no_firing() {
    let faults = Faults {
        slow: 1,
        twice: 1,
        ..NONE
    };
    explore_policies("one message", (1, 1), faults, |setup| {
        setup.must_start = vec![0, 1];
    });
}

#[test]
fn messages_are_late_lost_and_doubled() {
    let faults = Faults {
        slow: 2,
        twice: 2,
        ..NONE
    };
    explore_policies("messages", (2, 3), faults, |_| {});
}

#[test]
fn replies_that_timed_out_are_seen_all_the_same() {
    let faults = Faults {
        slow: 2,
        twice: 1,
        ..NONE
    };
    explore_policies("late replies", (1, 3), faults, |setup| {
        setup.late_replies = true;
    });
}

#[test]
fn instances_die() {
    let faults = Faults {
        slow: 1,
        crash: 2,
        ..NONE
    };
    explore_policies("crash", (2, 3), faults, |_| {});
}

#[test]
fn instances_are_cut_off() {
    let faults = Faults {
        slow: 1,
        cut: 2,
        crash: 1,
        ..NONE
    };
    explore_policies("cut", (1, 2), faults, |_| {});
}

#[test]
fn instances_are_paused() {
    let faults = Faults {
        slow: 1,
        pause: 2,
        crash: 1,
        ..NONE
    };
    explore_policies("pause", (1, 2), faults, |_| {});
}

#[test]
fn two_instances_have_all_kinds_of_trouble() {
    let faults = Faults {
        slow: 1,
        twice: 1,
        crash: 1,
        pause: 1,
        stop: 1,
        cut: 1,
        wipe: 1,
        rollback: 1,
        back: 1,
        ..NONE
    };
    explore_policies("trouble", (1, 2), faults, |setup| {
        setup.hosts.truncate(2);
        setup.end = 16_000;
    });
}

#[test]
fn instances_are_told_to_stop() {
    let faults = Faults {
        slow: 1,
        twice: 1,
        stop: 2,
        ..NONE
    };
    explore_policies("stop", (1, 3), faults, |setup| setup.step = 2_000);
}

#[test]
fn the_store_loses_the_record() {
    let faults = Faults {
        slow: 1,
        wipe: 1,
        rollback: 1,
        crash: 1,
        pause: 1,
        cut: 1,
        ..NONE
    };
    explore_policies("loss", (1, 2), faults, |_| {});
}

#[test]
fn the_store_loses_the_record_twice() {
    let faults = Faults {
        wipe: 1,
        rollback: 1,
        slow: 1,
        ..NONE
    };
    explore_policies("losses", (2, 3), faults, |_| {});
}

#[test]
fn the_stores_clock_is_set_back() {
    let faults = Faults {
        back: 1,
        slow: 1,
        crash: 1,
        stop: 1,
        pause: 1,
        ..NONE
    };
    // Within a lease, and further than it is long.
    for by in [3_000, 3_600_000] {
        explore_policies("set back", (1, 2), faults, |setup| setup.set_back = by);
    }
}

#[test]
fn host_clocks_are_seconds_apart() {
    let faults = Faults {
        slow: 1,
        twice: 1,
        wipe: 1,
        stop: 1,
        ..NONE
    };
    explore_policies("skew", (1, 2), faults, |setup| {
        setup.hosts[0].skew = 3_000;
        setup.hosts[1].skew = -1_000;
        setup.hosts[2].skew = -3_000;
    });
}

#[test]
fn host_clocks_run_apart_by_a_hundredth() {
    let faults = Faults {
        slow: 1,
        cut: 1,
        pause: 1,
        ..NONE
    };
    explore_policies("drift", (1, 2), faults, |setup| {
        setup.hosts[0].rate = 990;
        setup.hosts[1].rate = 1010;
        setup.hosts[2].rate = 990;
    });
}

#[test]
fn runs_without_schedule_share_the_lock() {
    let faults = Faults {
        slow: 1,
        twice: 1,
        crash: 1,
        stop: 1,
        wipe: 1,
        pause: 1,
        ..NONE
    };
    explore_policies("once", (1, 2), faults, |setup| {
        let waits = |at, wait| Role::Once {
            at,
            wait,
            per: None,
        };
        setup.hosts[1] = host(waits(4_500, Wait::Forever), 0);
        setup.hosts[2] = host(waits(4_600, Wait::No), 0);
    });
}

#[test]
fn a_period_has_one_start() {
    let faults = Faults {
        slow: 1,
        twice: 1,
        crash: 1,
        stop: 1,
        wipe: 1,
        pause: 1,
        ..NONE
    };
    let mut setup = Setup::new(SKIP);
    let wait = Wait::For(std::time::Duration::from_secs(3));
    for (i, at) in [(0, 4_500), (1, 4_600), (2, 6_500)] {
        let per = Some(24_000);
        setup.hosts[i] = host(Role::Once { at, wait, per }, 0);
    }
    setup.faults = Faults {
        total: bound(1, 2),
        ..faults
    };
    holds("period", &setup);
    // One of them is by hand, and leaves the period alone.
    setup.hosts[1].role = Role::Once {
        at: 4_600,
        wait,
        per: None,
    };
    holds("period and by hand", &setup);
}

#[test]
fn a_command_may_run_on_without_its_lock() {
    let faults = Faults {
        slow: 1,
        cut: 1,
        pause: 1,
        wipe: 1,
        ..NONE
    };
    explore_policies("continue", (1, 2), faults, |setup| {
        setup.on_lost = OnLockLost::Continue;
    });
}

/// The second firing is later than any lease that a host left behind.
fn later_firing(setup: &mut Setup) {
    setup.firings = [5_000, 17_000];
    setup.faults_until = 14_000;
    setup.end = 26_000;
    setup.must_start = vec![1];
}

#[test]
fn nobody_is_needed() {
    let faults = Faults {
        slow: 1,
        twice: 1,
        crash: 2,
        pause: 1,
        stop: 1,
        cut: 1,
        wipe: 1,
        rollback: 1,
        ..NONE
    };
    explore_policies("nobody", (1, 2), faults, later_firing);
}

#[test]
fn all_but_one_die() {
    let faults = Faults {
        crash: 2,
        slow: 1,
        ..NONE
    };
    explore_policies("all but one", (2, 3), faults, later_firing);
}

#[test]
fn a_firing_whose_runner_died_starts_again() {
    let mut setup = Setup::new(RERUN);
    later_firing(&mut setup);
    // Whoever watches over the first leaves it when the second falls due.
    setup.firings[1] = 22_000;
    setup.end = 30_000;
    setup.must_rerun = true;
    setup.max_age = 2_000;
    setup.faults_until = 9_000;
    setup.faults = Faults {
        total: bound(2, 3),
        slow: 1,
        crash: 2,
        ..NONE
    };
    holds("rerun", &setup);
    // The only one that is left asks when the lease is over, and one of its
    // messages is late.
    setup.hosts.truncate(2);
    setup.faults_until = 11_500;
    setup.faults = Faults {
        total: 2,
        slow: 1,
        crash: 1,
        ..NONE
    };
    holds("rerun by the last", &setup);
}

#[test]
fn seed_blind_delete() {
    finds("blind delete", &Setup::new(SKIP), &BlindDelete, "one start");
    finds("delete mine", &Setup::new(SKIP), &DeleteMine, "one start");
}

#[test]
fn seed_lease_from_reply() {
    let mut setup = Setup::new(SKIP);
    setup.hosts.truncate(2);
    setup.end = 12_500;
    setup.faults = Faults {
        total: 2,
        pause: 1,
        cut: 1,
        ..NONE
    };
    finds(
        "lease from reply",
        &setup,
        &LeaseFromReply,
        "stopped before",
    );
}

#[test]
fn seed_no_stop() {
    let mut setup = Setup::new(SKIP);
    setup.faults = Faults {
        total: 1,
        cut: 1,
        ..NONE
    };
    finds("no stop", &setup, &NoStop, "stopped before");
}

#[test]
fn seed_mark_cleared() {
    finds("mark cleared", &Setup::new(SKIP), &MarkCleared, "one start");
}

#[test]
fn seed_heals_late() {
    let mut setup = Setup::new(SKIP);
    later_firing(&mut setup);
    setup.hosts.truncate(2);
    setup.faults = Faults {
        total: 3,
        slow: 1,
        crash: 1,
        wipe: 1,
        ..NONE
    };
    finds("heals late", &setup, &HealsLate, "nobody is needed");
}

#[test]
fn seed_heals_over() {
    let mut setup = Setup::new(SKIP);
    setup.faults = Faults {
        total: 2,
        slow: 1,
        wipe: 1,
        ..NONE
    };
    finds("heals over", &setup, &HealsOver, "stopped before");
}

#[test]
fn seed_not_idempotent() {
    let mut setup = Setup::new(SKIP);
    setup.faults = Faults {
        total: 1,
        slow: 1,
        ..NONE
    };
    setup.hosts = vec![host(SKIP, 0), host(SKIP, 40), host(SKIP, 20)];
    setup.must_start = vec![0];
    finds("not idempotent", &setup, &NotIdempotent, "nobody is needed");
}

#[test]
fn seed_no_void() {
    let mut setup = Setup::new(SKIP);
    setup.hosts.truncate(2);
    setup.faults = Faults {
        total: 2,
        slow: 1,
        stop: 1,
        ..NONE
    };
    finds("no void", &setup, &NoVoid, "granted although");
}

#[test]
fn seed_unsure_marks() {
    let mut setup = Setup::new(SKIP);
    setup.hosts = vec![host(SKIP, -2_500), host(RERUN, -3_000), host(SKIP, -4_000)];
    setup.must_start = vec![0];
    finds("unsure marks", &setup, &UnsureMarks, "nobody is needed");
}

#[test]
fn seed_grants_after_free() {
    let mut setup = Setup::new(SKIP);
    setup.faults = Faults {
        total: 1,
        slow: 1,
        twice: 1,
        ..NONE
    };
    finds(
        "grants after free",
        &setup,
        &GrantsAfterFree,
        "granted although",
    );
}
