//! Events in words.

use std::fmt::Write;

use chrono::{DateTime, Utc};

use crate::event::{Event, StopCause, instant};
use crate::info::{Difference, rough};

/// What happened, in one line without the lock's name.
pub fn of(event: &Event) -> String {
    match event {
        Event::ScheduleStarted { .. }
        | Event::Sleeping { .. }
        | Event::Missed { .. }
        | Event::ClockSetBack { .. }
        | Event::Stopped { .. } => of_schedule(event),
        Event::StoreFailed { .. }
        | Event::StoreAnswered
        | Event::StoreWarning { .. }
        | Event::ClockSkew { .. }
        | Event::MarkAhead { .. } => of_store(event),
        Event::Beat
        | Event::Healed
        | Event::Lapsed
        | Event::LockLost { .. }
        | Event::Frozen
        | Event::Thawed
        | Event::NotFreed { .. } => of_lease(event),
        Event::Waiting { .. }
        | Event::Replaces { .. }
        | Event::Differs { .. }
        | Event::Skipped { .. } => of_claim(event),
        _ => of_command(event),
    }
}

fn of_schedule(event: &Event) -> String {
    match event {
        Event::ScheduleStarted {
            schedule,
            zone,
            next,
            seconds,
        } => {
            let mut text = format!("schedule {schedule:?} in {zone}");
            if *seconds {
                text.push_str("; six fields, the first is seconds");
            }
            let next: Vec<_> = next.iter().copied().map(instant).collect();
            if next.is_empty() {
                text
            } else {
                format!("{text}; next {}", next.join(", "))
            }
        }
        Event::Sleeping { until } => format!("next firing {}", instant(*until)),
        Event::Missed {
            count: 1,
            or_more: false,
            first,
            ..
        } => format!("missed the firing {}", instant(*first)),
        Event::Missed {
            count,
            or_more,
            first,
            last,
        } => {
            let more = if *or_more { " or more" } else { "" };
            format!(
                "missed {count}{more} firings, {} to {}",
                instant(*first),
                instant(*last)
            )
        }
        Event::ClockSetBack { by } => format!(
            "the clock was set back by {}; going on from the new time",
            rough(*by)
        ),
        Event::Stopped { reason } => format!("stopped: {reason}"),
        _ => String::new(),
    }
}

fn of_store(event: &Event) -> String {
    match event {
        Event::StoreFailed { error, .. } => error.clone(),
        Event::StoreAnswered => "the store answers again".to_owned(),
        Event::StoreWarning { warning } => warning.clone(),
        Event::ClockSkew { ahead, host, store } => {
            let side = if *ahead < 0.0 { "behind" } else { "ahead of" };
            format!(
                "this host's clock is {:.1} s {side} the store's: {} here, {} there",
                ahead.abs(),
                instant(*host),
                instant(*store)
            )
        }
        Event::MarkAhead { by, reset: false } => format!(
            "a firing {by:.0} s ahead of the store's clock was started before; until then nothing fires"
        ),
        Event::MarkAhead { by, reset: true } => format!(
            "the store's clock was set back by {by:.0} s or more; going on from its new time"
        ),
        _ => String::new(),
    }
}

fn of_lease(event: &Event) -> String {
    match event {
        Event::Beat => "lease extended".to_owned(),
        Event::Healed => "the store had lost the record; it is written again".to_owned(),
        Event::Lapsed => "the lease had run out and nobody had come; it is extended".to_owned(),
        Event::LockLost { why, then } => format!("lock lost: {why}; {then}"),
        Event::Frozen => {
            "woke too late to keep the lease; the command is halted until the store is asked"
                .to_owned()
        }
        Event::Thawed => "the lease is confirmed; the command goes on".to_owned(),
        Event::NotFreed { error } => {
            format!("the lock could not be freed and ends with its lease: {error}")
        }
        _ => String::new(),
    }
}

fn of_claim(event: &Event) -> String {
    match event {
        Event::Waiting {
            holder: Some(holder),
        } => format!("waiting for the lock, held by {holder}"),
        Event::Waiting { holder: None } => "waiting for the lock".to_owned(),
        Event::Replaces { firing, host } => match firing {
            Some(firing) => format!(
                "takes over from {host}, whose run of {} never ended",
                instant(*firing)
            ),
            None => format!("takes over from {host}, whose run never ended"),
        },
        Event::Differs {
            host, differences, ..
        } => {
            let list: Vec<_> = differences.iter().map(difference).collect();
            format!(
                "the last run under this lock name, on {host}, was of another job: {}; give each job a name of its own",
                list.join(", ")
            )
        }
        Event::Skipped { firing, skip } => match firing {
            Some(firing) => format!("firing {} not started: {skip}", instant(*firing)),
            None => format!("not started: {skip}"),
        },
        _ => String::new(),
    }
}

fn difference(difference: &Difference) -> String {
    let Difference { what, ours, theirs } = difference;
    if ours.is_empty() && theirs.is_empty() {
        return format!("other {what}");
    }
    format!("{what} {theirs:?} there, {ours:?} here")
}

fn of_command(event: &Event) -> String {
    match event {
        Event::Started {
            firing,
            token,
            attempt,
            pid,
            late,
        } => {
            let mut text = format!("{} started (pid {pid}, token {token}", subject(*firing));
            if *attempt > 1 {
                let _ = write!(text, ", attempt {attempt}");
            }
            if let Some(late) = late {
                let _ = write!(text, ", {late:.1} s late");
            }
            text.push(')');
            text
        }
        Event::Ended {
            firing,
            status,
            signal,
            ran,
            stopped_by,
        } => {
            let how = match signal {
                Some(signal) => format!("ended by {signal}"),
                None => format!("ended with status {status}"),
            };
            let cause = match stopped_by {
                None => "",
                Some(StopCause::Signal) => ", stopped by a signal",
                Some(StopCause::Timeout) => ", stopped by --timeout",
                Some(StopCause::LockLost) => ", stopped because the lock was lost",
            };
            format!("{} {how} after {}{cause}", subject(*firing), rough(*ran))
        }
        Event::CannotStart { firing, error } => {
            format!("{} could not start: {error}", subject(*firing))
        }
        Event::TimedOut { after } => {
            format!(
                "the command ran {}, past --timeout; stopping it",
                rough(*after)
            )
        }
        Event::StopSignal { signal, command } => match command {
            Some(fate) => format!("{signal}: {fate}"),
            None => format!("{signal}: stopping"),
        },
        Event::Killing => "killing the command".to_owned(),
        Event::Retrying { retry, of, after } => {
            format!("retry {retry} of {of} in {}", rough(*after))
        }
        Event::Leftovers => {
            "background processes are left over; they run on without the lock".to_owned()
        }
        Event::Notice { text } => text.clone(),
        _ => String::new(),
    }
}

fn subject(firing: Option<DateTime<Utc>>) -> String {
    firing.map_or_else(
        || "command".to_owned(),
        |firing| format!("firing {}", instant(firing)),
    )
}
