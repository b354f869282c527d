//! What this process was given and the command must get back.

use std::fmt;

use super::signals::{self, Signal};
use crate::sys::{self, SignalSet};

/// Signal mask and ignored signals as they were when the process started.
///
/// Everything else a command inherits (descriptors, limits, umask, working
/// directory, terminal) is left as it is and needs no memory.
#[derive(Clone)]
pub struct Inherited {
    mask: SignalSet,
    ignored: Vec<Signal>,
}

impl Inherited {
    /// Looks at the process. To be called first in `main`, before anything
    /// changes a mask or a handler.
    ///
    /// PIPE is never among the ignored ones: Rust's runtime ignores it before
    /// `main`, and a command gets the default action, as from
    /// `std::process::Command`.
    #[must_use]
    pub fn capture() -> Self {
        let ignored = signals::changed()
            .filter(|signal| *signal != Signal::PIPE && sys::is_ignored(signal.number()));
        Self {
            ignored: ignored.collect(),
            mask: sys::mask(),
        }
    }

    /// Whether `signal` was ignored at the start (as HUP is under nohup).
    #[must_use]
    pub fn ignores(&self, signal: Signal) -> bool {
        self.ignored.contains(&signal)
    }

    pub(super) fn mask(&self) -> &SignalSet {
        &self.mask
    }

    /// For every signal whose action we change: whether the command gets it ignored.
    pub(super) fn dispositions(&self) -> Vec<(i32, bool)> {
        signals::changed()
            .map(|signal| (signal.number(), self.ignores(signal)))
            .collect()
    }
}

impl fmt::Debug for Inherited {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocked = (1..=64)
            .filter_map(Signal::from_number)
            .filter(|signal| self.mask.contains(signal.number()));
        out.debug_struct("Inherited")
            .field("blocked", &blocked.collect::<Vec<_>>())
            .field("ignored", &self.ignored)
            .finish()
    }
}
