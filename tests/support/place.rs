//! Where a lock can live, for tests that hold on every store.

use super::redis::RedisServer;
use super::solocron::Solocron;
use super::wait::{eventually, secs};
use std::time::Duration;
use tempfile::TempDir;

/// A store of a test's own.
#[derive(Debug)]
pub enum Place {
    /// a server
    Redis(RedisServer),
    /// the embedded store in a directory
    Local(TempDir),
}

impl Place {
    /// One of each kind.
    #[must_use]
    pub fn each() -> [Self; 2] {
        let dir = tempfile::tempdir().expect("temporary directory");
        [Self::Redis(RedisServer::start()), Self::Local(dir)]
    }

    /// Runs a test on one of each kind at the same time.
    pub fn for_each(test: impl Fn(&Place) + Sync) {
        std::thread::scope(|scope| {
            for place in Self::each() {
                let test = &test;
                scope.spawn(move || test(&place));
            }
        });
    }

    /// The URL of the store.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Redis(redis) => redis.url(),
            Self::Local(dir) => format!("file://{}", dir.path().display()),
        }
    }

    /// The binary on this store.
    #[must_use]
    pub fn run(&self, lock: &str) -> Solocron {
        Solocron::at(&self.url(), lock)
    }

    /// Whether the lock is held, as `--status` tells.
    ///
    /// # Panics
    /// When `--status` ends with another status than that for held or free.
    #[must_use]
    pub fn held(&self, lock: &str) -> bool {
        let out = self.run(lock).arg("--status").run();
        match out.code() {
            0 => false,
            75 => true,
            other => panic!("--status ended with {other}: {}", out.stderr),
        }
    }

    /// Fails the test when the lock is not free within `bound`.
    #[track_caller]
    pub fn assert_free_within(&self, lock: &str, bound: Duration) {
        assert!(
            eventually(bound, || !self.held(lock)),
            "lock {lock} is held on {}",
            self.url()
        );
    }

    /// Fails the test when the lock is not free at once.
    #[track_caller]
    pub fn assert_free(&self, lock: &str) {
        self.assert_free_within(lock, secs(0));
    }
}
