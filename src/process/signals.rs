//! Signals: their names, who sent them, and catching them without losing one.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::str::FromStr;

use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin as HookOrigin};
use tokio::io::unix::AsyncFd;

use super::inherited::Inherited;
use super::orphans;
use crate::sys;

/// A signal by its number on this system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signal(i32);

macro_rules! names {
    ($($name:ident $constant:ident)*) => {
        impl Signal {
            $(
                #[doc = concat!("SIG", stringify!($name), ", see signal(7).")]
                pub const $name: Self = Self(libc::$constant);
            )*
        }
        const NAMES: &[(&str, Signal)] = &[$((stringify!($name), Signal::$name)),*];
    };
}

names! {
    HUP SIGHUP INT SIGINT QUIT SIGQUIT ILL SIGILL TRAP SIGTRAP ABRT SIGABRT BUS SIGBUS
    FPE SIGFPE KILL SIGKILL USR1 SIGUSR1 SEGV SIGSEGV USR2 SIGUSR2 PIPE SIGPIPE
    ALRM SIGALRM TERM SIGTERM CHLD SIGCHLD CONT SIGCONT STOP SIGSTOP TSTP SIGTSTP
    TTIN SIGTTIN TTOU SIGTTOU URG SIGURG XCPU SIGXCPU XFSZ SIGXFSZ VTALRM SIGVTALRM
    PROF SIGPROF WINCH SIGWINCH IO SIGIO SYS SIGSYS
}

impl Signal {
    /// The signal with this number; 1 to 64 on Linux.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        (1..=64).contains(&number).then_some(Self(number))
    }

    /// The number, as in `kill -N` and in the status 128 + N.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The name without `SIG`, for the standard signals.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES
            .iter()
            .find(|(_, signal)| *signal == self)
            .map(|(name, _)| *name)
    }

    /// What solocron does on catching this signal.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::TERM | Self::INT | Self::QUIT | Self::HUP => Kind::Stop,
            Self::TSTP => Kind::Suspend,
            Self::CONT => Kind::Continue,
            Self::CHLD => Kind::Child,
            _ => Kind::Message,
        }
    }
}

/// `SIGTERM` and the like; a number where there is no name.
impl fmt::Display for Signal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(out, "SIG{name}"),
            None => write!(out, "signal {}", self.0),
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A name of no signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownSignal;

impl fmt::Display for UnknownSignal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not a signal: write a name (TERM, SIGINT) or a number from 1 to 64")
    }
}

impl std::error::Error for UnknownSignal {}

/// `TERM`, `SIGTERM` (any case) or a number, as kill(1) takes them.
impl FromStr for Signal {
    type Err = UnknownSignal;

    fn from_str(text: &str) -> Result<Self, UnknownSignal> {
        if let Ok(number) = text.parse() {
            return Self::from_number(number).ok_or(UnknownSignal);
        }
        let upper = text.to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        NAMES
            .iter()
            .find(|(name, _)| *name == bare)
            .map(|(_, signal)| *signal)
            .ok_or(UnknownSignal)
    }
}

/// What a caught signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TERM, INT, QUIT, HUP: end.
    Stop,
    /// USR1, USR2, WINCH: something between the sender and the command.
    Message,
    /// TSTP: stop for a while, see [`Child::suspend`](super::Child::suspend).
    Suspend,
    /// CONT: we may have been stopped for long.
    Continue,
    /// CHLD: a child ended or stopped, see [`Child::follow_stop`](super::Child::follow_stop).
    Child,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The kernel, for a key at the terminal or its hang-up: it has gone to
    /// every process of the foreground group.
    Kernel,
    /// A process; 0 when it lies outside our PID namespace or is not known.
    User {
        /// The sender.
        pid: i32,
    },
}

/// A signal that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// Which one.
    pub signal: Signal,
    /// Who sent it.
    pub origin: Origin,
}

impl Caught {
    /// As if an unknown process had sent it.
    #[must_use]
    pub const fn from_user(signal: Signal) -> Self {
        Self {
            signal,
            origin: Origin::User { pid: 0 },
        }
    }
}

impl From<HookOrigin> for Caught {
    fn from(info: HookOrigin) -> Self {
        let origin = match (info.cause, info.process) {
            (Cause::Kernel, _) => Origin::Kernel,
            (_, process) => Origin::User {
                pid: process.map_or(0, |process| process.pid),
            },
        };
        Self {
            signal: Signal(info.signal),
            origin,
        }
    }
}

/// Caught, except where one is inherited as ignored.
const STOPPING: [Signal; 5] = [
    Signal::TERM,
    Signal::INT,
    Signal::QUIT,
    Signal::HUP,
    Signal::TSTP,
];

/// Caught always: the command may want them even if it starts with them ignored.
const PASSING: [Signal; 5] = [
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::CONT,
    Signal::CHLD,
];

/// The signals whose action is changed in our process and has to be set back
/// in the command. Rust's runtime ignores PIPE.
pub(super) fn changed() -> impl Iterator<Item = Signal> {
    let others = [Signal::PIPE, Signal::TTOU, Signal::XFSZ];
    STOPPING.into_iter().chain(PASSING).chain(others)
}

/// The signals solocron catches, from [`install`](Self::install) to the end of the process.
pub struct Signals {
    delivery: SignalDelivery<UnixStream, WithOrigin>,
    readable: Option<AsyncFd<OwnedFd>>,
    queue: VecDeque<Caught>,
}

impl Signals {
    /// Catches TERM, INT, QUIT, HUP, TSTP (each only if it was not inherited
    /// as ignored), USR1, USR2, WINCH, CONT and CHLD, and unblocks them. What
    /// arrives from here on waits for [`next`](Self::next).
    ///
    /// Ignores TTOU, so that a message written from the background under
    /// `stty tostop` does not stop the heartbeat. Orphaned descendants of the
    /// command become children of this process and are reaped.
    ///
    /// # Errors
    /// When the system has no descriptor or handler left.
    pub fn install(inherited: &Inherited) -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let stopping = STOPPING.into_iter().filter(|s| !inherited.ignores(*s));
        let caught: Vec<Signal> = stopping.chain(PASSING).collect();
        let numbers = caught.iter().map(|signal| signal.number());
        let delivery = SignalDelivery::with_pipe(read, write, WithOrigin::default(), numbers)?;
        sys::set_ignored(Signal::TTOU.number(), true);
        sys::set_ignored(Signal::XFSZ.number(), true);
        orphans::adopt();
        let mask = caught.iter().fold(*inherited.mask(), |mask, signal| {
            mask.without(signal.number())
        });
        sys::set_mask(&mask);
        Ok(Self {
            delivery,
            readable: None,
            queue: VecDeque::new(),
        })
    }

    /// The next signal, if one has arrived.
    pub fn try_next(&mut self) -> Option<Caught> {
        if self.queue.is_empty() {
            self.queue.extend(self.delivery.pending().map(Caught::from));
            // A stop of the command is looked at after what caused it.
            let order = |caught: &Caught| caught.signal == Signal::CHLD;
            self.queue.make_contiguous().sort_by_key(order);
            if self.queue.back().is_some_and(order) {
                orphans::reap();
            }
        }
        self.queue.pop_front()
    }

    /// The next signal. Cancel-safe: a signal is taken only when it is returned.
    ///
    /// # Panics
    /// Outside a tokio runtime with IO enabled.
    pub async fn next(&mut self) -> Caught {
        loop {
            if let Some(caught) = self.try_next() {
                return caught;
            }
            if self.wait_readable().await.is_err() {
                // Only if the kernel is out of memory for the poll: look again later.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }

    async fn wait_readable(&mut self) -> io::Result<()> {
        let fd = match self.readable.take() {
            Some(fd) => fd,
            None => sys::readable(self.delivery.get_read().try_clone()?.into())?,
        };
        let fd = self.readable.insert(fd);
        fd.readable().await?.clear_ready();
        Ok(())
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Signals")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
