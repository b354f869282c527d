//! What is explored: hosts, firings, commands, and how much may go wrong.

use solocron::lock::{OnLockLost, OnRunnerLost, Overlap, Timing, Wait};
use std::time::Duration;

/// The store's wall clock when the model's time is 0, in milliseconds.
pub const BASE: i64 = 1_700_000_000_000;
/// The store's lease clock at that moment: another clock, as in a file store.
pub const LEASE_BASE: i64 = 5_000_000;
/// How many firings fall due.
pub const FIRINGS: usize = 2;
/// How long a claimant waits for the answer to one request.
pub const CLAIM_TIMEOUT: u64 = 500;

/// Why an instance asks for the lock.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    Schedule {
        overlap: Overlap,
        on_runner_lost: OnRunnerLost,
    },
    /// A run without schedule that asks at this time, perhaps once in a period.
    Once {
        at: u64,
        wait: Wait,
        per: Option<i64>,
    },
}

pub const SKIP: Role = Role::Schedule {
    overlap: Overlap::Skip,
    on_runner_lost: OnRunnerLost::Skip,
};
pub const RERUN: Role = Role::Schedule {
    overlap: Overlap::Skip,
    on_runner_lost: OnRunnerLost::Rerun,
};
pub const QUEUE: Role = Role::Schedule {
    overlap: Overlap::Queue,
    on_runner_lost: OnRunnerLost::Skip,
};

#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub role: Role,
    /// How far its wall clock is ahead of the store's, in milliseconds.
    pub skew: i64,
    /// How fast its clocks run, in thousandths of the store's.
    pub rate: u64,
}

/// A host whose clock runs `skew` milliseconds ahead.
pub const fn host(role: Role, skew: i64) -> Host {
    Host {
        role,
        skew,
        rate: 1000,
    }
}

/// What a command may turn out to be.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// When it ends by itself, counted from its start; none for never.
    pub takes: Option<u64>,
    /// Whether it ignores the stop signal.
    pub stubborn: bool,
}

/// How many times each thing may go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// All together.
    pub total: u8,
    /// A message is held up: it arrives at any later time or never.
    pub slow: u8,
    /// A request arrives twice, the second time as late as it likes.
    pub twice: u8,
    /// solocron and its command die at once.
    pub crash: u8,
    /// solocron does not run for a while, with or without its command.
    pub pause: u8,
    /// solocron is told to stop.
    pub stop: u8,
    /// The store does not hear an instance, nor it the store, for a while.
    pub cut: u8,
    /// The store loses the record.
    pub wipe: u8,
    /// The store loses its last writes.
    pub rollback: u8,
    /// The store's clock is set back.
    pub back: u8,
}

#[derive(Clone, Debug)]
pub struct Setup {
    pub hosts: Vec<Host>,
    /// The scheduled instants, on the store's clock.
    pub firings: [u64; FIRINGS],
    pub ttl: u64,
    pub kill_after: u64,
    pub start_deadline: u64,
    pub on_lost: OnLockLost,
    pub commands: Vec<Command>,
    pub faults: Faults,
    /// Nothing goes wrong from here on; what is under way may still arrive.
    pub faults_until: u64,
    /// Nothing is looked at from here on.
    pub end: u64,
    /// How far the store's clock is set back, in milliseconds.
    pub set_back: i64,
    /// How long a message may be held up before it arrives.
    pub max_age: u64,
    /// Things that may happen at any time are tried this often.
    pub step: u64,
    /// Whether replies to requests that have timed out are seen all the same.
    pub late_replies: bool,
    /// Firings that somebody must start.
    pub must_start: Vec<usize>,
    /// A firing whose runner died must be started again.
    pub must_rerun: bool,
    /// Where it is given up to look further.
    pub limit: usize,
}

impl Setup {
    /// Three hosts that agree on the time to a few milliseconds, and two
    /// firings, the second while the lease of the first may be held.
    pub fn new(role: Role) -> Self {
        Self {
            hosts: vec![host(role, 0), host(role, 40), host(role, -1_000)],
            firings: [5_000, 9_000],
            ttl: 6_000,
            kill_after: 8_000,
            start_deadline: 5_000,
            on_lost: OnLockLost::Stop,
            commands: vec![
                Command {
                    takes: Some(200),
                    stubborn: false,
                },
                Command {
                    takes: Some(7_000),
                    stubborn: true,
                },
            ],
            faults: Faults::default(),
            faults_until: 20_000,
            end: 20_000,
            set_back: 3_000,
            max_age: 8_000,
            step: 1_000,
            late_replies: false,
            must_start: Vec::new(),
            must_rerun: false,
            limit: 60_000_000,
        }
    }

    pub fn timing(&self) -> Timing {
        Timing::new(
            Duration::from_millis(self.ttl),
            Duration::from_millis(self.kill_after),
        )
    }

    /// Whether nobody asked for more than one start.
    pub fn one_start(&self) -> bool {
        self.hosts.iter().all(|host| {
            !matches!(
                host.role,
                Role::Schedule {
                    on_runner_lost: OnRunnerLost::Rerun,
                    ..
                }
            )
        })
    }
}
