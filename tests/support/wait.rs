//! Waiting for conditions instead of sleeping.

use std::time::{Duration, Instant};

/// How often a condition is looked at.
const STEP: Duration = Duration::from_millis(5);

/// Waits until `cond` holds; false when it still does not after `bound`.
#[must_use]
pub fn eventually(bound: Duration, mut cond: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + bound;
    loop {
        if cond() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(STEP);
    }
}

/// Waits until `cond` holds and fails the test, naming `what`, when it does not within `bound`.
pub fn wait_until(bound: Duration, what: &str, cond: impl FnMut() -> bool) {
    assert!(eventually(bound, cond), "not within {bound:?}: {what}");
}

/// Waits until `get` yields a value and fails the test, naming `what`, when it does not within `bound`.
pub fn wait_for<T>(bound: Duration, what: &str, mut get: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait_until(bound, what, || {
        found = get();
        found.is_some()
    });
    found.expect("set by the last look")
}

/// Whether the long repetitions are asked for (`SOLOCRON_LONG=1`).
#[must_use]
pub fn long() -> bool {
    std::env::var_os("SOLOCRON_LONG").is_some_and(|v| v == "1")
}

/// Milliseconds.
#[must_use]
pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Seconds.
#[must_use]
pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
