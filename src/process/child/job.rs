//! Job control: stopping and going on together with the command, and leaving
//! the terminal as it was.

use std::io;

use super::Child;
use crate::process::child::Ended;
use crate::process::signals::{Caught, Signal};
use crate::process::tty::{Placement, Terminal};
use crate::sys::{self, Change, Whom};

impl Child {
    pub(super) fn tidy_terminal(&self, ended: Ended) {
        let Some(terminal) = &self.before.terminal else {
            return;
        };
        if self.wants_terminal && terminal.foreground() == Some(self.pid) {
            terminal.give_to(sys::own_group());
        }
        terminal.take_from_the_dead();
        // One that exits leaves the modes as it wants them: stty is a command.
        if let (Ended::Signaled { .. }, Some(modes)) = (ended, &self.before.modes) {
            modes.restore(terminal);
        }
    }

    /// TSTP was sent to us: passes it on. We stop when the command has, see
    /// [`follow_stop`](Self::follow_stop): while it runs, the lease must be kept.
    pub fn suspend(&mut self, caught: &Caught) {
        self.suspending = true;
        self.forward(caught);
    }

    /// On CHLD: if the command was stopped from the terminal (Ctrl-Z, reading
    /// in the background), by a TSTP sent to us, or in whatever way while it is
    /// the foreground job, stops this process too, as the shell expects. Returns true after that, when we were continued: the
    /// lease may have run out meanwhile, and CONT arrives as a signal.
    pub fn follow_stop(&mut self) -> bool {
        let options = libc::WSTOPPED | libc::WNOHANG;
        let Ok(Some((_, Change::Stopped(signal)))) = self.look_for_stop(options) else {
            return false;
        };
        let signal = Signal::from_number(signal).unwrap_or(Signal::STOP);
        let from_terminal = matches!(signal, Signal::TSTP | Signal::TTIN | Signal::TTOU);
        let is_job = self.placement == Placement::SharedGroup;
        if self.frozen || !(from_terminal || self.suspending || is_job) {
            return false;
        }
        if self.before.terminal.is_none() {
            self.before.terminal = Terminal::open();
        }
        let Some(terminal) = &self.before.terminal else {
            if self.suspending {
                self.suspending = false;
                sys::act_by_default(Signal::TSTP.number());
                return true;
            }
            return false;
        };
        if self.placement == Placement::OwnGroup {
            self.wants_terminal |= matches!(signal, Signal::TTIN | Signal::TTOU);
            if terminal.foreground() == Some(self.pid) {
                terminal.give_to(sys::own_group());
            }
        }
        let signal = if from_terminal { signal } else { Signal::TSTP };
        self.suspending = false;
        sys::act_by_default(signal.number());
        true
    }

    fn look_for_stop(&self, options: i32) -> io::Result<Option<(i32, Change)>> {
        if self.ended.is_some() {
            return Ok(None);
        }
        sys::wait(Whom::Pid(self.pid), options)
    }

    /// We go on: in the foreground now, a command in its own group that was
    /// stopped for want of the terminal gets it.
    pub(super) fn resume(&mut self) {
        self.suspending = false;
        if self.wants_terminal
            && let Some(terminal) = &self.before.terminal
            && terminal.is_ours()
        {
            terminal.give_to(self.pid);
        }
    }
}
