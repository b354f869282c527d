//! The loop over one granted run: child, heartbeat, signals, timers.
//!
//! The flow: make sure of the lease, start the command, keep the lease until
//! the last of it has ended, free the lock. A `select` yields an event; the
//! holder and the ladder, both synchronous, decide; the loop acts.

mod freeing;
pub mod ladder;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::mpsc::UnboundedReceiver;

pub use self::freeing::Behind;
use self::ladder::{Ladder, Step};
use crate::event::{Event, Skip, StopCause};
use crate::exit::{self, Exit, Leave};
use crate::firing::{Granted, Job, instant_of, ms, seconds, sleep_until};
use crate::lock::{Action, Beat, BeatReply, Boot, Extent, Holder, Loss, Lost, Ms, Wanted};
use crate::process::{self, Caught, Child, Ended, Kind, Origin, Signal, StartError};
use crate::store::StoreError;

/// How long after a stop the rest of the command's group may take to end
/// before it counts as left over.
const SETTLE: Duration = Duration::from_secs(1);
/// The same after an ordinary end, for what is ending at the same moment.
const SETTLE_ORDINARY: Duration = Duration::from_millis(50);
/// How often the rest of a group is looked at.
const SETTLE_STEP: Duration = Duration::from_millis(5);
/// How many times, 10 ms apart, what got SIGKILL is looked at.
const UNKILLABLE_ROUNDS: u32 = 1_000;
/// A start later than this by the host's clock is told.
const LATE_WORTH_TELLING: i64 = 1_000;

/// How a granted run ended.
#[derive(Debug)]
pub struct Finished {
    /// What became of the command.
    pub end: End,
    /// A stop signal that arrived in the meantime.
    pub stopped_by: Option<Signal>,
}

/// What became of the command.
#[derive(Debug)]
pub enum End {
    /// It ran and ended.
    Ran {
        /// How it ended.
        ended: Ended,
        /// What ended it before its time.
        cause: Option<StopCause>,
        /// Whether SIGKILL of ours was needed.
        killed: bool,
        /// The signal to die of too, in the foreground of a terminal.
        dies_with: Option<Signal>,
    },
    /// It could not be started.
    CannotStart(StartError),
    /// It was not started: a stop signal came first.
    Withdrawn,
    /// It was not started: the lock could not be made sure of.
    NotKept,
    /// The lock was lost between a failed try and the next.
    LostBetween,
    /// The system failed solocron itself.
    Failed(std::io::Error),
}

type BeatAnswer<'a> = Pin<Box<dyn Future<Output = (Boot, Result<BeatReply, StoreError>)> + 'a>>;

/// What the loop waits for.
enum Happening {
    Ended(std::io::Result<Ended>),
    Beat(Boot, Box<Result<BeatReply, StoreError>>),
    Caught(Caught),
    Time,
}

/// Why a wait without a command ended.
enum Between {
    TimeIsUp,
    StopSignal,
    Lost,
}

struct Run<'a> {
    job: &'a Job<'a>,
    granted: Granted,
    holder: Holder,
    ladder: Ladder,
    beat: Option<BeatAnswer<'a>>,
    signals: UnboundedReceiver<Caught>,
    behind: &'a Behind,
    attempt: u32,
    started_any: bool,
    failed_beats: u32,
    stopped_by: Option<Signal>,
}

/// Runs the command under a granted lock and frees it.
///
/// `signals` are those that solocron catches meanwhile. A failed command is
/// not started again from `retry_before` on, when the next firing is due.
/// `behind` is for the firings that fall due meanwhile.
pub async fn run<'a>(
    job: &'a Job<'a>,
    granted: Granted,
    signals: UnboundedReceiver<Caught>,
    retry_before: Option<DateTime<Utc>>,
    behind: &'a Behind,
) -> Finished {
    behind.open();
    let mut run = Run {
        holder: Holder::new(job.timing, job.on_lock_lost, &granted.grant, granted.sent),
        ladder: Ladder::new(job.run.on_stop, None, None, Duration::ZERO),
        attempt: granted.grant.attempt,
        job,
        granted,
        beat: None,
        signals,
        behind,
        started_any: false,
        failed_beats: 0,
        stopped_by: None,
    };
    let end = run.attempts(retry_before).await;
    // A heartbeat under way must not outlive the lock.
    run.beat = None;
    run.tell_if_not_started(&end);
    run.free(&end).await;
    Finished {
        end,
        stopped_by: run.stopped_by,
    }
}

impl<'a> Run<'a> {
    /// The command, again and again as long as it fails and may be retried.
    async fn attempts(&mut self, retry_before: Option<DateTime<Utc>>) -> End {
        let retries = self.job.run.retries;
        let mut retry = 0;
        loop {
            if let Some(end) = self.make_sure().await {
                return end;
            }
            let end = self.one_attempt().await;
            if retry == retries || !self.may_retry(&end, retry_before) {
                return end;
            }
            retry += 1;
            let after = self.job.run.retry_delay;
            self.job.tell(&Event::Retrying {
                retry,
                of: retries,
                after,
            });
            let at = self.job.clock.boot() + after;
            match self.wait_without_command(at).await {
                Between::TimeIsUp => self.attempt += 1,
                Between::StopSignal => return end,
                Between::Lost => return End::LostBetween,
            }
        }
    }

    fn may_retry(&self, end: &End, retry_before: Option<DateTime<Utc>>) -> bool {
        let failed = match end {
            End::Ran { ended, cause, .. } => {
                ended.status() != 0
                    && !matches!(cause, Some(StopCause::Signal | StopCause::LockLost))
            }
            _ => false,
        };
        let in_time = retry_before.is_none_or(|next| {
            let again = self.job.clock.wall()
                + chrono::TimeDelta::from_std(self.job.run.retry_delay)
                    .unwrap_or(chrono::TimeDelta::MAX);
            again < next
        });
        failed && in_time && self.stopped_by.is_none()
    }

    /// Extends the lease until enough of it is left to start a command; gives
    /// the reason where that cannot be.
    async fn make_sure(&mut self) -> Option<End> {
        if !self.started_any {
            let within = self.job.timing.beat_timeout;
            if !matches!(self.job.store.grant_stands(within).await, Ok(true)) {
                self.holder.distrust();
            }
        }
        let mut asked = false;
        loop {
            self.drain_signals();
            if self.stopped_by.is_some() {
                return Some(End::Withdrawn);
            }
            if self.holder.lost().is_some() {
                return Some(if self.started_any {
                    End::LostBetween
                } else {
                    End::NotKept
                });
            }
            let now = self.job.clock.boot();
            if !self.started_any && self.is_past_deadline(now) {
                return Some(End::NotKept);
            }
            if self.holder.may_start(now) {
                return None;
            }
            if !asked {
                self.holder.beat_now(now);
                asked = true;
            }
            self.on_time(None);
            match self.next(None).await {
                Happening::Beat(sent, answer) => self.on_beat(sent, &answer, None),
                Happening::Caught(caught) => self.on_signal_alone(&caught),
                Happening::Time | Happening::Ended(_) => {}
            }
        }
    }

    /// Whether the host slept for so long since the grant that the firing is
    /// too late to start.
    fn is_past_deadline(&self, now: Boot) -> bool {
        match self.granted.claim.wanted {
            Wanted::Firing { start_deadline, .. } => {
                now > self.granted.sent + crate::info::span(start_deadline)
            }
            Wanted::Once { .. } => false,
        }
    }

    fn drain_signals(&mut self) {
        while let Ok(caught) = self.signals.try_recv() {
            self.on_signal_alone(&caught);
        }
    }

    /// A signal while there is no command. Being stopped meanwhile is found out
    /// by the timers.
    fn on_signal_alone(&mut self, caught: &Caught) {
        match caught.signal.kind() {
            Kind::Suspend => process::suspend_self(),
            _ => self.note_signal(caught),
        }
    }

    fn note_signal(&mut self, caught: &Caught) {
        if caught.signal.kind() == Kind::Stop {
            self.stopped_by = self.stopped_by.or(Some(caught.signal));
        }
    }

    /// Keeps the lease until `until` without a command.
    async fn wait_without_command(&mut self, until: Boot) -> Between {
        loop {
            self.on_time(None);
            if self.stopped_by.is_some() {
                return Between::StopSignal;
            }
            if self.holder.lost().is_some() && self.must_stop() {
                return Between::Lost;
            }
            if self.job.clock.boot() >= until {
                return Between::TimeIsUp;
            }
            let clock = self.job.clock;
            let happening = tokio::select! {
                happening = self.next(None) => Some(happening),
                () = sleep_until(clock, until) => None,
            };
            match happening {
                Some(Happening::Beat(sent, answer)) => {
                    self.on_beat(sent, &answer, None);
                }
                Some(Happening::Caught(caught)) => self.on_signal_alone(&caught),
                _ => {}
            }
        }
    }

    fn must_stop(&self) -> bool {
        self.job.on_lock_lost == crate::lock::OnLockLost::Stop
    }

    /// Starts the command and sees it to its end.
    async fn one_attempt(&mut self) -> End {
        let spec = self.spec();
        let placement = spec.placement;
        let mut child = match process::spawn(&spec) {
            Ok(child) => child,
            Err(error) => {
                self.job.tell(&Event::CannotStart {
                    firing: self.firing(),
                    error: error.to_string(),
                });
                return End::CannotStart(error);
            }
        };
        self.started_any = true;
        let policy = &self.job.run;
        let began = self.job.clock.running();
        self.ladder = Ladder::new(policy.on_stop, policy.kill_after, policy.timeout, began);
        self.job.tell(&Event::Started {
            firing: self.firing(),
            token: self.granted.grant.token,
            attempt: self.attempt,
            pid: child.pid(),
            late: self.lateness(),
        });
        let ended = match self.until_ended(&mut child).await {
            Ok(ended) => ended,
            Err(error) => {
                // Dropping the child kills all of it.
                return End::Failed(error);
            }
        };
        let ran = self.job.clock.running().saturating_sub(began);
        self.settle(&mut child).await;
        let cause = self.ladder.cause();
        self.job.tell(&Event::Ended {
            firing: self.firing(),
            status: ended.status(),
            signal: signal_of(ended),
            ran,
            stopped_by: cause,
        });
        End::Ran {
            ended,
            cause,
            killed: self.ladder.killed(),
            dies_with: placement.dies_with(ended),
        }
    }

    fn spec(&self) -> process::Spec {
        let mut spec = self.job.run.command.clone();
        spec.placement = process::Placement::detect();
        let mut set = |name: &str, value: String| spec.env_set.push((name.into(), value.into()));
        set("SOLOCRON_LOCK", self.job.lock_name.clone());
        set("SOLOCRON_TOKEN", self.granted.grant.token.to_string());
        set("SOLOCRON_ATTEMPT", self.attempt.to_string());
        if let Some(firing) = self.firing() {
            set("SOLOCRON_FIRING", crate::event::instant(firing));
        }
        spec
    }

    fn firing(&self) -> Option<DateTime<Utc>> {
        self.granted.claim.wanted.firing().map(instant_of)
    }

    fn lateness(&self) -> Option<f64> {
        let late = self.job.clock.wall() - self.firing()?;
        (late.num_milliseconds() >= LATE_WORTH_TELLING).then(|| seconds(late.num_milliseconds()))
    }

    /// The loop while the started process lives.
    async fn until_ended(&mut self, child: &mut Child) -> std::io::Result<Ended> {
        loop {
            self.on_time(Some(child));
            match self.next(Some(child)).await {
                Happening::Ended(ended) => return ended,
                Happening::Beat(sent, answer) => self.on_beat(sent, &answer, Some(child)),
                Happening::Caught(caught) => self.on_signal(&caught, child),
                Happening::Time => {}
            }
        }
    }

    /// After the started process ended: the rest of its group.
    ///
    /// After a forced stop nothing may be left when the lock is freed. After
    /// any other end, what is left is told of and runs on.
    async fn settle(&mut self, child: &mut Child) {
        let patience = if self.ladder.cause().is_some() {
            SETTLE
        } else {
            SETTLE_ORDINARY
        };
        let until = self.job.clock.boot() + patience;
        while child.leftovers() > 0 && !self.ladder.killed() {
            let now = self.job.clock.boot();
            if now >= until && !self.ladder.must_clear() {
                return self.job.tell(&Event::Leftovers);
            }
            self.on_time(Some(child));
            let clock = self.job.clock;
            let step = tokio::select! {
                happening = self.next(None) => Some(happening),
                () = sleep_until(clock, now + SETTLE_STEP) => None,
            };
            match step {
                Some(Happening::Beat(sent, answer)) => self.on_beat(sent, &answer, Some(child)),
                Some(Happening::Caught(caught)) => self.on_signal(&caught, child),
                _ => {}
            }
        }
        // What survives SIGKILL for that long hangs in the kernel.
        if self.ladder.must_clear() && !child.gone(UNKILLABLE_ROUNDS).await {
            self.job.tell(&Event::Leftovers);
        }
    }

    /// Waits for the next thing to happen. Cancel-safe.
    async fn next(&mut self, child: Option<&mut Child>) -> Happening {
        let clock = self.job.clock;
        let lease = self.holder.wake_at();
        let running = self.ladder.wake_at();
        tokio::select! {
            biased;
            ended = if_some(child.map(Child::wait)) => Happening::Ended(ended),
            (sent, answer) = if_some(self.beat.as_mut()) => {
                self.beat = None;
                Happening::Beat(sent, Box::new(answer))
            }
            Some(caught) = self.signals.recv() => Happening::Caught(caught),
            _ = if_some(lease.map(|at| clock.until_boot(at))) => Happening::Time,
            _ = if_some(running.map(|at| clock.until_running(at))) => Happening::Time,
        }
    }

    fn on_time(&mut self, mut child: Option<&mut Child>) {
        let actions = self.holder.on_time(self.job.clock.boot());
        self.act(actions, child.as_deref_mut());
        if let Some(step) = self.ladder.on_time(self.job.clock.running()) {
            if step == Step::Stop {
                self.job.tell(&Event::TimedOut {
                    after: self.job.run.timeout.unwrap_or_default(),
                });
            }
            self.take(step, None, child);
        }
    }

    fn on_signal(&mut self, caught: &Caught, child: &mut Child) {
        let signal = caught.signal;
        match signal.kind() {
            // Only what it left behind was stopped with us.
            Kind::Suspend if child.ended().is_some() => return process::suspend_self(),
            Kind::Suspend => return child.suspend(caught),
            Kind::Child => {
                // We may have been stopped meanwhile; the timers tell.
                child.follow_stop();
                return;
            }
            Kind::Continue => {
                // Before the command goes on: is the lock still ours?
                self.on_time(Some(child));
            }
            Kind::Stop | Kind::Message => {}
        }
        self.note_signal(caught);
        let now = self.job.clock.running();
        let step = match caught.origin {
            Origin::Kernel => self.ladder.on_key(signal, now),
            Origin::User { .. } => self.ladder.on_signal(signal, now),
        };
        if signal.kind() == Kind::Stop {
            self.job.tell(&Event::StopSignal {
                signal: signal.to_string(),
                command: step.map(|step| match step {
                    Step::Forward | Step::Stop => "passed on to the command",
                    Step::LetFinish => "waiting for the command to end by itself",
                    Step::Kill => "the second one, killing the command",
                }),
            });
        }
        if let Some(step) = step {
            self.take(step, Some(caught), Some(child));
        }
    }

    fn take(&self, step: Step, caught: Option<&Caught>, child: Option<&mut Child>) {
        let Some(child) = child else { return };
        match (step, caught) {
            (Step::Forward, Some(caught)) => {
                child.forward(caught);
            }
            (Step::Forward | Step::LetFinish, _) => {}
            (Step::Stop, _) => child.stop(self.job.run.stop_signal),
            (Step::Kill, _) => {
                self.job.tell(&Event::Killing);
                child.kill_all();
            }
        }
    }

    fn on_beat(
        &mut self,
        sent: Boot,
        answer: &Result<BeatReply, StoreError>,
        mut child: Option<&mut Child>,
    ) {
        let now = self.job.clock.boot();
        match answer {
            Ok(reply) => {
                self.job.tell(&Event::StoreAnswered);
                match reply.held {
                    Ok((_, Extent::Extended)) => self.job.tell(&Event::Beat),
                    Ok((_, Extent::Lapsed)) => self.job.tell(&Event::Lapsed),
                    Ok((_, Extent::Healed)) => self.job.tell(&Event::Healed),
                    Err(_) => {}
                }
                self.job.tell_store_warnings();
            }
            // A single heartbeat that fails is nothing.
            Err(_) if self.failed_beats == 0 => self.failed_beats = 1,
            Err(error) => self.job.tell_store_failed(error),
        }
        if answer.is_ok() {
            self.failed_beats = 0;
        }
        // After a sleep the time counts first, then the answer.
        self.on_time(child.as_deref_mut());
        let actions = self.holder.on_beat(sent, answer.as_ref().ok(), now);
        self.act(actions, child);
    }

    fn act(&mut self, actions: Vec<Action>, mut child: Option<&mut Child>) {
        // What is killed at once is not woken first to be told: it would act
        // without the lock.
        let at_once = actions.contains(&Action::Kill);
        for action in actions {
            match action {
                Action::Beat => self.beat = Some(self.send_beat()),
                Action::Stop(lost) => {
                    self.ladder.on_lost();
                    if let Some(child) = child.as_deref_mut() {
                        self.tell_lost(lost, "stopping the command");
                        if !at_once {
                            child.stop(self.job.run.stop_signal);
                        }
                    } else {
                        self.tell_lost(lost, "not starting the command");
                    }
                }
                Action::Kill => {
                    self.ladder.on_killed();
                    if let Some(child) = child.as_deref_mut() {
                        self.job.tell(&Event::Killing);
                        child.kill_all();
                    }
                }
                Action::Freeze => {
                    if let Some(child) = child.as_deref_mut() {
                        child.freeze();
                        self.job.tell(&Event::Frozen);
                    }
                }
                Action::Thaw => {
                    if let Some(child) = child.as_deref_mut() {
                        child.thaw();
                        self.job.tell(&Event::Thawed);
                    }
                }
                Action::RunOn(lost) => self.tell_lost(
                    lost,
                    "the command runs on without it (--on-lock-lost continue)",
                ),
            }
        }
    }

    fn tell_lost(&self, lost: Lost, then: &'static str) {
        let place = self.job.store.place();
        let why = match lost {
            Lost::NoAnswer => format!("{place} answered no heartbeat in time"),
            Lost::Overslept => {
                format!("solocron itself did not run for too long, and {place} did not answer")
            }
            Lost::Told(Loss::Taken) => "another host has taken it".to_owned(),
            Lost::Told(Loss::Gone) => format!("{place} has no record of it any more"),
            Lost::Told(Loss::Ended) => format!("{place} has this run as ended"),
        };
        self.job.tell(&Event::LockLost { why, then });
    }

    fn send_beat(&self) -> BeatAnswer<'a> {
        let (job, beat) = (self.job, self.beat_request());
        let sent = job.clock.boot();
        Box::pin(async move {
            let answer = job.store.beat(&beat, job.timing.beat_timeout).await;
            (sent, answer)
        })
    }

    fn beat_request(&self) -> Beat {
        let Granted { claim, grant, .. } = &self.granted;
        Beat {
            owner: claim.owner,
            token: grant.token,
            until_told: self.holder.until_told(),
            mark_told: self.mark(),
            firing: claim.wanted.firing(),
            attempt: self.attempt,
            grants: grant.grants,
            started: grant.started,
            once: self.once(),
            ttl: ms(self.job.timing.ttl),
            keep: claim.keep,
            info: claim.info.clone(),
        }
    }

    /// The highest firing that must not start any more.
    fn mark(&self) -> Ms {
        self.holder.mark_told().max(self.behind.spent())
    }

    /// Whether this run stands for a period of its own.
    fn once(&self) -> bool {
        matches!(self.granted.claim.wanted, Wanted::Once { per: Some(_) })
    }

    fn tell_if_not_started(&self, end: &End) {
        let skip = match end {
            End::Withdrawn => Skip::Stopping,
            End::NotKept => Skip::NotKept,
            _ => return,
        };
        self.job.tell(&Event::Skipped {
            firing: self.firing(),
            skip,
        });
    }
}

fn signal_of(ended: Ended) -> Option<String> {
    match ended {
        Ended::Signaled { signal, .. } => Some(
            Signal::from_number(signal)
                .map_or_else(|| format!("signal {signal}"), |signal| signal.to_string()),
        ),
        Ended::Exited(_) => None,
    }
}

/// Waits for `future`, for ever if there is none.
pub(crate) async fn if_some<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

impl Finished {
    /// How a single run leaves; with `skip_exit_code` when the command was not
    /// started.
    #[must_use]
    pub fn leave(&self, skip_exit_code: u8) -> Leave {
        let status = |status: i32| u8::try_from(status).unwrap_or(u8::MAX);
        match &self.end {
            End::Ran {
                cause: Some(StopCause::LockLost),
                ..
            }
            | End::LostBetween => Leave::With(Exit::LockLost.code()),
            End::Ran {
                cause: Some(StopCause::Timeout),
                killed,
                ..
            } => Leave::With(if *killed {
                Exit::TimedOutKilled.code()
            } else {
                Exit::TimedOut.code()
            }),
            End::Ran {
                dies_with: Some(signal),
                ..
            } => Leave::DieOf(status(signal.number())),
            End::Ran { ended, .. } => Leave::With(status(ended.status())),
            End::CannotStart(error) => Leave::With(status(error.status())),
            End::Withdrawn => {
                let number = self.stopped_by.unwrap_or(Signal::TERM).number();
                Leave::With(exit::of_signal(status(number)))
            }
            End::NotKept => Leave::With(skip_exit_code),
            End::Failed(_) => Leave::With(Exit::Internal.code()),
        }
    }
}
