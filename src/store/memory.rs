//! A store in memory, for tests of what stands above.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;
use std::time::Duration;

use super::{Answer, Store, StoreError};
use crate::lock::rules::Applied;
use crate::lock::{Beat, BeatReply, Claim, ClaimReply, Free, FreeReply, Record, StoreTime, rules};

/// What tells the store's time.
pub type Clock = Rc<dyn Fn() -> StoreTime>;

/// A record in memory. Clones share it, as instances share a server.
#[derive(Clone)]
pub struct MemoryStore {
    record: Rc<RefCell<Option<Record>>>,
    failure: Rc<RefCell<Option<StoreError>>>,
    clock: Clock,
}

impl MemoryStore {
    /// An empty store on this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            record: Rc::default(),
            failure: Rc::default(),
            clock,
        }
    }

    /// The record as it stands.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        self.record.borrow().clone()
    }

    /// Puts a record in place, or none as if the store had lost it.
    pub fn set_record(&self, record: Option<Record>) {
        *self.record.borrow_mut() = record;
    }

    /// Makes every operation fail in this way until told otherwise.
    pub fn set_failure(&self, failure: Option<StoreError>) {
        *self.failure.borrow_mut() = failure;
    }

    fn apply<R>(
        &self,
        rule: impl FnOnce(Option<&Record>, StoreTime) -> Applied<R>,
    ) -> Result<R, StoreError> {
        if let Some(failure) = self.failure.borrow().clone() {
            return Err(failure);
        }
        let mut record = self.record.borrow_mut();
        let applied = rule(record.as_ref(), (self.clock)());
        if applied.write.is_some() {
            *record = applied.write;
        }
        Ok(applied.reply)
    }
}

impl Store for MemoryStore {
    fn prepare(&self, _within: Duration) -> Answer<'_, ()> {
        let failure = self.failure.borrow().clone();
        Box::pin(ready(failure.map_or(Ok(()), Err)))
    }

    fn claim<'a>(&'a self, claim: &'a Claim, _within: Duration) -> Answer<'a, ClaimReply> {
        Box::pin(async move { self.apply(|before, now| rules::claim(before, claim, now)) })
    }

    fn beat<'a>(&'a self, beat: &'a Beat, _within: Duration) -> Answer<'a, BeatReply> {
        Box::pin(async move { self.apply(|before, now| rules::beat(before, beat, now)) })
    }

    fn free<'a>(&'a self, free: &'a Free, _within: Duration) -> Answer<'a, FreeReply> {
        Box::pin(async move { self.apply(|before, now| rules::free(before, free, now)) })
    }

    fn read(&self, _within: Duration) -> Answer<'_, (Option<Record>, StoreTime)> {
        Box::pin(async move {
            self.apply(|before, now| Applied {
                reply: (before.cloned(), now),
                write: None,
            })
        })
    }

    fn grant_stands(&self, _within: Duration) -> Answer<'_, bool> {
        Box::pin(ready(Ok(true)))
    }

    fn rest(&self) {}

    fn place(&self) -> &'static str {
        "memory"
    }

    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
