//! What the server throws away when its memory is full.

/// What becomes of a record when memory is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Eviction {
    /// Nothing is thrown away.
    None,
    /// Keys with an expiry are: the record must have none.
    Expiring,
    /// Any key is: the record is not safe there.
    Any,
}

/// Reads it and its name from the text of `INFO memory`; none where it does not
/// say.
#[must_use]
pub fn eviction(info: &str) -> Option<(Eviction, &str)> {
    let field = |name: &str| {
        info.lines()
            .filter_map(|line| line.trim_end().split_once(':'))
            .find_map(|(key, value)| (key == name).then_some(value))
    };
    // Also without a limit: that can be set at any time.
    let policy = field("maxmemory_policy")?;
    let eviction = if policy.starts_with("volatile") {
        Eviction::Expiring
    } else if policy.starts_with("allkeys") {
        Eviction::Any
    } else {
        Eviction::None
    };
    Some((eviction, policy))
}

#[cfg(test)]
mod tests {
    use super::{Eviction, eviction};

    #[test]
    fn the_policy_counts_with_and_without_a_limit() {
        let info = |limit: &str, policy: &str| {
            let text = format!("# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n");
            let (eviction, name) = eviction(&text)?;
            assert_eq!(name, policy);
            Some(eviction)
        };
        assert_eq!(info("0", "allkeys-lru"), Some(Eviction::Any));
        assert_eq!(info("1", "noeviction"), Some(Eviction::None));
        assert_eq!(info("1", "volatile-ttl"), Some(Eviction::Expiring));
        assert_eq!(info("1", "allkeys-lfu"), Some(Eviction::Any));
        assert_eq!(eviction("# Memory\r\n"), None);
    }
}
