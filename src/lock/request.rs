//! What is asked of a record and what it answers.

use super::record::{Ms, Owner, Record, State, StoreTime};

/// A firing that falls due while an earlier run holds the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Overlap {
    /// It is spent: no host starts it later.
    #[default]
    Skip,
    /// It waits for the lock; only the newest one does.
    Queue,
}

/// A firing whose runner died.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnRunnerLost {
    /// It is left as it is.
    #[default]
    Skip,
    /// It is started again elsewhere.
    Rerun,
}

/// What a claimant wants to start.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Wanted {
    /// A scheduled firing.
    Firing {
        /// The scheduled instant.
        at: Ms,
        /// How late it may start, a span.
        start_deadline: Ms,
        /// What happens behind an earlier run.
        overlap: Overlap,
        /// What happens when its runner died.
        on_runner_lost: OnRunnerLost,
    },
    /// A single run.
    Once {
        /// The period in which it may start once, a span.
        per: Option<Ms>,
    },
}

impl Wanted {
    /// The scheduled instant, if there is one.
    #[must_use]
    pub const fn firing(&self) -> Option<Ms> {
        match self {
            Self::Firing { at, .. } => Some(*at),
            Self::Once { .. } => None,
        }
    }
}

/// A request for the lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    /// The name of this claim; a repeated request carries the same one.
    pub owner: Owner,
    /// What is to be started.
    pub wanted: Wanted,
    /// The length of the lease, a span.
    pub ttl: Ms,
    /// How long the record must be kept, a span.
    pub keep: Ms,
    /// JSON about the claimant, kept in the record of its run.
    pub info: String,
}

/// A lease that was given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grant {
    /// The fencing token.
    pub token: u64,
    /// How many times the command is started for this firing, this time included.
    pub attempt: u32,
    /// How many times this firing was granted, this time included.
    pub grants: u32,
    /// When the lease ends, on the store's lease clock.
    pub until: Ms,
    /// When the run was granted, on the store's wall clock.
    pub started: Ms,
    /// The record's mark after the grant.
    pub mark: Ms,
}

/// The answer to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The lock is the claimant's.
    Granted(Grant),
    /// Another run holds the lock.
    Busy,
    /// The firing lies this span ahead of the store's clock.
    Early(Ms),
    /// The firing lies this span behind the store's clock, too far to start.
    Late(Ms),
    /// The firing runs at this moment.
    Running,
    /// The firing was started, spent or overtaken; or the period has its run.
    Done,
    /// The firing's runner died and it is not started again.
    Orphaned,
    /// The store may have forgotten that the firing ran.
    Unsure,
    /// This claimant gave up before its request arrived.
    Void,
    /// This claim's run has ended.
    Stale,
}

/// The answer to a claim, with what it rests on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClaimReply {
    /// The answer.
    pub verdict: Verdict,
    /// The store's clocks when it answered.
    pub now: StoreTime,
    /// The record as it stood before.
    pub before: Option<Record>,
}

/// A holder's request to extend its lease, with all that is needed to write
/// the record again should the store have lost it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Beat {
    /// The name of the claim.
    pub owner: Owner,
    /// The fencing token of the grant.
    pub token: u64,
    /// The lease end last told by the store, on its lease clock.
    pub until_told: Ms,
    /// The mark last told by the store, or a later firing that is spent because
    /// it fell due during this run.
    pub mark_told: Ms,
    /// The scheduled instant of the run.
    pub firing: Option<Ms>,
    /// How many times the command was started for this firing.
    pub attempt: u32,
    /// How many times this firing was granted.
    pub grants: u32,
    /// When the run was granted.
    pub started: Ms,
    /// Whether the run stands for a period of its own (see [`Wanted::Once`]).
    pub once: bool,
    /// The length of the lease, a span.
    pub ttl: Ms,
    /// How long the record must be kept, a span.
    pub keep: Ms,
    /// JSON about the holder.
    pub info: String,
}

/// How a lease was extended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extent {
    /// It was alive.
    Extended,
    /// It had lapsed, and nobody had come.
    Lapsed,
    /// The record was gone or older than the lease, and was written again.
    Healed,
}

/// Why a lease could not be extended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Loss {
    /// The run is marked as ended.
    Ended,
    /// The store lost the record, too long ago to write it again.
    Gone,
    /// Another claim holds or held the lock since.
    Taken,
}

/// The answer to a beat.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BeatReply {
    /// The new lease end on the store's lease clock and how it came about, or
    /// why there is none.
    pub held: Result<(Ms, Extent), Loss>,
    /// The record's mark.
    pub mark: Ms,
    /// The store's clocks when it answered.
    pub now: StoreTime,
    /// The record as it stood before.
    pub before: Option<Record>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The command ended with status 0.
    Done,
    /// The command ended otherwise or could not be started.
    Failed,
    /// The claim is given back without a start.
    NotStarted,
    /// The command was stopped by us and is to be started again elsewhere.
    Rerun,
}

impl Outcome {
    /// The state that the record shows for it.
    #[must_use]
    pub const fn state(self) -> State {
        match self {
            Self::Done => State::Done,
            Self::Failed => State::Failed,
            Self::NotStarted | Self::Rerun => State::Requeued,
        }
    }
}

/// A holder's request to end its run, or a claimant's to be forgotten.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Free {
    /// The name of the claim.
    pub owner: Owner,
    /// What the grant told, or none when no reply to the claim ever came.
    pub run: Option<EndedRun>,
    /// How long the record must be kept, a span.
    pub keep: Ms,
}

/// A run that its holder knows of, at its end.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EndedRun {
    /// The fencing token of the grant.
    pub token: u64,
    /// The mark last told by the store.
    pub mark_told: Ms,
    /// The scheduled instant of the run.
    pub firing: Option<Ms>,
    /// How many times the command was started for this firing.
    pub attempt: u32,
    /// How many times this firing was granted.
    pub grants: u32,
    /// When the run was granted.
    pub started: Ms,
    /// Whether the run stands for a period of its own.
    pub once: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// The command's exit status, if it ended with one.
    pub code: Option<i32>,
    /// JSON about the holder.
    pub info: String,
}

/// The answer to a request to free.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FreeReply {
    /// The run was ended, and the claim will be refused should it arrive again.
    Freed,
    /// The run had ended before.
    AlreadyFree,
    /// Another claim's record stands there, or none did. The claim will be
    /// refused should it arrive again.
    NotMine,
    /// The claim will be refused should it still arrive.
    Voided,
}
