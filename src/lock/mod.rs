//! The pure rules of the lock: record, lease arithmetic, machines.
