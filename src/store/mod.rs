//! Where records live: Redis, a directory of files, memory.

pub mod error;
pub mod location;
pub mod memory;
pub mod redis;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub use error::{Class, StoreError};
pub use location::{BadLocation, Location};

use crate::clock::Clock;
use crate::lock::{Beat, BeatReply, Claim, ClaimReply, Free, FreeReply};

pub use crate::lock::{Record, StoreTime};

/// An answer that a store is waiting for.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + 'a>>;

/// The record of one lock name in one store.
///
/// Every operation is one attempt, on a fresh connection where the last one
/// failed, and ends within the time given. Repeating it is the caller's
/// business. An operation may be dropped at any moment; the store may still
/// carry it out.
pub trait Store {
    /// Does ahead of time what a first operation would have to do: resolve,
    /// connect, authenticate.
    fn prepare(&self, within: Duration) -> Answer<'_, ()>;

    /// Asks for the lock (see [`crate::lock::rules::claim`]).
    fn claim<'a>(&'a self, claim: &'a Claim, within: Duration) -> Answer<'a, ClaimReply>;

    /// Extends the lease (see [`crate::lock::rules::beat`]).
    fn beat<'a>(&'a self, beat: &'a Beat, within: Duration) -> Answer<'a, BeatReply>;

    /// Ends a run or forgets a claim (see [`crate::lock::rules::free`]).
    fn free<'a>(&'a self, free: &'a Free, within: Duration) -> Answer<'a, FreeReply>;

    /// Reads the record and the store's clocks.
    fn read(&self, within: Duration) -> Answer<'_, (Option<Record>, StoreTime)>;

    /// Whether a grant is still to be trusted just before the command starts;
    /// false where the lease must be extended first because another server may
    /// have become the one that counts.
    fn grant_stands(&self, within: Duration) -> Answer<'_, bool>;

    /// Lets go of connections until the next operation.
    fn rest(&self);

    /// Where the store is, for messages: never with a password.
    fn place(&self) -> &str;

    /// What about this store endangers the lock, learned on the way; told once.
    fn take_warnings(&self) -> Vec<String>;
}

/// The record of a lock name at a location. Nothing is connected to yet.
///
/// # Errors
/// What in the options or the files they name cannot be used.
pub fn open(
    location: &Location,
    tls: &redis::tls::TlsOptions,
    key_prefix: &str,
    lock_name: &str,
    clock: &'static dyn Clock,
) -> Result<Box<dyn Store>, String> {
    let _ = clock;
    match location {
        Location::Redis(url) => {
            let store = redis::RedisStore::open(url, tls, key_prefix, lock_name)?;
            Ok(Box::new(store))
        }
        Location::Local | Location::Dir(_) => Err("the embedded store is missing".to_owned()),
    }
}
