//! The system calls that no safe crate offers: the one place with `unsafe`.
//!
//! Thin, safe functions over libc; no policy. Linux only are [`spawn`] (`clone`
//! and the parent-death signal) and [`adopt_orphans`].
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A set of signals as the kernel keeps it.
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl SignalSet {
    pub(crate) fn empty() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set it is given.
        Self(unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            set.assume_init()
        })
    }

    pub(crate) fn full() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigfillset initialises the set it is given.
        Self(unsafe {
            libc::sigfillset(set.as_mut_ptr());
            set.assume_init()
        })
    }

    pub(crate) fn with(mut self, signal: i32) -> Self {
        // SAFETY: the set is initialised; a bad number is an error, not UB.
        unsafe { libc::sigaddset(&raw mut self.0, signal) };
        self
    }

    pub(crate) fn without(mut self, signal: i32) -> Self {
        // SAFETY: as in `with`.
        unsafe { libc::sigdelset(&raw mut self.0, signal) };
        self
    }

    pub(crate) fn contains(&self, signal: i32) -> bool {
        // SAFETY: as in `with`.
        unsafe { libc::sigismember(&raw const self.0, signal) == 1 }
    }
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// The mask of this thread.
pub(crate) fn mask() -> SignalSet {
    change_mask(libc::SIG_BLOCK, &SignalSet::empty())
}

/// Replaces the mask of this thread and returns the one before.
pub(crate) fn set_mask(set: &SignalSet) -> SignalSet {
    change_mask(libc::SIG_SETMASK, set)
}

fn change_mask(how: c_int, set: &SignalSet) -> SignalSet {
    let mut old = SignalSet::empty();
    // SAFETY: both sets are initialised; with a valid `how` the call cannot fail.
    unsafe { libc::pthread_sigmask(how, &raw const set.0, &raw mut old.0) };
    old
}

/// Whether `signal` is ignored by this process.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only asks; `old` is written or left zeroed,
    // which is a valid value of this C struct.
    unsafe {
        libc::sigaction(signal, ptr::null(), old.as_mut_ptr());
        old.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Ignores `signal` (true) or gives it its default action (false).
pub(crate) fn set_ignored(signal: i32, ignored: bool) {
    swap_action(signal, &plain_action(ignored));
}

fn plain_action(ignored: bool) -> libc::sigaction {
    // SAFETY: all-zero is a valid value of this C struct.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = if ignored {
        libc::SIG_IGN
    } else {
        libc::SIG_DFL
    };
    action
}

fn swap_action(signal: i32, action: &libc::sigaction) -> libc::sigaction {
    let mut old = plain_action(false);
    // SAFETY: both point to initialised structs; an impossible signal is an error, not UB.
    unsafe { libc::sigaction(signal, action, &raw mut old) };
    old
}

/// Raises `signal` with its default action in this thread, even if it is
/// blocked, ignored or caught; what was set before is set again if we live on.
pub(crate) fn act_by_default(signal: i32) {
    let old_action = swap_action(signal, &plain_action(false));
    let old_mask = change_mask(libc::SIG_UNBLOCK, &SignalSet::empty().with(signal));
    // SAFETY: raise has no memory effects of its own.
    unsafe { libc::raise(signal) };
    set_mask(&old_mask);
    swap_action(signal, &old_action);
}

/// Registers a descriptor with the current runtime, to wait until it is readable.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and stays the same for as long as it lives,
    // and the `AsyncFd` gives out no exclusive access to it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// `kill(2)`; a negative pid is a process group. 0, -1 and our own pid are the
/// caller's responsibility.
pub(crate) fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Our process group; 0 when it lies outside our PID namespace.
pub(crate) fn own_group() -> i32 {
    // SAFETY: no memory is passed.
    unsafe { libc::getpgrp() }
}

/// Whether this process leads its session.
pub(crate) fn is_session_leader() -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// The process group of `pid`, if there is such a process.
pub(crate) fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::getpgid(pid) }).ok()
}

/// The foreground group of a terminal that is our controlling terminal; 0 when
/// it lies outside our PID namespace.
pub(crate) fn foreground_group(terminal: BorrowedFd<'_>) -> Option<i32> {
    // SAFETY: no memory is passed; the descriptor is open.
    check(unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) }).ok()
}

/// Makes `group` the foreground group of the terminal, also from the background.
pub(crate) fn set_foreground_group(terminal: BorrowedFd<'_>, group: i32) -> io::Result<()> {
    let old = change_mask(libc::SIG_BLOCK, &SignalSet::empty().with(libc::SIGTTOU));
    // SAFETY: no memory is passed; the descriptor is open.
    let result = check(unsafe { libc::tcsetpgrp(terminal.as_raw_fd(), group) });
    set_mask(&old);
    result.map(drop)
}

/// Orphaned descendants become our children (`PR_SET_CHILD_SUBREAPER`).
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: this option takes plain numbers.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Ends the process without running anything more.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` runs no handlers and does not return.
    unsafe { libc::_exit(status) }
}

/// A plain fork: 0 in the child. Only while the process has one thread.
pub(crate) fn fork() -> io::Result<i32> {
    // SAFETY: the caller has no other thread, so no lock is held by anyone.
    check(unsafe { libc::fork() })
}

/// A change in the state of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Ended by `exit`, with this status.
    Exited(i32),
    /// Ended by this signal, with or without a core file.
    Signaled(i32, bool),
    /// Stopped by this signal.
    Stopped(i32),
}

/// Which children [`wait`] looks at.
#[derive(Clone, Copy)]
pub(crate) enum Whom {
    /// Any child.
    Any,
    /// This child.
    Pid(i32),
}

/// `waitid(2)`. `options` are the `W*` flags; with `WNOHANG`, `None` says that
/// nothing has changed.
pub(crate) fn wait(whom: Whom, options: c_int) -> io::Result<Option<(i32, Change)>> {
    let (kind, id) = match whom {
        Whom::Any => (libc::P_ALL, 0),
        Whom::Pid(pid) => (libc::P_PID, libc::id_t::try_from(pid).unwrap_or(0)),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        // SAFETY: `info` has room for one siginfo.
        match check(unsafe { libc::waitid(kind, id, info.as_mut_ptr(), options) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => {
                other?;
                break;
            }
        }
    }
    // SAFETY: zeroed is a valid siginfo, and waitid fills the pid and status
    // fields read here; they stay 0 when nothing has changed.
    let (pid, status, code) = unsafe {
        let info = info.assume_init();
        (info.si_pid(), info.si_status(), info.si_code)
    };
    let change = match code {
        libc::CLD_EXITED => Change::Exited(status),
        libc::CLD_KILLED => Change::Signaled(status, false),
        libc::CLD_DUMPED => Change::Signaled(status, true),
        _ => Change::Stopped(status),
    };
    Ok((pid != 0).then_some((pid, change)))
}

/// A signal taken from the queue by [`take_signal`].
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) signal: i32,
    pub(crate) from_kernel: bool,
}

/// Waits for one of the blocked signals in `set`; `None` when `limit` has passed.
pub(crate) fn take_signal(set: &SignalSet, limit: Option<Duration>) -> io::Result<Option<Taken>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the set is initialised, `info` has room, `limit` is null or valid.
    match check(unsafe { libc::sigtimedwait(&raw const set.0, info.as_mut_ptr(), limit) }) {
        Ok(signal) => {
            // SAFETY: the kernel has filled it.
            let code = unsafe { info.assume_init() }.si_code;
            Ok(Some(Taken {
                signal,
                from_kernel: code == libc::SI_KERNEL,
            }))
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Everything the new process needs, made ready before it exists.
pub(crate) struct Plan<'a> {
    /// Paths to try in this order.
    pub(crate) candidates: &'a [CString],
    pub(crate) argv: &'a [CString],
    pub(crate) env: &'a [CString],
    /// Becomes descriptor 0.
    pub(crate) stdin: Option<BorrowedFd<'a>>,
    pub(crate) own_group: bool,
    /// The mask the command starts with.
    pub(crate) mask: SignalSet,
    /// Signals that we changed, and whether the command gets them ignored.
    pub(crate) dispositions: &'a [(i32, bool)],
}

/// What went wrong in [`spawn`].
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no new process.
    Fork(io::Error),
    /// Before the program could be looked at.
    Setup(io::Error),
    /// No candidate could be executed; the last one tried, and why.
    Exec(usize, io::Error),
}

const STACK: usize = 64 * 1024;
const NOT_TRIED: usize = usize::MAX;

/// What parent and child share while the parent is suspended.
struct Shared<'a> {
    plan: &'a Plan<'a>,
    candidates: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    parent: i32,
    failed: AtomicI32,
    candidate: AtomicUsize,
}

/// Starts a process that shares our memory until it has executed the program
/// (as `posix_spawn` does inside), so that nothing is copied and its errors
/// can be read here. Dies by SIGKILL with the calling *thread*.
pub(crate) fn spawn(plan: &Plan<'_>) -> Result<i32, Failure> {
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        let end = std::iter::once(ptr::null());
        strings
            .iter()
            .map(|text| text.as_ptr())
            .chain(end)
            .collect()
    };
    let shared = Shared {
        plan,
        candidates: plan.candidates.iter().map(|text| text.as_ptr()).collect(),
        argv: pointers(plan.argv),
        env: pointers(plan.env),
        // SAFETY: no memory is passed.
        parent: unsafe { libc::getpid() },
        failed: AtomicI32::new(0),
        candidate: AtomicUsize::new(NOT_TRIED),
    };
    let mut stack = vec![MaybeUninit::<u128>::uninit(); STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // No handler of ours may run in the child.
    let old = set_mask(&SignalSet::full());
    // SAFETY: the child runs `start_child` on its own stack, which grows down
    // from the end of `stack` (aligned to 16); CLONE_VFORK suspends this
    // thread until the child has executed a program or ended, so `shared` and
    // `stack` outlive it. The child calls async-signal-safe functions only.
    let pid = check(unsafe {
        libc::clone(
            start_child,
            stack.as_mut_ptr_range().end.cast(),
            flags,
            (&raw const shared).cast_mut().cast(),
        )
    });
    set_mask(&old);
    let pid = pid.map_err(Failure::Fork)?;
    let failed = shared.failed.load(Ordering::Acquire);
    if failed == 0 {
        return Ok(pid);
    }
    let _ = wait(Whom::Pid(pid), libc::WEXITED);
    let error = io::Error::from_raw_os_error(failed);
    match shared.candidate.load(Ordering::Acquire) {
        NOT_TRIED => Err(Failure::Setup(error)),
        candidate => Err(Failure::Exec(candidate, error)),
    }
}

/// The child's life until `execve`. No allocation, no lock, no panic.
extern "C" fn start_child(shared: *mut c_void) -> c_int {
    // SAFETY: the parent passes a valid `Shared` and is suspended meanwhile.
    let shared = unsafe { &*shared.cast_const().cast::<Shared<'_>>() };
    if prepare_child(shared) {
        execute(shared);
    } else {
        shared.failed.store(errno(), Ordering::Release);
    }
    exit_now(127)
}

fn prepare_child(shared: &Shared<'_>) -> bool {
    let plan = shared.plan;
    // SAFETY: plain numbers. All calls here are async-signal-safe.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) < 0 {
            return false;
        }
        // The parent may have died before the line above.
        if libc::getppid() != shared.parent {
            exit_now(127);
        }
        if plan.own_group && libc::setpgid(0, 0) < 0 {
            return false;
        }
        if let Some(stdin) = &plan.stdin
            && libc::dup2(stdin.as_raw_fd(), 0) < 0
        {
            return false;
        }
    }
    for (signal, ignored) in plan.dispositions {
        set_ignored(*signal, *ignored);
    }
    set_mask(&plan.mask);
    true
}

/// Tries the candidates by the rules of `execvp(3)`: one that is missing or
/// may not be executed does not end the search. Returns only if none could be.
fn execute(shared: &Shared<'_>) {
    let (mut failed, mut candidate) = (libc::ENOENT, 0);
    for (index, path) in shared.candidates.iter().enumerate() {
        // SAFETY: all three point to null-terminated data prepared by the parent.
        unsafe { libc::execve(*path, shared.argv.as_ptr(), shared.env.as_ptr()) };
        let error = errno();
        let goes_on = matches!(
            error,
            libc::EACCES
                | libc::ENOENT
                | libc::ENOTDIR
                | libc::ESTALE
                | libc::ENODEV
                | libc::ETIMEDOUT
        );
        // A denial is remembered: it says more than what is missing elsewhere.
        if !(goes_on && failed == libc::EACCES) {
            (failed, candidate) = (error, index);
        }
        if !goes_on {
            break;
        }
    }
    shared.candidate.store(candidate, Ordering::Release);
    shared.failed.store(failed, Ordering::Release);
}

fn errno() -> i32 {
    // SAFETY: points to this thread's errno.
    unsafe { *libc::__errno_location() }
}
