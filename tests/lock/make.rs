//! Records and requests to start from.

use std::time::Duration;

use solocron::lock::rules::{self, EndedRun};
use solocron::lock::{
    Beat, Boot, Claim, Free, Ms, OnRunnerLost, Outcome, Overlap, Owner, Record, State, StoreTime,
    Verdict, Wanted,
};

/// The store's wall clock at the tests' time 0.
pub const WALL: Ms = 1_700_000_000_000;
/// The store's lease clock then: another clock, as in a file store.
pub const LEASE: Ms = 7_000_000;
pub const TTL: Ms = 30_000;
pub const DEADLINE: Ms = 60_000;
pub const DAY: Ms = 86_400_000;

pub const ME: Owner = Owner(1);
pub const OTHER: Owner = Owner(2);

/// The store's clocks at `ms`.
pub const fn at(ms: Ms) -> StoreTime {
    StoreTime {
        wall_us: (WALL + ms) * 1000,
        lease_ms: LEASE + ms,
    }
}

pub const fn ms(ms: u64) -> Boot {
    Duration::from_millis(ms)
}

/// A record born a day ago whose last run, of a firing an hour ago, is over.
pub fn rested() -> Record {
    let mut record = Record::born_at(at(-DAY));
    record.owner = Some(OTHER);
    record.token = 5;
    record.firing = Some(WALL - 3_600_000);
    record.mark = WALL - 3_600_000;
    record.attempt = 1;
    record.grants = 1;
    record.started = WALL - 3_600_000;
    record.until = LEASE - 3_590_000;
    record.ttl = TTL;
    record.ended = Some(WALL - 3_590_000);
    record.code = Some(0);
    record.keep = DAY;
    "old".clone_into(&mut record.info);
    record
}

/// A record in which `owner` runs the firing at `firing` until `until`.
pub fn running(owner: Owner, firing: Option<Ms>, until: Ms) -> Record {
    let mut record = rested();
    record.owner = Some(owner);
    record.token = 70;
    record.firing = firing.map(|at| WALL + at);
    record.state = State::Run;
    record.mark = record.mark.max(record.firing.unwrap_or(0));
    record.started = WALL + until - TTL;
    record.until = LEASE + until;
    record.ended = None;
    record.code = None;
    record
}

/// The same after its end.
pub fn over(owner: Owner, firing: Option<Ms>, state: State, until: Ms) -> Record {
    Record {
        state,
        ended: Some(WALL + until),
        ..running(owner, firing, until)
    }
}

/// The policies of a claim for a firing.
#[derive(Clone, Copy)]
pub struct Policy(pub Overlap, pub OnRunnerLost);

pub const SKIP: Policy = Policy(Overlap::Skip, OnRunnerLost::Skip);
pub const QUEUE: Policy = Policy(Overlap::Queue, OnRunnerLost::Skip);
pub const RERUN: Policy = Policy(Overlap::Skip, OnRunnerLost::Rerun);

/// My claim for the firing at `firing`.
pub fn due(firing: Ms, policy: Policy) -> Claim {
    Claim {
        owner: ME,
        wanted: Wanted::Firing {
            at: WALL + firing,
            start_deadline: DEADLINE,
            overlap: policy.0,
            on_runner_lost: policy.1,
        },
        ttl: TTL,
        keep: DAY,
        info: "mine".to_owned(),
    }
}

/// My claim without schedule.
pub fn once(per: Option<Ms>) -> Claim {
    Claim {
        wanted: Wanted::Once { per },
        ..due(0, SKIP)
    }
}

/// The verdict, and the record that is written if any.
pub fn claim(before: Option<&Record>, claim: &Claim, now: Ms) -> (Verdict, Option<Record>) {
    let applied = rules::claim(before, claim, at(now));
    assert_eq!(applied.reply.before.as_ref(), before);
    assert_eq!(applied.reply.now, at(now));
    if applied.write.is_some() {
        assert_ne!(applied.write.as_ref(), before, "written although the same");
    }
    (applied.reply.verdict, applied.write)
}

/// A verdict in one word.
pub const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Granted(_) => "granted",
        Verdict::Busy => "busy",
        Verdict::Early(_) => "early",
        Verdict::Late(_) => "late",
        Verdict::Running => "running",
        Verdict::Done => "done",
        Verdict::Orphaned => "orphaned",
        Verdict::Unsure => "unsure",
        Verdict::Void => "void",
        Verdict::Stale => "stale",
    }
}

/// My heartbeat for a run of the firing at 0, with token 70 and a lease that
/// was told to end at `until`.
pub fn beat(until: Ms) -> Beat {
    Beat {
        owner: ME,
        token: 70,
        until_told: LEASE + until,
        mark_told: WALL,
        firing: Some(WALL),
        attempt: 1,
        grants: 1,
        started: WALL,
        once: false,
        ttl: TTL,
        keep: DAY,
        info: "mine".to_owned(),
    }
}

/// My end of the same run.
pub fn ended(outcome: Outcome) -> Free {
    Free {
        owner: ME,
        run: Some(EndedRun {
            token: 70,
            mark_told: WALL,
            firing: Some(WALL),
            attempt: 1,
            grants: 1,
            started: WALL,
            once: false,
            outcome,
            code: Some(3),
            info: "mine".to_owned(),
        }),
        keep: DAY,
    }
}

/// Giving up a claim that was never answered.
pub const fn given_up(owner: Owner) -> Free {
    Free {
        owner,
        run: None,
        keep: DAY,
    }
}
