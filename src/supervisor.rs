//! The loop over one running command: child, heartbeat, signals, timers.
