//! What follows from the length of a lease.

use std::time::Duration;

use proptest::prelude::*;
use solocron::lock::lease::{KILL_AFTER, LOST_GRACE_MAX};
use solocron::lock::{Boot, Timing};

use super::make::ms;

const ZERO: Boot = Duration::ZERO;

/// The spans in milliseconds, rounded down.
struct Row {
    ttl: u64,
    grace: u64,
    margin: u64,
    beat_every: u64,
    beat_timeout: u64,
    beat_retry: u64,
    valid: u64,
    stop: u64,
    kill: u64,
    survives: u64,
}

const TABLE: [Row; 7] = [
    Row {
        ttl: 1_000,
        grace: 250,
        margin: 50,
        beat_every: 333,
        beat_timeout: 100,
        beat_retry: 100,
        valid: 970,
        stop: 670,
        kill: 920,
        survives: 226,
    },
    Row {
        ttl: 2_000,
        grace: 500,
        margin: 100,
        beat_every: 666,
        beat_timeout: 200,
        beat_retry: 200,
        valid: 1_960,
        stop: 1_360,
        kill: 1_860,
        survives: 473,
    },
    Row {
        ttl: 3_000,
        grace: 750,
        margin: 150,
        beat_every: 1_000,
        beat_timeout: 300,
        beat_retry: 300,
        valid: 2_950,
        stop: 2_050,
        kill: 2_800,
        survives: 720,
    },
    Row {
        ttl: 6_000,
        grace: 1_500,
        margin: 250,
        beat_every: 2_000,
        beat_timeout: 600,
        beat_retry: 600,
        valid: 5_920,
        stop: 4_170,
        kill: 5_670,
        survives: 1_510,
    },
    Row {
        ttl: 30_000,
        grace: 7_500,
        margin: 250,
        beat_every: 10_000,
        beat_timeout: 2_000,
        beat_retry: 1_000,
        valid: 29_680,
        stop: 21_930,
        kill: 29_430,
        survives: 9_830,
    },
    Row {
        ttl: 60_000,
        grace: 8_000,
        margin: 250,
        beat_every: 20_000,
        beat_timeout: 2_000,
        beat_retry: 1_000,
        valid: 59_380,
        stop: 51_130,
        kill: 59_130,
        survives: 29_030,
    },
    Row {
        ttl: 120_000,
        grace: 8_000,
        margin: 250,
        beat_every: 40_000,
        beat_timeout: 2_000,
        beat_retry: 1_000,
        valid: 118_780,
        stop: 110_530,
        kill: 118_530,
        survives: 68_430,
    },
];

#[test]
fn the_spans_of_common_leases() {
    for row in TABLE {
        let timing = Timing::new(ms(row.ttl), KILL_AFTER);
        let valid = timing.valid_until(ZERO);
        let found = [
            timing.ttl,
            timing.grace,
            timing.margin,
            timing.beat_every,
            timing.beat_timeout,
            timing.beat_retry,
            valid,
            timing.stop_at(valid),
            timing.kill_at(valid),
            timing.survives(),
        ];
        let expected = [
            row.ttl,
            row.grace,
            row.margin,
            row.beat_every,
            row.beat_timeout,
            row.beat_retry,
            row.valid,
            row.stop,
            row.kill,
            row.survives,
        ];
        assert_eq!(found.map(|span| span.as_millis()), expected.map(u128::from));
    }
}

#[test]
fn outages_that_are_always_survived_are_about_as_long_as_documented() {
    for (ttl, about) in [(30, 10.0), (60, 30.0), (120, 69.0)] {
        let survives = Timing::new(Duration::from_secs(ttl), KILL_AFTER).survives();
        assert!(
            (survives.as_secs_f64() - about).abs() <= 1.0,
            "{survives:?}"
        );
    }
}

#[test]
fn a_lost_lock_leaves_little_time() {
    for (ttl, kill_after, grace) in [
        (60_000, 8_000, 2_000),
        (60_000, 500, 500),
        (4_000, 8_000, 1_000),
        (60_000, 0, 0),
    ] {
        assert_eq!(Timing::new(ms(ttl), ms(kill_after)).lost_grace(), ms(grace));
    }
    assert_eq!(LOST_GRACE_MAX, ms(2_000));
}

#[test]
fn a_command_starts_only_with_enough_lease_left() {
    let timing = Timing::new(ms(30_000), KILL_AFTER);
    // 29,680 less 7,500 of grace, 250 of margin, and a tenth of the ttl.
    assert!(timing.may_start(timing.valid_until(ZERO), ms(18_930)));
    assert!(!timing.may_start(timing.valid_until(ZERO), ms(18_931)));
}

#[test]
fn a_failed_heartbeat_is_tried_again_soon_but_not_at_once() {
    let timing = Timing::new(ms(30_000), KILL_AFTER);
    for (sent, failed, again) in [
        (0, 5, 1_000),
        (0, 900, 1_000),
        (0, 950, 1_050),
        (0, 2_000, 2_100),
    ] {
        assert_eq!(timing.retry_at(ms(sent), ms(failed)), ms(again));
    }
}

/// Leases of a second to a day, and any patience with the command.
fn timings() -> impl Strategy<Value = Timing> {
    let ttl = prop_oneof![
        1_000_u64..5_000,
        5_000_u64..300_000,
        300_000_u64..86_400_000
    ];
    (ttl, 0_u64..100_000).prop_map(|(ttl, kill_after)| Timing::new(ms(ttl), ms(kill_after)))
}

proptest! {
    #[test]
    fn everything_comes_in_its_order(timing in timings(), sent in 0_u64..1_000_000_000) {
        let sent = ms(sent);
        let valid = timing.valid_until(sent);
        let beat = sent + timing.beat_every;
        let (stop, kill) = (timing.stop_at(valid), timing.kill_at(valid));
        prop_assert!(sent < beat && beat < stop && stop <= kill && kill < valid);
        prop_assert!(valid < sent + timing.ttl);
        // A heartbeat that fails leaves time for another before the stop.
        let second = timing.retry_at(beat, beat + timing.beat_timeout);
        prop_assert!(second + timing.beat_timeout < stop);
        prop_assert!(!timing.survives().is_zero());
        // A fresh grant may be used.
        prop_assert!(timing.may_start(valid, sent + timing.beat_timeout));
        // Nothing starts that would have to be stopped before it began.
        prop_assert!(!timing.may_start(valid, stop));
        prop_assert!(timing.lost_grace() <= timing.grace);
        prop_assert!(timing.grace <= KILL_AFTER.max(timing.grace) && timing.grace <= timing.ttl / 4);
    }

    /// The store's clock may run faster than the host's by a hundredth, and
    /// show whole milliseconds: the lease still outlives the command.
    #[test]
    fn clocks_may_run_apart_by_a_hundredth(timing in timings()) {
        let valid = timing.valid_until(ZERO).as_secs_f64();
        prop_assert!(valid / 0.99 + 0.001 < timing.ttl.as_secs_f64());
        prop_assert!(valid * 1.01 + 0.001 < timing.ttl.as_secs_f64());
    }
}
