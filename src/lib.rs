//! solocron runs a command under a lock that all hosts share, on a crontab
//! schedule or once.
//!
//! The library exists for the binary and its tests; it makes no promise of
//! stability. Layers, each depending only on those below it:
//!
//! - [`app`], [`cli`], [`config`], [`exit`]: words and numbers at the edge
//! - [`schedule_mode`], [`once_mode`]: the two loops; [`status_mode`]: a look
//! - [`firing`], [`supervisor`]: one firing from claim to release
//! - [`process`], [`store`]: the outside world, one file a thing
//! - [`clock`], [`event`], [`log`]: the seams to time and to output; [`info`]:
//!   who runs; `sys`: the unsafe calls
//! - [`lock`], [`schedule`]: pure rules, without IO, async or a clock

pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod event;
pub mod exit;
pub mod firing;
pub mod info;
pub mod lock;
pub mod log;
pub mod once_mode;
pub mod process;
pub mod schedule;
pub mod schedule_mode;
pub mod status_mode;
pub mod store;
pub mod supervisor;
mod sys;
