//! The pure rules of the lock: what a record means, when a lease holds, and
//! what claimant and holder do next.
//!
//! Nothing here reads a clock, waits or talks to anyone, so that the same code
//! serves every store, the binary, and the exhaustive exploration in the tests.
//!
//! - [`record`]: the record and its data
//! - [`request`]: what is asked of it, and the answers
//! - [`rules`]: the three operations, claim, beat and free
//! - [`lease`]: how long a holder may believe in its lease
//! - [`claimant`]: what a claimant does with an answer
//! - [`holder`]: what a holder does while its command runs

pub mod claimant;
pub mod holder;
pub mod lease;
pub mod record;
pub mod request;
pub mod rules;

pub use claimant::{Claimant, Next, Patience, Refusal, Wait};
pub use holder::{Action, Holder, Lost, OnLockLost};
pub use lease::{Boot, Timing};
pub use record::{Ms, Owner, Record, State, StoreTime};
pub use rules::{
    Beat, BeatReply, Claim, ClaimReply, EndedRun, Extent, Free, FreeReply, Grant, Loss,
    OnRunnerLost, Outcome, Overlap, Verdict, Wanted,
};
