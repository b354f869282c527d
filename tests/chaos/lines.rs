//! The lines of the table.

pub const DUE: &str = "firings due";
pub const ONCE: &str = "started once";
pub const LATE: &str = "  of these more than 1 s late";
pub const AGAIN: &str = "started again, as asked (runner lost)";
pub const AGAIN_UNTOLD: &str = "  of these ended, but the store could not be told";
pub const TWICE: &str = "started twice: covered";
pub const TWICE_WIPE: &str = "  outside: record lost, claim < 2 s late";
pub const TWICE_LAST: &str = "  outside: last writes lost, within the start deadline";
pub const OVERLAP: &str = "overlaps: covered";
pub const OVERLAP_LOSS: &str = "  outside: record lost, until the next heartbeat";
pub const OVERLAP_FROZEN: &str = "  outside: frozen beyond the lease";
pub const OUTLIVED: &str = "alive after the lease: covered";
pub const OUTLIVED_FROZEN: &str = "  outside: frozen beyond the lease ";
pub const MISSED: &str = "missed";
pub const HELD: &str = "  an earlier run held the lock";
pub const UNSURE: &str = "  the store had forgotten";
pub const SUPERSEDED: &str = "  a newer one took its place";
pub const RUNNER_LOST: &str = "  its runner was lost before the command began";
pub const GIVEN_BACK: &str = "  given back: stopping, or lock not confirmed";
pub const UNREACHED: &str = "  the store was not reached in time";
pub const UNANSWERED: &str = "  granted to a host that the answer did not reach";
pub const SPENT: &str = "  spent behind a claim that had been given up";
pub const NOBODY: &str = "  no instance was able to";
pub const UNEXPLAINED: &str = "  unexplained";
pub const WRITES: &str = "writes";
pub const REFUSED: &str = "writes refused by token";
pub const REFUSED_START: &str = "tokens not higher at a start: covered";

/// All of them in their order.
pub const LINES: [&str; 27] = [
    DUE,
    ONCE,
    LATE,
    AGAIN,
    AGAIN_UNTOLD,
    TWICE,
    TWICE_WIPE,
    TWICE_LAST,
    OVERLAP,
    OVERLAP_LOSS,
    OVERLAP_FROZEN,
    OUTLIVED,
    OUTLIVED_FROZEN,
    MISSED,
    HELD,
    UNSURE,
    SUPERSEDED,
    RUNNER_LOST,
    GIVEN_BACK,
    UNREACHED,
    UNANSWERED,
    SPENT,
    NOBODY,
    UNEXPLAINED,
    WRITES,
    REFUSED,
    REFUSED_START,
];
