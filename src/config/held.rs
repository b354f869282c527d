//! Locks that are held around this process.
//!
//! A solocron inside a command that asks for the same lock would wait for
//! itself. Each one therefore tells its command, in `SOLOCRON_HELD`, which
//! locks are held: a short digest for each, separated by commas, outermost
//! first. A digest covers the store's place, the key prefix and the name, so
//! that the same name in another store is another lock, and it holds no secret.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The digest of a lock: place of the store without user and password, key
/// prefix and lock name.
#[must_use]
pub fn digest(place: &str, key_prefix: &str, lock_name: &str) -> String {
    let whole = [place, key_prefix, lock_name].join("\0");
    let bytes = Sha256::digest(whole.as_bytes());
    bytes.iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a lock is among those held.
#[must_use]
pub fn contains(held: &str, digest: &str) -> bool {
    held.split(',').any(|one| one == digest)
}

/// Those held with one more.
#[must_use]
pub fn with(held: &str, digest: &str) -> String {
    if held.is_empty() {
        digest.to_owned()
    } else {
        format!("{held},{digest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_its_place_prefix_and_name() {
        let this = digest("redis at a:6379", "solocron", "x");
        assert_eq!(this.len(), 16);
        assert_eq!(this, digest("redis at a:6379", "solocron", "x"));
        assert_ne!(this, digest("redis at b:6379", "solocron", "x"));
        assert_ne!(this, digest("redis at a:6379", "other", "x"));
        assert_ne!(this, digest("redis at a:6379", "solocron", "y"));
        assert_ne!(digest("a", "b", "c"), digest("a", "bc", ""));
    }

    #[test]
    fn an_outer_lock_is_found_behind_another() {
        let (outer, inner) = (digest("p", "s", "outer"), digest("p", "s", "inner"));
        let held = with(&with("", &outer), &inner);
        assert!(contains(&held, &outer));
        assert!(contains(&held, &inner));
        assert!(!contains(&held, &digest("p", "s", "third")));
        assert!(!contains("", &outer));
    }
}
