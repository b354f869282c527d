//! The controlling terminal: whether we are in its foreground, whom signals
//! reach there, and leaving it as it was found.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

use super::child::Ended;
use super::signals::{Caught, Kind, Origin, Signal};
use crate::sys;

/// Where the command's process group is, and with it whom signals go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A group of its own: without a terminal, or in the background of one.
    OwnGroup,
    /// Our group, which is the foreground of our terminal: keys reach the
    /// command as they would without us.
    SharedGroup,
}

/// How far a signal is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not at all: it has been there.
    Nobody,
    /// The command itself.
    Command,
    /// The command's process group.
    Group,
    /// The command and its descendants.
    Tree,
}

/// What is known of a sender, as far as [`Placement::reach`] needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    /// It is the command.
    pub is_command: bool,
    /// It is in our process group.
    pub in_our_group: bool,
}

impl Placement {
    /// Looks at the terminal as it is at this moment. To be asked again for
    /// every start: `fg` and `bg` change the answer.
    #[must_use]
    pub fn detect() -> Self {
        let foreground = Terminal::open().and_then(|terminal| terminal.foreground());
        Self::decide(foreground, sys::own_group())
    }

    fn decide(foreground: Option<i32>, own: i32) -> Self {
        // Both are 0 when the group lies outside our PID namespace.
        if foreground == Some(own) {
            Self::SharedGroup
        } else {
            Self::OwnGroup
        }
    }

    /// How far a caught signal is passed on.
    ///
    /// In a shared group what the kernel sent has reached the command already,
    /// and what the command sent (`kill 0` in a script) was not meant for it.
    /// A job-control stop from within the group was meant for the whole group.
    #[must_use]
    pub fn reach(self, caught: &Caught, sender: Sender) -> Reach {
        let kind = caught.signal.kind();
        match self {
            _ if kind == Kind::Child => Reach::Nobody,
            Self::OwnGroup => Reach::Group,
            Self::SharedGroup if caught.origin == Origin::Kernel || sender.is_command => {
                Reach::Nobody
            }
            Self::SharedGroup => match kind {
                Kind::Suspend if sender.in_our_group => Reach::Nobody,
                Kind::Stop => Reach::Tree,
                _ => Reach::Command,
            },
        }
    }

    /// The signal to die of, because the command did: an interactive shell
    /// ends a loop only if its foreground job *dies* of the key.
    #[must_use]
    pub fn dies_with(self, ended: Ended) -> Option<Signal> {
        match (self, ended) {
            (Self::SharedGroup, Ended::Signaled { signal, .. }) => Signal::from_number(signal)
                .filter(|signal| matches!(*signal, Signal::INT | Signal::QUIT | Signal::TERM)),
            _ => None,
        }
    }
}

/// Our controlling terminal.
#[derive(Debug)]
pub(super) struct Terminal(OwnedFd);

impl Terminal {
    /// The controlling terminal, if there is one. Where `/dev` has no `tty`,
    /// one of the standard streams may be it.
    pub(super) fn open() -> Option<Self> {
        if let Ok(file) = OpenOptions::new().read(true).write(true).open("/dev/tty") {
            return Some(Self(file.into()));
        }
        let streams = [
            rustix::stdio::stdin(),
            rustix::stdio::stderr(),
            rustix::stdio::stdout(),
        ];
        streams
            .into_iter()
            .find(|stream| sys::foreground_group(*stream).is_some())
            .and_then(|stream| fcntl_dupfd_cloexec(stream, 3).ok())
            .map(Self)
    }

    pub(super) fn foreground(&self) -> Option<i32> {
        sys::foreground_group(self.0.as_fd())
    }

    /// Whether our group is in the foreground.
    pub(super) fn is_ours(&self) -> bool {
        self.foreground() == Some(sys::own_group())
    }

    /// Gives the foreground to `group`.
    pub(super) fn give_to(&self, group: i32) {
        let _ = sys::set_foreground_group(self.0.as_fd(), group);
    }

    /// Takes the foreground back from a group that has no process any more;
    /// from a living one only a shell may.
    pub(super) fn take_from_the_dead(&self) {
        if let Some(group) = self.foreground()
            && group > 0
            && group != sys::own_group()
            && is_empty(group)
        {
            self.give_to(sys::own_group());
        }
    }
}

fn is_empty(group: i32) -> bool {
    sys::kill(-group, 0).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
}

/// Terminal modes from before the command.
pub(super) struct Modes(Termios);

impl Modes {
    /// Only where both standard input and output are the terminal: in
    /// `solocron -- x | less` the modes are those of `less`.
    pub(super) fn save(terminal: &Terminal) -> Option<Self> {
        let interactive = isatty(rustix::stdio::stdin()) && isatty(rustix::stdio::stdout());
        interactive.then(|| tcgetattr(&terminal.0).ok().map(Self))?
    }

    /// Sets them again, if the terminal is still ours.
    pub(super) fn restore(&self, terminal: &Terminal) {
        if terminal.is_ours() {
            let _ = tcsetattr(&terminal.0, OptionalActions::Drain, &self.0);
        }
    }
}

/// Stops this process, as TSTP does by default: without a shell to continue it
/// (an orphaned group) the kernel ignores that. Returns when continued.
///
/// Only while no command is running; with one see
/// [`Child::suspend`](super::Child::suspend).
pub fn suspend_self() {
    sys::act_by_default(Signal::TSTP.number());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(signal: Signal, origin: Origin) -> Caught {
        Caught { signal, origin }
    }

    const USER: Origin = Origin::User { pid: 7 };
    const NOBODY: Sender = Sender {
        is_command: false,
        in_our_group: false,
    };

    #[test]
    fn the_foreground_group_shares() {
        assert_eq!(Placement::decide(Some(5), 5), Placement::SharedGroup);
        assert_eq!(Placement::decide(Some(0), 0), Placement::SharedGroup);
        assert_eq!(Placement::decide(Some(4), 5), Placement::OwnGroup);
        assert_eq!(Placement::decide(None, 5), Placement::OwnGroup);
        assert_eq!(Placement::decide(None, 0), Placement::OwnGroup);
    }

    #[test]
    fn an_own_group_gets_everything() {
        for origin in [Origin::Kernel, USER] {
            for signal in [
                Signal::TERM,
                Signal::INT,
                Signal::USR1,
                Signal::CONT,
                Signal::TSTP,
            ] {
                let reach = Placement::OwnGroup.reach(&caught(signal, origin), NOBODY);
                assert_eq!(reach, Reach::Group, "{signal} {origin:?}");
            }
        }
        let child = caught(Signal::CHLD, USER);
        assert_eq!(Placement::OwnGroup.reach(&child, NOBODY), Reach::Nobody);
    }

    #[test]
    fn a_shared_group_gets_nothing_twice() {
        let command = Sender {
            is_command: true,
            in_our_group: true,
        };
        let neighbour = Sender {
            is_command: false,
            in_our_group: true,
        };
        for (signal, origin, sender, want) in [
            (Signal::INT, Origin::Kernel, NOBODY, Reach::Nobody),
            (Signal::WINCH, Origin::Kernel, NOBODY, Reach::Nobody),
            (Signal::TSTP, Origin::Kernel, NOBODY, Reach::Nobody),
            (Signal::INT, USER, NOBODY, Reach::Tree),
            (Signal::TERM, USER, NOBODY, Reach::Tree),
            (Signal::TERM, USER, neighbour, Reach::Tree),
            (Signal::TERM, USER, command, Reach::Nobody),
            (Signal::USR1, USER, NOBODY, Reach::Command),
            (Signal::CONT, USER, NOBODY, Reach::Command),
            (Signal::TSTP, USER, NOBODY, Reach::Command),
            (Signal::TSTP, USER, neighbour, Reach::Nobody),
            (Signal::CHLD, USER, NOBODY, Reach::Nobody),
        ] {
            let reach = Placement::SharedGroup.reach(&caught(signal, origin), sender);
            assert_eq!(reach, want, "{signal} {origin:?} {sender:?}");
        }
    }

    #[test]
    fn only_a_foreground_command_is_followed_into_death() {
        let died = |signal: Signal| Ended::Signaled {
            signal: signal.number(),
            core: false,
        };
        for signal in [Signal::INT, Signal::QUIT, Signal::TERM] {
            let ended = died(signal);
            assert_eq!(Placement::SharedGroup.dies_with(ended), Some(signal));
            assert_eq!(Placement::OwnGroup.dies_with(ended), None);
        }
        for ended in [died(Signal::KILL), died(Signal::SEGV), Ended::Exited(130)] {
            assert_eq!(Placement::SharedGroup.dies_with(ended), None);
        }
    }
}
