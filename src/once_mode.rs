//! The loop of a single run.
