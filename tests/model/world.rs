//! The explored world: a store, some instances, and what travels between them.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use solocron::lock::{
    Beat, BeatReply, Claim, ClaimReply, Claimant, Free, Grant, Holder, Ms, Owner, Record, StoreTime,
};

use super::rules::Rules;
use super::setup::{BASE, FIRINGS, Faults, LEASE_BASE, Role, Setup};

/// A request or a reply on its way.
#[derive(Clone, Hash, Debug)]
pub struct Msg {
    pub inst: usize,
    /// Held up since then: it arrives at any later time or never.
    pub held: Option<u64>,
    /// When the request was written, on the instance's clock.
    pub sent: Duration,
    pub body: Body,
}

#[derive(Clone, Hash, Debug)]
pub enum Body {
    Claim(Claim),
    Beat(Beat),
    Free(Free),
    Claimed(Owner, ClaimReply),
    Beaten(Owner, BeatReply),
}

impl Body {
    pub const fn is_reply(&self) -> bool {
        matches!(self, Self::Claimed(..) | Self::Beaten(..))
    }
}

/// What an instance is doing.
#[derive(Clone, Hash, Debug)]
pub enum Mode {
    Idle,
    Claiming(Claiming),
    Holding(Holding),
    Gone,
}

#[derive(Clone, Hash, Debug)]
pub struct Claiming {
    /// Which firing; none for a run without schedule.
    pub firing: Option<usize>,
    pub owner: Owner,
    pub claimant: Claimant,
    pub ask: Ask,
    /// Some request of this claim was never answered.
    pub unsettled: bool,
}

#[derive(Clone, Hash, Debug)]
pub enum Ask {
    At(Duration),
    Sent { at: Duration, timeout: Duration },
}

#[derive(Clone, Hash, Debug)]
pub struct Holding {
    pub firing: Option<usize>,
    pub owner: Owner,
    pub grant: Grant,
    pub holder: Holder,
    /// The heartbeat that is not answered yet: when it was sent, and when that
    /// is given up.
    pub beat: Option<(Duration, Duration)>,
    pub cmd: Cmd,
    /// solocron itself has told the command to stop.
    pub stopped: bool,
}

/// The command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmd {
    NotStarted,
    Running { ends: Option<u64>, stubborn: bool },
    Halted { ends: Option<u64>, stubborn: bool },
}

#[derive(Clone, Hash, Debug)]
pub struct Inst {
    pub mode: Mode,
    /// The next firing that it has not dealt with.
    pub next: usize,
    /// How many claims it has made.
    pub claims: u8,
    /// Claims it has given up, and for which firing.
    pub given_up: Vec<(Owner, Option<usize>)>,
    pub paused: Option<Pause>,
    /// It does not reach the store.
    pub cut: bool,
    /// It leaves when its command ends.
    pub leaving: bool,
    /// When the store lost its record since its last good heartbeat, on the
    /// lease clock.
    pub shaken: Option<Ms>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pause {
    Alone,
    WithCommand,
}

/// What an observer who sees everything remembers.
#[derive(Clone, Hash, Debug, Default)]
pub struct Ghost {
    /// How often the command was started without schedule.
    pub once: u8,
    /// How often the command was started for each firing.
    pub starts: [u8; FIRINGS],
    /// How often each firing was granted.
    pub grants: [u8; FIRINGS],
    /// A command of it ended by itself.
    pub finished: [bool; FIRINGS],
    /// Its end was told to the store.
    pub ended: [bool; FIRINGS],
    /// Its grant may have been forgotten in a wipe.
    pub wiped: [bool; FIRINGS],
    /// Its grant may have been forgotten in a rollback.
    pub rolled: [bool; FIRINGS],
    /// A lease that was in its right stood in the way when it fell due.
    pub held: [bool; FIRINGS],
    /// Who started it last.
    pub runner: [Option<usize>; FIRINGS],
    /// The largest token granted.
    pub token: u64,
    /// When the last lease ends that was in its right, on the lease clock.
    pub lease_end: Ms,
    /// Which firing it was given for.
    pub lease_for: Option<usize>,
    /// When a run was last freed, on the wall clock.
    pub freed_at: Ms,
    /// Owners that the store was told to forget.
    pub freed: Vec<Owner>,
}

/// The rules and bounds of one exploration.
pub struct Ctx<'a> {
    pub setup: &'a Setup,
    pub rules: &'a dyn Rules,
}

#[derive(Clone, Debug)]
pub struct World {
    /// Milliseconds since the start, on the store's clock.
    pub now: u64,
    /// How often the store lost something; each took a millisecond.
    pub losses: u64,
    /// How far its clock was set back.
    pub back: i64,
    pub record: Option<Record>,
    /// The record before its last changes, newest first.
    pub past: Vec<Option<Record>>,
    pub insts: Vec<Inst>,
    pub msgs: Vec<Msg>,
    pub left: Faults,
    pub ghost: Ghost,
    /// The promise that was broken.
    pub broken: Option<String>,
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.now.hash(state);
        self.losses.hash(state);
        self.back.hash(state);
        self.record.hash(state);
        self.past.hash(state);
        self.insts.hash(state);
        self.left.hash(state);
        self.ghost.hash(state);
        // What is on its way has no order.
        let mut msgs = 0_u64;
        for msg in &self.msgs {
            let mut one = super::explore::Fast::default();
            msg.hash(&mut one);
            msgs = msgs.wrapping_add(one.finish());
        }
        msgs.hash(state);
    }
}

impl World {
    pub fn new(setup: &Setup, record: Option<Record>) -> Self {
        let inst = Inst {
            mode: Mode::Idle,
            next: 0,
            claims: 0,
            given_up: Vec::new(),
            paused: None,
            cut: false,
            leaving: false,
            shaken: None,
        };
        Self {
            now: 0,
            losses: 0,
            back: 0,
            record,
            past: Vec::new(),
            insts: vec![inst; setup.hosts.len()],
            msgs: Vec::new(),
            left: setup.faults,
            ghost: Ghost::default(),
            broken: None,
        }
    }

    /// The record of a job that ran an hour ago.
    pub fn old_record() -> Record {
        let start = StoreTime {
            wall_us: (BASE - 7_200_000) * 1000,
            lease_ms: LEASE_BASE - 7_200_000,
        };
        let mut record = Record::born_at(start);
        record.owner = Some(Owner(1));
        record.token = u64::try_from(start.wall_us).unwrap();
        record.firing = Some(BASE - 3_600_000);
        record.mark = BASE - 3_600_000;
        record.attempt = 1;
        record.grants = 1;
        record.until = LEASE_BASE - 3_600_000;
        record.ttl = 6_000;
        record
    }

    pub fn digest(&self) -> u64 {
        let mut hasher = super::explore::Fast::default();
        self.hash(&mut hasher);
        hasher.finish()
    }

    pub fn store_time(&self) -> StoreTime {
        self.store_time_at(self.now)
    }

    /// What the store's clocks show at `now` as they are set.
    pub fn store_time_at(&self, now: u64) -> StoreTime {
        let ms = i64::try_from(now + self.losses).unwrap() - self.back;
        StoreTime {
            wall_us: (BASE + ms) * 1000,
            lease_ms: LEASE_BASE + ms,
        }
    }

    pub fn firing_ms(ctx: &Ctx, k: usize) -> Ms {
        BASE + i64::try_from(ctx.setup.firings[k]).unwrap()
    }

    /// An instance's clock that counts suspend.
    pub fn boot(&self, ctx: &Ctx, i: usize) -> Duration {
        Duration::from_millis(self.now * ctx.setup.hosts[i].rate / 1000)
    }

    /// When that clock shows `boot` or more.
    pub fn when(ctx: &Ctx, i: usize, boot: Duration) -> u64 {
        let micros = u64::try_from(boot.as_micros()).unwrap();
        micros.div_ceil(ctx.setup.hosts[i].rate)
    }

    pub fn break_promise(&mut self, what: impl Into<String>) {
        if self.broken.is_none() {
            self.broken = Some(what.into());
        }
    }

    pub fn send(&mut self, ctx: &Ctx, i: usize, body: Body) {
        if self.insts[i].cut {
            return;
        }
        let sent = self.boot(ctx, i);
        self.msgs.push(Msg {
            inst: i,
            held: None,
            sent,
            body,
        });
    }

    /// When an instance has something to do next by itself.
    pub fn timer(&self, ctx: &Ctx, i: usize) -> Option<u64> {
        let inst = &self.insts[i];
        let at = match &inst.mode {
            Mode::Gone => None,
            Mode::Idle => self.due_at(ctx, i),
            Mode::Claiming(claiming) => {
                let ask = match claiming.ask {
                    Ask::At(at) => at,
                    Ask::Sent { timeout, .. } => timeout,
                };
                let ask = Self::when(ctx, i, ask);
                Some(self.due_at(ctx, i).map_or(ask, |due| due.min(ask)))
            }
            Mode::Holding(holding) => {
                let beat = holding.beat.map(|(_, timeout)| timeout);
                let wake = holding.holder.wake_at();
                let at = beat.into_iter().chain(wake).min();
                at.map(|at| Self::when(ctx, i, at))
            }
        };
        at.map(|at| at.max(self.now))
    }

    /// When the next firing falls due by the instance's own clock.
    fn due_at(&self, ctx: &Ctx, i: usize) -> Option<u64> {
        let host = ctx.setup.hosts[i];
        let inst = &self.insts[i];
        match host.role {
            Role::Once { at, .. } => (inst.next == 0).then_some(at),
            Role::Schedule { .. } => {
                let at = i64::try_from(*ctx.setup.firings.get(inst.next)?).unwrap();
                Some(u64::try_from(at - host.skew).unwrap_or(0))
            }
        }
    }

    /// When a running command ends by itself.
    pub fn ends_at(&self, i: usize) -> Option<u64> {
        match &self.insts[i].mode {
            Mode::Holding(Holding {
                cmd: Cmd::Running { ends, .. },
                ..
            }) if self.insts[i].paused.is_none() => *ends,
            _ => None,
        }
    }
}
