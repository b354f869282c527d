//! The record: one for each lock name, lease and memory in one place.

use std::fmt;
use std::str::FromStr;

/// Milliseconds: an instant on the store's clock since the Unix epoch, or a
/// span, as the field says.
pub type Ms = i64;

/// How many owners that gave up are remembered.
pub const VOID_MAX: usize = 8;

/// A `keep` at or above this means that the record never expires.
///
/// About 31,700 years, far from the limits of Redis and of a Lua number.
pub const KEEP_FOREVER: Ms = 1_000_000_000_000_000;

/// The random name of one claim, 128 bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(pub u128);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Owner {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

/// What became of the run that a record describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Granted and not ended as far as the store knows.
    Run,
    /// The command ended with status 0.
    Done,
    /// The command ended otherwise, or could not be started.
    Failed,
    /// Given back: never started, or stopped by us and to be run again.
    Requeued,
}

impl State {
    /// The word that stands for it in a stored record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Requeued => "requeued",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Not one of the four words for a [`State`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownState(pub String);

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Run, Self::Done, Self::Failed, Self::Requeued]
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// The store's clocks at the moment it applies an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StoreTime {
    /// Microseconds since the Unix epoch, for firings and tokens.
    pub wall_us: i64,
    /// Milliseconds on the clock in which [`Record::until`] is told: the same
    /// wall clock in Redis, the time since boot in a file.
    pub lease_ms: Ms,
}

impl StoreTime {
    /// Both clocks from one wall clock, as Redis has them.
    #[must_use]
    pub const fn from_wall_us(wall_us: i64) -> Self {
        Self {
            wall_us,
            lease_ms: wall_us.div_euclid(1000),
        }
    }

    /// The wall clock in whole milliseconds.
    #[must_use]
    pub const fn wall_ms(self) -> Ms {
        self.wall_us.div_euclid(1000)
    }

    /// An instant of the lease clock told on the wall clock.
    #[must_use]
    pub const fn on_wall(self, lease_instant: Ms) -> Ms {
        self.wall_ms() + (lease_instant - self.lease_ms)
    }
}

/// The record of one lock name: the lease, and the memory of what was started.
///
/// Instants are on the store's wall clock except `until`, which is on its
/// lease clock (see [`StoreTime`]).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// Who was granted last; none where the record only remembers.
    pub owner: Option<Owner>,
    /// The fencing token of the last grant. It only rises.
    pub token: u64,
    /// The scheduled instant of the last run; none for a run without schedule.
    pub firing: Option<Ms>,
    /// What became of the last run.
    pub state: State,
    /// How many times the command was started for this firing.
    pub attempt: u32,
    /// How many times this firing was granted.
    pub grants: u32,
    /// When the lease ends.
    pub until: Ms,
    /// The length of the last lease, a span. A lease further away than this
    /// was given before the clock was set back.
    pub ttl: Ms,
    /// The highest firing started or spent; 0 before the first.
    pub mark: Ms,
    /// When the record was made from nothing or healed.
    pub born: Ms,
    /// Start of the last run that was to happen once in a period.
    pub once: Option<Ms>,
    /// The last owners that gave up, oldest first, at most [`VOID_MAX`].
    pub void: Vec<Owner>,
    /// The longest expiry that anyone asked for, a span.
    pub keep: Ms,
    /// When the last run was granted.
    pub started: Ms,
    /// When the last run ended; none while it runs or if nobody told.
    pub ended: Option<Ms>,
    /// The exit status of the last run, if it ended with one.
    pub code: Option<i32>,
    /// JSON about the last run: host, pid, version, command name, schedule, zone.
    pub info: String,
}

impl Record {
    /// A record that knows nothing yet but when it was made.
    #[must_use]
    pub const fn born_at(now: StoreTime) -> Self {
        Self {
            owner: None,
            token: 0,
            firing: None,
            state: State::Done,
            attempt: 0,
            grants: 0,
            until: 0,
            ttl: 0,
            mark: 0,
            born: now.wall_ms(),
            once: None,
            void: Vec::new(),
            keep: 0,
            started: 0,
            ended: None,
            code: None,
            info: String::new(),
        }
    }

    /// Whether a run holds the lock at `now`.
    ///
    /// A lease that ends further away than its own length was given before the
    /// store's clock was set back, and does not count.
    #[must_use]
    pub const fn alive(&self, now: StoreTime) -> bool {
        matches!(self.state, State::Run)
            && self.until > now.lease_ms
            && self.until <= now.lease_ms + self.ttl
    }

    /// What is left of the lease at `now`, a span; 0 when nothing is held.
    #[must_use]
    pub const fn left(&self, now: StoreTime) -> Ms {
        if self.alive(now) {
            self.until - now.lease_ms
        } else {
            0
        }
    }

    /// When the store may forget the record, counted from its last change;
    /// none for never.
    #[must_use]
    pub const fn expiry(&self) -> Option<Ms> {
        if self.keep >= KEEP_FOREVER {
            None
        } else {
            Some(self.keep)
        }
    }

    pub(super) fn is_void(&self, owner: Owner) -> bool {
        self.void.contains(&owner)
    }

    pub(super) fn add_void(&mut self, owner: Owner) {
        if self.is_void(owner) {
            return;
        }
        if self.void.len() == VOID_MAX {
            self.void.remove(0);
        }
        self.void.push(owner);
    }
}
