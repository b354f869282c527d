//! The process table, read from `/proc`.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;

/// One process as `/proc/PID/stat` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proc {
    /// process id
    pub pid: i32,
    /// command name, at most 15 bytes
    pub name: String,
    /// state letter: R, S, D, T, Z ...
    pub state: char,
    /// parent
    pub parent: i32,
    /// process group
    pub group: i32,
    /// session
    pub session: i32,
}

impl Proc {
    /// Reads one process; none when there is no such process.
    #[must_use]
    pub fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may hold any character, also ')'.
        let (open, close) = (stat.find('(')?, stat.rfind(')')?);
        let mut rest = stat[close + 1..].split_whitespace();
        Some(Self {
            pid,
            name: stat[open + 1..close].to_owned(),
            state: rest.next()?.chars().next()?,
            parent: rest.next()?.parse().ok()?,
            group: rest.next()?.parse().ok()?,
            session: rest.next()?.parse().ok()?,
        })
    }

    /// Whether it runs, sleeps or is stopped (and is no zombie).
    #[must_use]
    pub fn lives(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// All processes.
#[must_use]
pub fn all() -> Vec<Proc> {
    let Ok(dir) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    dir.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Proc::read)
        .collect()
}

/// Whether the process lives (and is no zombie).
#[must_use]
pub fn alive(pid: i32) -> bool {
    Proc::read(pid).is_some_and(|p| p.lives())
}

/// The direct children, zombies included.
#[must_use]
pub fn children(pid: i32) -> Vec<Proc> {
    all().into_iter().filter(|p| p.parent == pid).collect()
}

/// All descendants that still hang together by their parents.
#[must_use]
pub fn descendants(pid: i32) -> Vec<Proc> {
    let table = all();
    let mut known = BTreeSet::from([pid]);
    loop {
        let before = known.len();
        for p in &table {
            if known.contains(&p.parent) {
                known.insert(p.pid);
            }
        }
        if known.len() == before {
            break;
        }
    }
    known.remove(&pid);
    table
        .into_iter()
        .filter(|p| known.contains(&p.pid))
        .collect()
}

/// Living processes whose environment at their start held `name=value`, wherever they hang.
#[must_use]
pub fn with_env(name: &str, value: &str) -> Vec<Proc> {
    let wanted = format!("{name}={value}").into_bytes();
    all()
        .into_iter()
        .filter(|p| {
            fs::read(format!("/proc/{}/environ", p.pid))
                .is_ok_and(|env| env.split(|b| *b == 0).any(|v| v == wanted))
        })
        .filter(Proc::lives)
        .collect()
}

/// Living processes with exactly this argument list.
#[must_use]
pub fn with_args(args: &[&str]) -> Vec<Proc> {
    all()
        .into_iter()
        .filter(|p| cmdline(p.pid) == args && p.lives())
        .collect()
}

/// The argument list; empty when the process is gone or a zombie.
#[must_use]
pub fn cmdline(pid: i32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut args: Vec<String> = text.split('\0').map(str::to_owned).collect();
    args.pop();
    args
}

/// Sends a signal; a process that is gone is no error.
pub fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to a process group; a group that is gone is no error.
pub fn signal_group(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// A line of `/proc/PID/status`, for example `VmRSS` or `SigIgn`, without its name.
#[must_use]
pub fn status_line(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))
        .map(|v| v.trim().to_owned())
}

/// Voluntary context switches of all threads: how often the process went to sleep.
#[must_use]
pub fn voluntary_switches(pid: i32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    tasks
        .filter_map(|t| fs::read_to_string(t.ok()?.path().join("status")).ok())
        .filter_map(|s| {
            s.lines()
                .find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))
                .and_then(|v| v.trim().parse::<u64>().ok())
        })
        .sum()
}
