//! The loop of a schedule: wait for a firing, claim it, run it; at all times
//! ready to stop.
//!
//! At most one claim and one run are under way. A firing that falls due behind
//! a claim waits for that claim's end; one that falls due behind a run of this
//! instance is spent or queued, as `--overlap` says.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::clock::Woken;
use crate::event::{Event, Skip};
use crate::exit::{Exit, Leave};
use crate::firing::{self, Claimed, Granted, Job, Refused, Standing, Wish, Wishes, instant_of, ms};
use crate::lock::{Boot, Ms, OnRunnerLost, Overlap, Patience, Record, Refusal, StoreTime, Wanted};
use crate::process::notify::Notifier;
use crate::process::{self, Caught, Kind, Signal, Signals, suspend_self};
use crate::schedule::{Agenda, Due, Missed};
use crate::store::StoreError;
use crate::supervisor::{self, Behind, End, Finished};

/// How long before a firing its connection is made.
const CONNECT_AHEAD: Duration = Duration::from_secs(2);
/// A connection is kept if the next firing is closer than this.
const KEEP_CONNECTION: TimeDelta = TimeDelta::seconds(60);
/// How long one try to connect ahead may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// From one failed try to connect ahead to the next.
const CONNECT_RETRY: Duration = Duration::from_millis(250);
/// How long the look at the record at start may take.
const FIRST_LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// A clock that goes back by more was set, not steered.
const SET_BACK: TimeDelta = TimeDelta::seconds(1);
/// How far this host's clock may run from the store's during a run.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);
/// With a seconds field, so many firings are told at start.
const FIRST_TOLD: usize = 3;

/// What is particular to a schedule.
pub struct Plan {
    /// What is due when.
    pub agenda: Agenda,
    /// How late a firing may start.
    pub start_deadline: Duration,
    /// What happens to a firing behind an earlier run.
    pub overlap: Overlap,
    /// The service manager, if it wants to know.
    pub notifier: Option<Notifier>,
}

type Task<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
type FirstLook = Result<(Option<Record>, StoreTime), StoreError>;

struct Claiming<'a> {
    firing: DateTime<Utc>,
    startup: bool,
    tell: watch::Sender<Wish>,
    task: Task<'a, Claimed>,
}

struct Running<'a> {
    orders: UnboundedSender<Caught>,
    /// The store's clock when it granted, and this host's time since boot then.
    granted: (Ms, Boot),
    task: Task<'a, Finished>,
}

impl Running<'_> {
    /// Whether a firing is due by the store's clock too. This host's may have
    /// been set wrong since, and must not keep back what other hosts have due.
    fn has_come(&self, firing: DateTime<Utc>, now: Boot) -> bool {
        let (started, sent) = self.granted;
        firing.timestamp_millis() <= started + ms(now.saturating_sub(sent) + CLOCK_TOLERANCE)
    }
}

enum Happening {
    Caught(Caught),
    Finished(Finished),
    Claimed(Claimed),
    Connected,
    FirstLook(FirstLook),
    Time(Woken),
}

struct Loop<'a> {
    job: &'a Job<'a>,
    plan: Plan,
    /// What falls due behind a run of this instance.
    behind: &'a Behind,
    claim: Option<Claiming<'a>>,
    /// The newest firing that waits for the claim's end.
    behind_claim: Option<DateTime<Utc>>,
    run: Option<Running<'a>>,
    /// The newest firing that waits for the run's end and its lock.
    queued: Option<DateTime<Utc>>,
    connect: Option<Task<'a, ()>>,
    /// The firing that a connection was made for, and when to make one.
    connected_for: Option<DateTime<Utc>>,
    connect_at: Option<(DateTime<Utc>, DateTime<Utc>)>,
    first_look: Option<Task<'a, FirstLook>>,
    told_next: Option<DateTime<Utc>>,
    /// The last reading of this host's clock.
    read: DateTime<Utc>,
    stopping: Option<Signal>,
}

/// Runs the schedule until a signal stops it, and says how to leave.
pub async fn run(job: &Job<'_>, plan: Plan, signals: &mut Signals) -> Leave {
    let behind = Behind::default();
    let mut schedule = Loop {
        job,
        plan,
        behind: &behind,
        claim: None,
        behind_claim: None,
        run: None,
        queued: None,
        connect: None,
        connected_for: None,
        connect_at: None,
        first_look: Some(job.store.read(FIRST_LOOK_TIMEOUT)),
        told_next: None,
        read: job.clock.wall(),
        stopping: None,
    };
    schedule.tell_start();
    loop {
        let next = schedule.look();
        if let Some(reason) = schedule.over(next) {
            if let Some(notifier) = &schedule.plan.notifier {
                notifier.stopping();
            }
            job.tell(&Event::Stopped { reason });
            return Leave::With(Exit::Success.code());
        }
        let wake = schedule.wake_at(next);
        let happening = schedule.next(wake, signals).await;
        if let Some(leave) = schedule.handle(happening) {
            return leave;
        }
    }
}

impl Loop<'_> {
    fn tell_start(&mut self) {
        let schedule = self.plan.agenda.schedule();
        let seconds = schedule.has_seconds();
        let mut next = Vec::new();
        let mut after = self.job.clock.wall();
        while next.len() < if seconds { FIRST_TOLD } else { 1 } {
            let Some(firing) = schedule.next(after) else {
                break;
            };
            next.push(firing);
            after = firing;
        }
        self.job.tell(&Event::ScheduleStarted {
            schedule: schedule.expressions(),
            zone: schedule.zone().name().to_owned(),
            next,
            seconds,
        });
        if let Some(error) = process::missing(&self.job.run.command) {
            let text = format!("the command cannot be started as it is: {error}");
            self.job.tell(&Event::Notice { text });
        }
        if let Some(notifier) = &self.plan.notifier {
            notifier.ready("starting");
        }
    }

    /// This host's clock, held back as far as it is known to be ahead of the
    /// store's: what is not due there yet must not take the place of what is,
    /// nor count as fallen due behind a run.
    fn now(&self) -> DateTime<Utc> {
        self.job.clock.wall() - self.ahead()
    }

    /// Nothing where the clocks are further apart than a firing may be late: the
    /// store refuses it then, and says so.
    fn ahead(&self) -> TimeDelta {
        let ahead = TimeDelta::milliseconds(self.job.ahead.get());
        let within = TimeDelta::from_std(self.plan.start_deadline).unwrap_or(TimeDelta::MAX);
        if ahead <= within {
            ahead
        } else {
            TimeDelta::zero()
        }
    }

    /// Deals with all that is due, and gives the next firing.
    fn look(&mut self) -> Option<DateTime<Utc>> {
        if self.stopping.is_some() {
            return None;
        }
        self.follow_clock();
        loop {
            match self.plan.agenda.due(self.now()) {
                Due::Wait { until } => {
                    self.tell_next(until);
                    return Some(until);
                }
                Due::Fire {
                    firing,
                    missed,
                    startup,
                } => {
                    self.plan.agenda.refresh();
                    if let Some(missed) = missed {
                        self.tell_missed(&missed);
                    }
                    self.on_due(firing, startup);
                }
                Due::Missed(missed) => self.tell_missed(&missed),
                // Told when the clock was read.
                Due::ClockSetBack { .. } => {}
                Due::Ended => return None,
            }
        }
    }

    /// A clock that was set back is followed. What was started before is not
    /// started again: the store knows. What was spent or waits and lies ahead
    /// comes again in its time, and must not keep back what comes before.
    fn follow_clock(&mut self) {
        let now = self.job.clock.wall();
        let back = self.read - now;
        self.read = now;
        if back <= SET_BACK {
            return;
        }
        self.job.ahead.set(0);
        self.behind.forget_after(now.timestamp_millis());
        self.behind_claim.take_if(|firing| *firing > now);
        self.queued.take_if(|firing| *firing > now);
        self.plan.agenda.follow(now);
        self.job.tell(&Event::ClockSetBack {
            by: back.to_std().unwrap_or_default(),
        });
    }

    fn tell_next(&mut self, until: DateTime<Utc>) {
        if self.told_next.replace(until) == Some(until) {
            return;
        }
        self.job.tell(&Event::Sleeping { until });
        if let Some(notifier) = &self.plan.notifier {
            notifier.status(&format!("next firing {}", crate::event::instant(until)));
        }
    }

    fn tell_missed(&self, missed: &Missed) {
        self.job.tell(&Event::Missed {
            count: missed.count.number.into(),
            or_more: missed.count.more,
            first: missed.first,
            last: missed.last,
        });
    }

    /// Why the loop is over, if it is.
    fn over(&self, next: Option<DateTime<Utc>>) -> Option<String> {
        let idle = self.run.is_none() && self.claim.is_none();
        match self.stopping {
            Some(signal) if idle => Some(signal.to_string()),
            None if idle && next.is_none() => Some("the schedule has no further firing".to_owned()),
            _ => None,
        }
    }

    /// When to look again: at the next firing, or before it to connect.
    fn wake_at(&mut self, next: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        let firing = next?;
        let now = self.now();
        let idle = self.run.is_none() && self.claim.is_none() && self.first_look.is_none();
        if !idle {
            return Some(firing);
        }
        if self.connect.is_none() && firing - now >= KEEP_CONNECTION {
            self.job.store.rest();
        }
        if self.connected_for == Some(firing) {
            return Some(firing);
        }
        let connect_at = match self.connect_at {
            Some((for_firing, at)) if for_firing == firing => at,
            _ => {
                // A little chance, so that a thousand instances do not connect
                // in one moment.
                let jitter = Duration::from_millis(u64::from(firing::luck()) * 2);
                let at = firing - CONNECT_AHEAD - jitter;
                self.connect_at = Some((firing, at));
                at
            }
        };
        if now < connect_at {
            return Some(connect_at);
        }
        self.connected_for = Some(firing);
        self.connect = Some(Box::pin(connect_ahead(self.job)));
        Some(firing)
    }

    async fn next(&mut self, wake: Option<DateTime<Utc>>, signals: &mut Signals) -> Happening {
        let clock = self.job.clock;
        let wake = wake.map(|at| at + self.ahead());
        let run = self.run.as_mut().map(|run| run.task.as_mut());
        let claim = self.claim.as_mut().map(|claim| claim.task.as_mut());
        tokio::select! {
            biased;
            caught = signals.next() => Happening::Caught(caught),
            finished = supervisor::if_some(run) => Happening::Finished(finished),
            claimed = supervisor::if_some(claim) => Happening::Claimed(claimed),
            look = supervisor::if_some(self.first_look.as_mut()) => Happening::FirstLook(look),
            () = supervisor::if_some(self.connect.as_mut()) => Happening::Connected,
            woken = supervisor::if_some(wake.map(|at| clock.until_wall(at))) => Happening::Time(woken),
        }
    }

    /// Acts on what happened; gives how to leave where that is to be at once.
    fn handle(&mut self, happening: Happening) -> Option<Leave> {
        match happening {
            Happening::Caught(caught) => self.on_signal(caught),
            Happening::Finished(finished) => {
                self.run = None;
                self.on_finished(&finished);
            }
            Happening::Claimed(claimed) => {
                if let Some(claim) = self.claim.take() {
                    self.on_claimed(claim.firing, claim.startup, claimed);
                }
            }
            Happening::FirstLook(look) => {
                self.first_look = None;
                return self.on_first_look(look);
            }
            Happening::Connected => self.connect = None,
            // What was known of the two clocks does not hold any more.
            Happening::Time(Woken::ClockSet) => self.job.ahead.set(0),
            Happening::Time(Woken::Due) => {}
        }
        None
    }

    fn on_signal(&mut self, caught: Caught) {
        match (caught.signal.kind(), &self.run) {
            (Kind::Suspend, None) => suspend_self(),
            (Kind::Stop, run) => {
                if run.is_none() {
                    self.job.tell(&Event::StopSignal {
                        signal: caught.signal.to_string(),
                        command: None,
                    });
                }
                self.stop(caught.signal);
            }
            _ => {}
        }
        if let Some(run) = &self.run {
            let _ = run.orders.send(caught);
        }
    }

    fn stop(&mut self, signal: Signal) {
        self.stopping = self.stopping.or(Some(signal));
        self.behind_claim = None;
        self.queued = None;
        self.connect = None;
        self.first_look = None;
        if let Some(claim) = &self.claim {
            let _ = claim.tell.send(Wish::Stop);
        }
    }

    /// A firing has come.
    fn on_due(&mut self, firing: DateTime<Utc>, startup: bool) {
        if let Some(run) = &self.run {
            let skip = self.plan.overlap == Overlap::Skip;
            let spent = skip
                && if run.has_come(firing, self.job.clock.boot()) {
                    self.behind.spend(firing.timestamp_millis())
                } else {
                    !self.behind.is_closed()
                };
            if spent {
                self.tell_skip(firing, Skip::Overlapped);
            } else if let Some(older) = self.queued.replace(firing) {
                self.tell_skip(older, Skip::Superseded);
            }
        } else if let Some(claim) = &self.claim {
            let _ = claim.tell.send(Wish::Yield);
            if let Some(older) = self.behind_claim.replace(firing) {
                self.tell_skip(older, Skip::Superseded);
            }
        } else {
            self.begin_claim(firing, startup);
        }
    }

    fn tell_skip(&self, firing: DateTime<Utc>, skip: Skip) {
        self.job.tell(&Event::Skipped {
            firing: Some(firing),
            skip,
        });
    }

    fn begin_claim(&mut self, firing: DateTime<Utc>, startup: bool) {
        self.connect = None;
        let deadline = self.plan.start_deadline;
        let late = (self.now() - firing).to_std().unwrap_or_default();
        let wanted = Wanted::Firing {
            at: firing.timestamp_millis(),
            start_deadline: ms(deadline),
            overlap: self.plan.overlap,
            on_runner_lost: self.job.on_runner_lost,
        };
        let patience = Patience::Firing {
            overlap: self.plan.overlap,
            on_runner_lost: self.job.on_runner_lost,
            start_deadline: deadline,
            left: deadline.saturating_sub(late),
        };
        let (tell, wishes) = Wishes::new();
        self.claim = Some(Claiming {
            firing,
            startup,
            tell,
            task: Box::pin(firing::claim(self.job, wanted, patience, wishes)),
        });
    }

    fn on_claimed(&mut self, firing: DateTime<Utc>, startup: bool, claimed: Claimed) {
        let mut watch = None;
        match claimed {
            Claimed::Granted(granted) => self.begin_run(*granted),
            Claimed::Refused(refused) => {
                self.tell_refused(firing, startup, &refused);
                watch = self.to_watch(&refused);
            }
            Claimed::Withdrawn(standing) if self.stopping.is_none() => {
                let skip = match standing {
                    Standing::Runs => Skip::Done,
                    Standing::Waits => Skip::Superseded,
                    Standing::Unanswered => Skip::Unanswered,
                };
                self.tell_skip(firing, skip);
            }
            Claimed::Withdrawn(_) => {}
        }
        if let Some(next) = self.behind_claim.take() {
            self.on_due(next, false);
        } else if let Some(running) = watch {
            self.begin_claim(running, false);
        }
    }

    fn tell_refused(&self, firing: DateTime<Utc>, startup: bool, refused: &Refused) {
        if startup && refused.refusal == Refusal::Unsure {
            // What fell before the start of the very first instance is no loss.
            return self.tell_skip(firing, Skip::BeforeFirst);
        }
        self.tell_skip(firing, refused.skip());
    }

    /// The run that holds the lock and is started again should its runner die.
    fn to_watch(&self, refused: &Refused) -> Option<DateTime<Utc>> {
        if self.job.on_runner_lost != OnRunnerLost::Rerun
            || refused.refusal != Refusal::Busy
            || self.stopping.is_some()
        {
            return None;
        }
        let before = refused.reply.as_ref()?.before.as_ref()?;
        before.firing.map(instant_of)
    }

    fn begin_run(&mut self, granted: Granted) {
        let (orders, ordered) = unbounded_channel();
        let at = (granted.grant.started, granted.sent);
        let retry_before = self.plan.agenda.peek_next(self.now());
        let task = Box::pin(supervisor::run(
            self.job,
            granted,
            ordered,
            retry_before,
            self.behind,
        ));
        self.run = Some(Running {
            orders,
            granted: at,
            task,
        });
        if let Some(running) = &self.run
            && let Some(signal) = self.stopping
        {
            // Granted in the moment of stopping: it is given back.
            let _ = running.orders.send(Caught::from_user(signal));
        }
    }

    fn on_finished(&mut self, finished: &Finished) {
        if let End::Failed(error) = &finished.end {
            self.job.tell(&Event::Notice {
                text: format!("the command could not be waited for: {error}"),
            });
        }
        if self.stopping.is_some() {
            return;
        }
        if let Some(queued) = self.queued.take() {
            self.on_due(queued, false);
        }
    }

    fn on_first_look(&mut self, look: FirstLook) -> Option<Leave> {
        match look {
            Ok((record, _)) => {
                if let Some(record) = record {
                    self.job.compare(&record.info);
                }
                self.job.tell_store_warnings();
                None
            }
            Err(error) => {
                self.job.tell_store_failed(&error);
                // Nobody but its user can mend that, and the user is looking.
                (error.class.is_final() && self.run.is_none())
                    .then(|| Leave::With(Exit::Refused.code()))
            }
        }
    }
}

/// Makes a connection for the coming firing, however often that takes.
async fn connect_ahead(job: &Job<'_>) {
    while let Err(error) = job.store.prepare(CONNECT_TIMEOUT).await {
        job.tell_store_failed(&error);
        firing::sleep_until(job.clock, job.clock.boot() + CONNECT_RETRY).await;
    }
}
