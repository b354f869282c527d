//! What a claimant does with each answer, and with none.

use std::time::Duration;

use proptest::prelude::*;
use solocron::lock::claimant::{PAUSE_MAX, PAUSE_MIN, REACH_WITHIN, RETRY_MIN};
use solocron::lock::{
    ClaimReply, Claimant, Grant, Ms, Next, OnRunnerLost, Overlap, Patience, Record, Refusal,
    Verdict, Wait,
};

use super::make::*;

const START: Duration = Duration::from_secs(1_000);
const DEADLINE: Duration = Duration::from_secs(60);

const GRANT: Grant = Grant {
    token: 7,
    attempt: 1,
    grants: 1,
    until: LEASE + TTL,
    started: WALL,
    mark: WALL,
};

const fn firing(policy: Policy, left: Duration) -> Patience {
    Patience::Firing {
        overlap: policy.0,
        on_runner_lost: policy.1,
        start_deadline: DEADLINE,
        left,
    }
}

const PATIENCES: [Patience; 6] = [
    firing(SKIP, DEADLINE),
    firing(QUEUE, DEADLINE),
    firing(RERUN, DEADLINE),
    Patience::Once(Wait::No),
    Patience::Once(Wait::For(Duration::from_secs(20))),
    Patience::Once(Wait::Forever),
];

fn reply(verdict: Verdict, before: Option<Record>) -> ClaimReply {
    ClaimReply {
        verdict,
        now: at(0),
        before,
    }
}

/// A reply while a firing, or a run without schedule, holds the lock for so
/// much longer.
fn held(verdict: Verdict, by_firing: bool, left: Ms) -> ClaimReply {
    let mut record = running(OTHER, by_firing.then_some(-5_000), left);
    record.ttl = TTL.max(left);
    reply(verdict, Some(record))
}

fn first(patience: Patience, reply: &ClaimReply) -> Next {
    Claimant::new(patience, START).on_reply(reply, START + ms(5), 255)
}

#[test]
fn a_grant_starts_in_every_mode() {
    for patience in PATIENCES {
        assert_eq!(
            first(patience, &reply(Verdict::Granted(GRANT), None)),
            Next::Start(GRANT)
        );
    }
}

#[test]
fn a_verdict_that_stays_ends_the_claim_in_every_mode() {
    for patience in PATIENCES {
        for (verdict, refusal) in [
            (Verdict::Done, Refusal::Done),
            (Verdict::Orphaned, Refusal::Orphaned),
            (Verdict::Unsure, Refusal::Unsure),
            (Verdict::Late(70_000), Refusal::Late(70_000)),
            (Verdict::Void, Refusal::Closed),
            (Verdict::Stale, Refusal::Closed),
        ] {
            assert_eq!(
                first(patience, &reply(verdict, Some(rested()))),
                Next::End(refusal)
            );
        }
    }
}

#[test]
fn who_waits_behind_a_busy_lock() {
    let soon = Next::Ask(START + ms(5) + PAUSE_MIN);
    let leave = Next::End(Refusal::Busy);
    for (patience, behind_firing, behind_other) in [
        (PATIENCES[0], leave, soon),
        (PATIENCES[1], soon, soon),
        (PATIENCES[2], leave, soon),
        (PATIENCES[3], leave, leave),
        (PATIENCES[4], soon, soon),
        (PATIENCES[5], soon, soon),
    ] {
        assert_eq!(
            first(patience, &held(Verdict::Busy, true, 20_000)),
            behind_firing
        );
        assert_eq!(
            first(patience, &held(Verdict::Busy, false, 20_000)),
            behind_other
        );
    }
}

#[test]
fn pauses_double_up_to_a_second_and_are_spread() {
    let mut early = Claimant::new(Patience::Once(Wait::Forever), START);
    let mut late = early.clone();
    let busy = held(Verdict::Busy, false, 20_000);
    for pause in [250, 500, 1_000, 1_000, 1_000] {
        assert_eq!(
            early.on_reply(&busy, START, 0),
            Next::Ask(START + ms(pause) * 3 / 4)
        );
        assert_eq!(
            late.on_reply(&busy, START, 255),
            Next::Ask(START + ms(pause))
        );
    }
    assert_eq!(PAUSE_MAX, ms(1_000));
}

#[test]
fn a_lease_about_to_end_is_asked_for_again_when_it_has_ended() {
    let mut claimant = Claimant::new(Patience::Once(Wait::Forever), START);
    for (left, pause) in [(100, 100), (1, 10), (0, 10)] {
        let busy = held(Verdict::Busy, false, left);
        assert_eq!(
            claimant.on_reply(&busy, START, 255),
            Next::Ask(START + ms(pause))
        );
    }
}

#[test]
fn a_wait_is_asked_out_to_its_end() {
    let wait = Patience::Once(Wait::For(ms(600)));
    let mut claimant = Claimant::new(wait, START);
    let busy = held(Verdict::Busy, false, 20_000);
    assert_eq!(
        claimant.on_reply(&busy, START, 255),
        Next::Ask(START + ms(250))
    );
    assert_eq!(
        claimant.on_reply(&busy, START + ms(250), 255),
        Next::Ask(START + ms(600))
    );
    assert_eq!(
        claimant.on_reply(&busy, START + ms(599), 255),
        Next::Ask(START + ms(600))
    );
    assert_eq!(
        claimant.on_reply(&busy, START + ms(600), 255),
        Next::End(Refusal::WaitOver)
    );
}

#[test]
fn an_early_claim_sleeps_as_long_as_the_store_says() {
    for (patience, by, expected) in [
        (PATIENCES[0], 51, Next::Ask(START + ms(56))),
        (PATIENCES[1], 60_000, Next::Ask(START + ms(60_005))),
        (PATIENCES[2], 60_001, Next::End(Refusal::Early(60_001))),
    ] {
        assert_eq!(first(patience, &reply(Verdict::Early(by), None)), expected);
    }
}

#[test]
fn only_rerun_watches_over_a_run() {
    let running = held(Verdict::Running, true, 20_000);
    for patience in [PATIENCES[0], PATIENCES[1]] {
        assert_eq!(first(patience, &running), Next::End(Refusal::Running));
    }
    let mut claimant = Claimant::new(PATIENCES[2], START);
    // Not before its lease is over, and not all at once.
    for luck in [0, 255] {
        let after = ms(20_000 + 1 + u64::from(luck));
        assert_eq!(
            claimant.on_reply(&running, START, luck),
            Next::Ask(START + after)
        );
    }
}

#[test]
fn a_store_that_does_not_answer_is_tried_until_the_end() {
    for (patience, end) in [
        (firing(SKIP, ms(2_000)), Some(ms(2_000))),
        (Patience::Once(Wait::No), Some(REACH_WITHIN)),
        (Patience::Once(Wait::For(ms(2_000))), Some(ms(2_000))),
        (Patience::Once(Wait::Forever), None),
    ] {
        let mut claimant = Claimant::new(patience, START);
        assert_eq!(claimant.reach_until(), end.map(|end| START + end));
        let mut now = START;
        for pause in [100, 200, 400, 800, 1_000, 1_000, 1_000, 1_000] {
            if end.is_some_and(|end| now >= START + end) {
                break;
            }
            let next = now + ms(pause);
            let next = end.map_or(next, |end| next.min(START + end));
            assert_eq!(claimant.on_failure(false, now), Next::Ask(next));
            now = next;
        }
        let last = claimant.on_failure(false, now);
        match end {
            Some(_) => assert_eq!(last, Next::End(Refusal::Unreachable)),
            None => assert_eq!(last, Next::Ask(now + PAUSE_MAX)),
        }
    }
    assert_eq!(RETRY_MIN, ms(100));
}

#[test]
fn an_answer_gives_the_store_new_credit() {
    let mut claimant = Claimant::new(firing(QUEUE, ms(2_000)), START);
    for _ in 0..4 {
        claimant.on_failure(false, START);
    }
    let later = START + ms(1_900);
    let Next::Ask(again) = claimant.on_reply(&held(Verdict::Busy, true, 20_000), later, 0) else {
        panic!("busy is asked again");
    };
    assert_eq!(claimant.reach_until(), Some(again + DEADLINE));
    assert_eq!(
        claimant.on_failure(false, later),
        Next::Ask(later + RETRY_MIN)
    );
    // Also where it is asked only when a long lease is over.
    let mut claimant = Claimant::new(firing(RERUN, ms(2_000)), START);
    let over = START + ms(120_001);
    let running = held(Verdict::Running, true, 120_000);
    assert_eq!(claimant.on_reply(&running, START, 0), Next::Ask(over));
    assert_eq!(
        claimant.on_failure(false, over),
        Next::Ask(over + RETRY_MIN)
    );
    // A wait has its end, whatever the store says.
    let mut claimant = Claimant::new(Patience::Once(Wait::For(ms(2_000))), START);
    claimant.on_reply(&held(Verdict::Busy, true, 20_000), later, 0);
    assert_eq!(claimant.reach_until(), Some(START + ms(2_000)));
}

#[test]
fn a_store_that_refuses_ends_a_single_run_only() {
    for patience in PATIENCES {
        let next = Claimant::new(patience, START).on_failure(true, START);
        match patience {
            Patience::Once(_) => assert_eq!(next, Next::End(Refusal::Refused)),
            Patience::Firing { .. } => assert_eq!(next, Next::Ask(START + RETRY_MIN)),
        }
    }
    let mut claimant = Claimant::new(firing(SKIP, ms(2_000)), START);
    assert_eq!(
        claimant.on_failure(true, START + ms(2_000)),
        Next::End(Refusal::Refused)
    );
}

fn patiences() -> impl Strategy<Value = Patience> {
    let policy =
        (prop::bool::ANY, prop::bool::ANY, 0_u64..60_000).prop_map(|(queue, rerun, left)| {
            let overlap = if queue { Overlap::Queue } else { Overlap::Skip };
            let lost = if rerun {
                OnRunnerLost::Rerun
            } else {
                OnRunnerLost::Skip
            };
            firing(Policy(overlap, lost), ms(left))
        });
    let wait = prop_oneof![
        Just(Wait::No),
        Just(Wait::Forever),
        (0_u64..100_000).prop_map(|span| Wait::For(ms(span))),
    ];
    prop_oneof![policy, wait.prop_map(Patience::Once)]
}

/// What can happen to a request.
fn answers() -> impl Strategy<Value = Option<ClaimReply>> {
    let busy =
        (prop::bool::ANY, -5_i64..40_000).prop_map(|(by, left)| held(Verdict::Busy, by, left));
    let running = (-5_i64..40_000).prop_map(|left| held(Verdict::Running, true, left));
    let early = (1_i64..70_000).prop_map(|by| reply(Verdict::Early(by), None));
    prop_oneof![
        Just(None),
        busy.prop_map(Some),
        running.prop_map(Some),
        early.prop_map(Some)
    ]
}

proptest! {
    /// However the store answers: the next request comes later than now, and
    /// no later than the wait allows; nobody hammers the store.
    #[test]
    fn asking_again_always_lies_ahead(
        patience in patiences(),
        answers in prop::collection::vec((answers(), 0_u8..=255, 0_u64..500), 1..60),
    ) {
        let mut claimant = Claimant::new(patience, START);
        let mut now = START;
        for (answer, luck, took) in answers {
            now += ms(took);
            let next = match &answer {
                Some(reply) => claimant.on_reply(reply, now, luck),
                None => claimant.on_failure(false, now),
            };
            match next {
                Next::Ask(at) => {
                    prop_assert!(at > now);
                    if let Patience::Once(Wait::For(span)) = patience {
                        prop_assert!(at <= START + span || answer.is_none());
                    }
                    now = at;
                }
                Next::End(_) => return Ok(()),
                Next::Start(_) => prop_assert!(false),
            }
        }
    }
}
