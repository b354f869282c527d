//! A random history of one record, told by the rules.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use solocron::lock::record::{KEEP_FOREVER, Ms};
use solocron::lock::rules::{self, Applied, Grant, Wanted};
use solocron::lock::{
    Beat, BeatReply, Claim, ClaimReply, EndedRun, Free, FreeReply, OnRunnerLost, Outcome, Overlap,
    Owner, Record, StoreTime, Verdict,
};
use std::collections::{BTreeMap, VecDeque};

/// What happens next.
#[derive(Clone, Debug)]
pub enum Step {
    Claim(Claim),
    Beat(Beat),
    Free(Free),
    /// The store loses the record.
    Wipe,
}

/// What a store answers.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    Claim(ClaimReply),
    Beat(BeatReply),
    Free(FreeReply),
    Wiped,
}

/// A small generator of numbers, the same on every machine (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to just below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn span(&mut self, from: i64, to: i64) -> i64 {
        from + i64::try_from(self.below(u64::try_from(to - from + 1).expect("a span")))
            .expect("small")
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let n = u64::try_from(of.len()).expect("small");
        of[usize::try_from(self.below(n)).expect("small")].clone()
    }
}

/// A claim that was granted once, as its holder knows it.
#[derive(Clone, Debug)]
struct Held {
    claim: Claim,
    grant: Grant,
}

/// A step just at, before or behind the point where a rule begins to apply.
#[derive(Clone, Copy, Debug)]
enum Aim {
    Wipe,
    /// A single run, in a period or not.
    Once(Option<Ms>),
    /// A single run about when the period lets the next one start.
    NextPeriod(Ms),
    /// A firing about the time from which the record can know of it.
    Born,
    /// A firing about as late as one may be that the record cannot know of.
    Unsure,
    /// A firing that is to be started again if its runner dies.
    Firing,
    /// The last firing once more, after its runner died.
    Rerun,
    /// The same about when its start deadline ends.
    RerunLate,
    /// About when a mark lies too far ahead to be true.
    MarkAhead,
    /// About when a lease lies too far ahead to be true.
    LeaseAhead,
}

const AIMS: [&[Aim]; 6] = [
    &[Aim::Wipe, Aim::Unsure],
    &[Aim::Wipe, Aim::Once(None), Aim::Born],
    &[Aim::Firing, Aim::Rerun, Aim::Rerun, Aim::Rerun, Aim::Rerun],
    &[Aim::Firing, Aim::RerunLate],
    &[Aim::Wipe, Aim::Once(Some(60_000)), Aim::NextPeriod(60_000)],
    &[Aim::Firing, Aim::MarkAhead, Aim::Firing, Aim::LeaseAhead],
];

/// The record, the clock, and who takes part.
pub struct History {
    pub record: Option<Record>,
    dice: Dice,
    now_us: i64,
    owners: Vec<Owner>,
    held: Vec<Held>,
    fresh: u64,
    seen: BTreeMap<String, u32>,
    aims: VecDeque<Aim>,
}

impl History {
    pub fn new(seed: u64) -> Self {
        Self {
            record: None,
            dice: Dice::new(seed),
            now_us: 1_760_000_000_000_000,
            owners: Vec::new(),
            held: Vec::new(),
            fresh: 0,
            seen: BTreeMap::new(),
            aims: VecDeque::new(),
        }
    }

    /// The next step and when it reaches the store.
    pub fn next(&mut self) -> (Step, StoreTime) {
        if let Some(aim) = self.aims.pop_front() {
            let step = self.aimed(aim);
            return (step, StoreTime::from_wall_us(self.now_us));
        }
        if self.dice.one_in(12) {
            let aims = self.dice.pick(&AIMS);
            self.aims.extend(aims);
        }
        self.pass_time();
        let step = match self.dice.below(100) {
            0 => Step::Wipe,
            1..=69 => Step::Claim(self.claim()),
            70..=87 => self
                .beat()
                .map_or_else(|| Step::Claim(self.claim()), Step::Beat),
            _ => Step::Free(self.free()),
        };
        (step, StoreTime::from_wall_us(self.now_us))
    }

    /// Carries it out by the rules.
    pub fn apply(&mut self, step: &Step, now: StoreTime) -> Reply {
        let before = self.record.clone();
        match step {
            Step::Claim(claim) => {
                let reply = self.write(rules::claim(before.as_ref(), claim, now));
                if let Verdict::Granted(grant) = reply.verdict {
                    self.held.retain(|held| held.claim.owner != claim.owner);
                    self.held.push(Held {
                        claim: claim.clone(),
                        grant,
                    });
                    if self.held.len() > 5 {
                        self.held.remove(0);
                    }
                }
                self.count(&reply.verdict);
                Reply::Claim(reply)
            }
            Step::Beat(beat) => {
                let reply = self.write(rules::beat(before.as_ref(), beat, now));
                self.count(&reply.held.map(|(_, extent)| extent));
                if let (Ok((until, _)), Some(held)) = (
                    reply.held,
                    self.held
                        .iter_mut()
                        .find(|held| held.claim.owner == beat.owner),
                ) {
                    held.grant.until = until;
                    held.grant.mark = reply.mark;
                }
                Reply::Beat(reply)
            }
            Step::Free(free) => {
                let reply = self.write(rules::free(before.as_ref(), free, now));
                self.count(&reply);
                Reply::Free(reply)
            }
            Step::Wipe => {
                self.record = None;
                Reply::Wiped
            }
        }
    }

    /// Fails unless the history has led to every answer that there is.
    pub fn assert_all_answers_seen(&self) {
        for answer in [
            "Granted",
            "Busy",
            "Early",
            "Late",
            "Running",
            "Done",
            "Orphaned",
            "Unsure",
            "Void",
            "Stale",
            "Ok(Extended)",
            "Ok(Lapsed)",
            "Ok(Healed)",
            "Err(Ended)",
            "Err(Gone)",
            "Err(Taken)",
            "Freed",
            "AlreadyFree",
            "NotMine",
            "Voided",
        ] {
            assert!(
                self.seen.contains_key(answer),
                "never answered {answer}: {:?}",
                self.seen
            );
        }
    }

    fn count(&mut self, answer: &impl std::fmt::Debug) {
        let text = format!("{answer:?}");
        let text = if text.starts_with("Ok") || text.starts_with("Err") {
            text
        } else {
            text.split(['(', ' ']).next().unwrap_or_default().to_owned()
        };
        *self.seen.entry(text).or_default() += 1;
    }

    fn write<R>(&mut self, applied: Applied<R>) -> R {
        if applied.write.is_some() {
            self.record = applied.write;
        }
        applied.reply
    }

    /// Sets the clock and makes the step for an aim, missing by a millisecond
    /// now and then.
    fn aimed(&mut self, aim: Aim) -> Step {
        let off = self.dice.span(-1, 1);
        let record = self.record.clone();
        let record =
            record.unwrap_or_else(|| Record::born_at(StoreTime::from_wall_us(self.now_us)));
        let mut wanted = Wanted::Once { per: None };
        let mut firing = |at, start_deadline, on_runner_lost| {
            wanted = Wanted::Firing {
                at,
                start_deadline,
                overlap: Overlap::Skip,
                on_runner_lost,
            };
        };
        let mut now = self.now();
        match aim {
            Aim::Wipe => return Step::Wipe,
            Aim::Once(per) => wanted = Wanted::Once { per },
            Aim::NextPeriod(per) => {
                now = record.once.unwrap_or(now) + per * 3 / 4 + off;
                wanted = Wanted::Once { per: Some(per) };
            }
            Aim::Born => {
                now = record.born + 3_000;
                firing(record.born + 50 + off, 60_000, OnRunnerLost::Skip);
            }
            Aim::Unsure => firing(now - 2_000 + off, 60_000, OnRunnerLost::Skip),
            Aim::Firing => {
                now = now.max(record.until + 1);
                firing(now, 60_000, OnRunnerLost::Rerun);
            }
            Aim::Rerun => {
                now = record.until + 1;
                firing(record.firing.unwrap_or(now), 60_000, OnRunnerLost::Rerun);
            }
            Aim::RerunLate => {
                now = record.until + 5_000 + off;
                firing(record.firing.unwrap_or(now), 5_000, OnRunnerLost::Rerun);
            }
            Aim::MarkAhead => {
                now = record.mark - 10_800_000 + off;
                firing(now, 60_000, OnRunnerLost::Skip);
            }
            Aim::LeaseAhead => {
                now = record.until - record.ttl + off;
                firing(now, 60_000, OnRunnerLost::Skip);
            }
        }
        self.now_us = now * 1000 + self.now_us.rem_euclid(1000);
        Step::Claim(Claim {
            owner: self.owner(),
            wanted,
            ttl: 1_000,
            keep: 86_400_000,
            info: self.info(),
        })
    }

    fn pass_time(&mut self) {
        let until = self.record.as_ref().map_or(0, |record| record.until) * 1000;
        let ahead = until - self.now_us;
        self.now_us += match self.dice.below(200) {
            0 => self.dice.span(-40, -1) * 3_600_000_000,
            1..=3 => self.dice.span(-90_000_000, 0),
            4..=6 => self.dice.span(0, 90_000_000),
            7 => self.dice.span(0, 30) * 3_600_000_000,
            // Just about the end of the lease, where rules change.
            8..=25 if ahead > 0 => ahead + self.dice.span(-1, 1) * 1000,
            26..=60 => 0,
            61..=100 => self.dice.span(0, 60_000),
            _ => self.dice.span(0, 4_000_000),
        };
    }

    fn now(&self) -> Ms {
        self.now_us.div_euclid(1000)
    }

    fn owner(&mut self) -> Owner {
        if self.owners.is_empty() || self.dice.one_in(2) {
            self.fresh += 1;
            // Also names that a careless script would take for numbers.
            let owner = match self.dice.below(4) {
                0 => Owner(u128::from(self.fresh)),
                _ => Owner(u128::from(self.dice.next()) << 64 | u128::from(self.dice.next())),
            };
            self.owners.push(owner);
            if self.owners.len() > 12 {
                self.owners.remove(0);
            }
        }
        self.dice.pick(&self.owners)
    }

    fn claim(&mut self) -> Claim {
        if let (true, false) = (self.dice.one_in(6), self.held.is_empty()) {
            return self.dice.pick(&self.held).claim;
        }
        let wanted = if self.dice.one_in(4) {
            let per = self
                .dice
                .pick(&[None, Some(1_000), Some(60_000), Some(3_600_000)]);
            Wanted::Once { per }
        } else {
            Wanted::Firing {
                at: self.firing(),
                start_deadline: self.dice.pick(&[1_000, 5_000, 60_000, 3_600_000]),
                overlap: self.dice.pick(&[Overlap::Skip, Overlap::Queue]),
                on_runner_lost: self.dice.pick(&[OnRunnerLost::Skip, OnRunnerLost::Rerun]),
            }
        };
        let keep = self
            .dice
            .pick(&[86_400_000, 172_800_000, 604_800_000, 7_776_000_000]);
        let keep = if self.dice.one_in(1500) {
            KEEP_FOREVER
        } else {
            keep
        };
        Claim {
            owner: self.owner(),
            wanted,
            ttl: self.dice.pick(&[1_000, 6_000, 30_000]),
            keep,
            info: self.info(),
        }
    }

    /// An instant near something that matters.
    fn firing(&mut self) -> Ms {
        let now = self.now();
        let record = self.record.as_ref();
        let base = match self.dice.below(8) {
            0..=2 => record.and_then(|record| record.firing).unwrap_or(now),
            3 => record.map_or(now, |record| record.mark),
            4 => record.map_or(now, |record| record.born),
            5 => now - 2_500,
            _ => now,
        };
        match self.dice.below(6) {
            0 => base,
            1 => base + self.dice.pick(&[-1, 1, 49, 50, 51, -50, -51]),
            2 => base + self.dice.span(-70_000, 70_000),
            3 => now.div_euclid(1_000) * 1_000,
            _ => base + self.dice.span(-2_100, 100),
        }
    }

    fn info(&mut self) -> String {
        self.dice
            .pick(&["", "{}", "12", "{\"host\":\"a b\",\"cmd\":\"täst\\n%d\"}"])
            .to_owned()
    }

    fn beat(&mut self) -> Option<Beat> {
        if self.held.is_empty() {
            return None;
        }
        let Held { claim, grant } = self.some_held();
        let until_told = match self.dice.below(6) {
            0 => self.now() + self.dice.span(-1, 1),
            1 => self.now() + claim.ttl + self.dice.span(-1, 1),
            2 => self.now() + self.dice.span(-5_000, 5_000),
            _ => grant.until,
        };
        Some(Beat {
            owner: claim.owner,
            token: self.token(grant.token),
            until_told,
            mark_told: grant.mark + self.dice.pick(&[0, 0, -60_000, 60_000]),
            firing: claim.wanted.firing(),
            attempt: grant.attempt + u32::try_from(self.dice.below(2)).expect("small"),
            grants: grant.grants,
            started: grant.started,
            once: matches!(claim.wanted, Wanted::Once { per: Some(_) }),
            ttl: claim.ttl,
            keep: claim.keep,
            info: claim.info,
        })
    }

    /// Mostly the newest holder, sometimes one that was overtaken.
    fn some_held(&mut self) -> Held {
        match self.held.last() {
            Some(newest) if !self.dice.one_in(3) => newest.clone(),
            _ => self.dice.pick(&self.held),
        }
    }

    fn token(&mut self, token: u64) -> u64 {
        match self.dice.below(10) {
            0 => token + 1,
            1 => token + 10_000_000,
            2 => token - 1,
            _ => token,
        }
    }

    fn free(&mut self) -> Free {
        if self.held.is_empty() || self.dice.one_in(5) {
            return Free {
                owner: self.owner(),
                run: None,
                keep: self.dice.pick(&[86_400_000, 604_800_000]),
            };
        }
        let Held { claim, grant } = self.some_held();
        let outcome = self.dice.pick(&[
            Outcome::Done,
            Outcome::Failed,
            Outcome::NotStarted,
            Outcome::Rerun,
        ]);
        Free {
            owner: claim.owner,
            run: Some(EndedRun {
                token: self.token(grant.token),
                mark_told: grant.mark + self.dice.pick(&[0, 0, -60_000, 60_000]),
                firing: claim.wanted.firing(),
                attempt: grant.attempt + u32::try_from(self.dice.below(2)).expect("small"),
                grants: grant.grants,
                started: grant.started,
                once: matches!(claim.wanted, Wanted::Once { per: Some(_) }),
                outcome,
                code: self.dice.pick(&[None, Some(0), Some(1), Some(137)]),
                info: claim.info,
            }),
            keep: claim.keep,
        }
    }
}
