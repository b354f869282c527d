//! Where records live: Redis, a directory of files, memory.

pub mod error;
pub mod file;
pub mod location;
pub mod memory;
pub mod redis;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

pub use error::{Class, StoreError};
pub use location::{BadLocation, Location};

use self::file::FileStore;
use self::redis::RedisStore;
use self::redis::tls::TlsOptions;
use crate::lock::{Beat, BeatReply, Claim, ClaimReply, Free, FreeReply, Record, StoreTime};

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

/// What a store has to know besides where it is.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions<'a> {
    /// The name of the lock.
    pub lock_name: &'a str,
    /// What the keys in Redis begin with.
    pub key_prefix: &'a str,
    /// Certificates, for addresses that speak TLS.
    pub tls: &'a TlsOptions,
    /// Where [`Location::Local`] is (see [`file::default_dir`]); needed for it only.
    pub local_dir: Option<&'a Path>,
}

/// The store of one lock at a place. Nothing is connected to or made yet.
///
/// # Errors
///
/// The options do not fit the place or each other, or a file that they name
/// cannot be used; for a message about usage.
pub fn open(location: &Location, options: &StoreOptions<'_>) -> Result<Box<dyn Store>, String> {
    let dir = match location {
        Location::Redis(url) => {
            let store = RedisStore::open(url, options.tls, options.key_prefix, options.lock_name)?;
            return Ok(Box::new(store));
        }
        Location::Local => options.local_dir.ok_or("the embedded store has no place")?,
        Location::Dir(dir) => dir,
    };
    if !options.tls.is_default() {
        return Err(redis::TLS_NEEDS_REDISS.to_owned());
    }
    Ok(Box::new(FileStore::open(dir, options.lock_name)))
}
