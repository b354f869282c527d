//! Typed events of a run, and the log that tells them.
