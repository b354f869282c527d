//! What a holder does in each phase, to the millisecond.

use std::time::Duration;

use solocron::lock::lease::KILL_AFTER;
use solocron::lock::{
    Action, BeatReply, Boot, Extent, Grant, Holder, Loss, Lost, Ms, OnLockLost, Timing,
};

use super::make::{LEASE, WALL, at, ms};

const TTL: Ms = 30_000;

pub fn grant() -> Grant {
    Grant {
        token: 7,
        attempt: 1,
        grants: 1,
        until: LEASE + TTL,
        started: WALL,
        mark: WALL,
    }
}

/// A lease of 30 s from 0: stop at 21,930, kill at 29,430, valid to 29,680.
fn holder(on_lost: OnLockLost) -> Holder {
    Holder::new(
        Timing::new(ms(30_000), KILL_AFTER),
        on_lost,
        &grant(),
        Duration::ZERO,
    )
}

pub fn good(until: Ms) -> BeatReply {
    BeatReply {
        held: Ok((LEASE + until, Extent::Extended)),
        mark: WALL,
        now: at(until - TTL),
        before: None,
    }
}

pub fn told(loss: Loss) -> BeatReply {
    BeatReply {
        held: Err(loss),
        ..good(0)
    }
}

/// Wakes as asked, each heartbeat failing after `fails_after`, until nothing
/// is left to do or `end`. Returns when it did what, without the heartbeats,
/// and how many of those there were.
fn outage(holder: &mut Holder, fails_after: u64, end: u64) -> (Vec<(Boot, Action)>, usize) {
    let mut done = Vec::new();
    let mut beats = 0;
    while let Some(now) = holder.wake_at()
        && now < ms(end)
    {
        for action in holder.on_time(now) {
            if action == Action::Beat {
                beats += 1;
                let failed = now + ms(fails_after);
                // Things to do before the heartbeat has failed come first.
                while let Some(wake) = holder.wake_at().filter(|wake| *wake < failed) {
                    done.extend(
                        holder
                            .on_time(wake)
                            .into_iter()
                            .map(|action| (wake, action)),
                    );
                }
                assert_eq!(holder.on_beat(now, None, failed), []);
            } else {
                done.push((now, action));
            }
        }
        if done.iter().any(|(_, action)| *action == Action::Kill) {
            break;
        }
    }
    (done, beats)
}

#[test]
fn a_heartbeat_every_third_of_the_lease() {
    let mut holder = holder(OnLockLost::Stop);
    for n in 1_u32..6 {
        let due = ms(10_000) * n;
        assert_eq!(holder.wake_at(), Some(due));
        assert_eq!(holder.on_time(due.saturating_sub(ms(1))), []);
        assert_eq!(holder.on_time(due), [Action::Beat]);
        let until = Ms::from(n) * 10_000 + TTL;
        assert_eq!(holder.on_beat(due, Some(&good(until)), due + ms(3)), []);
        assert_eq!(holder.valid_until(), due + ms(29_680));
        assert_eq!(holder.until_told(), LEASE + until);
    }
    assert_eq!(holder.lost(), None);
}

#[test]
fn without_an_answer_the_command_is_stopped_and_killed_in_time() {
    for (fails_after, beats) in [(1, 12), (500, 12), (2_000, 6)] {
        let mut holder = holder(OnLockLost::Stop);
        let (done, tried) = outage(&mut holder, fails_after, 60_000);
        let expected = [
            (ms(21_930), Action::Stop(Lost::NoAnswer)),
            (ms(29_430), Action::Kill),
        ];
        assert_eq!(done, expected, "{fails_after}");
        assert!(tried >= beats, "{tried} tries");
        assert_eq!(holder.lost(), Some(Lost::NoAnswer));
    }
}

#[test]
fn a_single_failed_heartbeat_is_nothing() {
    let mut holder = holder(OnLockLost::Stop);
    assert_eq!(holder.on_time(ms(10_000)), [Action::Beat]);
    assert_eq!(holder.on_beat(ms(10_000), None, ms(12_000)), []);
    assert_eq!(holder.wake_at(), Some(ms(12_100)));
    assert_eq!(holder.on_time(ms(12_100)), [Action::Beat]);
    assert_eq!(
        holder.on_beat(ms(12_100), Some(&good(42_100)), ms(12_105)),
        []
    );
    assert_eq!(holder.wake_at(), Some(ms(22_100)));
    assert_eq!(holder.lost(), None);
}

#[test]
fn told_that_it_is_lost_it_stops_at_once() {
    for loss in [Loss::Ended, Loss::Gone, Loss::Taken] {
        let mut holder = holder(OnLockLost::Stop);
        holder.on_time(ms(10_000));
        let lost = Lost::Told(loss);
        assert_eq!(
            holder.on_beat(ms(10_000), Some(&told(loss)), ms(10_010)),
            [Action::Stop(lost)]
        );
        assert_eq!(holder.lost(), Some(lost));
        assert!(!holder.may_start(ms(10_010)));
        // No more heartbeats; killed after two seconds.
        assert_eq!(holder.wake_at(), Some(ms(12_010)));
        assert_eq!(holder.on_time(ms(12_009)), []);
        assert_eq!(holder.on_time(ms(12_010)), [Action::Kill]);
        assert_eq!(holder.wake_at(), None);
        assert_eq!(holder.on_time(ms(60_000)), []);
    }
}

#[test]
fn told_while_stopping_it_kills_sooner_but_never_later() {
    for (told_at, kill_at) in [(22_000, 24_000), (29_000, 29_430)] {
        let mut holder = holder(OnLockLost::Stop);
        assert_eq!(outage(&mut holder, 2_000, 20_000).0, []);
        assert_eq!(holder.on_time(ms(20_500)), [Action::Beat]);
        let stop = [Action::Stop(Lost::NoAnswer)];
        assert_eq!(holder.on_time(ms(21_930)), stop);
        let lost = told(Loss::Taken);
        assert_eq!(holder.on_beat(ms(20_500), Some(&lost), ms(told_at)), []);
        assert_eq!(holder.wake_at(), Some(ms(kill_at)));
        assert_eq!(holder.on_time(ms(kill_at)), [Action::Kill]);
        assert_eq!(holder.lost(), Some(Lost::NoAnswer));
    }
}

#[test]
fn a_stop_is_not_taken_back_but_the_lease_is_kept_meanwhile() {
    let mut holder = holder(OnLockLost::Stop);
    holder.on_time(ms(10_000));
    holder.on_beat(ms(10_000), None, ms(21_900));
    assert_eq!(holder.on_time(ms(21_930)), [Action::Stop(Lost::NoAnswer)]);
    assert_eq!(holder.on_time(ms(22_000)), [Action::Beat]);
    assert_eq!(
        holder.on_beat(ms(22_000), Some(&good(52_000)), ms(22_005)),
        []
    );
    assert_eq!(holder.valid_until(), ms(51_680));
    assert_eq!(holder.wake_at(), Some(ms(29_430)));
    assert_eq!(holder.on_time(ms(29_430)), [Action::Kill]);
    // Until it is reaped.
    assert_eq!(holder.wake_at(), Some(ms(32_000)));
    assert_eq!(holder.on_time(ms(32_000)), [Action::Beat]);
}

/// A holder that did not run from before its first heartbeat until `now`.
fn slept(now: u64) -> Holder {
    let mut holder = holder(OnLockLost::Stop);
    assert_eq!(
        holder.on_time(ms(now)),
        [Action::Freeze, Action::Beat],
        "{now}"
    );
    holder
}

#[test]
fn woken_too_late_it_halts_the_command_and_asks() {
    for now in [21_930, 29_430, 29_680, 500_000] {
        let mut held = slept(now);
        assert_eq!(held.wake_at(), None);
        let until = Ms::try_from(now).unwrap() + TTL;
        assert_eq!(
            held.on_beat(ms(now), Some(&good(until)), ms(now + 9)),
            [Action::Thaw]
        );
        assert_eq!(held.wake_at(), Some(ms(now + 10_000)));
        assert_eq!(held.lost(), None);

        let mut refused = slept(now);
        let lost = Lost::Told(Loss::Taken);
        let actions = refused.on_beat(ms(now), Some(&told(Loss::Taken)), ms(now + 9));
        assert_eq!(actions, [Action::Stop(lost), Action::Kill]);
        assert_eq!((refused.wake_at(), refused.lost()), (None, Some(lost)));

        let mut unanswered = slept(now);
        let actions = unanswered.on_beat(ms(now), None, ms(now + 2_000));
        assert_eq!(actions, [Action::Stop(Lost::Overslept), Action::Kill]);
        assert_eq!(unanswered.lost(), Some(Lost::Overslept));
    }
}

#[test]
fn woken_before_the_stop_it_only_beats() {
    let mut holder = holder(OnLockLost::Stop);
    assert_eq!(holder.on_time(ms(21_929)), [Action::Beat]);
}

#[test]
fn a_heartbeat_sent_before_the_sleep_does_not_count_when_it_failed() {
    let mut holder = holder(OnLockLost::Stop);
    assert_eq!(holder.on_time(ms(10_000)), [Action::Beat]);
    assert_eq!(holder.on_time(ms(40_000)), [Action::Freeze]);
    assert_eq!(holder.on_beat(ms(10_000), None, ms(40_000)), []);
    assert_eq!(holder.wake_at(), Some(ms(40_000)));
    assert_eq!(holder.on_time(ms(40_000)), [Action::Beat]);
    assert_eq!(
        holder.on_beat(ms(40_000), Some(&good(70_000)), ms(40_010)),
        [Action::Thaw]
    );
}

#[test]
fn an_answer_from_before_the_sleep_is_not_enough() {
    let mut holder = holder(OnLockLost::Stop);
    holder.on_time(ms(10_000));
    holder.on_time(ms(40_000));
    // It arrived while nobody looked: valid to 39,680.
    assert_eq!(
        holder.on_beat(ms(10_000), Some(&good(40_000)), ms(40_000)),
        []
    );
    assert_eq!(holder.on_time(ms(40_000)), [Action::Beat]);
    assert_eq!(
        holder.on_beat(ms(40_000), Some(&good(70_000)), ms(40_010)),
        [Action::Thaw]
    );
}

#[test]
fn an_answer_looked_at_too_late_is_no_reason_to_stop() {
    // The loop may see what has arrived before it sees the time.
    for now in [31_930, 39_429, 39_430, 39_680, 90_000] {
        let mut holder = holder(OnLockLost::Stop);
        holder.on_time(ms(10_000));
        assert_eq!(holder.on_beat(ms(10_000), Some(&good(40_000)), ms(now)), []);
        assert_eq!(
            holder.on_time(ms(now)),
            [Action::Freeze, Action::Beat],
            "{now}"
        );
        let until = Ms::try_from(now).unwrap() + TTL;
        assert_eq!(
            holder.on_beat(ms(now), Some(&good(until)), ms(now + 1)),
            [Action::Thaw]
        );
    }
}

#[test]
fn a_failure_looked_at_past_the_lease_is_a_sleep_too() {
    for now in [29_430, 29_680, 90_000] {
        let mut holder = holder(OnLockLost::Stop);
        holder.on_time(ms(10_000));
        assert_eq!(holder.on_beat(ms(10_000), None, ms(now)), []);
        assert_eq!(holder.on_time(ms(now)), [Action::Freeze, Action::Beat]);
    }
}

#[test]
fn halted_it_goes_on_only_with_time_left_to_stop() {
    for (answered, thaws) in [(61_929, true), (61_930, false), (69_679, false)] {
        let mut holder = slept(40_000);
        let actions = holder.on_beat(ms(40_000), Some(&good(70_000)), ms(answered));
        assert_eq!(actions == [Action::Thaw], thaws, "{answered}");
    }
}

#[test]
fn a_second_sleep_while_halted_asks_once_more() {
    let mut holder = slept(40_000);
    // The answer came at once, but is looked at too late.
    assert_eq!(
        holder.on_beat(ms(40_000), Some(&good(70_000)), ms(80_000)),
        []
    );
    assert_eq!(holder.wake_at(), Some(ms(80_000)));
    assert_eq!(holder.on_time(ms(80_000)), [Action::Beat]);
    assert_eq!(
        holder.on_beat(ms(80_000), Some(&good(110_000)), ms(80_010)),
        [Action::Thaw]
    );
}

#[test]
fn a_late_reply_never_moves_the_lease_back() {
    let mut holder = holder(OnLockLost::Stop);
    holder.on_time(ms(10_000));
    holder.on_beat(ms(10_000), None, ms(12_000));
    holder.on_time(ms(12_100));
    holder.on_beat(ms(12_100), Some(&good(42_100)), ms(12_110));
    let valid = holder.valid_until();
    holder.on_beat(ms(10_000), Some(&good(40_000)), ms(12_200));
    assert_eq!(holder.valid_until(), valid);
    let failed = holder.valid_until();
    holder.on_beat(ms(12_100), None, ms(12_300));
    assert_eq!(holder.valid_until(), failed);
}

#[test]
fn the_lease_counts_from_the_request_not_from_its_answer() {
    let mut holder = holder(OnLockLost::Stop);
    holder.on_time(ms(10_000));
    holder.on_beat(ms(10_000), Some(&good(40_000)), ms(11_990));
    assert_eq!(holder.valid_until(), ms(39_680));
    assert_eq!(holder.wake_at(), Some(ms(20_000)));
}

#[test]
fn the_highest_mark_told_is_remembered() {
    let mut holder = holder(OnLockLost::Stop);
    for (mark, expected) in [
        (WALL + 5, WALL + 5),
        (WALL + 2, WALL + 5),
        (WALL + 9, WALL + 9),
    ] {
        let reply = BeatReply {
            mark,
            ..good(40_000)
        };
        holder.on_beat(ms(10_000), Some(&reply), ms(10_001));
        assert_eq!(holder.mark_told(), expected);
    }
}

#[test]
fn a_slow_grant_beats_before_the_start() {
    let mut holder = holder(OnLockLost::Stop);
    assert!(holder.may_start(ms(18_930)));
    assert!(!holder.may_start(ms(18_931)));
    // The first heartbeat may still be due later, as after a short lease.
    holder.beat_now(ms(5_000));
    assert_eq!(holder.wake_at(), Some(ms(5_000)));
    assert_eq!(holder.on_time(ms(5_000)), [Action::Beat]);
    // Not twice.
    holder.beat_now(ms(5_001));
    assert_eq!(holder.on_time(ms(5_001)), []);
    holder.on_beat(ms(5_000), Some(&good(35_000)), ms(5_002));
    assert!(holder.may_start(ms(5_000 + 18_930)));
}

#[test]
fn told_to_continue_the_command_runs_on() {
    let mut holder = holder(OnLockLost::Continue);
    let (done, _) = outage(&mut holder, 2_000, 35_000);
    assert_eq!(done, [(ms(29_680), Action::RunOn(Lost::NoAnswer))]);
    assert_eq!(holder.lost(), Some(Lost::NoAnswer));
    // It goes on asking, and holds the lock again when nobody came.
    let now = holder.wake_at().unwrap();
    assert_eq!(holder.on_time(now), [Action::Beat]);
    assert_eq!(holder.on_beat(now, Some(&good(70_000)), now + ms(1)), []);
    assert_eq!(holder.wake_at(), Some(now + ms(10_000)));
    assert_eq!(holder.valid_until(), now + ms(29_680));
    // And says so when it is lost again.
    let (done, _) = outage(&mut holder, 2_000, 90_000);
    let again = [(now + ms(29_680), Action::RunOn(Lost::NoAnswer))];
    assert_eq!(done, again);
}

#[test]
fn told_to_continue_it_neither_halts_nor_stops() {
    let mut slept = holder(OnLockLost::Continue);
    assert_eq!(
        slept.on_time(ms(500_000)),
        [Action::RunOn(Lost::NoAnswer), Action::Beat]
    );
    let mut lost = holder(OnLockLost::Continue);
    lost.on_time(ms(10_000));
    let told_so = Lost::Told(Loss::Taken);
    assert_eq!(
        lost.on_beat(ms(10_000), Some(&told(Loss::Taken)), ms(10_010)),
        [Action::RunOn(told_so)]
    );
    assert_eq!((lost.wake_at(), lost.lost()), (None, Some(told_so)));
    assert_eq!(lost.on_time(ms(90_000)), []);
}
