//! What the server throws away when its memory is full.

/// What becomes of a record when memory is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Eviction {
    /// Nothing is thrown away, or there is no limit.
    None,
    /// Keys with an expiry are: the record must have none.
    Expiring,
    /// Any key is: the record is not safe there.
    Any,
}

/// Reads it from the text of `INFO memory`; none where it does not say.
#[must_use]
pub fn eviction(info: &str) -> Option<Eviction> {
    let field = |name: &str| {
        info.lines()
            .filter_map(|line| line.trim_end().split_once(':'))
            .find_map(|(key, value)| (key == name).then_some(value))
    };
    if field("maxmemory") == Some("0") {
        return Some(Eviction::None);
    }
    let policy = field("maxmemory_policy")?;
    Some(if policy.starts_with("volatile") {
        Eviction::Expiring
    } else if policy.starts_with("allkeys") {
        Eviction::Any
    } else {
        Eviction::None
    })
}

#[cfg(test)]
mod tests {
    use super::{Eviction, eviction};

    #[test]
    fn the_policy_counts_where_memory_has_a_limit() {
        let info = |limit: &str, policy: &str| {
            eviction(&format!(
                "# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n"
            ))
        };
        assert_eq!(info("0", "allkeys-lru"), Some(Eviction::None));
        assert_eq!(info("1", "noeviction"), Some(Eviction::None));
        assert_eq!(info("1", "volatile-ttl"), Some(Eviction::Expiring));
        assert_eq!(info("1", "allkeys-lfu"), Some(Eviction::Any));
        assert_eq!(eviction("# Memory\r\n"), None);
    }
}
