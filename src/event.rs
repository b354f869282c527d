//! Typed events of a run. Whoever wants to tell, count or report them listens;
//! the log is one listener.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use crate::info::{Difference, Holder, as_seconds, rough};

/// How much an event matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Something went wrong and somebody should look.
    Error,
    /// Something was lost or is about to be.
    Warn,
    /// Ordinary and worth a line.
    Info,
    /// For whoever follows closely.
    Debug,
    /// Every heartbeat.
    Trace,
}

/// Why a firing, or a single run, did not start here.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Skip {
    /// Another run holds the lock.
    Busy {
        /// Who, as far as the store knows.
        holder: Option<Holder>,
    },
    /// The lock was still held when the time to wait was over.
    WaitOver {
        /// Who, as far as the store knows.
        holder: Option<Holder>,
        /// How long was waited.
        #[serde(serialize_with = "as_seconds")]
        waited: Duration,
    },
    /// It runs elsewhere, or was started or spent before.
    Done,
    /// It had its run in this period.
    DoneInPeriod,
    /// It lies too far behind the store's clock.
    Late {
        /// How far.
        #[serde(serialize_with = "as_seconds")]
        by: Duration,
        /// How far this host's clock is behind the store's, where that is why.
        clock_behind: Option<f64>,
    },
    /// It lies too far ahead of the store's clock.
    Early {
        /// How far.
        #[serde(serialize_with = "as_seconds")]
        by: Duration,
    },
    /// Its runner died and it is not started again.
    Orphaned {
        /// Who ran it.
        holder: Option<Holder>,
    },
    /// The store may have forgotten that it ran.
    Unsure,
    /// It fell before the first instance of this job was started.
    BeforeFirst,
    /// A newer firing took its place in the queue.
    Superseded,
    /// It fell due while this instance ran an earlier one.
    Overlapped,
    /// The store could not be reached in time.
    Unreachable,
    /// The store did not answer before the next firing fell due.
    Unanswered,
    /// The store refused.
    Refused,
    /// The lock could not be made sure of before the start.
    NotKept,
    /// solocron is stopping.
    Stopping,
}

/// What ended a command before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// A signal to solocron.
    Signal,
    /// `--timeout`.
    Timeout,
    /// The lock was lost.
    LockLost,
}

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A schedule begins.
    ScheduleStarted {
        /// The expressions.
        schedule: String,
        /// Their zone.
        zone: String,
        /// The coming firings that are worth telling.
        next: Vec<DateTime<Utc>>,
        /// Whether the expressions have a seconds field.
        seconds: bool,
    },
    /// The next firing, once it is known.
    Sleeping {
        /// Its instant.
        until: DateTime<Utc>,
    },
    /// The command was started.
    Started {
        /// The scheduled instant.
        firing: Option<DateTime<Utc>>,
        /// The fencing token.
        token: u64,
        /// How many times it was started for this firing.
        attempt: u32,
        /// Its process id.
        pid: i32,
        /// How late the start is, by this host's clock.
        late: Option<f64>,
    },
    /// The command ended.
    Ended {
        /// The scheduled instant.
        firing: Option<DateTime<Utc>>,
        /// The status as a shell shows it.
        status: i32,
        /// The signal that ended it.
        signal: Option<String>,
        /// How long it ran.
        #[serde(serialize_with = "as_seconds")]
        ran: Duration,
        /// What ended it before its time.
        stopped_by: Option<StopCause>,
    },
    /// The command could not be started.
    CannotStart {
        /// The scheduled instant.
        firing: Option<DateTime<Utc>>,
        /// What, why, and what to do.
        error: String,
    },
    /// A firing or a single run did not start here.
    Skipped {
        /// The scheduled instant.
        firing: Option<DateTime<Utc>>,
        /// Why.
        #[serde(flatten)]
        skip: Skip,
    },
    /// Firings passed without this instance having a chance to claim them.
    Missed {
        /// How many.
        count: u64,
        /// Whether there may be more than counted.
        or_more: bool,
        /// The first of them.
        first: DateTime<Utc>,
        /// The last of them.
        last: DateTime<Utc>,
    },
    /// The run that held the lock before never ended.
    Replaces {
        /// Its firing.
        firing: Option<DateTime<Utc>>,
        /// Who ran it.
        host: String,
    },
    /// The lock is held; this run waits for it.
    Waiting {
        /// By whom.
        holder: Option<Holder>,
    },
    /// Another job goes by the same lock name.
    Differs {
        /// The other host.
        host: String,
        /// In what it differs.
        differences: Vec<Difference>,
        /// Whether this instance runs on a schedule; a command given by hand
        /// may well be another one.
        scheduled: bool,
    },
    /// A request to the store failed.
    StoreFailed {
        /// What, where, and what to do.
        error: String,
        /// What kind of failure it is: repeats of one kind are one trouble.
        class: &'static str,
    },
    /// The store answered.
    StoreAnswered,
    /// Something about the store endangers the lock.
    StoreWarning {
        /// What.
        warning: String,
    },
    /// This host's clock and the store's are apart.
    ClockSkew {
        /// How far this host's is ahead of the store's, in seconds.
        ahead: f64,
        /// This host's clock.
        host: DateTime<Utc>,
        /// The store's clock.
        store: DateTime<Utc>,
    },
    /// A firing was started for an instant ahead of the store's clock.
    MarkAhead {
        /// How far ahead, in seconds.
        by: f64,
        /// Whether the store's clock was set back and the mark falls to now.
        reset: bool,
    },
    /// The wall clock of this host was set back by more than three hours.
    ClockSetBack {
        /// How far.
        #[serde(serialize_with = "as_seconds")]
        by: Duration,
    },
    /// A heartbeat was answered.
    Beat,
    /// The store had lost the record and it was written again.
    Healed,
    /// The lease had lapsed in the store, and nobody had come.
    Lapsed,
    /// The lock is lost.
    LockLost {
        /// Why.
        why: String,
        /// What happens to the command.
        then: &'static str,
    },
    /// solocron woke past its lease and halted the command to ask the store.
    Frozen,
    /// The lease was confirmed and the command goes on.
    Thawed,
    /// `--timeout` is over.
    TimedOut {
        /// The time the command had.
        #[serde(serialize_with = "as_seconds")]
        after: Duration,
    },
    /// A stop signal arrived.
    StopSignal {
        /// Its name.
        signal: String,
        /// Whether a command runs, and what happens to it.
        command: Option<&'static str>,
    },
    /// The command got SIGKILL.
    Killing,
    /// A failed command is started again.
    Retrying {
        /// The number of the coming try.
        retry: u32,
        /// How many there are.
        of: u32,
        /// When.
        #[serde(serialize_with = "as_seconds")]
        after: Duration,
    },
    /// Background processes are left over after the command's end.
    Leftovers,
    /// The lock could not be freed; its lease runs out.
    NotFreed {
        /// Why.
        error: String,
    },
    /// Something about the call is probably not meant.
    Notice {
        /// What.
        text: String,
    },
    /// solocron ends.
    Stopped {
        /// Why.
        reason: String,
    },
}

impl Event {
    /// How much it matters.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Self::CannotStart { .. } | Self::StoreFailed { .. } => Level::Error,
            Self::Skipped { skip, .. } => skip.level(),
            // Of a scheduled run nobody else sees the status.
            Self::Ended {
                firing: Some(_),
                status: 1..,
                stopped_by: None | Some(StopCause::Timeout),
                ..
            }
            | Self::Missed { .. }
            | Self::Replaces { .. }
            | Self::Differs {
                scheduled: true, ..
            }
            | Self::StoreWarning { .. }
            | Self::ClockSkew { .. }
            | Self::MarkAhead { .. }
            | Self::ClockSetBack { .. }
            | Self::Healed
            | Self::Lapsed
            | Self::LockLost { .. }
            | Self::TimedOut { .. }
            | Self::Killing
            | Self::Leftovers
            | Self::NotFreed { .. }
            | Self::Notice { .. } => Level::Warn,
            Self::ScheduleStarted { .. }
            | Self::Started { .. }
            | Self::Ended { .. }
            | Self::Waiting { .. }
            | Self::Differs { .. }
            | Self::StoreAnswered
            | Self::Frozen
            | Self::Thawed
            | Self::StopSignal { .. }
            | Self::Retrying { .. }
            | Self::Stopped { .. } => Level::Info,
            Self::Sleeping { .. } => Level::Debug,
            Self::Beat => Level::Trace,
        }
    }
}

impl Skip {
    const fn level(&self) -> Level {
        match self {
            Self::Done | Self::Stopping => Level::Debug,
            Self::Busy { .. }
            | Self::DoneInPeriod
            | Self::BeforeFirst
            | Self::Superseded
            | Self::Overlapped => Level::Info,
            Self::WaitOver { .. }
            | Self::Late { .. }
            | Self::Early { .. }
            | Self::Orphaned { .. }
            | Self::Unsure
            | Self::Unreachable
            | Self::Unanswered
            | Self::Refused
            | Self::NotKept => Level::Warn,
        }
    }
}

/// An instant as it is told: RFC 3339 in UTC, to the second where it is whole.
#[must_use]
pub fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { holder: None } => f.write_str("lock held by another run"),
            Self::Busy {
                holder: Some(holder),
            } => write!(f, "lock held by {holder}"),
            Self::WaitOver { holder, waited } => {
                write!(f, "waited {} for the lock", rough(*waited))?;
                match holder {
                    Some(holder) => write!(f, ", held by {holder}"),
                    None => Ok(()),
                }
            }
            Self::Done => f.write_str("started elsewhere"),
            Self::DoneInPeriod => f.write_str("already started in this period (--once-per)"),
            Self::Late { by, clock_behind } => {
                write!(f, "{} late, past --start-deadline", rough(*by))?;
                match clock_behind {
                    Some(behind) => {
                        write!(f, "; this host's clock is {behind:.1} s behind the store's")
                    }
                    None => Ok(()),
                }
            }
            Self::Early { by } => write!(
                f,
                "{} ahead of the store's clock, more than --start-deadline",
                rough(*by)
            ),
            Self::Orphaned { holder } => {
                f.write_str("its runner is gone")?;
                if let Some(holder) = holder {
                    write!(f, " ({} pid {})", holder.host, holder.pid)?;
                }
                f.write_str(" and it is not started again")
            }
            Self::Unsure => {
                f.write_str("the store has no memory of that time, so that it may have run already")
            }
            Self::BeforeFirst => f.write_str("it fell before the first start of this job"),
            Self::Superseded => f.write_str("a newer firing took its place in the queue"),
            Self::Overlapped => f.write_str("an earlier run is still going on"),
            Self::Unreachable => f.write_str("the store could not be reached in time"),
            Self::Unanswered => {
                f.write_str("the store did not answer before the next firing fell due")
            }
            Self::Refused => f.write_str("the store refused"),
            Self::NotKept => f.write_str("the lock could not be confirmed before the start"),
            Self::Stopping => f.write_str("stopping"),
        }
    }
}

/// A listener to events.
pub trait Listener {
    /// Takes note of an event. It must not wait and cannot fail.
    fn on_event(&self, event: &Event);
}
