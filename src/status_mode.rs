//! What the store knows of a lock, for `--status`.

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::clock::Clock;
use crate::event::instant;
use crate::exit::Exit;
use crate::firing::{instant_of, sleep_until};
use crate::info::{Holder, Info, rough, shown};
use crate::lock::{Ms, Record, State, StoreTime};
use crate::log::Format;
use crate::store::{Store, StoreError};

/// How long the store may take.
const WITHIN: Duration = Duration::from_secs(5);
/// How long one try may take.
const TRY_WITHIN: Duration = Duration::from_secs(2);
/// From one failed try to the next.
const RETRY: Duration = Duration::from_millis(200);

/// What is known of a lock.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    /// The lock's name.
    pub lock: String,
    /// Where its record lives.
    pub store: String,
    /// The record's key there, in a store that has keys.
    pub key: Option<String>,
    /// Whether a run holds it.
    pub held: bool,
    /// Who holds it.
    pub holder: Option<Holder>,
    /// About the last run.
    pub last: Option<Last>,
    /// The highest fencing token given.
    pub token: Option<u64>,
    /// The highest firing started or spent.
    pub mark: Option<DateTime<Utc>>,
    /// The next firing, where a schedule is given and has one.
    pub next: Option<DateTime<Utc>>,
    /// Whether a schedule is given and has no firing any more.
    #[serde(skip)]
    pub ended: bool,
}

/// The lock that is asked about.
#[derive(Clone, PartialEq, Debug)]
pub struct Question<'a> {
    /// The lock's name.
    pub lock: &'a str,
    /// Where its record lives.
    pub store: &'a str,
    /// The record's key there, in a store that has keys.
    pub key: Option<&'a str>,
    /// The next firing, where a schedule is given and has one.
    pub next: Option<DateTime<Utc>>,
    /// Whether a schedule is given and has no firing any more.
    pub ended: bool,
}

/// The last run, or the one that runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Last {
    /// Its scheduled instant.
    pub firing: Option<DateTime<Utc>>,
    /// What became of it: running, lost, done, failed or requeued.
    pub result: &'static str,
    /// The command's status.
    pub code: Option<i32>,
    /// Where it ran.
    pub host: String,
    /// The process id of solocron there.
    pub pid: u32,
    /// The command's file name.
    pub command: String,
    /// How many times the command was started for this firing.
    pub attempt: u32,
    /// When it was granted.
    pub started: DateTime<Utc>,
    /// When it ended.
    pub ended: Option<DateTime<Utc>>,
}

impl Status {
    /// From a record as it stands at `now`.
    #[must_use]
    pub fn new(question: &Question<'_>, record: Option<&Record>, now: StoreTime) -> Self {
        let held = record.is_some_and(|record| record.alive(now));
        let mark = record.map(|record| record.mark).filter(|mark| *mark > 0);
        Self {
            lock: shown(question.lock),
            store: question.store.to_owned(),
            key: question.key.map(shown),
            held,
            holder: record
                .filter(|_| held)
                .map(|record| Holder::of(record, now)),
            last: record.and_then(|record| last(record, held)),
            token: record.map(|record| record.token).filter(|token| *token > 0),
            mark: mark.map(instant_of),
            next: question.next,
            ended: question.ended,
        }
    }

    /// The status to exit with.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        if self.held {
            Exit::NotRun
        } else {
            Exit::Success
        }
    }

    /// One line of JSON, or several lines for people.
    #[must_use]
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Json => serde_json::to_string(self).unwrap_or_default() + "\n",
            Format::Text => self.text(),
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(out, "{name:<8} {value}");
        };
        line("lock", &self.lock);
        line("store", &self.store);
        if let Some(key) = &self.key {
            line("key", key);
        }
        match &self.holder {
            Some(holder) => {
                line("state", "held");
                let Holder {
                    host,
                    pid,
                    age,
                    left,
                } = holder;
                line("holder", &format!("{host} (pid {pid}) for {}", rough(*age)));
                line("lease", &format!("ends in {}", rough(*left)));
            }
            None => line("state", "free"),
        }
        if let Some(last) = &self.last {
            if let Some(firing) = last.firing {
                line("firing", &instant(firing));
            }
            line("result", &result_text(last));
            line("command", &last.command);
            if last.attempt > 1 {
                line("attempt", &last.attempt.to_string());
            }
        } else {
            line("result", "never started, as far as the store knows");
        }
        if let Some(token) = self.token {
            line("token", &token.to_string());
        }
        if let Some(mark) = self.mark {
            line("mark", &instant(mark));
        }
        if let Some(next) = self.next {
            line("next", &instant(next));
        } else if self.ended {
            line("next", "never: the schedule has ended");
        }
        out
    }
}

fn result_text(last: &Last) -> String {
    let mut text = last.result.to_owned();
    if let Some(code) = last.code {
        let _ = write!(text, " with status {code}");
    }
    if last.result != "running" {
        let _ = write!(text, " on {} (pid {})", last.host, last.pid);
    }
    let _ = write!(text, ", started {}", instant(last.started));
    if let Some(ended) = last.ended {
        let _ = write!(text, ", ended {}", instant(ended));
    }
    text
}

fn last(record: &Record, held: bool) -> Option<Last> {
    record.owner?;
    let info = Info::from_json(&record.info);
    let at = |ms: Ms| instant_of(ms);
    Some(Last {
        firing: record.firing.map(at),
        result: match record.state {
            State::Run if held => "running",
            State::Run => "lost",
            state => state.as_str(),
        },
        code: record.code,
        host: shown(&info.host),
        pid: info.pid,
        command: shown(&info.command),
        attempt: record.attempt,
        started: at(record.started),
        ended: record.ended.map(at),
    })
}

/// Reads the record, again as long as the store cannot be reached, for five
/// seconds at most.
///
/// # Errors
/// The last failure.
pub async fn read(
    store: &dyn Store,
    clock: &dyn Clock,
) -> Result<(Option<Record>, StoreTime), StoreError> {
    let end = clock.boot() + WITHIN;
    loop {
        let now = clock.boot();
        let within = TRY_WITHIN.min(end.saturating_sub(now));
        match store.read(within).await {
            Err(error) if !error.class.is_final() && clock.boot() + RETRY < end => {
                sleep_until(clock, clock.boot() + RETRY).await;
            }
            answer => return answer,
        }
    }
}
