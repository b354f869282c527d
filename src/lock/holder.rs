//! What a holder does while its command runs: heartbeats, and the stop before
//! the lease can lapse in the store.

use super::lease::{Boot, Timing};
use super::record::Ms;
use super::rules::{BeatReply, Grant, Loss};

/// What to do with a lease that could not be kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnLockLost {
    /// The command is stopped before anyone else may start.
    #[default]
    Stop,
    /// The command runs on.
    Continue,
}

/// Why the lock is no longer held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lost {
    /// No heartbeat was answered in time.
    NoAnswer,
    /// The store said so.
    Told(Loss),
    /// solocron itself did not run until the lease was over, and the store
    /// could not confirm it afterwards.
    Overslept,
}

/// Something for the loop to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Send a heartbeat that may take [`Timing::beat_timeout`].
    Beat,
    /// Send the stop signal.
    Stop(Lost),
    /// Send SIGKILL to all that belongs to the command.
    Kill,
    /// Halt the command: it must do nothing until the store has been asked.
    Freeze,
    /// Let the halted command go on.
    Thaw,
    /// Say that the lock is lost and the command runs on.
    RunOn(Lost),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Heart {
    /// The next heartbeat is due at this instant.
    Due(Boot),
    /// A heartbeat was sent at this instant and is not answered yet.
    Sent(Boot),
    /// There is nothing left to extend.
    Still,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// The lease is held.
    Held,
    /// Woken too late at this instant: the command is halted until a heartbeat
    /// sent since is answered.
    Frozen(Boot),
    /// The command was told to stop and is killed at this instant.
    Stopping(Boot),
    /// The command was killed.
    Killed,
    /// The lock is lost and the command runs on.
    RunningOn,
}

/// The lease of one grant, from the holder's side.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Holder {
    timing: Timing,
    on_lost: OnLockLost,
    valid_until: Boot,
    heart: Heart,
    phase: Phase,
    /// The server that granted may not be the one that counts any more.
    distrusted: bool,
    until_told: Ms,
    mark_told: Ms,
    lost: Option<Lost>,
}

impl Holder {
    /// A lease granted by the reply to a request written at `sent`.
    #[must_use]
    pub fn new(timing: Timing, on_lost: OnLockLost, grant: &Grant, sent: Boot) -> Self {
        Self {
            timing,
            on_lost,
            valid_until: timing.valid_until(sent),
            heart: Heart::Due(sent + timing.beat_every),
            phase: Phase::Held,
            distrusted: false,
            until_told: grant.until,
            mark_told: grant.mark,
            lost: None,
        }
    }

    /// Whether a command may start under this lease at `now`; if not, a
    /// heartbeat comes first.
    #[must_use]
    pub fn may_start(&self, now: Boot) -> bool {
        self.phase == Phase::Held
            && !self.distrusted
            && self.timing.may_start(self.valid_until, now)
    }

    /// The grant alone is not to be relied on: a heartbeat comes first.
    pub fn distrust(&mut self) {
        self.distrusted = true;
    }

    /// The next heartbeat is due at once.
    pub fn beat_now(&mut self, now: Boot) {
        if let Heart::Due(at) = self.heart {
            self.heart = Heart::Due(at.min(now));
        }
    }

    /// When [`Holder::on_time`] has something to do next; none when all that
    /// is left is to wait for the command's end.
    #[must_use]
    pub fn wake_at(&self) -> Option<Boot> {
        let heart = match self.heart {
            Heart::Due(at) => Some(at),
            Heart::Sent(_) | Heart::Still => None,
        };
        let bound = match self.phase {
            Phase::Held => Some(self.bound()),
            Phase::Stopping(kill_at) => Some(kill_at),
            Phase::Frozen(_) | Phase::Killed | Phase::RunningOn => None,
        };
        match (heart, bound) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Until when nothing needs to be done about a held lease.
    fn bound(&self) -> Boot {
        match self.on_lost {
            OnLockLost::Stop => self.timing.stop_at(self.valid_until),
            OnLockLost::Continue => self.valid_until,
        }
    }

    /// Whether this process did not run when it should have: it was stopped,
    /// or the host was suspended.
    fn overslept(&self, now: Boot) -> bool {
        let heart_by = match self.heart {
            Heart::Due(at) => at,
            Heart::Sent(at) => at + self.timing.beat_timeout,
            Heart::Still => now,
        };
        now > heart_by + self.timing.margin || now >= self.timing.kill_at(self.valid_until)
    }

    /// What to do at `now`, in this order.
    pub fn on_time(&mut self, now: Boot) -> Vec<Action> {
        let mut actions = Vec::new();
        match self.phase {
            Phase::Held if now < self.bound() => {}
            Phase::Held if self.on_lost == OnLockLost::Continue => {
                actions.extend(self.lose(Lost::NoAnswer, now));
            }
            Phase::Held if self.overslept(now) => {
                self.phase = Phase::Frozen(now);
                actions.push(Action::Freeze);
                if let Heart::Due(at) = self.heart {
                    self.heart = Heart::Due(at.min(now));
                }
            }
            Phase::Held => {
                let kill_at = self.timing.kill_at(self.valid_until);
                self.phase = Phase::Stopping(kill_at);
                self.lost = Some(Lost::NoAnswer);
                actions.push(Action::Stop(Lost::NoAnswer));
            }
            Phase::Stopping(kill_at) if now >= kill_at => {
                self.phase = Phase::Killed;
                actions.push(Action::Kill);
            }
            _ => {}
        }
        if let Heart::Due(at) = self.heart
            && now >= at
        {
            self.heart = Heart::Sent(now);
            actions.push(Action::Beat);
        }
        actions
    }

    /// What to do after the heartbeat sent at `sent` was answered or failed;
    /// `reply` is none for a failure.
    pub fn on_beat(&mut self, sent: Boot, reply: Option<&BeatReply>, now: Boot) -> Vec<Action> {
        let Some(reply) = reply else {
            return self.on_failed_beat(sent, now);
        };
        self.mark_told = self.mark_told.max(reply.mark);
        match reply.held {
            Ok((until, _)) => self.on_extended(sent, until, now),
            Err(loss) => {
                self.heart = Heart::Still;
                self.lose(Lost::Told(loss), now)
            }
        }
    }

    fn on_extended(&mut self, sent: Boot, until: Ms, now: Boot) -> Vec<Action> {
        self.until_told = until;
        self.distrusted = false;
        self.valid_until = self.valid_until.max(self.timing.valid_until(sent));
        self.heart = Heart::Due(sent + self.timing.beat_every);
        match self.phase {
            Phase::Frozen(_) if now < self.timing.stop_at(self.valid_until) => {
                self.phase = Phase::Held;
                vec![Action::Thaw]
            }
            // The answer itself came too late to rely on: ask once more.
            Phase::Frozen(_) => {
                self.heart = Heart::Due(now);
                Vec::new()
            }
            Phase::RunningOn => {
                self.phase = Phase::Held;
                self.lost = None;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn on_failed_beat(&mut self, sent: Boot, now: Boot) -> Vec<Action> {
        match self.phase {
            Phase::Frozen(since) if sent < since => {
                self.heart = Heart::Due(now);
                Vec::new()
            }
            Phase::Frozen(_) => {
                self.heart = Heart::Due(self.timing.retry_at(sent, now));
                self.lose(Lost::Overslept, now)
            }
            _ => {
                self.heart = Heart::Due(self.timing.retry_at(sent, now));
                Vec::new()
            }
        }
    }

    /// The lock is lost: stop, or say that the command runs on.
    fn lose(&mut self, lost: Lost, now: Boot) -> Vec<Action> {
        let was_frozen = matches!(self.phase, Phase::Frozen(_));
        match (self.phase, self.on_lost) {
            (Phase::Killed | Phase::RunningOn, _) => Vec::new(),
            (Phase::Stopping(kill_at), _) => {
                let sooner = kill_at.min(now + self.timing.lost_grace());
                self.phase = Phase::Stopping(sooner);
                Vec::new()
            }
            (_, OnLockLost::Continue) => {
                self.phase = Phase::RunningOn;
                self.lost = Some(lost);
                vec![Action::RunOn(lost)]
            }
            (_, OnLockLost::Stop) if was_frozen => {
                self.phase = Phase::Killed;
                self.lost = Some(lost);
                vec![Action::Stop(lost), Action::Kill]
            }
            (_, OnLockLost::Stop) => {
                let kill_at = now + self.timing.lost_grace();
                self.phase = Phase::Stopping(kill_at);
                self.lost = Some(lost);
                vec![Action::Stop(lost)]
            }
        }
    }

    /// Why the command was or is being stopped, if the lock was lost.
    #[must_use]
    pub const fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// Until when the lease is valid on the holder's clock.
    #[must_use]
    pub const fn valid_until(&self) -> Boot {
        self.valid_until
    }

    /// The lease end last told by the store, on its lease clock.
    #[must_use]
    pub const fn until_told(&self) -> Ms {
        self.until_told
    }

    /// The highest mark told by the store.
    #[must_use]
    pub const fn mark_told(&self) -> Ms {
        self.mark_told
    }
}
