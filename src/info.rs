//! Who runs: the part of a record that is for people, and for noticing that
//! two jobs go by one name.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lock::{Ms, Record, StoreTime};

/// The longest text that is taken from a record for a message.
const SHOWN_MAX: usize = 80;

/// About the instance that runs, as the record's `info` holds it in JSON.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// The host's name.
    pub host: String,
    /// The process id of solocron there.
    pub pid: u32,
    /// The version of solocron.
    pub version: String,
    /// The file name of the command; never its arguments.
    pub command: String,
    /// The crontab expressions; none for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The time zone of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl Info {
    /// As it is written into a record.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From a record. What cannot be read is left empty.
    #[must_use]
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Where the job of another instance under the same lock name differs from
    /// this one. A run by hand has no schedule to compare.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |what, ours: &str, theirs: &str| {
            if ours != theirs {
                found.push(Difference {
                    what,
                    ours: shown(ours),
                    theirs: shown(theirs),
                });
            }
        };
        if other.version.is_empty() {
            return Vec::new();
        }
        compare("command", &self.command, &other.command);
        if let (Some(ours), Some(theirs)) = (&self.schedule, &other.schedule) {
            compare("schedule", ours, theirs);
        }
        if let (Some(ours), Some(theirs)) = (&self.zone, &other.zone) {
            compare("time zone", ours, theirs);
        }
        found
    }
}

/// Something in which two jobs under one lock name differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// What it is: command, schedule or time zone.
    pub what: &'static str,
    /// How it is here.
    pub ours: String,
    /// How it is there.
    pub theirs: String,
}

/// Who held the lock at some moment, and since when.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Holder {
    /// The host's name, safe to print.
    pub host: String,
    /// The process id of solocron there.
    pub pid: u32,
    /// How long the run has lasted.
    #[serde(serialize_with = "as_seconds")]
    pub age: Duration,
    /// What is left of the lease.
    #[serde(serialize_with = "as_seconds")]
    pub left: Duration,
}

impl Holder {
    /// The holder that a record shows at `now`.
    #[must_use]
    pub fn of(record: &Record, now: StoreTime) -> Self {
        let info = Info::from_json(&record.info);
        Self {
            host: shown(if info.host.is_empty() {
                "unknown host"
            } else {
                &info.host
            }),
            pid: info.pid,
            age: span(now.wall_ms() - record.started),
            left: span(record.left(now)),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (pid {}) for {}, lease ends in {}",
            self.host,
            self.pid,
            rough(self.age),
            rough(self.left)
        )
    }
}

/// Text from outside as it may be printed: control characters escaped, cut to
/// a length.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.len() >= SHOWN_MAX {
            out.push('…');
            break;
        }
        if c.is_control() || c == '\u{2028}' || c == '\u{2029}' || is_bidi(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters that turn the direction of what follows on a terminal.
const fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// A span as people say it: to the second from ten seconds on, else to the
/// millisecond.
#[must_use]
pub fn rough(span: Duration) -> String {
    let rounded = if span >= Duration::from_secs(10) {
        Duration::from_secs(span.as_secs())
    } else {
        Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    };
    humantime::format_duration(rounded).to_string()
}

/// Milliseconds as a span; nothing below zero.
#[must_use]
pub fn span(ms: Ms) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// A span as a number of seconds.
///
/// # Errors
/// Those of the serializer.
pub fn as_seconds<S: serde::Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.as_secs_f64())
}
