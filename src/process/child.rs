//! The running command: waiting for it, signalling it, ending all of it.

mod job;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;

use super::descendants::{self, Process};
use super::orphans;
use super::signals::{Caught, Kind, Origin, Signal};
use super::tty::{Modes, Placement, Reach, Sender, Terminal};
use crate::sys::{self, Change, Whom};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By `exit`, with this status, 0 to 255.
    Exited(i32),
    /// By a signal.
    Signaled {
        /// Its number.
        signal: i32,
        /// A core file was written.
        core: bool,
    },
}

impl Ended {
    /// The status as a shell gives it: 128+n for signal n.
    #[must_use]
    pub fn status(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Signaled { signal, .. } => 128 + signal,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(out, "status {status}"),
            Self::Signaled { signal, core } => {
                match Signal::from_number(*signal) {
                    Some(signal) => write!(out, "killed by {signal}")?,
                    None => write!(out, "killed by signal {signal}")?,
                }
                if *core {
                    out.write_str(" (core dumped)")?;
                }
                Ok(())
            }
        }
    }
}

/// What has to be known from before the start.
pub(super) struct Before {
    /// Children from earlier commands: left alone.
    earlier: Vec<Process>,
    terminal: Option<Terminal>,
    modes: Option<Modes>,
}

impl Before {
    pub(super) fn look(placement: Placement) -> Self {
        let earlier = if orphans::adopting() && orphans::any_child() {
            descendants::below(own_pid(), descendants::all(), |_| false)
        } else {
            Vec::new()
        };
        let terminal = match placement {
            Placement::SharedGroup => Terminal::open(),
            Placement::OwnGroup => None,
        };
        let modes = terminal.as_ref().and_then(Modes::save);
        Self {
            earlier,
            terminal,
            modes,
        }
    }
}

/// How the end of the command is noticed.
enum Watch {
    Unopened,
    Pidfd(AsyncFd<OwnedFd>),
    /// Where there is no pidfd (Linux before 5.3): look again and again.
    Poll,
}

const POLL: Duration = Duration::from_millis(5);

/// A started command. Dropping it unreaped kills everything of it.
pub struct Child {
    pid: i32,
    placement: Placement,
    before: Before,
    watch: Watch,
    ended: Option<Ended>,
    /// Stopped by [`freeze`](Self::freeze), not by job control.
    frozen: bool,
    /// TSTP was sent to us.
    suspending: bool,
    /// The command's own group cannot go on without the terminal.
    wants_terminal: bool,
}

impl Child {
    pub(super) fn new(pid: i32, placement: Placement, before: Before) -> Self {
        Self {
            pid,
            placement,
            before,
            watch: Watch::Unopened,
            ended: None,
            frozen: false,
            suspending: false,
            wants_terminal: false,
        }
    }

    /// The command's process id; also that of its group under
    /// [`Placement::OwnGroup`].
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Where it was placed.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// How it ended, once [`wait`](Self::wait) has told.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Waits for the command itself to end and reaps it; then the terminal has
    /// its modes and foreground group again. Cancel-safe, and to be called
    /// again at will.
    ///
    /// # Errors
    /// When the kernel refuses to wait, which is a defect.
    ///
    /// # Panics
    /// Outside a tokio runtime with IO and time enabled.
    pub async fn wait(&mut self) -> io::Result<Ended> {
        loop {
            if let Some(ended) = self.try_wait()? {
                return Ok(ended);
            }
            if matches!(self.watch, Watch::Unopened) {
                self.watch = open_pidfd(self.pid).map_or(Watch::Poll, Watch::Pidfd);
            }
            match &self.watch {
                Watch::Pidfd(fd) => {
                    let mut ready = fd.readable().await?;
                    let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
                    if sys::wait(Whom::Pid(self.pid), look)?.is_none() {
                        ready.clear_ready();
                    }
                }
                Watch::Unopened | Watch::Poll => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// How it ended, if it has; reaps it then, as [`wait`](Self::wait).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<Ended>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let options = libc::WEXITED | libc::WNOHANG;
        let ended = match sys::wait(Whom::Pid(self.pid), options)? {
            Some((_, Change::Exited(status))) => Ended::Exited(status),
            Some((_, Change::Signaled(signal, core))) => Ended::Signaled { signal, core },
            Some((_, Change::Stopped(_))) | None => return Ok(None),
        };
        self.ended = Some(ended);
        orphans::release(self.pid);
        orphans::reap();
        self.tidy_terminal(ended);
        Ok(self.ended)
    }

    /// Passes a caught signal on, as far as [`Placement::reach`] says; a stop
    /// signal is followed by CONT, since a stopped process would not act on it.
    /// A [frozen](Self::freeze) command is not woken by either, and meets the
    /// signal when it goes on. True when it was sent to anyone.
    pub fn forward(&mut self, caught: &Caught) -> bool {
        let signal = caught.signal;
        if self.ended.is_some() {
            return false;
        }
        if caught.signal.kind() == Kind::Continue {
            self.resume();
            if self.frozen {
                return false;
            }
        }
        // At a hang-up the kernel tells the leader of the session alone.
        let only_us =
            signal == Signal::HUP && caught.origin == Origin::Kernel && sys::is_session_leader();
        let reach = match self.placement.reach(caught, self.sender(caught)) {
            Reach::Nobody if only_us => Reach::Tree,
            reach => reach,
        };
        match reach {
            Reach::Nobody => return false,
            Reach::Command => self.send(signal),
            Reach::Group => self.send_group(signal),
            Reach::Tree => self.send_tree(signal),
        }
        if signal.kind() == Kind::Stop && !self.frozen {
            match self.placement {
                Placement::OwnGroup => self.send_group(Signal::CONT),
                Placement::SharedGroup => self.send_tree(Signal::CONT),
            }
        }
        true
    }

    fn sender(&self, caught: &Caught) -> Sender {
        match caught.origin {
            Origin::User { pid } if pid > 0 => Sender {
                is_command: pid == self.pid,
                in_our_group: sys::group_of(pid) == Some(sys::own_group()),
            },
            _ => Sender::default(),
        }
    }

    /// A stop of ours: `signal`, then CONT, to everything of the command,
    /// also to descendants that left its group.
    pub fn stop(&mut self, signal: Signal) {
        self.send_all(signal);
        self.send_all(Signal::CONT);
        self.frozen = false;
    }

    /// Stops everything of the command (STOP) until [`thaw`](Self::thaw).
    pub fn freeze(&mut self) {
        self.frozen = true;
        self.send_all(Signal::STOP);
        // What was forked meanwhile.
        self.send_all(Signal::STOP);
    }

    /// Lets everything of the command go on (CONT).
    pub fn thaw(&mut self) {
        self.resume();
        self.send_all(Signal::CONT);
        self.frozen = false;
    }

    /// Kills everything of the command (KILL), also descendants that left its
    /// group. Does not wait, see [`gone`](Self::gone).
    pub fn kill_all(&mut self) {
        self.send_all(Signal::KILL);
    }

    /// After the command was reaped on a forced stop: kills what is left of it
    /// and waits until nothing is. False when something was still there after
    /// `rounds` of about 10 ms (a process in an uninterruptible wait).
    pub async fn gone(&mut self, rounds: u32) -> bool {
        for _ in 0..rounds {
            orphans::reap();
            let left = self.tree();
            if left.is_empty() && !self.group_lives() {
                return true;
            }
            self.kill_all();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// How many processes of the command's group outlive it (background jobs).
    /// A daemon in a session of its own is no leftover; since it takes a moment
    /// to become one, a group that is not empty is to be looked at again. To be
    /// asked after [`wait`](Self::wait).
    #[must_use]
    pub fn leftovers(&self) -> usize {
        orphans::reap();
        let group = match self.placement {
            Placement::OwnGroup if sys::kill(-self.pid, 0).is_err() => return 0,
            // Some, and nobody tells how many.
            Placement::OwnGroup if !descendants::visible() => return 1,
            Placement::OwnGroup => self.pid,
            Placement::SharedGroup if !orphans::any_child() => return 0,
            Placement::SharedGroup => sys::own_group(),
        };
        let tree = self.tree().into_iter();
        tree.filter(|process| process.group == group).count()
    }

    fn group_lives(&self) -> bool {
        if self.placement == Placement::SharedGroup {
            return false;
        }
        if !descendants::visible() {
            return sys::kill(-self.pid, 0).is_ok();
        }
        !orphans::adopting()
            && descendants::all()
                .iter()
                .any(|process| process.group == self.pid && process.runs())
    }

    /// To the command only, while its pid is its own.
    fn send(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = sys::kill(self.pid, signal.number());
        }
    }

    /// To the command's own group; to the command if it has left it.
    fn send_group(&self, signal: Signal) {
        if sys::kill(-self.pid, signal.number()).is_err() {
            self.send(signal);
        }
    }

    fn send_tree(&self, signal: Signal) {
        self.send(signal);
        for process in self.tree() {
            if process.pid != self.pid {
                process.signal(signal.number());
            }
        }
    }

    fn send_all(&self, signal: Signal) {
        if self.placement == Placement::SharedGroup {
            return self.send_tree(signal);
        }
        // Looked at first: once the command is gone, the ties may be too.
        let tree = self.tree();
        // Once the command is reaped, its number may become another group's;
        // where nothing else leads to the rest of it, it still stands for them.
        let by_group = self.ended.is_none() || !orphans::adopting() || !descendants::visible();
        if by_group {
            self.send_group(signal);
        }
        for process in tree {
            if process.group != self.pid || !by_group {
                process.signal(signal.number());
            }
        }
    }

    /// The command, if it lives, and its descendants, orphans included.
    fn tree(&self) -> Vec<Process> {
        let earlier = &self.before.earlier;
        let skip = |process: &Process| {
            earlier.iter().any(|old| {
                let same_group = old.group == process.group && old.group != sys::own_group();
                old.pid == process.pid || same_group
            })
        };
        if orphans::adopting() {
            descendants::below(own_pid(), descendants::all(), skip)
        } else {
            descendants::below(self.pid, descendants::all(), |_| false)
        }
    }
}

impl Drop for Child {
    /// Runs on a panic too: nothing of the command may outlive its supervisor
    /// unless it was reaped in good order.
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill_all();
            self.kill_all();
            orphans::release(self.pid);
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Child")
            .field("pid", &self.pid)
            .field("placement", &self.placement)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or_default()
}

fn open_pidfd(pid: i32) -> Option<AsyncFd<OwnedFd>> {
    let fd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    sys::readable(fd).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Inherited, Spec, Stdin, spawn};

    #[test]
    fn an_end_is_noticed_without_a_pidfd() {
        let spec = Spec {
            argv: vec!["sh".into(), "-c".into(), "sleep 0.05; exit 3".into()],
            shell: false,
            env_set: Vec::new(),
            env_remove: Vec::new(),
            stdin: Stdin::Null,
            placement: Placement::OwnGroup,
            inherited: Inherited::capture(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut child = spawn(&spec).unwrap();
            child.watch = Watch::Poll;
            assert_eq!(child.wait().await.unwrap(), Ended::Exited(3));
            assert_eq!(child.leftovers(), 0);
        });
    }

    #[test]
    fn an_end_is_told_in_words() {
        let killed = Ended::Signaled {
            signal: 11,
            core: true,
        };
        assert_eq!(killed.to_string(), "killed by SIGSEGV (core dumped)");
        assert_eq!(killed.status(), 139);
        assert_eq!(Ended::Exited(3).to_string(), "status 3");
    }
}
