//! What can go wrong with a store, by what there is to do about it.

use std::fmt;

/// What kind of failure it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Wrong or missing user name or password.
    Auth,
    /// The user may not do what is needed.
    Permission,
    /// A certificate is not trusted, or one side does not speak TLS.
    Tls,
    /// The server is not of the kind that the address says: a cluster, a
    /// sentinel, a database that does not exist.
    Topology,
    /// The key holds something else: another program uses it.
    KeyMisuse,
    /// The host name cannot be resolved.
    Name,
    /// No connection, or it broke, or no answer came in time.
    Unreachable,
    /// The server is up but does not serve yet.
    NotReady,
    /// The server has become a replica.
    Failover,
    /// The server cannot write: memory, disk or replicas are missing.
    CannotStore,
    /// Anything else that the store said.
    Other,
}

impl Class {
    /// A word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Permission => "permission",
            Self::Tls => "tls",
            Self::Topology => "topology",
            Self::KeyMisuse => "key misuse",
            Self::Name => "name",
            Self::Unreachable => "unreachable",
            Self::NotReady => "not ready",
            Self::Failover => "failover",
            Self::CannotStore => "cannot store",
            Self::Other => "other",
        }
    }

    /// Whether asking again cannot help until somebody changes something.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Auth | Self::Permission | Self::Tls | Self::Topology | Self::KeyMisuse
        )
    }
}

/// A failed operation on a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreError {
    /// What kind of failure it is.
    pub class: Class,
    /// What happened, where, and what to do about it; without any secret.
    pub message: String,
    /// Whether the store may have carried out the operation all the same.
    pub unsettled: bool,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}
