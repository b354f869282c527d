//! What happened, in words.

use std::cell::RefCell;

use solocron::lock::{Record, Verdict};

use super::setup::{BASE, LEASE_BASE};
use super::world::{Body, Msg};

thread_local! {
    static NOTES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Notes something if somebody listens.
pub fn note(text: impl FnOnce() -> String) {
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.push(text());
        }
    });
}

/// What was noted while `work` was done.
pub fn listen<R>(work: impl FnOnce() -> R) -> (R, Vec<String>) {
    NOTES.set(Some(Vec::new()));
    let result = work();
    (result, NOTES.take().unwrap_or_default())
}

pub fn name(i: usize) -> String {
    char::from(b'A' + u8::try_from(i).unwrap()).to_string()
}

pub fn message(msg: &Msg) -> String {
    let what = match &msg.body {
        Body::Claim(claim) => format!("claim {}", claim.owner.0),
        Body::Beat(beat) => format!("beat {}", beat.owner.0),
        Body::Free(free) => match &free.run {
            Some(run) => format!("free {} {:?}", free.owner.0, run.outcome),
            None => format!("free {} unanswered", free.owner.0),
        },
        Body::Claimed(owner, reply) => {
            format!("reply to claim {}: {}", owner.0, verdict(&reply.verdict))
        }
        Body::Beaten(owner, reply) => format!("reply to beat {}: {:?}", owner.0, reply.held),
    };
    format!("{} of {}", what, name(msg.inst))
}

pub fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Granted(grant) => format!(
            "granted, token {}, attempt {}, until {}",
            i64::try_from(grant.token / 1000).unwrap() - BASE,
            grant.attempt,
            grant.until - LEASE_BASE
        ),
        other => format!("{other:?}"),
    }
}

pub fn record(record: Option<&Record>) -> String {
    record.map_or_else(
        || "no record".to_owned(),
        |record| {
            format!(
                "owner {} state {} firing {} until {} mark {} born {} attempt {} grants {} void {:?}",
                record.owner.map_or(0, |owner| owner.0),
                record.state,
                record.firing.map_or(0, |at| at - BASE),
                record.until - LEASE_BASE,
                record.mark - BASE,
                record.born - BASE,
                record.attempt,
                record.grants,
                record.void.iter().map(|owner| owner.0).collect::<Vec<_>>()
            )
        },
    )
}
