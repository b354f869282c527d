//! Commands as processes: start, signals, terminal, init.
//!
//! The order at the start of `main`, before any thread exists:
//!
//! ```no_run
//! use solocron::process::{Inherited, Signals, init};
//!
//! let inherited = Inherited::capture();
//! init::split_if_pid1(&inherited);
//! let signals = Signals::install(&inherited)?;
//! # let _ = signals;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Then a current-thread runtime, in which [`spawn()`] is called on the main
//! thread: the command is killed when the thread that started it ends.
//!
//! While a command runs, its supervisor does this with a [`Caught`] signal:
//!
//! | [`Kind`] | with a command | without |
//! |---|---|---|
//! | `Stop` | by policy [`Child::forward`]; the second time [`Child::kill_all`] | end |
//! | `Message` | [`Child::forward`] | nothing |
//! | `Suspend` | [`Child::suspend`] | [`suspend_self`] |
//! | `Continue` | look at the lease, then [`Child::forward`] | look at the clock |
//! | `Child` | [`Child::follow_stop`]; true: look at the lease | nothing |
//!
//! After [`Child::wait`]: on a forced stop [`Child::gone`], else a warning for
//! [`Child::leftovers`]; at the very end of once mode [`Placement::dies_with`]
//! and [`die_of`]. One command at a time: every orphan counts as its own,
//! except what was there before it started.
//!
//! What only Linux has is kept apart, so that another system replaces one file
//! a thing: `orphans` (subreaper), `descendants` (`/proc`), `notify` (systemd),
//! and the crate's `sys` (`clone`, parent-death signal).

mod child;
mod descendants;
mod inherited;
pub mod init;
pub mod notify;
mod orphans;
mod signals;
mod spawn;
mod start_error;
mod tty;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use child::{Child, Ended};
pub use inherited::Inherited;
pub use signals::{Caught, Kind, Origin, Signal, Signals, UnknownSignal};
pub use spawn::{Spec, Stdin, missing, spawn};
pub use start_error::StartError;
pub use tty::{Placement, Reach, Sender, suspend_self};

/// Dies of `signal`, without a core file of ours. Returns only where that is
/// impossible (process 1): the caller exits with 128+n then.
pub fn die_of(signal: Signal) {
    let core = Rlimit {
        current: Some(0),
        maximum: getrlimit(Resource::Core).maximum,
    };
    let _ = setrlimit(Resource::Core, core);
    crate::sys::act_by_default(signal.number());
}
