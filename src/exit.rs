//! Exit statuses, each with its meaning.
