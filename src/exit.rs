//! Exit statuses, each with its meaning.
//!
//! One table serves the binary, `--help`, the manual page and the README.

use std::process::ExitCode;

/// A status that solocron itself ends with; what the command ends with is
/// passed on unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Exit {
    /// All is done: a schedule was stopped by a signal, or firings were printed.
    Success,
    /// The command line, an expression, a zone, a name or a store address
    /// cannot be used. 2 is what shells and most tools use for it.
    Usage,
    /// The store could not be reached: `EX_UNAVAILABLE` of sysexits(3).
    Unavailable,
    /// The command was not run, and may be later: `EX_TEMPFAIL` of sysexits(3).
    NotRun,
    /// The lock was lost while the command ran, and it was stopped.
    LockLost,
    /// The store refused: `EX_NOPERM` of sysexits(3).
    Refused,
    /// The command ran longer than allowed and ended at the stop signal: as
    /// timeout(1).
    TimedOut,
    /// The command ran longer than allowed and had to be killed: as
    /// timeout(1), 128 and the number of SIGKILL.
    TimedOutKilled,
    /// solocron itself failed: as timeout(1) and env(1).
    Internal,
    /// The command was found and cannot be run: POSIX, Shell Command Language
    /// 2.8.2.
    CannotRun,
    /// The command was not found: POSIX, Shell Command Language 2.8.2.
    NotFound,
    /// A signal of this number arrived before the command had started: as a
    /// shell tells of it.
    Signal(u8),
}

impl Exit {
    /// The number that the process exits with.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Usage => 2,
            Self::Unavailable => 69,
            Self::NotRun => 75,
            Self::LockLost => 76,
            Self::Refused => 77,
            Self::TimedOut => 124,
            Self::Internal => 125,
            Self::CannotRun => 126,
            Self::NotFound => 127,
            Self::TimedOutKilled => 128 + 9,
            Self::Signal(number) => 128_u8.saturating_add(number),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// How solocron leaves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Leave {
    /// With this status.
    With(u8),
    /// By dying of the signal of this number, as its command did in the
    /// foreground of a terminal.
    DieOf(u8),
}

/// The status of a command that a signal of this number ended, as a shell
/// tells of it.
#[must_use]
pub const fn of_signal(number: u8) -> u8 {
    Exit::Signal(number).code()
}

/// Every status with its meaning, in the words of the documentation.
pub const TABLE: [(&str, &str); 13] = [
    (
        "the command's",
        "it ran; 128+n when signal n ended it (in the foreground of a terminal, INT, QUIT and TERM end solocron too)",
    ),
    (
        "0",
        "a schedule was stopped by a signal; --next; --status of a free lock",
    ),
    (
        "2",
        "usage: a bad option, expression, zone, name or store address, or no store where one must be named",
    ),
    (
        "69",
        "single run and --status: the store was not reachable for 5 s, or for as long as --wait",
    ),
    (
        "75",
        "single run: not run, as the lock is busy, the command already ran in this period, or --wait ran out (--skip-exit-code changes it); --status of a held lock",
    ),
    (
        "76",
        "the lock was lost while the command ran, and it was stopped",
    ),
    (
        "77",
        "the store refused: wrong password, missing permission, untrusted certificate",
    ),
    ("124", "--timeout was hit"),
    ("125", "solocron itself failed"),
    ("126", "the command was found and cannot be run"),
    ("127", "the command, or its #! interpreter, was not found"),
    (
        "137",
        "--timeout was hit and SIGKILL was needed; or signal 9 ended the command",
    ),
    (
        "128+n",
        "single run: signal n arrived before the command had started",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_own_status_is_in_the_table_with_its_number() {
        let all = [
            Exit::Success,
            Exit::Usage,
            Exit::Unavailable,
            Exit::NotRun,
            Exit::LockLost,
            Exit::Refused,
            Exit::TimedOut,
            Exit::TimedOutKilled,
            Exit::Internal,
            Exit::CannotRun,
            Exit::NotFound,
        ];
        let codes: Vec<String> = all.iter().map(|exit| exit.code().to_string()).collect();
        for code in &codes {
            assert!(TABLE.iter().any(|(told, _)| told == code), "{code}");
        }
        assert_eq!(codes.len() + 2, TABLE.len());
    }

    #[test]
    fn signals_count_from_128() {
        assert_eq!(of_signal(15), 143);
        assert_eq!(Exit::Signal(2).code(), 130);
        assert_eq!(of_signal(u8::MAX), u8::MAX);
    }
}
