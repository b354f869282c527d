//! Orphaned descendants of the command: adopted, so that a forced stop finds
//! them however they were detached, and reaped, so that none stays a zombie.
//!
//! Linux only (`PR_SET_CHILD_SUBREAPER`); elsewhere [`adopt`] does nothing and
//! orphans go to the system's init.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::{self, Whom};

static ADOPTING: AtomicBool = AtomicBool::new(false);

/// Commands whose status is waited for by pid and must not be taken here.
static COMMANDS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

fn commands() -> MutexGuard<'static, Vec<i32>> {
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Orphans come to this process from here on. PID 1 gets them anyway.
pub(super) fn adopt() {
    if sys::adopt_orphans().is_ok() {
        ADOPTING.store(true, Ordering::Relaxed);
    }
}

/// Whether orphans come to this process.
pub(super) fn adopting() -> bool {
    ADOPTING.load(Ordering::Relaxed)
}

/// Starts a command while [`reap`] cannot look, and keeps its pid from it.
pub(super) fn guarded<E>(start: impl FnOnce() -> Result<i32, E>) -> Result<i32, E> {
    let mut commands = commands();
    let pid = start()?;
    commands.push(pid);
    Ok(pid)
}

/// `pid` has been reaped, or nobody will ask for its status.
pub(super) fn release(pid: i32) {
    commands().retain(|known| *known != pid);
}

/// Reaps every ended child that is no command. An ended command hides those
/// behind it, so this has to be called again after one is reaped.
pub(super) fn reap() {
    if !adopting() {
        return;
    }
    let commands = commands();
    let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    while let Ok(Some((pid, _))) = sys::wait(Whom::Any, look) {
        if commands.contains(&pid) {
            break;
        }
        let _ = sys::wait(Whom::Pid(pid), libc::WEXITED | libc::WNOHANG);
    }
}

/// Whether this process has any child at all, ended ones included.
pub(super) fn any_child() -> bool {
    let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    sys::wait(Whom::Any, look).is_ok()
}
