//! What is wrong with a schedule, in words a user can act on.

use std::fmt;

use super::field::FieldError;
use super::zone::ZoneError;

/// A schedule that was refused; its text names the whole expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleError {
    /// The expression as given.
    pub expression: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl std::error::Error for ScheduleError {}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schedule {}: {}", quote(&self.expression), self.problem)
    }
}

/// The kinds of defect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// One field is not understood or out of range.
    Field(FieldError),
    /// The expression as a whole has no known form.
    Form {
        /// What is wrong.
        reason: String,
        /// What to write instead.
        remedy: String,
    },
    /// It is well formed but matches no instant at all.
    NeverFires,
    /// Its years are over.
    Ended {
        /// The instant after which no firing was found, RFC 3339.
        after: String,
    },
    /// The zone of a `CRON_TZ=` or `TZ=` prefix, or the one to fall back on.
    Zone(ZoneError),
    /// The prefix names another zone than `--tz`.
    ZoneConflict {
        /// The zone of `--tz`.
        given: String,
        /// The zone of the prefix.
        prefix: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(error) => error.fmt(f),
            Self::Form { reason, remedy } => write!(f, "{reason}; {remedy}"),
            Self::NeverFires => f.write_str(
                "never fires, no date and time matches all fields; \
                 check day-of-month against month, like 30 in February",
            ),
            Self::Ended { after } => write!(
                f,
                "has no firing after {after}; check the year field, or write * there"
            ),
            Self::Zone(error) => error.fmt(f),
            Self::ZoneConflict { given, prefix } => write!(
                f,
                "its prefix asks for the zone {prefix}, but --tz asks for {given}; leave one of the two out"
            ),
        }
    }
}

/// Quotes what the user gave: control characters escaped, long text cut.
pub(super) fn quote(text: &str) -> String {
    const LIMIT: usize = 120;
    match text.char_indices().nth(LIMIT) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}
