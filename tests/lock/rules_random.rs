//! The rules over random records, requests and histories.

use proptest::prelude::*;
use solocron::lock::record::VOID_MAX;
use solocron::lock::rules::{self, EndedRun, MARK_AHEAD_MAX};
use solocron::lock::{
    Beat, Claim, Free, FreeReply, Ms, OnRunnerLost, Outcome, Overlap, Owner, Record, State,
    Verdict, Wanted,
};

use super::make::{LEASE, WALL, at};

fn owners() -> impl Strategy<Value = Owner> + Clone {
    (1_u128..6).prop_map(Owner)
}

/// Instants near each other and near the borders of the rules.
fn instants() -> impl Strategy<Value = Ms> + Clone {
    prop_oneof![
        (-3_i64..4).prop_map(|n| n * 1_000),
        (-3_i64..4, -1_i64..2).prop_map(|(n, off)| n * 1_000 + 50 + off),
        -5_000_i64..5_000,
        Just(MARK_AHEAD_MAX + 5_000),
    ]
}

fn states() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Run),
        Just(State::Done),
        Just(State::Failed),
        Just(State::Requeued)
    ]
}

prop_compose! {
    fn records()(
        owner in prop::option::of(owners()),
        token in prop_oneof![0_u64..5, Just(u64::try_from(at(0).wall_us).unwrap())],
        firing in prop::option::of(instants()),
        state in states(),
        (attempt, grants) in (0_u32..4, 0_u32..5),
        until in instants(),
        ttl in prop_oneof![Just(1_000_i64), Just(3_000)],
        mark in instants(),
        born in instants(),
        once in prop::option::of(instants()),
        void in prop::collection::vec(owners(), 0..4),
        keep in 0_i64..3,
    ) -> Record {
        let mut record = Record::born_at(at(born));
        record.owner = owner;
        record.token = token;
        record.firing = firing.map(|at| WALL + at);
        record.state = state;
        record.attempt = attempt;
        record.grants = grants;
        record.until = LEASE + until;
        record.ttl = ttl;
        record.mark = WALL + mark;
        record.once = once.map(|at| WALL + at);
        record.void = void;
        record.keep = keep;
        record
    }
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let firing = (instants(), prop::bool::ANY, prop::bool::ANY).prop_map(|(at, queue, rerun)| {
        Wanted::Firing {
            at: WALL + at,
            start_deadline: 3_000,
            overlap: if queue { Overlap::Queue } else { Overlap::Skip },
            on_runner_lost: if rerun {
                OnRunnerLost::Rerun
            } else {
                OnRunnerLost::Skip
            },
        }
    });
    let once = prop::option::of(1_i64..5_000).prop_map(|per| Wanted::Once { per });
    prop_oneof![3 => firing, 1 => once]
}

prop_compose! {
    fn claims()(owner in owners(), wanted in wanted(), ttl in 1_000_i64..3_000, keep in 0_i64..4) -> Claim {
        Claim { owner, wanted, ttl, keep, info: String::new() }
    }
}

prop_compose! {
    fn beats()(
        owner in owners(),
        token in prop_oneof![0_u64..6, Just(u64::try_from(at(0).wall_us).unwrap())],
        until in instants(),
        mark in instants(),
        firing in prop::option::of(instants()),
        once in prop::bool::ANY,
        keep in 0_i64..4,
    ) -> Beat {
        Beat {
            owner,
            token,
            until_told: LEASE + until,
            mark_told: WALL + mark,
            firing: firing.map(|at| WALL + at),
            attempt: 1,
            grants: 1,
            started: WALL - 10,
            once,
            ttl: 2_000,
            keep,
            info: String::new(),
        }
    }
}

fn frees() -> impl Strategy<Value = Free> {
    let outcome = prop_oneof![
        Just(Outcome::Done),
        Just(Outcome::Failed),
        Just(Outcome::NotStarted),
        Just(Outcome::Rerun),
    ];
    (beats(), outcome, prop::bool::ANY).prop_map(|(beat, outcome, answered)| Free {
        owner: beat.owner,
        run: answered.then_some(EndedRun {
            token: beat.token,
            mark_told: beat.mark_told,
            firing: beat.firing,
            attempt: beat.attempt,
            grants: beat.grants,
            started: beat.started,
            once: beat.once,
            outcome,
            code: None,
            info: String::new(),
        }),
        keep: beat.keep,
    })
}

/// What no operation may do to a record.
fn check_change(before: Option<&Record>, after: &Record, now: Ms) -> Result<(), TestCaseError> {
    prop_assert!(after.void.len() <= VOID_MAX);
    let Some(before) = before else {
        prop_assert_eq!(after.born, WALL + now);
        return Ok(());
    };
    prop_assert!(after.token >= before.token, "the token fell");
    prop_assert!(after.keep >= before.keep, "the expiry was shortened");
    let set_back = before.mark > WALL + now + MARK_AHEAD_MAX;
    prop_assert!(after.mark >= before.mark || set_back, "the mark fell");
    let all_known = before.void.iter().all(|owner| after.void.contains(owner));
    prop_assert!(
        all_known || after.void.len() == VOID_MAX,
        "a given-up claim was forgotten"
    );
    Ok(())
}

/// Whether anybody's lease counts, also one from before the clock was set back.
fn held(record: &Record, now: Ms) -> bool {
    record.state == State::Run && record.until > LEASE + now
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_claim_never_takes_a_lease_that_is_alive(before in prop::option::of(records()), claim in claims(), now in -2_000_i64..2_000) {
        let applied = rules::claim(before.as_ref(), &claim, at(now));
        let granted = matches!(applied.reply.verdict, Verdict::Granted(_));
        if let Some(after) = &applied.write {
            check_change(before.as_ref(), after, now)?;
            prop_assert!(before.is_some() || granted);
        }
        if let Some(before) = &before && held(before, now) && before.owner != Some(claim.owner) {
            prop_assert!(!granted);
            if let Some(after) = &applied.write {
                let settled = before.until.min(LEASE + now + before.ttl);
                prop_assert_eq!((after.owner, after.state, after.until), (before.owner, State::Run, settled));
            }
        }
        if granted {
            let after = applied.write.as_ref().unwrap();
            prop_assert!(after.alive(at(now)));
            prop_assert_eq!(after.until, LEASE + now + claim.ttl);
            let again = before.as_ref().is_some_and(|before| before.owner == Some(claim.owner));
            prop_assert!(again || before.is_none_or(|before| after.token > before.token));
            // The same request again has the same grant, a moment later too.
            let second = rules::claim(Some(after), &claim, at(now + 10));
            let Verdict::Granted(grant) = second.reply.verdict else {
                return Err(TestCaseError::fail("not granted again"));
            };
            prop_assert_eq!((grant.token, grant.attempt, grant.started), (after.token, after.attempt, after.started));
            let renewed = second.write.unwrap();
            prop_assert_eq!(&Record { until: after.until, ..renewed }, after);
        }
    }

    #[test]
    fn a_beat_holds_only_what_is_its_own(before in prop::option::of(records()), beat in beats(), now in -2_000_i64..2_000) {
        let applied = rules::beat(before.as_ref(), &beat, at(now));
        prop_assert_eq!(applied.reply.held.is_ok(), applied.write.is_some());
        if let Some(after) = &applied.write {
            check_change(before.as_ref(), after, now)?;
            prop_assert_eq!((after.owner, after.state), (Some(beat.owner), State::Run));
            if let Some(before) = &before && before.owner != Some(beat.owner) {
                prop_assert!(before.token < beat.token);
                prop_assert!(beat.until_told > LEASE + now);
            }
        }
    }

    #[test]
    fn a_free_ends_only_what_is_its_own(before in prop::option::of(records()), free in frees(), now in -2_000_i64..2_000) {
        let applied = rules::free(before.as_ref(), &free, at(now));
        let mine = before.as_ref().is_some_and(|before| before.owner == Some(free.owner));
        if let Some(after) = &applied.write {
            check_change(before.as_ref(), after, now)?;
            if let Some(before) = &before && !mine {
                let same = Record {
                    token: before.token,
                    mark: before.mark,
                    void: before.void.clone(),
                    once: before.once,
                    keep: before.keep,
                    ..after.clone()
                };
                prop_assert_eq!(&same, before);
            }
            prop_assert!(!mine || after.state != State::Run);
        }
        prop_assert_eq!(applied.reply == FreeReply::Freed, mine && applied.write.is_some());
        // Told once, a claim that was given up is never granted.
        let after = applied.write.or(before);
        if free.run.is_none() && let Some(after) = after {
            let claim = Claim {
                owner: free.owner,
                wanted: Wanted::Once { per: None },
                ttl: 1_000,
                keep: 0,
                info: String::new(),
            };
            let verdict = rules::claim(Some(&after), &claim, at(now)).reply.verdict;
            prop_assert!(matches!(verdict, Verdict::Void | Verdict::Stale));
        }
    }
}

/// One operation of a history, by one of the claims made so far.
#[derive(Clone, Debug)]
enum Op {
    Claim { at: Ms, queue: bool },
    Again { who: usize },
    Beat { who: usize },
    Free { who: usize, outcome: Outcome },
    GiveUp { who: usize },
}

fn ops() -> impl Strategy<Value = Vec<(Ms, Op)>> {
    let who = 0_usize..12;
    let outcome = prop_oneof![Just(Outcome::Done), Just(Outcome::Failed)];
    let op = prop_oneof![
        4 => ((-4_i64..4).prop_map(|n| n * 700), prop::bool::ANY).prop_map(|(at, queue)| Op::Claim { at, queue }),
        1 => who.clone().prop_map(|who| Op::Again { who }),
        2 => who.clone().prop_map(|who| Op::Beat { who }),
        2 => (who.clone(), outcome).prop_map(|(who, outcome)| Op::Free { who, outcome }),
        1 => who.prop_map(|who| Op::GiveUp { who }),
    ];
    prop::collection::vec((0_i64..900, op), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A store that keeps its record grants a firing once to those who do not
    /// give it back, with tokens that only rise.
    #[test]
    fn a_firing_is_granted_once(ops in ops()) {
        let mut record: Option<Record> = None;
        let mut now = 0;
        let mut claims: Vec<Claim> = Vec::new();
        let mut grants: Vec<(Owner, u64, Ms)> = Vec::new();
        let mut kept = std::collections::HashMap::new();
        for (passed, op) in ops {
            now += passed;
            let (claim, op) = match op {
                Op::Claim { at, queue } => {
                    let claim = Claim {
                        owner: Owner(100 + claims.len() as u128),
                        wanted: Wanted::Firing {
                            at: WALL + now + at,
                            start_deadline: 3_000,
                            overlap: if queue { Overlap::Queue } else { Overlap::Skip },
                            on_runner_lost: OnRunnerLost::Skip,
                        },
                        ttl: 1_500,
                        keep: 1,
                        info: String::new(),
                    };
                    claims.push(claim.clone());
                    (claim, Op::Again { who: 0 })
                }
                Op::Again { who } | Op::Beat { who } | Op::Free { who, .. } | Op::GiveUp { who } => {
                    let Some(claim) = claims.get(who) else { continue };
                    (claim.clone(), op)
                }
            };
            let known = grants.iter().rev().find(|(owner, ..)| *owner == claim.owner).copied();
            let write = match (op, known) {
                (Op::Beat { .. }, Some((owner, token, until))) => {
                    let beat = Beat {
                        owner,
                        token,
                        until_told: until,
                        mark_told: 0,
                        firing: claim.wanted.firing(),
                        attempt: 1,
                        grants: 1,
                        started: WALL + now,
                        once: false,
                        ttl: claim.ttl,
                        keep: 1,
                        info: String::new(),
                    };
                    rules::beat(record.as_ref(), &beat, at(now)).write
                }
                (Op::Free { outcome, .. }, Some((owner, token, _))) => {
                    let run = EndedRun {
                        token,
                        mark_told: 0,
                        firing: claim.wanted.firing(),
                        attempt: 1,
                        grants: 1,
                        started: WALL + now,
                        once: false,
                        outcome,
                        code: None,
                        info: String::new(),
                    };
                    rules::free(record.as_ref(), &Free { owner, run: Some(run), keep: 1 }, at(now)).write
                }
                // Who has a grant runs, and does not give up.
                (Op::GiveUp { .. }, None) => {
                    let free = Free { owner: claim.owner, run: None, keep: 1 };
                    rules::free(record.as_ref(), &free, at(now)).write
                }
                (Op::Again { .. }, _) => {
                    let applied = rules::claim(record.as_ref(), &claim, at(now));
                    if let Verdict::Granted(grant) = applied.reply.verdict {
                        let first = *kept.entry(claim.wanted.firing()).or_insert(claim.owner);
                        prop_assert_eq!(first, claim.owner, "granted twice");
                        let highest = grants.iter().map(|(_, token, _)| *token).max();
                        let rises = highest.is_none_or(|token| grant.token > token);
                        let same = known.is_some_and(|(_, token, _)| token == grant.token);
                        prop_assert!(rises || same, "the token did not rise");
                        grants.push((claim.owner, grant.token, grant.until));
                    }
                    applied.write
                }
                _ => None,
            };
            record = write.or(record);
        }
    }
}
