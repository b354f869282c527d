//! The loop of a single run: claim, run, leave.

use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;

use crate::event::{Event, Skip};
use crate::exit::{Exit, Leave};
use crate::firing::{self, Claimed, Job, Refused, Wish, Wishes, ms};
use crate::lock::{Patience, Refusal, Wait, Wanted};
use crate::process::{Kind, Signal, Signals, suspend_self};
use crate::supervisor::{self, Behind};

/// What is particular to a single run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Once {
    /// How long to wait for the lock.
    pub wait: Wait,
    /// The period in which the command is started once among all hosts.
    pub per: Option<Duration>,
    /// The status when the command was not run.
    pub skip_exit_code: u8,
}

/// Runs the command once under the lock, and says how to leave.
pub async fn run(job: &Job<'_>, once: Once, signals: &mut Signals) -> Leave {
    let wanted = Wanted::Once {
        per: once.per.map(ms),
    };
    let (tell, wishes) = Wishes::new();
    let claiming = firing::claim(job, wanted, Patience::Once(once.wait), wishes);
    tokio::pin!(claiming);
    let mut stopped_by = None;
    let claimed = loop {
        tokio::select! {
            biased;
            caught = signals.next() => match caught.signal.kind() {
                Kind::Stop => {
                    stopped_by = stopped_by.or(Some(caught.signal));
                    let _ = tell.send(Wish::Stop);
                }
                Kind::Suspend => suspend_self(),
                _ => {}
            },
            claimed = &mut claiming => break claimed,
        }
    };
    match claimed {
        Claimed::Withdrawn(_) => before_start(stopped_by.unwrap_or(Signal::TERM)),
        Claimed::Refused(refused) => refuse(job, &refused, once),
        Claimed::Granted(granted) => {
            let (orders, ordered) = unbounded_channel();
            let behind = Behind::default();
            let running = supervisor::run(job, *granted, ordered, None, &behind);
            tokio::pin!(running);
            let finished = loop {
                tokio::select! {
                    biased;
                    caught = signals.next() => {
                        let _ = orders.send(caught);
                    }
                    finished = &mut running => break finished,
                }
            };
            finished.leave(once.skip_exit_code)
        }
    }
}

fn before_start(signal: Signal) -> Leave {
    Leave::With(Exit::Signal(u8::try_from(signal.number()).unwrap_or(0)).code())
}

fn refuse(job: &Job<'_>, refused: &Refused, once: Once) -> Leave {
    let skip = match refused.skip() {
        Skip::Done => Skip::DoneInPeriod,
        skip => skip,
    };
    job.tell(&Event::Skipped { firing: None, skip });
    Leave::With(match refused.refusal {
        Refusal::Unreachable => Exit::Unavailable.code(),
        Refusal::Refused => Exit::Refused.code(),
        _ => once.skip_exit_code,
    })
}
