//! Options, checked once and typed; refuses what cannot work.
