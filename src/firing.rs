//! One firing from claim to release.
