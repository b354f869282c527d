//! One firing, or one single run, from its claim to a grant or a refusal, and
//! the freeing of what was claimed.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::event::{Event, Listener, Skip};
use crate::info::{Holder as Who, Info, span};
use crate::lock::rules::MARK_AHEAD_MAX;
use crate::lock::{
    Boot, Claim, ClaimReply, Claimant, Free, Grant, Ms, Next, OnLockLost, OnRunnerLost, Owner,
    Patience, Refusal, State, Timing, Verdict, Wanted,
};
use crate::process;
use crate::store::{Store, StoreError};

/// How long one request for the lock may take, connecting included.
pub const CLAIM_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long the attempt to free a lock may take.
pub const FREE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the attempt to take a claim back may take when solocron is told to
/// stop meanwhile.
const WITHDRAW_TIMEOUT: Duration = Duration::from_millis(300);
/// Clocks further apart than this are worth a warning.
const SKEW_WARNING: Ms = 10_000;

/// What is the same for every firing of a job.
pub struct Job<'a> {
    /// The lock's name.
    pub lock_name: String,
    /// The source of time.
    pub clock: &'a dyn Clock,
    /// Where the record lives.
    pub store: &'a dyn Store,
    /// Who is told.
    pub listener: &'a dyn Listener,
    /// The spans of the lease.
    pub timing: Timing,
    /// What to do when it is lost.
    pub on_lock_lost: OnLockLost,
    /// What to do when a runner is lost.
    pub on_runner_lost: OnRunnerLost,
    /// How long the record must be kept.
    pub keep: Ms,
    /// About this instance, for its record.
    pub info: Info,
    /// The command and how it is run.
    pub run: RunPolicy,
    /// How far this host's clock was ahead of the store's at the last answer, at
    /// least; 0 when it was not, or when it has been set since.
    pub ahead: Cell<Ms>,
    /// A mark ahead of the store's clock was told.
    pub told_mark: Cell<bool>,
    /// Other hosts whose job was found to differ; each is told once.
    pub told_differences: RefCell<HashSet<String>>,
}

/// How a command is run.
#[derive(Clone, Debug)]
pub struct RunPolicy {
    /// The command.
    pub command: process::Spec,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// From a stop signal to SIGKILL, if the user said so.
    pub kill_after: Option<Duration>,
    /// What the command is sent first when solocron stops it.
    pub stop_signal: process::Signal,
    /// What a stop signal to solocron means for the command.
    pub on_stop: OnStop,
    /// How many times a failed command is started again.
    pub retries: u32,
    /// How long after its failure.
    pub retry_delay: Duration,
}

/// What a stop signal to solocron means for the running command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnStop {
    /// It is passed on.
    #[default]
    Forward,
    /// The command may end by itself.
    Finish,
}

impl Job<'_> {
    /// Tells an event.
    pub fn tell(&self, event: &Event) {
        self.listener.on_event(event);
    }

    /// Tells of a failed request.
    pub fn tell_store_failed(&self, error: &StoreError) {
        self.tell(&Event::StoreFailed {
            error: error.message.clone(),
            class: error.class.as_str(),
        });
    }

    /// Tells what the store has to say about itself.
    pub fn tell_store_warnings(&self) {
        for warning in self.store.take_warnings() {
            self.tell(&Event::StoreWarning { warning });
        }
    }

    /// Tells, once for each host, that another job goes by the same lock name.
    pub fn compare(&self, info: &str) {
        let theirs = Info::from_json(info);
        let differences = self.info.differences(&theirs);
        if differences.is_empty() {
            return;
        }
        let host = crate::info::shown(&theirs.host);
        if self.told_differences.borrow_mut().insert(host.clone()) {
            self.tell(&Event::Differs {
                host,
                differences,
                scheduled: self.info.schedule.is_some(),
            });
        }
    }
}

/// Whether a claim under way is to be given up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Wish {
    /// It goes on.
    #[default]
    GoOn,
    /// It ends once the request that is under way is answered.
    Yield,
    /// It ends at once.
    Stop,
}

/// What a claim is told while it is under way.
#[derive(Clone, Debug)]
pub struct Wishes(watch::Receiver<Wish>);

impl Wishes {
    /// A voice and the ear for it.
    #[must_use]
    pub fn new() -> (watch::Sender<Wish>, Self) {
        let (sender, receiver) = watch::channel(Wish::GoOn);
        (sender, Self(receiver))
    }

    async fn at_least(&mut self, wish: Wish) {
        if self.0.wait_for(|told| *told >= wish).await.is_err() {
            // Nobody can say any more.
            std::future::pending::<()>().await;
        }
    }
}

/// A lock that was granted.
#[derive(Clone, Debug)]
pub struct Granted {
    /// What was asked.
    pub claim: Claim,
    /// What was given.
    pub grant: Grant,
    /// When the request was written, on this host's clock.
    pub sent: Boot,
}

/// How a claim ended.
#[derive(Debug)]
pub enum Claimed {
    /// The lock is ours.
    Granted(Box<Granted>),
    /// It is not, and will not be asked for again.
    Refused(Box<Refused>),
    /// The claim was given up because it was told to.
    Withdrawn(Standing),
}

/// How a claim stood when it was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It was known to run elsewhere.
    Runs,
    /// It waited for the lock.
    Waits,
    /// The store did not answer.
    Unanswered,
}

/// A claim that did not lead to a run.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// The last answer of the store, if it gave one.
    pub reply: Option<ClaimReply>,
    /// The last error, if that is why.
    pub error: Option<StoreError>,
    /// This host's clock with the last answer.
    pub host_now: DateTime<Utc>,
    /// How long was asked.
    pub took: Duration,
}

impl Refused {
    /// The same in the words of an event.
    #[must_use]
    pub fn skip(&self) -> Skip {
        let holder = self.holder();
        match self.refusal {
            Refusal::Busy => Skip::Busy { holder },
            Refusal::WaitOver => Skip::WaitOver {
                holder,
                waited: self.took,
            },
            Refusal::Done | Refusal::Running | Refusal::Closed => Skip::Done,
            Refusal::Orphaned => Skip::Orphaned { holder },
            Refusal::Late(by) => Skip::Late {
                by: span(by),
                clock_behind: self.clock_behind(),
            },
            Refusal::Early(by) => Skip::Early { by: span(by) },
            Refusal::Unsure => Skip::Unsure,
            Refusal::Unreachable => Skip::Unreachable,
            Refusal::Refused => Skip::Refused,
        }
    }

    fn holder(&self) -> Option<Who> {
        let reply = self.reply.as_ref()?;
        let record = reply.before.as_ref()?;
        Some(Who::of(record, reply.now))
    }

    /// Seconds by which this host's clock is behind the store's, if it is by
    /// more than a second.
    fn clock_behind(&self) -> Option<f64> {
        let reply = self.reply.as_ref()?;
        let behind = reply.now.wall_ms() - self.host_now.timestamp_millis();
        (behind > 1_000).then(|| seconds(behind))
    }
}

/// Milliseconds as seconds, for messages.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 ms")]
#[must_use]
pub fn seconds(ms: Ms) -> f64 {
    ms as f64 / 1_000.0
}

/// A scheduled instant as a time of day.
#[must_use]
pub fn instant_of(firing: Ms) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(firing).unwrap_or_default()
}

/// Asks for the lock until it is granted or there is no point in asking.
pub async fn claim(
    job: &Job<'_>,
    wanted: Wanted,
    patience: Patience,
    mut wishes: Wishes,
) -> Claimed {
    let began = job.clock.boot();
    let mut asking = Asking {
        job,
        claim: Claim {
            owner: new_owner(),
            wanted,
            ttl: ms(job.timing.ttl),
            keep: job.keep,
            info: job.info.to_json(),
        },
        claimant: Claimant::new(patience, began),
        unsettled: false,
        told_waiting: false,
        reply: None,
        error: None,
        host_now: job.clock.wall(),
    };
    loop {
        let sent = job.clock.boot();
        let next = tokio::select! {
            biased;
            () = wishes.at_least(Wish::Stop) => None,
            next = asking.ask(sent) => Some(next),
        };
        match next {
            None => {
                // The request may have gone out.
                asking.give_up(WITHDRAW_TIMEOUT).await;
                return Claimed::Withdrawn(asking.standing());
            }
            Some(Next::Start(grant)) => return asking.granted(grant, sent),
            Some(Next::End(refusal)) => {
                if asking.unsettled {
                    asking.give_up(FREE_TIMEOUT).await;
                }
                return asking.refused(refusal, began);
            }
            Some(Next::Ask(at)) => {
                tokio::select! {
                    biased;
                    () = wishes.at_least(Wish::Yield) => {
                        if asking.unsettled {
                            asking.give_up(WITHDRAW_TIMEOUT).await;
                        }
                        return Claimed::Withdrawn(asking.standing());
                    }
                    () = sleep_until(job.clock, at) => {}
                }
            }
        }
    }
}

/// Sleeps until `at`, however often the sleep ends early.
pub async fn sleep_until(clock: &dyn Clock, at: Boot) {
    while clock.boot() < at {
        clock.until_boot(at).await;
    }
}

/// A claim under way.
struct Asking<'a> {
    job: &'a Job<'a>,
    claim: Claim,
    claimant: Claimant,
    /// A request was sent whose answer is not known.
    unsettled: bool,
    told_waiting: bool,
    reply: Option<ClaimReply>,
    error: Option<StoreError>,
    host_now: DateTime<Utc>,
}

impl Asking<'_> {
    async fn ask(&mut self, sent: Boot) -> Next {
        let left = self
            .claimant
            .reach_until()
            .map_or(CLAIM_TIMEOUT, |end| end.saturating_sub(sent));
        let within = CLAIM_TIMEOUT.min(left.max(Duration::from_millis(100)));
        let host_before = self.job.clock.wall();
        let answer = self.job.store.claim(&self.claim, within).await;
        let now = self.job.clock.boot();
        match answer {
            Ok(reply) => {
                self.unsettled = false;
                self.error = None;
                self.host_now = self.job.clock.wall();
                let ahead = host_before.timestamp_millis() - reply.now.wall_ms();
                self.job.ahead.set(ahead.max(0));
                self.job.tell(&Event::StoreAnswered);
                self.note(&reply);
                let next = self.claimant.on_reply(&reply, now, luck());
                self.tell_waiting(&reply, next);
                self.reply = Some(reply);
                next
            }
            Err(error) => {
                self.unsettled |= error.unsettled;
                self.job.tell_store_failed(&error);
                let next = self.claimant.on_failure(error.class.is_final(), now);
                self.error = Some(error);
                next
            }
        }
    }

    fn standing(&self) -> Standing {
        match &self.reply {
            _ if self.error.is_some() => Standing::Unanswered,
            Some(reply) if reply.verdict == Verdict::Running => Standing::Runs,
            Some(_) => Standing::Waits,
            None => Standing::Unanswered,
        }
    }

    /// Tells what else an answer shows.
    fn note(&self, reply: &ClaimReply) {
        let store_now = reply.now.wall_ms();
        if let Verdict::Early(by) = reply.verdict
            && by > SKEW_WARNING
        {
            self.job.tell(&Event::ClockSkew {
                ahead: seconds(self.host_now.timestamp_millis() - store_now),
                host: self.host_now,
                store: instant_of(store_now),
            });
        }
        let Some(before) = &reply.before else {
            return;
        };
        let ahead = before.mark - store_now;
        let marked_ahead = ahead > SKEW_WARNING && self.claim.wanted.firing().is_some();
        if marked_ahead && !self.job.told_mark.replace(marked_ahead) {
            self.job.tell(&Event::MarkAhead {
                by: seconds(ahead),
                reset: ahead > MARK_AHEAD_MAX,
            });
        }
        if !marked_ahead {
            self.job.told_mark.set(false);
        }
        let ours = before.owner == Some(self.claim.owner);
        let told_by_refusal =
            self.job.info.schedule.is_none() && !matches!(reply.verdict, Verdict::Granted(_));
        if !ours && !told_by_refusal {
            self.job.compare(&before.info);
        }
    }

    fn tell_waiting(&mut self, reply: &ClaimReply, next: Next) {
        let waits = reply.verdict == Verdict::Busy && matches!(next, Next::Ask(_));
        if waits && !self.told_waiting {
            self.told_waiting = true;
            let holder = reply.before.as_ref().map(|r| Who::of(r, reply.now));
            self.job.tell(&Event::Waiting { holder });
        }
    }

    fn granted(self, grant: Grant, sent: Boot) -> Claimed {
        if let Some(reply) = &self.reply
            && let Some(before) = &reply.before
            && before.state == State::Run
            && before.owner != Some(self.claim.owner)
        {
            self.job.tell(&Event::Replaces {
                firing: before.firing.map(instant_of),
                host: Who::of(before, reply.now).host,
            });
        }
        self.job.tell_store_warnings();
        Claimed::Granted(Box::new(Granted {
            claim: self.claim,
            grant,
            sent,
        }))
    }

    fn refused(self, refusal: Refusal, began: Boot) -> Claimed {
        Claimed::Refused(Box::new(Refused {
            refusal,
            took: self.job.clock.boot().saturating_sub(began),
            reply: self.reply,
            error: self.error,
            host_now: self.host_now,
        }))
    }

    /// Makes sure, as far as the store can be reached, that a request whose
    /// answer never came leaves nothing behind.
    async fn give_up(&self, within: Duration) {
        let free = Free {
            owner: self.claim.owner,
            run: None,
            keep: self.claim.keep,
        };
        // The lease ends by itself should this fail.
        let _ = self.job.store.free(&free, within).await;
    }
}

/// A name for a claim that no other claim has.
fn new_owner() -> Owner {
    let mut bytes = [0; 16];
    // The kernel's source does not fail once the system is up; if it does,
    // a lock without a name of its own must not be asked for.
    random(&mut bytes).expect("the system has no random numbers");
    Owner(u128::from_ne_bytes(bytes))
}

/// A byte of chance, to spread instances.
#[must_use]
pub fn luck() -> u8 {
    let mut byte = [0];
    let _ = random(&mut byte);
    byte[0]
}

/// Asks the kernel itself: a root directory may have no `/dev`. So few bytes it
/// gives whole, see getrandom(2).
fn random(bytes: &mut [u8]) -> rustix::io::Result<()> {
    rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty()).map(drop)
}

/// A span in milliseconds.
#[must_use]
pub fn ms(span: Duration) -> Ms {
    Ms::try_from(span.as_millis()).unwrap_or(Ms::MAX)
}
