//! The production rules as the explored world calls them, and faults put into
//! them from outside, which the exploration must find.

use std::time::Duration;

use solocron::lock::record::{Record, StoreTime};
use solocron::lock::rules::{
    self, Applied, Beat, BeatReply, Claim, ClaimReply, Free, FreeReply, Verdict,
};
use solocron::lock::{Action, State};

/// What becomes of the record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    Keep,
    Write(Box<Record>),
    Delete,
}

impl From<Option<Record>> for Change {
    fn from(write: Option<Record>) -> Self {
        write.map_or(Self::Keep, |record| Self::Write(Box::new(record)))
    }
}

fn apart<R>(applied: Applied<R>) -> (R, Change) {
    (applied.reply, applied.write.into())
}

/// The rules, each as production has it unless a fault says otherwise.
pub trait Rules {
    fn claim(
        &self,
        before: Option<&Record>,
        claim: &Claim,
        now: StoreTime,
    ) -> (ClaimReply, Change) {
        apart(rules::claim(before, claim, now))
    }

    fn beat(&self, before: Option<&Record>, beat: &Beat, now: StoreTime) -> (BeatReply, Change) {
        apart(rules::beat(before, beat, now))
    }

    fn free(&self, before: Option<&Record>, free: &Free, now: StoreTime) -> (FreeReply, Change) {
        apart(rules::free(before, free, now))
    }

    /// The moment from which a lease is counted.
    fn lease_from(&self, sent: Duration, _replied: Duration) -> Duration {
        sent
    }

    /// What is done of that which the holder asks for.
    fn obey(&self, actions: Vec<Action>) -> Vec<Action> {
        actions
    }
}

/// Nothing but the production rules.
pub struct Production;
impl Rules for Production {}

/// Free deletes the record, whoever's it is.
pub struct BlindDelete;
impl Rules for BlindDelete {
    fn free(&self, before: Option<&Record>, free: &Free, now: StoreTime) -> (FreeReply, Change) {
        (rules::free(before, free, now).reply, Change::Delete)
    }
}

/// Free deletes the record if it is the caller's.
pub struct DeleteMine;
impl Rules for DeleteMine {
    fn free(&self, before: Option<&Record>, free: &Free, now: StoreTime) -> (FreeReply, Change) {
        let applied = rules::free(before, free, now);
        match applied.reply {
            FreeReply::Freed => (applied.reply, Change::Delete),
            _ => apart(applied),
        }
    }
}

/// The lease is believed to last a ttl from the reply.
pub struct LeaseFromReply;
impl Rules for LeaseFromReply {
    fn lease_from(&self, _sent: Duration, replied: Duration) -> Duration {
        replied
    }
}

/// The command is not stopped when no heartbeat is answered.
pub struct NoStop;
impl Rules for NoStop {
    fn obey(&self, mut actions: Vec<Action>) -> Vec<Action> {
        actions.retain(|action| matches!(action, Action::Beat));
        actions
    }
}

/// The mark is forgotten when the run ends.
pub struct MarkCleared;
impl Rules for MarkCleared {
    fn free(&self, before: Option<&Record>, free: &Free, now: StoreTime) -> (FreeReply, Change) {
        let applied = rules::free(before, free, now);
        let write = applied.write.map(|record| Record { mark: 0, ..record });
        (applied.reply, write.into())
    }
}

/// A lost record is written again however old the lease is.
pub struct HealsLate;
impl Rules for HealsLate {
    fn beat(&self, before: Option<&Record>, beat: &Beat, now: StoreTime) -> (BeatReply, Change) {
        let young = Beat {
            until_told: now.lease_ms + beat.ttl,
            ..beat.clone()
        };
        apart(rules::beat(before, &young, now))
    }
}

/// A record with a larger token is taken for a lost one.
pub struct HealsOver;
impl Rules for HealsOver {
    fn beat(&self, before: Option<&Record>, beat: &Beat, now: StoreTime) -> (BeatReply, Change) {
        let older = before.cloned().map(|mut record| {
            if record.owner != Some(beat.owner) {
                record.token = record.token.min(beat.token - 1);
            }
            record
        });
        apart(rules::beat(older.as_ref(), beat, now))
    }
}

/// A claim that was granted and asks again is taken for another's.
pub struct NotIdempotent;
impl Rules for NotIdempotent {
    fn claim(
        &self,
        before: Option<&Record>,
        claim: &Claim,
        now: StoreTime,
    ) -> (ClaimReply, Change) {
        let foreign = before.cloned().map(|mut record| {
            if record.owner == Some(claim.owner) && record.state == State::Run {
                record.owner = None;
            }
            record
        });
        apart(rules::claim(foreign.as_ref(), claim, now))
    }
}

/// A claim that was given up is not remembered.
pub struct NoVoid;
impl Rules for NoVoid {
    fn free(&self, before: Option<&Record>, free: &Free, now: StoreTime) -> (FreeReply, Change) {
        let applied = rules::free(before, free, now);
        match applied.reply {
            FreeReply::Voided => (applied.reply, Change::Keep),
            _ => apart(applied),
        }
    }
}

/// A firing of which the store is not sure is marked as spent.
pub struct UnsureMarks;
impl Rules for UnsureMarks {
    fn claim(
        &self,
        before: Option<&Record>,
        claim: &Claim,
        now: StoreTime,
    ) -> (ClaimReply, Change) {
        let applied = rules::claim(before, claim, now);
        if applied.reply.verdict != Verdict::Unsure {
            return apart(applied);
        }
        let mut record = before.cloned().unwrap_or_else(|| Record::born_at(now));
        record.mark = record.mark.max(claim.wanted.firing().unwrap_or(0));
        (applied.reply, Change::Write(Box::new(record)))
    }
}

/// A claim whose run has ended is granted once more when it arrives again.
pub struct GrantsAfterFree;
impl Rules for GrantsAfterFree {
    fn claim(
        &self,
        before: Option<&Record>,
        claim: &Claim,
        now: StoreTime,
    ) -> (ClaimReply, Change) {
        let running = before.cloned().map(|mut record| {
            if record.owner == Some(claim.owner) {
                record.state = State::Run;
            }
            record
        });
        apart(rules::claim(running.as_ref(), claim, now))
    }
}
