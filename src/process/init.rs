//! Process 1 of a container: a small init in front of the program itself.
//!
//! PID 1 gets no signal that it does not catch, and every orphan. So it forks
//! before anything else exists: the parent stays as init (passes signals on,
//! reaps, ends with the status of the inner program), the child is the program
//! and never meets a child that is not its own.

use std::time::Duration;

use super::inherited::Inherited;
use super::signals::Signal;
use crate::sys::{self, Change, SignalSet, Taken, Whom};

/// Raised by the program's own defect: to block them would only hide it.
const FAULTS: [Signal; 7] = [
    Signal::SEGV,
    Signal::BUS,
    Signal::FPE,
    Signal::ILL,
    Signal::ABRT,
    Signal::SYS,
    Signal::TRAP,
];

/// How long leftovers have between TERM and KILL, and again after KILL, as
/// slices in which none of them ends.
const SLICE: Duration = Duration::from_millis(50);
const SLICES: u32 = 40;

/// To be called by `main` right after [`Inherited::capture`], before any
/// thread exists. Returns at once unless this is process 1; there, returns in
/// the inner process only.
///
/// In the inner process every signal stays blocked until
/// [`Signals::install`](super::Signals::install), so that none is lost between.
pub fn split_if_pid1(_inherited: &Inherited) {
    if std::process::id() != 1 {
        return;
    }
    let blocked = FAULTS.iter().fold(SignalSet::full(), |set, signal| {
        set.without(signal.number())
    });
    let old = sys::set_mask(&blocked);
    // An inherited SIG_IGN would make the kernel reap, and the status be lost.
    sys::set_ignored(Signal::CHLD.number(), false);
    match sys::fork() {
        Ok(0) => {}
        Ok(inner) => sys::exit_now(serve(inner, &blocked)),
        // No process to be had: as process 1 itself, which catches and reaps too.
        Err(_) => {
            sys::set_mask(&old);
        }
    }
}

/// The init's whole life; its result is the exit status.
fn serve(inner: i32, blocked: &SignalSet) -> i32 {
    let status = loop {
        if let Some(status) = reap(inner).status {
            break status;
        }
        if let Ok(Some(taken)) = sys::take_signal(blocked, None)
            && is_for(inner, taken)
        {
            let _ = sys::kill(inner, taken.signal);
        }
    };
    end_leftovers(inner, blocked);
    status
}

/// Whether the inner process is to be told. A key at the terminal has reached it
/// as well; of a hang-up the kernel tells the leader of the session alone.
fn is_for(inner: i32, taken: Taken) -> bool {
    let shares = || sys::group_of(inner) == Some(sys::own_group());
    let hung_up = || taken.signal == Signal::HUP.number() && sys::is_session_leader();
    taken.signal != Signal::CHLD.number() && (!taken.from_kernel || !shares() || hung_up())
}

struct Reaped {
    /// The inner program's, as a shell gives it.
    status: Option<i32>,
    nobody_left: bool,
}

/// Takes every ended child.
fn reap(inner: i32) -> Reaped {
    let mut status = None;
    loop {
        match sys::wait(Whom::Any, libc::WEXITED | libc::WNOHANG) {
            Ok(Some((pid, change))) if pid == inner => {
                status = match change {
                    Change::Exited(code) => Some(code),
                    Change::Signaled(signal, _) => Some(128 + signal),
                    Change::Stopped(_) => None,
                };
            }
            Ok(Some(_)) => {}
            other => {
                return Reaped {
                    status,
                    nobody_left: other.is_err(),
                };
            }
        }
    }
}

/// What the kernel would kill without warning when process 1 ends gets TERM
/// and some time first.
fn end_leftovers(inner: i32, blocked: &SignalSet) {
    for signal in [Signal::TERM, Signal::KILL] {
        if reap(inner).nobody_left {
            return;
        }
        // As process 1: everything in this PID namespace, not ourselves.
        let _ = sys::kill(-1, signal.number());
        let _ = sys::kill(-1, Signal::CONT.number());
        let mut slices = 0;
        while slices < SLICES {
            match sys::take_signal(blocked, Some(SLICE)) {
                Ok(Some(taken)) if taken.signal == Signal::CHLD.number() => {}
                // Whoever asked to stop asks again: no more time.
                Ok(Some(taken)) if taken.signal == Signal::TERM.number() => break,
                _ => slices += 1,
            }
            if reap(inner).nobody_left {
                return;
            }
        }
    }
}
