//! The three operations on a record: claim, beat and free.
//!
//! Each is a function of the record as it stands, a request and the store's
//! time, and says what to answer and what to write. The file and memory stores
//! call them; the Lua scripts for Redis say the same and are tested against
//! them with random histories.

use super::record::{Ms, Record, State, StoreTime};
pub use super::request::{
    Beat, BeatReply, Claim, ClaimReply, EndedRun, Extent, Free, FreeReply, Grant, Loss,
    OnRunnerLost, Outcome, Overlap, Verdict, Wanted,
};

/// A firing this little ahead of the store's clock is taken as due.
pub const EARLY_TOLERANCE: Ms = 50;
/// Beyond this lateness a firing that the record cannot know of is not started.
pub const UNSURE_AFTER: Ms = 2_000;
/// A mark further ahead of the clock than this says that the clock was set
/// back: cron's own bound between a correction and a new time, cron(8).
pub const MARK_AHEAD_MAX: Ms = 3 * 60 * 60 * 1_000;
/// A firing whose runners die is granted this many times at most.
pub const GRANTS_MAX: u32 = 3;

/// What an operation answers, and the record to write if it changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied<R> {
    /// The answer.
    pub reply: R,
    /// The record to write; none where nothing is written.
    pub write: Option<Record>,
}

/// Answers a claim by the first rule that applies.
#[must_use]
pub fn claim(before: Option<&Record>, claim: &Claim, now: StoreTime) -> Applied<ClaimReply> {
    let (verdict, write) = decide_claim(before, claim, now);
    Applied {
        reply: ClaimReply {
            verdict,
            now,
            before: before.cloned(),
        },
        write,
    }
}

fn decide_claim(
    before: Option<&Record>,
    claim: &Claim,
    now: StoreTime,
) -> (Verdict, Option<Record>) {
    if let Some(record) = before {
        if record.is_void(claim.owner) {
            return (Verdict::Void, None);
        }
        if record.owner == Some(claim.owner) {
            return claim_again(record, claim, now);
        }
    }
    if let Some(firing) = claim.wanted.firing()
        && firing > now.wall_ms() + EARLY_TOLERANCE
    {
        return (Verdict::Early(firing - now.wall_ms()), None);
    }
    let settled = before.map(|record| settle_clock(record, now));
    let record = settled.as_ref();
    let decision = match claim.wanted {
        Wanted::Firing {
            at,
            start_deadline,
            overlap,
            on_runner_lost,
        } => {
            let due = Due {
                at,
                start_deadline,
                overlap,
                on_runner_lost,
                late_by: now.wall_ms() - at,
            };
            decide_firing(record, &due, now)
        }
        Wanted::Once { per } => decide_once(record, per, now),
    };
    match decision {
        Decision::Start => start(record, claim, (0, 0), now),
        Decision::StartAgain => {
            let so_far = record.map_or((0, 0), |record| (record.attempt, record.grants));
            start(record, claim, so_far, now)
        }
        Decision::Refuse(verdict) => (verdict, settled.filter(|new| Some(new) != before)),
        Decision::Spend(verdict) => (verdict, settled.map(|new| spent(new, claim))),
    }
}

/// What the rules for a claim lead to.
enum Decision {
    Start,
    StartAgain,
    Refuse(Verdict),
    /// Refused, and the firing is marked so that no host starts it later.
    Spend(Verdict),
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        Self::Refuse(verdict)
    }
}

/// The same claim once more: its first reply was lost, or its run has ended.
fn claim_again(record: &Record, claim: &Claim, now: StoreTime) -> (Verdict, Option<Record>) {
    if record.state != State::Run {
        return (Verdict::Stale, None);
    }
    let mut renewed = record.clone();
    renewed.until = now.lease_ms + claim.ttl;
    renewed.ttl = claim.ttl;
    renewed.keep = renewed.keep.max(claim.keep);
    (Verdict::Granted(grant_of(&renewed)), Some(renewed))
}

/// The record as it counts after the store's clock was set back: a mark hours
/// ahead falls to now, and a lease further away than its own length ends one
/// length from now, which leaves its holder time to extend it.
fn settle_clock(record: &Record, now: StoreTime) -> Record {
    let mut settled = record.clone();
    if settled.mark > now.wall_ms() + MARK_AHEAD_MAX {
        settled.mark = now.wall_ms();
    }
    if settled.state == State::Run && settled.until > now.lease_ms + settled.ttl {
        settled.until = now.lease_ms + settled.ttl;
    }
    settled
}

/// A scheduled firing as the rules look at it.
struct Due {
    at: Ms,
    start_deadline: Ms,
    overlap: Overlap,
    on_runner_lost: OnRunnerLost,
    /// How far it lies behind the store's clock; negative when ahead.
    late_by: Ms,
}

impl Due {
    /// Whether the store may have forgotten that the firing ran.
    fn unsure(&self, record: Option<&Record>) -> bool {
        self.on_runner_lost == OnRunnerLost::Skip
            && self.late_by > UNSURE_AFTER
            && record.is_none_or(|record| self.at <= record.born + EARLY_TOLERANCE)
    }

    /// How late it is counted from the end of the last run, if that was later.
    fn late_after_run(&self, record: &Record, now: StoreTime) -> Ms {
        now.wall_ms() - self.at.max(now.on_wall(record.until))
    }
}

fn decide_firing(record: Option<&Record>, due: &Due, now: StoreTime) -> Decision {
    let Some(record) = record else {
        return if due.late_by > due.start_deadline {
            Verdict::Late(due.late_by).into()
        } else if due.unsure(None) {
            Verdict::Unsure.into()
        } else {
            Decision::Start
        };
    };
    if record.firing == Some(due.at)
        && let Some(decision) = decide_unfinished(record, due, now)
    {
        return decision;
    }
    if due.at <= record.mark {
        let running = record.firing == Some(due.at) && record.alive(now);
        return if running {
            Verdict::Running.into()
        } else {
            Verdict::Done.into()
        };
    }
    let late = match due.overlap {
        Overlap::Skip => due.late_by,
        Overlap::Queue => due.late_after_run(record, now),
    };
    if late > due.start_deadline {
        Verdict::Late(due.late_by).into()
    } else if due.unsure(Some(record)) {
        Verdict::Unsure.into()
    } else if record.alive(now) {
        decide_behind(record, due)
    } else {
        Decision::Start
    }
}

/// The firing of the last run, given back or left by a runner that is gone.
fn decide_unfinished(record: &Record, due: &Due, now: StoreTime) -> Option<Decision> {
    match record.state {
        State::Requeued if due.late_after_run(record, now) > due.start_deadline => {
            Some(Verdict::Late(due.late_by).into())
        }
        State::Requeued if due.unsure(Some(record)) => Some(Verdict::Unsure.into()),
        State::Requeued => Some(Decision::StartAgain),
        State::Run if record.alive(now) => None,
        State::Run => {
            let again = due.on_runner_lost == OnRunnerLost::Rerun
                && now.lease_ms - record.until <= due.start_deadline
                && record.grants < GRANTS_MAX;
            Some(if again {
                Decision::StartAgain
            } else {
                Verdict::Orphaned.into()
            })
        }
        State::Done | State::Failed => None,
    }
}

/// A firing that finds the lock held.
fn decide_behind(record: &Record, due: &Due) -> Decision {
    match (record.firing, due.overlap) {
        (Some(_), _) if due.late_by < 0 => Verdict::Early(-due.late_by).into(),
        (Some(_), Overlap::Skip) => Decision::Spend(Verdict::Busy),
        (None, _) | (Some(_), Overlap::Queue) => Verdict::Busy.into(),
    }
}

fn decide_once(record: Option<&Record>, per: Option<Ms>, now: StoreTime) -> Decision {
    let Some(record) = record else {
        return Decision::Start;
    };
    if let (Some(per), Some(once)) = (per, record.once) {
        // A start that lies ahead was told by a clock since set back: it counts
        // for its own period, not for ever.
        let distance = (now.wall_ms() - once).abs();
        if distance * 4 < per * 3 {
            return Verdict::Done.into();
        }
    }
    if record.alive(now) {
        Verdict::Busy.into()
    } else {
        Decision::Start
    }
}

fn spent(mut record: Record, claim: &Claim) -> Record {
    if let Some(at) = claim.wanted.firing() {
        record.mark = record.mark.max(at);
    }
    record.keep = record.keep.max(claim.keep);
    record
}

fn start(
    record: Option<&Record>,
    claim: &Claim,
    (attempt, grants): (u32, u32),
    now: StoreTime,
) -> (Verdict, Option<Record>) {
    let mut new = record.cloned().unwrap_or_else(|| Record::born_at(now));
    new.owner = Some(claim.owner);
    new.token = next_token(new.token, now);
    new.firing = claim.wanted.firing();
    new.state = State::Run;
    new.attempt = attempt + 1;
    new.grants = grants + 1;
    new.until = now.lease_ms + claim.ttl;
    new.ttl = claim.ttl;
    if let Some(at) = new.firing {
        new.mark = new.mark.max(at);
    }
    if let Wanted::Once { per: Some(_) } = claim.wanted {
        new.once = Some(now.wall_ms());
    }
    new.keep = new.keep.max(claim.keep);
    new.started = now.wall_ms();
    new.ended = None;
    new.code = None;
    new.info.clone_from(&claim.info);
    (Verdict::Granted(grant_of(&new)), Some(new))
}

/// Tokens rise even if the record is lost, as they follow the clock; and even
/// if the clock is set back, as they follow the record.
fn next_token(token: u64, now: StoreTime) -> u64 {
    (token + 1).max(u64::try_from(now.wall_us).unwrap_or(0))
}

fn grant_of(record: &Record) -> Grant {
    Grant {
        token: record.token,
        attempt: record.attempt,
        grants: record.grants,
        until: record.until,
        started: record.started,
        mark: record.mark,
    }
}

/// Answers a beat: extends the lease, writes a lost record again, or says why
/// the lock is lost.
#[must_use]
pub fn beat(before: Option<&Record>, beat: &Beat, now: StoreTime) -> Applied<BeatReply> {
    let (held, write) = decide_beat(before, beat, now);
    let mark = write
        .as_ref()
        .or(before)
        .map_or(beat.mark_told, |record| record.mark);
    Applied {
        reply: BeatReply {
            held,
            mark,
            now,
            before: before.cloned(),
        },
        write,
    }
}

type Held = Result<(Ms, Extent), Loss>;

fn decide_beat(before: Option<&Record>, beat: &Beat, now: StoreTime) -> (Held, Option<Record>) {
    let until = now.lease_ms + beat.ttl;
    match before {
        Some(record) if record.owner == Some(beat.owner) => {
            if record.state != State::Run {
                return (Err(Loss::Ended), None);
            }
            let extent = if record.alive(now) {
                Extent::Extended
            } else {
                Extent::Lapsed
            };
            let mut extended = record.clone();
            extended.until = until;
            extended.ttl = beat.ttl;
            extended.attempt = extended.attempt.max(beat.attempt);
            extended.mark = extended.mark.max(beat.mark_told);
            extended.keep = extended.keep.max(beat.keep);
            (Ok((until, extent)), Some(extended))
        }
        Some(record) if record.token >= beat.token => (Err(Loss::Taken), None),
        older_or_gone => {
            let told_holds =
                beat.until_told > now.lease_ms && beat.until_told <= now.lease_ms + beat.ttl;
            if told_holds {
                let healed = heal(older_or_gone, beat, now);
                (Ok((until, Extent::Healed)), Some(healed))
            } else {
                (Err(Loss::Gone), None)
            }
        }
    }
}

fn heal(before: Option<&Record>, beat: &Beat, now: StoreTime) -> Record {
    let mut healed = before.cloned().unwrap_or_else(|| Record::born_at(now));
    healed.owner = Some(beat.owner);
    healed.token = beat.token;
    healed.firing = beat.firing;
    healed.state = State::Run;
    healed.attempt = beat.attempt;
    healed.grants = beat.grants;
    healed.until = now.lease_ms + beat.ttl;
    healed.ttl = beat.ttl;
    healed.mark = healed
        .mark
        .max(beat.mark_told)
        .max(beat.firing.unwrap_or(0));
    healed.born = now.wall_ms();
    if beat.once {
        healed.once = healed.once.max(Some(beat.started));
    }
    healed.keep = healed.keep.max(beat.keep);
    healed.started = beat.started;
    healed.ended = None;
    healed.code = None;
    healed.info.clone_from(&beat.info);
    healed
}

/// Ends a run, or makes sure that a claim whose reply never came is forgotten.
///
/// It never ends another owner's lease.
#[must_use]
pub fn free(before: Option<&Record>, free: &Free, now: StoreTime) -> Applied<FreeReply> {
    let (reply, write) = match (before, &free.run) {
        (Some(record), _) if record.owner == Some(free.owner) => free_mine(record, free, now),
        (before, None) => {
            let mut record = before.cloned().unwrap_or_else(|| Record::born_at(now));
            record.add_void(free.owner);
            record.keep = record.keep.max(free.keep);
            (FreeReply::Voided, Some(record))
        }
        (None, Some(run)) => (FreeReply::NotMine, Some(remember(free, run, now))),
        (Some(record), Some(run)) => (FreeReply::NotMine, raise(record, free, run)),
    };
    Applied { reply, write }
}

fn free_mine(record: &Record, free: &Free, now: StoreTime) -> (FreeReply, Option<Record>) {
    if record.state != State::Run {
        return (FreeReply::AlreadyFree, None);
    }
    let mut ended = record.clone();
    end(&mut ended, free, now);
    ended.keep = ended.keep.max(free.keep);
    (FreeReply::Freed, Some(ended))
}

fn end(record: &mut Record, free: &Free, now: StoreTime) {
    let run = free.run.as_ref();
    let outcome = run.map_or(Outcome::NotStarted, |run| run.outcome);
    record.state = outcome.state();
    record.until = now.lease_ms;
    record.ended = Some(now.wall_ms());
    record.code = run.and_then(|run| run.code);
    if let Some(run) = run {
        record.attempt = run.attempt;
        record.mark = record.mark.max(run.mark_told);
    }
    if outcome == Outcome::NotStarted {
        record.attempt = record.attempt.saturating_sub(1);
        record.grants = record.grants.saturating_sub(1);
        if record.once == Some(record.started) {
            record.once = None;
        }
    }
    if may_return(record.firing, outcome) {
        record.add_void(free.owner);
    }
}

/// Whether a late copy of the claim could be granted after the next run: the
/// mark refuses a firing only once it is over.
fn may_return(firing: Option<Ms>, outcome: Outcome) -> bool {
    firing.is_none() || outcome.state() == State::Requeued
}

/// The store lost the record in mid-run: what ran must not run again.
fn remember(free: &Free, run: &EndedRun, now: StoreTime) -> Record {
    let mut record = Record::born_at(now);
    record.owner = Some(free.owner);
    record.token = run.token;
    record.firing = run.firing;
    record.grants = run.grants;
    record.mark = run.mark_told.max(run.firing.unwrap_or(0));
    if run.once {
        record.once = Some(run.started);
    }
    record.keep = free.keep;
    record.started = run.started;
    record.info.clone_from(&run.info);
    end(&mut record, free, now);
    record
}

fn raise(record: &Record, free: &Free, run: &EndedRun) -> Option<Record> {
    let mut raised = record.clone();
    if raised.token < run.token {
        raised.token = run.token;
        raised.mark = raised.mark.max(run.mark_told).max(run.firing.unwrap_or(0));
        if run.once && run.outcome != Outcome::NotStarted {
            raised.once = raised.once.max(Some(run.started));
        }
    }
    // Whoever came between may have given this firing back.
    raised.add_void(free.owner);
    (raised != *record).then_some(raised)
}
