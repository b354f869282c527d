//! Heartbeats and releases.

use solocron::lock::rules;
use solocron::lock::{
    Beat, Extent, Free, FreeReply, Loss, Ms, Outcome, Owner, Record, State, Verdict,
};

use super::make::*;

fn beats(before: Option<&Record>, beat: &Beat, now: Ms) -> (Result<Extent, Loss>, Option<Record>) {
    let applied = rules::beat(before, beat, at(now));
    assert_eq!(applied.reply.before.as_ref(), before);
    if let Ok((until, _)) = applied.reply.held {
        let written = applied.write.as_ref().expect("an extension is written");
        assert_eq!((until, written.until), (LEASE + now + beat.ttl, until));
        assert_eq!(applied.reply.mark, written.mark);
    }
    (applied.reply.held.map(|(_, extent)| extent), applied.write)
}

fn frees(before: Option<&Record>, free: &Free, now: Ms) -> (FreeReply, Option<Record>) {
    let applied = rules::free(before, free, at(now));
    (applied.reply, applied.write)
}

#[test]
fn a_beat_extends_its_own_lease() {
    for (now, extent) in [
        (29_999, Extent::Extended),
        (30_000, Extent::Lapsed),
        (DAY, Extent::Lapsed),
    ] {
        let mut before = running(ME, Some(0), 30_000);
        before.mark = WALL + 7_000;
        let expected = Record {
            until: LEASE + now + TTL,
            ..before.clone()
        };
        assert_eq!(
            beats(Some(&before), &beat(30_000), now),
            (Ok(extent), Some(expected))
        );
    }
}

#[test]
fn a_beat_tells_the_mark_that_others_have_raised() {
    let mut before = running(ME, Some(0), 30_000);
    before.mark = WALL + 7_000;
    assert_eq!(
        rules::beat(Some(&before), &beat(30_000), at(1)).reply.mark,
        WALL + 7_000
    );
    // Also where the lock is lost.
    before.owner = Some(OTHER);
    assert_eq!(
        rules::beat(Some(&before), &beat(30_000), at(1)).reply.mark,
        WALL + 7_000
    );
    assert_eq!(rules::beat(None, &beat(0), at(1)).reply.mark, WALL);
}

#[test]
fn a_beat_counts_attempts_and_keeps_the_longest_expiry() {
    let before = running(ME, Some(0), 30_000);
    let (_, write) = beats(
        Some(&before),
        &Beat {
            attempt: 3,
            keep: 2 * DAY,
            ttl: 5_000,
            ..beat(30_000)
        },
        1,
    );
    let new = write.unwrap();
    assert_eq!((new.attempt, new.keep, new.ttl), (3, 2 * DAY, 5_000));
    let (_, write) = beats(
        Some(&new),
        &Beat {
            attempt: 2,
            keep: 1,
            ..beat(30_000)
        },
        2,
    );
    let new = write.unwrap();
    assert_eq!((new.attempt, new.keep, new.ttl), (3, 2 * DAY, TTL));
}

#[test]
fn a_beat_for_a_run_that_is_over_is_lost() {
    for state in [State::Done, State::Failed, State::Requeued] {
        let before = over(ME, Some(0), state, 30_000);
        assert_eq!(
            beats(Some(&before), &beat(30_000), 1),
            (Err(Loss::Ended), None)
        );
    }
}

#[test]
fn a_beat_never_writes_over_another_grant() {
    for token in [70, 71, u64::MAX] {
        for before in [
            running(OTHER, Some(0), 30_000),
            over(OTHER, Some(0), State::Done, 1),
        ] {
            let before = Record { token, ..before };
            assert_eq!(
                beats(Some(&before), &beat(30_000), 1),
                (Err(Loss::Taken), None)
            );
        }
    }
}

#[test]
fn a_lost_record_is_written_again_while_the_lease_holds() {
    let sent = Beat {
        mark_told: WALL + 9_000,
        attempt: 2,
        grants: 2,
        ..beat(30_000)
    };
    let mut healed = Record::born_at(at(29_999));
    healed.owner = Some(ME);
    healed.token = 70;
    healed.firing = Some(WALL);
    healed.state = State::Run;
    healed.attempt = 2;
    healed.grants = 2;
    healed.until = LEASE + 29_999 + TTL;
    healed.ttl = TTL;
    healed.mark = WALL + 9_000;
    healed.keep = DAY;
    healed.started = WALL;
    healed.info = "mine".to_owned();
    assert_eq!(
        beats(None, &sent, 29_999),
        (Ok(Extent::Healed), Some(healed))
    );
    assert_eq!(beats(None, &sent, 30_000), (Err(Loss::Gone), None));
    // A lease end further away than a ttl says that the clock was set back.
    assert_eq!(beats(None, &sent, 0).0, Ok(Extent::Healed));
    assert_eq!(beats(None, &sent, -1), (Err(Loss::Gone), None));
}

#[test]
fn an_older_record_is_written_over_and_keeps_its_memory() {
    let older = Record {
        token: 69,
        mark: WALL + 500,
        once: Some(WALL - 5),
        void: vec![Owner(9)],
        keep: 5 * DAY,
        ..rested()
    };
    let (held, write) = beats(Some(&older), &beat(30_000), 10);
    let new = write.unwrap();
    assert_eq!(held, Ok(Extent::Healed));
    assert_eq!(
        (new.mark, new.once, new.keep),
        (WALL + 500, Some(WALL - 5), 5 * DAY)
    );
    assert_eq!(
        (new.void, new.born, new.token),
        (vec![Owner(9)], WALL + 10, 70)
    );
    assert_eq!((new.ended, new.code), (None, None));
    assert_eq!(
        beats(Some(&older), &beat(30_000), 30_000),
        (Err(Loss::Gone), None)
    );
    // The period's start comes back with its run.
    let (_, write) = beats(
        Some(&older),
        &Beat {
            once: true,
            firing: None,
            ..beat(30_000)
        },
        10,
    );
    assert_eq!(write.unwrap().once, Some(WALL));
    // The firing is marked even if nothing was told.
    let (_, write) = beats(
        None,
        &Beat {
            mark_told: 0,
            ..beat(30_000)
        },
        10,
    );
    assert_eq!(write.unwrap().mark, WALL);
}

#[test]
fn after_healing_what_fell_before_is_unsure() {
    let (_, write) = beats(None, &beat(30_000), 10_000);
    let healed = write.unwrap();
    let other = solocron::lock::Claim {
        owner: OTHER,
        ..due(5_000, SKIP)
    };
    assert_eq!(claim(Some(&healed), &other, 10_000).0, Verdict::Unsure);
    let other = solocron::lock::Claim {
        owner: OTHER,
        ..due(0, SKIP)
    };
    assert_eq!(claim(Some(&healed), &other, 10_000).0, Verdict::Running);
}

#[test]
fn the_end_of_a_run() {
    for (outcome, state) in [
        (Outcome::Done, State::Done),
        (Outcome::Failed, State::Failed),
    ] {
        for now in [5_000, 40_000] {
            let before = running(ME, Some(0), 30_000);
            let expected = Record {
                state,
                until: LEASE + now,
                ended: Some(WALL + now),
                code: Some(3),
                ..before.clone()
            };
            assert_eq!(
                frees(Some(&before), &ended(outcome), now),
                (FreeReply::Freed, Some(expected))
            );
        }
    }
}

#[test]
fn the_end_keeps_what_its_holder_knows_better() {
    let before = running(ME, Some(0), 30_000);
    let mut free = ended(Outcome::Failed);
    free.keep = 2 * DAY;
    let run = free.run.as_mut().unwrap();
    run.attempt = 4;
    run.mark_told = WALL + 8_000;
    let new = frees(Some(&before), &free, 1).1.unwrap();
    assert_eq!(
        (new.attempt, new.mark, new.keep),
        (4, WALL + 8_000, 2 * DAY)
    );
    let higher = Record {
        mark: WALL + 9_000,
        ..before
    };
    assert_eq!(frees(Some(&higher), &free, 1).1.unwrap().mark, WALL + 9_000);
}

#[test]
fn a_run_that_never_started_does_not_count() {
    let before = Record {
        attempt: 2,
        grants: 2,
        ..running(ME, Some(0), 30_000)
    };
    let mut not_started = ended(Outcome::NotStarted);
    let run = not_started.run.as_mut().unwrap();
    run.attempt = 2;
    run.code = None;
    for free in [not_started, given_up(ME)] {
        let (reply, write) = frees(Some(&before), &free, 1_000);
        let new = write.unwrap();
        assert_eq!(
            (reply, new.state, new.attempt, new.grants),
            (FreeReply::Freed, State::Requeued, 1, 1)
        );
        assert_eq!((new.code, new.until, new.mark), (None, LEASE + 1_000, WALL));
        // Somebody else starts it, and this claim never again.
        let other = solocron::lock::Claim {
            owner: OTHER,
            ..due(0, SKIP)
        };
        let (verdict, write) = claim(Some(&new), &other, 1_000);
        assert!(
            matches!(verdict, Verdict::Granted(grant) if grant.attempt == 2 && grant.grants == 2)
        );
        assert_eq!(claim(write.as_ref(), &due(0, SKIP), 1_000).0, Verdict::Void);
    }
}

#[test]
fn a_run_stopped_to_be_run_again_counts() {
    let before = running(ME, Some(0), 30_000);
    let new = frees(Some(&before), &ended(Outcome::Rerun), 1_000)
        .1
        .unwrap();
    assert_eq!(
        (new.state, new.attempt, new.grants),
        (State::Requeued, 1, 1)
    );
}

#[test]
fn freeing_twice_changes_nothing() {
    for state in [State::Done, State::Failed, State::Requeued] {
        let before = over(ME, Some(0), state, 5_000);
        for free in [
            ended(Outcome::Done),
            ended(Outcome::NotStarted),
            given_up(ME),
        ] {
            assert_eq!(
                frees(Some(&before), &free, 6_000),
                (FreeReply::AlreadyFree, None)
            );
        }
    }
}

#[test]
fn a_claim_given_up_before_it_arrived_is_void() {
    let (reply, write) = frees(None, &given_up(ME), 5);
    let new = write.unwrap();
    assert_eq!(
        (reply, new.born, new.mark, new.state),
        (FreeReply::Voided, WALL + 5, 0, State::Done)
    );
    assert_eq!(claim(Some(&new), &due(0, SKIP), 6), (Verdict::Void, None));
    let held = running(OTHER, Some(0), 30_000);
    let (reply, write) = frees(Some(&held), &given_up(ME), 5);
    assert_eq!(
        (reply, write),
        (
            FreeReply::Voided,
            Some(Record {
                void: vec![ME],
                ..held
            })
        )
    );
}

#[test]
fn a_run_that_the_store_forgot_is_remembered_at_its_end() {
    let (reply, write) = frees(None, &ended(Outcome::Done), 9_000);
    let new = write.unwrap();
    assert_eq!(reply, FreeReply::NotMine);
    assert_eq!(
        (new.owner, new.token, new.firing),
        (Some(ME), 70, Some(WALL))
    );
    assert_eq!(
        (new.state, new.mark, new.born),
        (State::Done, WALL, WALL + 9_000)
    );
    assert_eq!(
        (new.code, new.ended, new.until),
        (Some(3), Some(WALL + 9_000), LEASE + 9_000)
    );
    let other = solocron::lock::Claim {
        owner: OTHER,
        ..due(0, RERUN)
    };
    assert_eq!(claim(Some(&new), &other, 9_000).0, Verdict::Done);
}

#[test]
fn the_end_of_a_run_never_touches_anothers() {
    for outcome in [Outcome::Done, Outcome::Failed] {
        // Granted later: only a late copy of the claim is ruled out.
        for token in [70, 71] {
            let mut taken = running(OTHER, Some(-5_000), 40_000);
            taken.token = token;
            let ruled_out = Record {
                void: vec![ME],
                ..taken.clone()
            };
            let expected = (FreeReply::NotMine, Some(ruled_out.clone()));
            assert_eq!(frees(Some(&taken), &ended(outcome), 9_000), expected);
            let again = frees(Some(&ruled_out), &ended(outcome), 9_000);
            assert_eq!(again, (FreeReply::NotMine, None));
        }
        // A record from before: token and mark rise, the lease stays.
        let older = Record {
            token: 69,
            ..running(OTHER, Some(-5_000), 40_000)
        };
        let raised = Record {
            token: 70,
            mark: WALL,
            void: vec![ME],
            ..older.clone()
        };
        assert_eq!(
            frees(Some(&older), &ended(outcome), 9_000),
            (FreeReply::NotMine, Some(raised))
        );
    }
}

#[test]
fn a_period_is_remembered_though_the_store_forgot_it() {
    let mut free = ended(Outcome::Done);
    let run = free.run.as_mut().unwrap();
    (run.once, run.firing, run.mark_told) = (true, None, 0);
    let nothing = frees(None, &free, 9_000).1.unwrap();
    assert_eq!((nothing.once, nothing.mark), (Some(WALL), 0));
    // Made in between by somebody who gave up.
    let empty = frees(None, &given_up(OTHER), 8_000).1.unwrap();
    assert_eq!(
        frees(Some(&empty), &free, 9_000).1.unwrap().once,
        Some(WALL)
    );
    free.run.as_mut().unwrap().outcome = Outcome::NotStarted;
    assert_eq!(frees(Some(&empty), &free, 9_000).1.unwrap().once, None);
}

#[test]
fn a_period_is_given_back_only_by_the_run_that_took_it() {
    let per = Some(300_000);
    let taken = claim(None, &once(per), 0).1.unwrap();
    for free in [given_up(ME), ended(Outcome::NotStarted)] {
        let new = frees(Some(&taken), &free, 10).1.unwrap();
        assert_eq!(new.once, None);
    }
    assert_eq!(
        frees(Some(&taken), &ended(Outcome::Failed), 10)
            .1
            .unwrap()
            .once,
        Some(WALL)
    );
    // Another run in the same period, by hand, that never starts.
    let done = frees(Some(&taken), &ended(Outcome::Done), 10).1.unwrap();
    let by_hand = solocron::lock::Claim {
        owner: OTHER,
        ..once(None)
    };
    let held = claim(Some(&done), &by_hand, 20).1.unwrap();
    let back = frees(Some(&held), &given_up(OTHER), 30).1.unwrap();
    assert_eq!(back.once, Some(WALL));
    let third = solocron::lock::Claim {
        owner: Owner(3),
        ..once(per)
    };
    assert_eq!(claim(Some(&back), &third, 40).0, Verdict::Done);
}

#[test]
fn a_late_copy_of_a_claim_is_refused_after_its_run() {
    for (wanted, outcome) in [
        (once(None), Outcome::Done),
        (once(None), Outcome::NotStarted),
        (due(0, SKIP), Outcome::Done),
        (due(0, SKIP), Outcome::NotStarted),
        (due(0, RERUN), Outcome::Rerun),
    ] {
        let granted = claim(Some(&rested()), &wanted, 0).1.unwrap();
        let mut free = ended(outcome);
        let run = free.run.as_mut().unwrap();
        (run.token, run.firing) = (granted.token, granted.firing);
        let own = frees(Some(&granted), &free, 100).1;
        // Or its lease had lapsed and somebody else came first.
        let other = solocron::lock::Claim {
            owner: OTHER,
            ..once(None)
        };
        let late = frees(
            claim(Some(&granted), &other, 30_000).1.as_ref(),
            &free,
            30_100,
        )
        .1;
        let held = claim(own.as_ref(), &other, 200).1.unwrap();
        let away = frees(Some(&held), &given_up(OTHER), 300).1;
        let late_away = frees(late.as_ref(), &given_up(OTHER), 30_150).1;
        for record in [own, late, Some(held), away, late_away]
            .into_iter()
            .flatten()
        {
            let verdict = claim(Some(&record), &wanted, 30_200).0;
            assert!(
                !matches!(verdict, Verdict::Granted(_)),
                "{verdict:?} {record:?}"
            );
        }
    }
}
