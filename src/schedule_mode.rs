//! The loop of a schedule.
