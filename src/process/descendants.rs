//! Processes below another one, from `/proc` (see proc(5)).
//!
//! Linux only: elsewhere [`all`] would ask the system's process table.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::sys;

/// One process at the moment it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Ended, but not reaped.
    ended: bool,
    /// Start, in clock ticks since boot: tells a reused pid from this process.
    born: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Fields 3 to 5 and 22 of `/proc/PID/stat`. The name before them may hold
    /// anything, also `)`.
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        Some(Self {
            pid,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            ended: matches!(state, "Z" | "X" | "x"),
            born: fields.nth(16)?.parse().ok()?,
        })
    }

    /// Not a zombie.
    pub(super) fn runs(&self) -> bool {
        !self.ended
    }

    /// Sends `signal` to this very process: nothing if it has ended, even if
    /// its pid has been given to another.
    pub(super) fn signal(&self, signal: i32) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        // While the descriptor is held, the pid is not given away.
        let _held = pidfd_open(pid, PidfdFlags::empty());
        if Self::read(self.pid).is_some_and(|now| now.born == self.born) {
            let _ = sys::kill(self.pid, signal);
        }
    }
}

/// Whether `/proc` shows this PID namespace.
pub(super) fn visible() -> bool {
    let own = fs::read_link("/proc/self").ok();
    let own = own.and_then(|link| link.to_str()?.parse::<u32>().ok());
    own == Some(std::process::id())
}

/// Every process; empty unless they are [`visible`].
pub(super) fn all() -> Vec<Process> {
    if !visible() {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect()
}

/// The running processes below `root`, parents before their children. `skip`
/// leaves out a process with everything below it.
pub(super) fn below(
    root: i32,
    all: Vec<Process>,
    mut skip: impl FnMut(&Process) -> bool,
) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            if !seen.insert(process.pid) || skip(&process) {
                continue;
            }
            parents.push(process.pid);
            if !process.ended {
                found.push(process);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, group: i32) -> Process {
        Process {
            pid,
            parent,
            group,
            ended: false,
            born: 0,
        }
    }

    fn pids(found: &[Process]) -> Vec<i32> {
        let mut pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn a_name_with_brackets_and_blanks_is_read_past() {
        let stat = b"7 (a) R 1) (b) S 5 6 6 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        let read = Process::parse(7, stat).unwrap();
        assert_eq!((read.parent, read.group, read.born), (5, 6, 4711));
        assert!(!read.ended);
        let zombie = b"7 (x) Z 5 6 6 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        assert!(Process::parse(7, zombie).unwrap().ended);
        assert_eq!(Process::parse(7, b"7 (x) Z 5"), None);
    }

    #[test]
    fn below_takes_every_generation_and_nothing_else() {
        let all = vec![
            process(5, 4, 2),
            process(4, 2, 2),
            process(2, 1, 2),
            process(3, 1, 3),
            process(6, 3, 3),
        ];
        assert_eq!(pids(&below(2, all.clone(), |_| false)), [4, 5]);
        assert_eq!(pids(&below(1, all.clone(), |_| false)), [2, 3, 4, 5, 6]);
        assert_eq!(pids(&below(1, all.clone(), |p| p.pid == 3)), [2, 4, 5]);
        assert_eq!(pids(&below(9, all, |_| false)), [0; 0]);
    }

    #[test]
    fn an_ended_process_is_left_out_but_its_children_are_not() {
        let mut zombie = process(2, 1, 2);
        zombie.ended = true;
        let all = vec![zombie, process(3, 2, 2)];
        assert_eq!(pids(&below(1, all, |_| false)), [3]);
    }

    #[test]
    fn this_process_is_among_all() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(all().iter().any(|process| process.pid == own));
    }
}
