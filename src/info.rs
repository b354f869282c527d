//! Who runs: the part of a record that is for people, and for noticing that
//! two jobs go by one name.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

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
    /// A short digest of the command with its arguments: enough to see that two
    /// differ, too short to find out what they are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The crontab expressions; none for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The time zone of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl Info {
    /// The digest of a command with its arguments.
    #[must_use]
    pub fn digest_of(words: &[OsString]) -> String {
        let mut hash = Sha256::new();
        for word in words {
            hash.update(word.as_bytes());
            hash.update([0]);
        }
        let bytes = hash.finalize();
        format!("{:02x}{:02x}{:02x}", bytes[0], bytes[1], bytes[2])
    }

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
        if other.version.is_empty() {
            return Vec::new();
        }
        found.extend(difference("command", &self.command, &other.command));
        let digests = [&self.digest, &other.digest];
        if self.command == other.command
            && self.digest != other.digest
            && digests.iter().all(|digest| !digest.is_empty())
        {
            found.push(Difference {
                what: "arguments",
                ours: String::new(),
                theirs: String::new(),
            });
        }
        if let (Some(ours), Some(theirs)) = (&self.schedule, &other.schedule) {
            found.extend(difference("schedule", ours, theirs));
        }
        if let (Some(ours), Some(theirs)) = (&self.zone, &other.zone) {
            found.extend(difference("time zone", ours, theirs));
        }
        found
    }
}

fn difference(what: &'static str, ours: &str, theirs: &str) -> Option<Difference> {
    (ours != theirs).then(|| Difference {
        what,
        ours: shown(ours),
        theirs: shown(theirs),
    })
}

/// Something in which two jobs under one lock name differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// What it is: command, arguments, schedule or time zone.
    pub what: &'static str,
    /// How it is here; empty for arguments, which are never told.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_act_on_a_terminal() {
        for (given, want) in [
            ("web-2", "web-2"),
            ("a\x1b[31mb", "a\\u{1b}[31mb"),
            ("a\nb\r", "a\\nb\\r"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("zürich", "zürich"),
        ] {
            assert_eq!(shown(given), want);
        }
        let long = shown(&"x".repeat(500));
        assert!(long.ends_with('…') && long.chars().count() == SHOWN_MAX + 1);
    }

    #[test]
    fn json_goes_there_and_back_and_damage_is_empty() {
        let info = Info {
            host: "h\"\n".into(),
            pid: 7,
            version: "1".into(),
            command: "c".into(),
            digest: "0f".into(),
            schedule: Some("* * * * *".into()),
            zone: None,
        };
        assert_eq!(Info::from_json(&info.to_json()), info);
        for damaged in ["", "{", "[]", "{\"pid\":-1}", "null"] {
            assert_eq!(Info::from_json(damaged), Info::default(), "{damaged}");
        }
        let newer = Info::from_json("{\"host\":\"h\",\"more\":[1]}");
        assert_eq!(newer.host, "h");
    }

    #[test]
    fn jobs_differ_in_command_schedule_and_zone() {
        let info = |command: &str, schedule: Option<&str>, zone: Option<&str>| Info {
            version: "1".into(),
            command: command.into(),
            schedule: schedule.map(Into::into),
            zone: zone.map(Into::into),
            ..Info::default()
        };
        let ours = info("a", Some("x"), Some("UTC"));
        let what =
            |theirs: &Info| -> Vec<_> { ours.differences(theirs).iter().map(|d| d.what).collect() };
        assert!(what(&ours.clone()).is_empty());
        let with = |digest: &str| Info {
            digest: digest.into(),
            ..ours.clone()
        };
        assert_eq!(with("1").differences(&with("2"))[0].what, "arguments");
        assert!(with("1").differences(&with("1")).is_empty());
        assert!(with("1").differences(&with("")).is_empty());
        let other = info("b", Some("y"), Some("Asia/Tokyo"));
        assert_eq!(what(&other), ["command", "schedule", "time zone"]);
        assert!(what(&info("a", None, None)).is_empty(), "run by hand");
        assert!(what(&Info::default()).is_empty(), "nothing is known");
    }

    #[test]
    fn spans_are_told_roughly() {
        for (ms, want) in [
            (0, "0s"),
            (996, "996ms"),
            (9_999, "9s 999ms"),
            (41_700, "41s"),
        ] {
            assert_eq!(rough(span(ms)), want);
        }
        assert_eq!(span(-5), Duration::ZERO);
    }
}
