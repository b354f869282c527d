//! The ladder of stopping a command: what each step is, and when the next one
//! is due. Losing the lock has its own deadlines, in [`crate::lock::Holder`].

use std::time::Duration;

use crate::event::StopCause;
use crate::firing::OnStop;
use crate::lock::lease::KILL_AFTER;
use crate::process::{Kind, Signal};

/// A key within this time after the same key is meant as a second one.
const DOUBLE_KEY: Duration = Duration::from_secs(2);

/// Something to do to the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Pass the caught signal on, as far as it has not been there.
    Forward,
    /// Nothing now: the command may end by itself.
    LetFinish,
    /// Send the stop signal.
    Stop,
    /// SIGKILL to all that belongs to the command.
    Kill,
}

/// How far the stopping of one command has gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ladder {
    on_stop: OnStop,
    kill_after: Option<Duration>,
    timeout_at: Option<Duration>,
    kill_at: Option<Duration>,
    cause: Option<StopCause>,
    signal: Option<Signal>,
    key_at: Option<Duration>,
    killed: bool,
}

impl Ladder {
    /// For a command that starts at `now` on the clock of running time and may
    /// run for `timeout`.
    #[must_use]
    pub fn new(
        on_stop: OnStop,
        kill_after: Option<Duration>,
        timeout: Option<Duration>,
        now: Duration,
    ) -> Self {
        Self {
            on_stop,
            kill_after,
            timeout_at: timeout.map(|timeout| now.saturating_add(timeout)),
            kill_at: None,
            cause: None,
            signal: None,
            key_at: None,
            killed: false,
        }
    }

    /// A signal to solocron.
    ///
    /// The first that asks to stop is passed on, and its sender decides how
    /// long the command may take; the second kills. A hang-up is told several
    /// times by kernel and shell, and does not count twice.
    pub fn on_signal(&mut self, signal: Signal, now: Duration) -> Option<Step> {
        match signal.kind() {
            Kind::Stop => {}
            Kind::Message | Kind::Continue => return Some(Step::Forward),
            Kind::Suspend | Kind::Child => return None,
        }
        let first = self.signal.replace(signal);
        match first {
            Some(Signal::HUP) if signal == Signal::HUP => None,
            Some(_) => self.kill(),
            None => {
                self.cause = self.cause.or(Some(StopCause::Signal));
                if let Some(span) = self.kill_after {
                    let at = now.saturating_add(span);
                    self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
                }
                Some(match self.on_stop {
                    OnStop::Forward => Step::Forward,
                    OnStop::Finish => Step::LetFinish,
                })
            }
        }
    }

    /// A key at the terminal that sends a stop signal. Programs that live with
    /// it (a prompt, a pager) see it many times: it counts as the second only
    /// right after the first.
    pub fn on_key(&mut self, signal: Signal, now: Duration) -> Option<Step> {
        let last = self.key_at.replace(now);
        match last {
            Some(last) if now > last + DOUBLE_KEY && !self.killed => Some(Step::Forward),
            _ => self.on_signal(signal, now),
        }
    }

    /// The lock is lost: whatever ends the command from here on, this is why.
    pub fn on_lost(&mut self) {
        self.cause = Some(StopCause::LockLost);
        self.timeout_at = None;
    }

    /// The command was killed by somebody else's decision.
    pub fn on_killed(&mut self) {
        self.killed = true;
        self.kill_at = None;
    }

    /// When [`Ladder::on_time`] has something to do.
    #[must_use]
    pub fn wake_at(&self) -> Option<Duration> {
        match (self.timeout_at, self.kill_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The step that is due at `now`.
    pub fn on_time(&mut self, now: Duration) -> Option<Step> {
        if self.kill_at.is_some_and(|at| now >= at) {
            return self.kill();
        }
        if self.timeout_at.is_some_and(|at| now >= at) {
            self.timeout_at = None;
            if self.cause.is_none() {
                self.cause = Some(StopCause::Timeout);
            }
            let at = now.saturating_add(self.kill_after.unwrap_or(KILL_AFTER));
            self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
            return Some(Step::Stop);
        }
        None
    }

    fn kill(&mut self) -> Option<Step> {
        self.kill_at = None;
        if self.killed {
            return None;
        }
        self.killed = true;
        Some(Step::Kill)
    }

    /// What ended the command before its time, if anything did.
    #[must_use]
    pub const fn cause(&self) -> Option<StopCause> {
        self.cause
    }

    /// The stop signal that arrived, if one did.
    #[must_use]
    pub const fn signal(&self) -> Option<Signal> {
        self.signal
    }

    /// Whether SIGKILL was needed.
    #[must_use]
    pub const fn killed(&self) -> bool {
        self.killed
    }

    /// Whether the whole of the command has to be gone before its lock is
    /// freed, not only the process that was started.
    #[must_use]
    pub const fn must_clear(&self) -> bool {
        self.killed
            || self.kill_at.is_some()
            || matches!(self.cause, Some(StopCause::Timeout | StopCause::LockLost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn ladder(on_stop: OnStop, kill_after: Option<u64>, timeout: Option<u64>) -> Ladder {
        Ladder::new(on_stop, kill_after.map(s), timeout.map(s), s(100))
    }

    #[test]
    fn the_first_signal_is_passed_on_and_the_second_kills() {
        for first in [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP] {
            let mut ladder = ladder(OnStop::Forward, None, None);
            assert_eq!(ladder.on_signal(first, s(101)), Some(Step::Forward));
            assert_eq!(ladder.cause(), Some(StopCause::Signal));
            assert_eq!(ladder.wake_at(), None, "its sender decides how long");
            assert!(!ladder.must_clear());
            assert_eq!(ladder.on_signal(Signal::TERM, s(102)), Some(Step::Kill));
            assert!(ladder.killed() && ladder.must_clear());
            assert_eq!(ladder.on_signal(Signal::TERM, s(103)), None);
        }
    }

    #[test]
    fn a_key_is_a_second_one_only_right_after_the_first() {
        let mut prompt = ladder(OnStop::Forward, None, None);
        for now in [101, 110, 120] {
            assert_eq!(prompt.on_key(Signal::INT, s(now)), Some(Step::Forward));
        }
        assert_eq!(prompt.on_key(Signal::INT, s(121)), Some(Step::Kill));
        let mut told = ladder(OnStop::Forward, None, None);
        told.on_key(Signal::INT, s(101));
        assert_eq!(told.on_signal(Signal::TERM, s(150)), Some(Step::Kill));
    }

    #[test]
    fn a_hang_up_told_twice_is_one() {
        let mut ladder = ladder(OnStop::Forward, None, None);
        assert_eq!(ladder.on_signal(Signal::HUP, s(101)), Some(Step::Forward));
        assert_eq!(ladder.on_signal(Signal::HUP, s(101)), None);
        assert_eq!(ladder.on_signal(Signal::TERM, s(102)), Some(Step::Kill));
    }

    #[test]
    fn finish_lets_the_command_end_until_told_again() {
        let mut ladder = ladder(OnStop::Finish, None, None);
        assert_eq!(
            ladder.on_signal(Signal::TERM, s(101)),
            Some(Step::LetFinish)
        );
        assert_eq!(ladder.on_signal(Signal::TERM, s(102)), Some(Step::Kill));
    }

    #[test]
    fn messages_pass_and_are_no_stop() {
        let mut ladder = ladder(OnStop::Finish, None, None);
        for signal in [Signal::USR1, Signal::USR2, Signal::WINCH, Signal::CONT] {
            assert_eq!(ladder.on_signal(signal, s(101)), Some(Step::Forward));
        }
        assert_eq!(ladder.signal(), None);
        assert_eq!(ladder.cause(), None);
    }

    #[test]
    fn kill_after_counts_from_the_stop_signal() {
        let mut ladder = ladder(OnStop::Forward, Some(5), None);
        assert_eq!(ladder.wake_at(), None);
        ladder.on_signal(Signal::TERM, s(110));
        assert_eq!(ladder.wake_at(), Some(s(115)));
        assert!(ladder.must_clear(), "the rest of the group has until then");
        assert_eq!(ladder.on_time(s(114)), None);
        assert_eq!(ladder.on_time(s(115)), Some(Step::Kill));
        assert_eq!(ladder.on_time(s(116)), None);
    }

    #[test]
    fn a_time_out_stops_and_then_kills() {
        for (kill_after, kill_at) in [(None, 118), (Some(3), 113)] {
            let mut ladder = ladder(OnStop::Forward, kill_after, Some(10));
            assert_eq!(ladder.wake_at(), Some(s(110)));
            assert_eq!(ladder.on_time(s(109)), None);
            assert_eq!(ladder.on_time(s(110)), Some(Step::Stop));
            assert_eq!(ladder.cause(), Some(StopCause::Timeout));
            assert_eq!(ladder.wake_at(), Some(s(kill_at)));
            assert_eq!(ladder.on_time(s(kill_at)), Some(Step::Kill));
        }
    }

    #[test]
    fn what_came_first_is_the_cause_but_for_a_lost_lock() {
        let mut stopped = ladder(OnStop::Finish, None, Some(10));
        stopped.on_signal(Signal::TERM, s(105));
        assert_eq!(stopped.on_time(s(110)), Some(Step::Stop));
        assert_eq!(stopped.cause(), Some(StopCause::Signal));
        stopped.on_lost();
        assert_eq!(stopped.cause(), Some(StopCause::LockLost));
        assert!(stopped.must_clear());

        let mut lost = ladder(OnStop::Forward, None, Some(10));
        lost.on_lost();
        assert_eq!(lost.wake_at(), None, "the lease has its own deadlines");
        lost.on_killed();
        assert_eq!(lost.on_signal(Signal::TERM, s(111)), Some(Step::Forward));
        assert_eq!(lost.on_signal(Signal::TERM, s(112)), None, "killed already");
    }
}
