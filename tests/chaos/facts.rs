//! What a run of chaos leaves behind to be judged. Times are microseconds since
//! the epoch on the one true clock, which is the store's as well.

/// Microseconds since the epoch, or a span of them.
pub type Us = i64;

/// A second.
pub const SECOND: Us = 1_000_000;

/// A millisecond.
pub const MILLI: Us = 1_000;

/// A job: one lock name with one schedule.
#[derive(Clone, Debug)]
pub struct Job {
    /// the lock name
    pub name: &'static str,
    /// from one firing to the next
    pub period: Us,
    pub ttl: Us,
    pub start_deadline: Us,
    /// `--overlap queue`
    pub queue: bool,
    /// `--on-runner-lost rerun`
    pub rerun: bool,
    /// shortest and longest time that the command takes
    pub takes: (Us, Us),
}

/// One run of the command as the fenced resource saw it.
#[derive(Clone, Debug)]
pub struct Run {
    pub job: String,
    /// the instance
    pub label: String,
    pub firing: Us,
    pub token: u64,
    pub attempt: u32,
    pub start: Us,
    /// when the last of it was gone
    pub end: Us,
    /// whether it came to its own end
    pub finished: bool,
    pub writes: u32,
    /// writes that came with a smaller token than the highest seen
    pub refused: u32,
    /// whether already the first one was refused
    pub refused_at_start: bool,
}

impl Run {
    /// When the store granted it: tokens follow its clock.
    pub fn granted(&self) -> Us {
        Us::try_from(self.token).unwrap_or(Us::MAX)
    }
}

/// A line of an instance's log.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// true time
    pub at: Us,
    pub event: String,
    /// why something was skipped
    pub reason: String,
    pub firing: Option<Us>,
    pub token: u64,
    pub attempt: u32,
    /// since when and until when somebody held the lock, as the store told it
    pub held: Option<Span>,
    /// of firings that were missed
    pub span: Option<(Us, Us)>,
    /// as it was written
    pub text: String,
}

/// One process of an instance from its start to its end.
#[derive(Clone, Debug)]
pub struct Life {
    pub job: String,
    pub label: String,
    pub from: Us,
    pub to: Us,
    pub lines: Vec<Line>,
}

/// A span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub from: Us,
    pub to: Us,
}

impl Span {
    /// Whether some instant lies in both.
    pub fn meets(self, other: Span) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}

/// A process of an instance did not run.
#[derive(Clone, Debug)]
pub struct Freeze {
    /// the instance; all of them where the machine itself stood still
    pub label: Option<String>,
    pub span: Span,
}

/// What a store can forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgot {
    /// its whole memory
    All,
    /// its last writes, or the writes to a server that was master no more
    Last,
}

/// The store forgot something at some instant of the span.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// of one job; of all where none is named
    pub job: Option<&'static str>,
    pub forgot: Forgot,
    pub span: Span,
}

/// An injected fault, for the eyes.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: &'static str,
    pub span: Span,
    pub text: String,
}

impl Fault {
    /// Whether the way to the store, or the store itself, was hit.
    pub fn is_of_store(&self) -> bool {
        ["network", "Redis", "replies", "master", "failover"]
            .iter()
            .any(|word| self.kind.contains(word))
    }
}

/// Everything there is to know.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub jobs: Vec<Job>,
    /// firings in it count
    pub window: Option<Span>,
    pub runs: Vec<Run>,
    pub lives: Vec<Life>,
    pub freezes: Vec<Freeze>,
    pub losses: Vec<Loss>,
    pub faults: Vec<Fault>,
}
