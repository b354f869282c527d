//! The number behind `H`.
//!
//! It is the first eight bytes, as a big-endian number, of the SHA-256 of the
//! field's name (`second`, `minute`, `hour`, `day-of-month`, `month`,
//! `day-of-week`), a zero byte and the lock name. It depends on nothing else,
//! so it is the same on every host, platform and release.
//!
//! `H` is the lowest value of the range plus that number modulo the size of
//! the range. `H/n` starts there too, modulo `n`, and goes on in steps of `n`.

use sha2::{Digest, Sha256};

use super::field::Field;

/// The hash of `lock_name` for one field, before it is brought into range.
pub(super) fn number(lock_name: &str, field: Field) -> u64 {
    let digest = Sha256::new()
        .chain_update(field.name())
        .chain_update([0])
        .chain_update(lock_name)
        .finalize();
    digest
        .iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fixed values: computed with `printf 'minute\0publish' | sha256sum`.
    #[test]
    fn is_the_documented_algorithm() {
        assert_eq!(number("publish", Field::Minute), MINUTE_PUBLISH);
        assert_eq!(number("publish", Field::Hour), HOUR_PUBLISH);
        assert_eq!(number("", Field::Second), SECOND_EMPTY);
    }

    const MINUTE_PUBLISH: u64 = 0xc8b4_38cb_cbba_550b;
    const HOUR_PUBLISH: u64 = 0xc680_888b_a648_9e6b;
    const SECOND_EMPTY: u64 = 0xfad9_3772_4c3c_8ed9;
}
