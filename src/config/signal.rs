//! The signal that asks a command to stop.

use super::values::{refuse, text};
use crate::cli::UsageError;
use crate::cli::options::Opt;
use crate::cli::words::Words;

/// The signal that asks a command to stop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StopSignal(i32);

impl StopSignal {
    /// SIGTERM.
    pub const TERM: Self = Self(libc::SIGTERM);

    /// Its number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// The signals that a program can take as a request to stop: signal(7).
const SIGNALS: [(&str, i32); 19] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
];

/// Signals that cannot ask a program to stop.
const NO_REQUEST: [(&str, i32, &str); 8] = [
    (
        "KILL",
        libc::SIGKILL,
        "no program can catch it; --kill-after says when it is sent",
    ),
    (
        "STOP",
        libc::SIGSTOP,
        "it freezes a program and does not end it",
    ),
    (
        "TSTP",
        libc::SIGTSTP,
        "it freezes a program and does not end it",
    ),
    (
        "TTIN",
        libc::SIGTTIN,
        "it freezes a program and does not end it",
    ),
    (
        "TTOU",
        libc::SIGTTOU,
        "it freezes a program and does not end it",
    ),
    (
        "CONT",
        libc::SIGCONT,
        "it wakes a program and does not end it",
    ),
    (
        "CHLD",
        libc::SIGCHLD,
        "programs get it whenever a child ends",
    ),
    (
        "URG",
        libc::SIGURG,
        "programs ignore it unless they ask for it",
    ),
];

/// The signal to stop a command with.
pub(super) fn stop_signal(words: &Words) -> Result<StopSignal, UsageError> {
    let Some(given) = words.one(Opt::StopSignal) else {
        return Ok(StopSignal::TERM);
    };
    let written = text(given)?.trim().to_ascii_uppercase();
    let name = written.strip_prefix("SIG").unwrap_or(&written);
    let number = name.parse::<i32>().ok();
    let is = |other: &str, its_number: i32| name == other || number == Some(its_number);
    if let Some((_, _, why)) = NO_REQUEST.iter().find(|(other, its, _)| is(other, *its)) {
        return refuse(
            given,
            format_args!("{why}; write TERM, INT, QUIT, HUP or USR1"),
        );
    }
    if let Some((_, number)) = SIGNALS.iter().find(|(other, its)| is(other, *its)) {
        return Ok(StopSignal(*number));
    }
    match real_time(name, number) {
        Some(number) => Ok(StopSignal(number)),
        None => refuse(
            given,
            "there is no such signal; write a name as in TERM, INT, QUIT, HUP or USR1, or its number",
        ),
    }
}

/// A real-time signal, by number or as `RTMIN+3`.
fn real_time(name: &str, number: Option<i32>) -> Option<i32> {
    let (first, last) = (libc::SIGRTMIN(), libc::SIGRTMAX());
    let number = match name.strip_prefix("RTMIN") {
        Some("") => Some(first),
        Some(rest) => rest
            .strip_prefix('+')?
            .parse::<i32>()
            .ok()
            .and_then(|offset| first.checked_add(offset)),
        None => number,
    };
    number.filter(|number| (first..=last).contains(number))
}
