//! Each rule for a claim, in the order in which they apply.

use solocron::lock::record::VOID_MAX;
use solocron::lock::rules::{self, EARLY_TOLERANCE, GRANTS_MAX, MARK_AHEAD_MAX, UNSURE_AFTER};
use solocron::lock::{OnRunnerLost, Overlap, Owner, Record, State, Verdict};

use super::make::*;

fn verdict(record: Option<&Record>, wanted: &solocron::lock::Claim, now: i64) -> &'static str {
    word(claim(record, wanted, now).0)
}

/// Asserts that a claim is refused and nothing is written.
#[track_caller]
fn refused(record: Option<&Record>, wanted: &solocron::lock::Claim, now: i64, as_: Verdict) {
    assert_eq!(claim(record, wanted, now), (as_, None));
}

/// Asserts that a claim is granted, and returns the record.
#[track_caller]
fn granted(record: Option<&Record>, wanted: &solocron::lock::Claim, now: i64) -> Record {
    let (verdict, write) = claim(record, wanted, now);
    let Verdict::Granted(grant) = verdict else {
        panic!("{verdict:?}");
    };
    let new = write.expect("a grant is written");
    assert_eq!(
        (
            grant.token,
            grant.attempt,
            grant.grants,
            grant.until,
            grant.started,
            grant.mark
        ),
        (
            new.token,
            new.attempt,
            new.grants,
            new.until,
            new.started,
            new.mark
        )
    );
    new
}

#[test]
fn rule_0_a_claim_that_was_given_up_is_void() {
    let mut record = rested();
    record.void = vec![Owner(9), ME];
    refused(Some(&record), &due(0, SKIP), 0, Verdict::Void);
    refused(Some(&record), &once(None), 0, Verdict::Void);
    // Before all other rules: early, its own run, done.
    refused(Some(&record), &due(5_000, SKIP), 0, Verdict::Void);
    record.owner = Some(ME);
    record.state = State::Run;
    record.until = LEASE + 5_000;
    refused(Some(&record), &due(0, SKIP), 0, Verdict::Void);
}

#[test]
fn rule_0_the_last_eight_are_remembered() {
    let mut record = None;
    for owner in 10..19 {
        let free = given_up(Owner(owner));
        record = rules::free(record.as_ref(), &free, at(0)).write;
    }
    let record = record.unwrap();
    assert_eq!(record.void, (11..19).map(Owner).collect::<Vec<_>>());
    assert_eq!(record.void.len(), VOID_MAX);
    // Once more the same changes nothing.
    assert_eq!(
        rules::free(Some(&record), &given_up(Owner(12)), at(0))
            .write
            .unwrap(),
        record
    );
}

#[test]
fn rule_1_the_same_claim_gets_the_same_grant() {
    let before = running(ME, Some(0), 20_000);
    // While it is alive, after it has lapsed, and long after the deadline.
    for now in [10_000, 20_000, 500_000] {
        let mut wanted = due(0, SKIP);
        wanted.keep = 2 * DAY;
        let expected = Record {
            until: LEASE + now + TTL,
            keep: 2 * DAY,
            ..before.clone()
        };
        assert_eq!(granted(Some(&before), &wanted, now), expected);
        wanted.keep = 1;
        assert_eq!(granted(Some(&before), &wanted, now).keep, DAY);
    }
    let without = running(ME, None, 20_000);
    assert_eq!(
        granted(Some(&without), &once(None), 10_000).token,
        without.token
    );
}

#[test]
fn rule_1_a_claim_whose_run_is_over_is_stale() {
    for state in [State::Done, State::Failed, State::Requeued] {
        for policy in [SKIP, QUEUE, RERUN] {
            let record = over(ME, Some(0), state, 5_000);
            refused(Some(&record), &due(0, policy), 5_000, Verdict::Stale);
        }
        let record = over(ME, None, state, 5_000);
        refused(Some(&record), &once(None), 5_000, Verdict::Stale);
    }
}

#[test]
fn rule_2_a_firing_ahead_of_the_store_is_early() {
    let held = running(OTHER, Some(-9_000), 9_000);
    for record in [None, Some(&rested()), Some(&held)] {
        for ahead in [EARLY_TOLERANCE + 1, DAY] {
            refused(record, &due(ahead, SKIP), 0, Verdict::Early(ahead));
        }
    }
    assert_eq!(verdict(None, &due(EARLY_TOLERANCE, SKIP), 0), "granted");
    granted(Some(&rested()), &due(EARLY_TOLERANCE, SKIP), 0);
    // Even where it is marked already.
    let mut record = rested();
    record.mark = WALL + 1_000;
    refused(Some(&record), &due(1_000, SKIP), 0, Verdict::Early(1_000));
}

#[test]
fn rule_3_a_firing_given_back_is_granted_under_every_policy() {
    for policy in [SKIP, QUEUE, RERUN] {
        let mut before = over(OTHER, Some(0), State::Requeued, 1_000);
        before.attempt = 1;
        before.grants = 2;
        let new = granted(Some(&before), &due(0, policy), 1_500);
        assert_eq!((new.attempt, new.grants, new.mark), (2, 3, WALL));
        // The deadline counts from when it was given back.
        granted(Some(&before), &due(0, policy), 1_000 + DEADLINE);
        let late = 1_000 + DEADLINE + 1;
        refused(Some(&before), &due(0, policy), late, Verdict::Late(late));
    }
}

#[test]
fn rule_3_a_firing_given_back_may_be_unsure() {
    let mut record = over(OTHER, Some(0), State::Requeued, 1_000);
    record.born = WALL;
    assert_eq!(
        verdict(Some(&record), &due(0, SKIP), UNSURE_AFTER),
        "granted"
    );
    refused(
        Some(&record),
        &due(0, SKIP),
        UNSURE_AFTER + 1,
        Verdict::Unsure,
    );
    assert_eq!(
        verdict(Some(&record), &due(0, RERUN), UNSURE_AFTER + 1),
        "granted"
    );
}

#[test]
fn rule_3_a_firing_whose_runner_is_gone() {
    let gone = running(OTHER, Some(0), 30_000);
    assert_eq!(verdict(Some(&gone), &due(0, RERUN), 29_999), "running");
    refused(Some(&gone), &due(0, SKIP), 30_000, Verdict::Orphaned);
    refused(Some(&gone), &due(0, QUEUE), 30_000, Verdict::Orphaned);
    let new = granted(Some(&gone), &due(0, RERUN), 30_000);
    assert_eq!((new.attempt, new.grants, new.owner), (2, 2, Some(ME)));
    // Within the start deadline of its lease's end.
    granted(Some(&gone), &due(0, RERUN), 30_000 + DEADLINE);
    refused(
        Some(&gone),
        &due(0, RERUN),
        30_001 + DEADLINE,
        Verdict::Orphaned,
    );
    // And not for ever.
    for (grants, expected) in [
        (1, "granted"),
        (GRANTS_MAX - 1, "granted"),
        (GRANTS_MAX, "orphaned"),
    ] {
        let gone = Record {
            grants,
            ..gone.clone()
        };
        assert_eq!(verdict(Some(&gone), &due(0, RERUN), 30_000), expected);
    }
}

#[test]
fn rule_4_a_firing_up_to_the_mark_is_not_started() {
    for policy in [SKIP, QUEUE, RERUN] {
        for state in [State::Done, State::Failed] {
            let record = over(OTHER, Some(0), state, 1_000);
            refused(Some(&record), &due(0, policy), 1_500, Verdict::Done);
            // Overtaken.
            refused(Some(&record), &due(-1, policy), 1_500, Verdict::Done);
            assert_eq!(verdict(Some(&record), &due(1, policy), 1_500), "granted");
        }
        let record = running(OTHER, Some(0), 30_000);
        refused(Some(&record), &due(0, policy), 1_500, Verdict::Running);
        refused(Some(&record), &due(-1, policy), 1_500, Verdict::Done);
        // Before the deadline: an old firing is not late but done.
        refused(
            Some(&record),
            &due(-2 * DEADLINE, policy),
            1_500,
            Verdict::Done,
        );
    }
    // Of a firing given back nothing else is granted than that one.
    let record = over(OTHER, Some(0), State::Requeued, 1_000);
    refused(Some(&record), &due(-1, SKIP), 1_500, Verdict::Done);
}

#[test]
fn rule_4_a_mark_hours_ahead_says_that_the_clock_was_set_back() {
    let mut record = rested();
    record.mark = WALL + MARK_AHEAD_MAX;
    refused(Some(&record), &due(0, SKIP), 0, Verdict::Done);
    record.mark += 1;
    // The mark falls to now, which refuses what is not later.
    let settled = Record {
        mark: WALL,
        ..record.clone()
    };
    assert_eq!(
        claim(Some(&record), &due(0, SKIP), 0),
        (Verdict::Done, Some(settled))
    );
    assert_eq!(granted(Some(&record), &due(1, SKIP), 0).mark, WALL + 1);
}

#[test]
fn rule_5_a_firing_past_its_start_deadline_is_late() {
    for policy in [SKIP, QUEUE, RERUN] {
        granted(Some(&rested()), &due(0, policy), DEADLINE);
        refused(
            Some(&rested()),
            &due(0, policy),
            DEADLINE + 1,
            Verdict::Late(DEADLINE + 1),
        );
        refused(
            None,
            &due(0, policy),
            DEADLINE + 1,
            Verdict::Late(DEADLINE + 1),
        );
    }
    // Even where the lock is held, and then it is not marked.
    let held = running(OTHER, Some(-90_000), 90_000);
    refused(
        Some(&held),
        &due(0, SKIP),
        DEADLINE + 1,
        Verdict::Late(DEADLINE + 1),
    );
}

#[test]
fn rule_5_under_queue_lateness_counts_from_the_end_of_the_run() {
    let ended = 200_000;
    for state in [State::Done, State::Failed] {
        let record = over(OTHER, Some(-1_000), state, ended);
        granted(Some(&record), &due(0, QUEUE), ended + DEADLINE);
        let late = ended + DEADLINE + 1;
        refused(Some(&record), &due(0, QUEUE), late, Verdict::Late(late));
        refused(Some(&record), &due(0, SKIP), ended, Verdict::Late(ended));
    }
    let held = running(OTHER, Some(-1_000), ended);
    refused(Some(&held), &due(0, QUEUE), ended - 1, Verdict::Busy);
    granted(Some(&held), &due(0, QUEUE), ended);
}

#[test]
fn rule_6_what_the_record_cannot_know_is_unsure() {
    for (policy, late, expected) in [
        (SKIP, UNSURE_AFTER, "granted"),
        (SKIP, UNSURE_AFTER + 1, "unsure"),
        (QUEUE, UNSURE_AFTER + 1, "unsure"),
        (RERUN, UNSURE_AFTER + 1, "granted"),
    ] {
        assert_eq!(verdict(None, &due(0, policy), late), expected);
        let mut record = rested();
        // Born at the firing itself, or up to the tolerance before: it may
        // have been started early just before the record was lost.
        for (born, knows) in [
            (0, false),
            (-EARLY_TOLERANCE, false),
            (-EARLY_TOLERANCE - 1, true),
        ] {
            record.born = WALL + born;
            let expected = if knows { "granted" } else { expected };
            assert_eq!(
                verdict(Some(&record), &due(0, policy), late),
                expected,
                "{born}"
            );
        }
    }
    refused(None, &due(0, SKIP), UNSURE_AFTER + 1, Verdict::Unsure);
    // Not even behind another run, where it would be marked.
    let mut held = running(OTHER, Some(-1), 30_000);
    held.born = WALL;
    refused(
        Some(&held),
        &due(0, SKIP),
        UNSURE_AFTER + 1,
        Verdict::Unsure,
    );
}

#[test]
fn rule_7_behind_an_earlier_firing() {
    let held = running(OTHER, Some(-5_000), 20_000);
    // Under skip it is spent, and nothing else changes.
    let mut wanted = due(0, SKIP);
    wanted.keep = 2 * DAY;
    let spent = Record {
        mark: WALL,
        keep: 2 * DAY,
        ..held.clone()
    };
    assert_eq!(
        claim(Some(&held), &wanted, 0),
        (Verdict::Busy, Some(spent.clone()))
    );
    assert_eq!(claim(Some(&held), &wanted, 19_999).0, Verdict::Busy);
    // A late host does not run it afterwards.
    refused(Some(&spent), &wanted, 20_000, Verdict::Done);
    // Under queue it waits.
    refused(Some(&held), &due(0, QUEUE), 0, Verdict::Busy);
    granted(Some(&held), &due(0, QUEUE), 20_000);
    // Not yet due by the store's clock: neither.
    refused(Some(&held), &due(1, SKIP), 0, Verdict::Early(1));
    refused(
        Some(&held),
        &due(EARLY_TOLERANCE, QUEUE),
        0,
        Verdict::Early(EARLY_TOLERANCE),
    );
}

#[test]
fn rule_7_behind_a_run_without_schedule() {
    let held = running(OTHER, None, 20_000);
    for policy in [SKIP, QUEUE, RERUN] {
        refused(Some(&held), &due(0, policy), 0, Verdict::Busy);
        refused(Some(&held), &due(EARLY_TOLERANCE, policy), 0, Verdict::Busy);
        granted(Some(&held), &due(0, policy), 20_000);
    }
    refused(Some(&held), &once(None), 19_999, Verdict::Busy);
    granted(Some(&held), &once(None), 20_000);
}

#[test]
fn rule_7_a_lease_from_before_the_clock_was_set_back_ends_a_ttl_from_now() {
    for held in [
        running(OTHER, Some(-5_000), TTL + 1),
        running(OTHER, None, DAY),
    ] {
        assert!(!held.alive(at(0)));
        let settled = Record {
            until: LEASE + TTL,
            ..held.clone()
        };
        assert_eq!(
            claim(Some(&held), &once(None), 0),
            (Verdict::Busy, Some(settled.clone()))
        );
        let (verdict, write) = claim(Some(&held), &due(0, QUEUE), 0);
        assert_eq!((verdict, write.unwrap()), (Verdict::Busy, settled.clone()));
        refused(Some(&settled), &once(None), TTL - 1, Verdict::Busy);
        granted(Some(&settled), &once(None), TTL);
    }
    let held = running(OTHER, None, TTL);
    refused(Some(&held), &once(None), 0, Verdict::Busy);
}

#[test]
fn rule_8_what_a_grant_writes() {
    let before = Record {
        void: vec![Owner(9)],
        once: Some(WALL - 1),
        keep: 3 * DAY,
        ..rested()
    };
    let expected = Record {
        owner: Some(ME),
        token: u64::try_from((WALL + 700) * 1000).unwrap(),
        firing: Some(WALL),
        state: State::Run,
        attempt: 1,
        grants: 1,
        until: LEASE + 700 + TTL,
        ttl: TTL,
        mark: WALL,
        started: WALL + 700,
        ended: None,
        code: None,
        info: "mine".to_owned(),
        ..before.clone()
    };
    assert_eq!(granted(Some(&before), &due(0, SKIP), 700), expected);
    // From nothing.
    let new = granted(None, &due(0, SKIP), 700);
    assert_eq!((new.born, new.mark, new.keep), (WALL + 700, WALL, DAY));
    assert_eq!((new.void, new.once), (Vec::new(), None));
}

#[test]
fn rule_8_the_token_rises_with_the_clock_or_without_it() {
    let now = u64::try_from(at(0).wall_us).unwrap();
    for (before, after) in [
        (5, now),
        (now - 1, now),
        (now, now + 1),
        (now + 9, now + 10),
    ] {
        let record = Record {
            token: before,
            ..rested()
        };
        assert_eq!(granted(Some(&record), &due(0, SKIP), 0).token, after);
    }
}

#[test]
fn a_run_without_schedule_never_touches_the_mark() {
    for record in [
        rested(),
        over(OTHER, Some(0), State::Requeued, 1),
        running(OTHER, Some(0), -1),
    ] {
        let new = granted(Some(&record), &once(None), 0);
        assert_eq!(
            (new.mark, new.firing, new.once, new.attempt),
            (record.mark, None, None, 1)
        );
    }
    assert_eq!(granted(None, &once(None), 0).mark, 0);
    let held = running(OTHER, Some(0), 1);
    refused(Some(&held), &once(None), 0, Verdict::Busy);
}

#[test]
fn once_per_counts_three_quarters_of_its_period() {
    let per = 300_000;
    let new = granted(None, &once(Some(per)), 0);
    assert_eq!(new.once, Some(WALL));
    for (ago, expected) in [
        (0, "done"),
        (224_999, "done"),
        (225_000, "granted"),
        (-1, "done"),
        (-224_999, "done"),
        (-225_000, "granted"),
    ] {
        for held in [false, true] {
            let mut record = if held {
                running(OTHER, None, 1)
            } else {
                rested()
            };
            record.once = Some(WALL - ago);
            let expected = if held && expected == "granted" {
                "busy"
            } else {
                expected
            };
            assert_eq!(
                verdict(Some(&record), &once(Some(per)), 0),
                expected,
                "{ago}"
            );
            // Who asks without a period does not mind.
            let plain = if held { "busy" } else { "granted" };
            assert_eq!(verdict(Some(&record), &once(None), 0), plain);
        }
    }
    let record = Record {
        once: Some(WALL - 1),
        ..rested()
    };
    refused(Some(&record), &once(Some(per)), 0, Verdict::Done);
    assert_eq!(granted(Some(&record), &once(None), 0).once, Some(WALL - 1));
    // A period that does not divide by four.
    let record = Record {
        once: Some(WALL - 7),
        ..rested()
    };
    assert_eq!(verdict(Some(&record), &once(Some(10)), 0), "done");
    assert_eq!(verdict(Some(&record), &once(Some(9)), 0), "granted");
}

#[test]
fn policies_are_the_claimants_own() {
    // A record does not know of them: hosts in the middle of a change differ.
    let gone = running(OTHER, Some(0), 30_000);
    assert_eq!(verdict(Some(&gone), &due(0, SKIP), 30_000), "orphaned");
    let both = Policy(Overlap::Queue, OnRunnerLost::Rerun);
    assert_eq!(verdict(Some(&gone), &due(0, both), 30_000), "granted");
}
