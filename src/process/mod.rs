//! Commands as processes: start, signals, terminal, init.
