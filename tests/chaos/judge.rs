//! Whether the promises were kept, and why a firing was not started.
//!
//! Whatever is not covered by a promise needs a reason that the promise itself
//! names: the store forgot, or a process stood still for longer than the rest of
//! its lease. A missed firing needs one of the rules, and the rule what it
//! speaks of: that the lock was held, that the store forgot, that the store was
//! not to be reached.

use crate::facts::{Facts, Forgot, Freeze, Job, Life, Line, MILLI, Run, SECOND, Span, Us};
use std::collections::BTreeMap;

/// A firing that the store may have forgotten is not started later than this.
const UNSURE_AFTER: Us = 2 * SECOND;
/// What reading a clock here and there may be apart, and a message be under way.
const SLACK: Us = 100 * MILLI;
/// From a firing to its last claim that is answered, where nothing is in the way.
const CLAIMS_TAKE: Us = 2 * SECOND;
/// So many skipped firings are told in a minute by an instance.
const TOLD_A_MINUTE: usize = 10;
const MINUTE: Us = 60 * SECOND;

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub job: &'static str,
    pub at: Us,
    pub text: String,
}

/// The figures of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// by the name of the line
    pub counts: BTreeMap<&'static str, u64>,
    /// promises that were broken, and firings that nothing explains
    pub broken: Vec<Finding>,
    /// what lies outside the promises
    pub outside: Vec<Finding>,
}

impl Figures {
    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// A count; 0 for what never happened.
    pub fn of(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

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

/// The lines of the table in their order.
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

/// One job among the facts.
struct Case<'a> {
    facts: &'a Facts,
    job: &'a Job,
    /// in the order of their grants
    runs: Vec<Run>,
    lives: Vec<&'a Life>,
    figures: Figures,
}

/// Judges a job.
pub fn judge(facts: &Facts, job: &Job) -> Figures {
    let lives: Vec<&Life> = facts
        .lives
        .iter()
        .filter(|life| life.job == job.name)
        .collect();
    let mut case = Case {
        facts,
        job,
        runs: runs_of(facts, job, &lives),
        lives,
        figures: Figures::default(),
    };
    case.starts();
    case.overlaps();
    case.ends();
    case.writes();
    case.figures
}

/// The runs that were seen, and those that only the logs know: the command was
/// killed before it could say anything.
fn runs_of(facts: &Facts, job: &Job, lives: &[&Life]) -> Vec<Run> {
    let mut runs: Vec<Run> = facts
        .runs
        .iter()
        .filter(|run| run.job == job.name)
        .cloned()
        .collect();
    for life in lives {
        for line in life.lines.iter().filter(|line| line.event == "started") {
            let seen = runs
                .iter()
                .any(|run| run.token == line.token && run.attempt == line.attempt);
            if !seen {
                runs.push(Run {
                    job: job.name.to_owned(),
                    label: life.label.clone(),
                    firing: line.firing.unwrap_or(0),
                    token: line.token,
                    attempt: line.attempt,
                    start: line.at,
                    end: line.at,
                    finished: false,
                    writes: 0,
                    refused: 0,
                    refused_at_start: false,
                });
            }
        }
    }
    runs.sort_by_key(|run| (run.token, run.start));
    runs
}

impl Case<'_> {
    fn break_promise(&mut self, what: &'static str, at: Us, text: String) {
        self.figures.count(what);
        self.figures.broken.push(Finding {
            what,
            job: self.job.name,
            at,
            text,
        });
    }

    fn note(&mut self, what: &'static str, at: Us, text: String) {
        self.figures.count(what);
        self.figures.outside.push(Finding {
            what,
            job: self.job.name,
            at,
            text,
        });
    }

    /// Each firing: started once, more often, or not.
    fn starts(&mut self) {
        let Some(window) = self.facts.window else {
            return;
        };
        let mut firing = (window.from / self.job.period + 1) * self.job.period;
        while firing <= window.to {
            self.figures.count(DUE);
            let starts: Vec<Run> = self
                .runs
                .iter()
                .filter(|run| run.firing == firing)
                .cloned()
                .collect();
            match &starts[..] {
                [] => self.missed(firing),
                [run] => {
                    self.figures.count(ONCE);
                    if run.start > firing + SECOND {
                        self.figures.count(LATE);
                    }
                }
                [_, ..] => self.more_than_once(&starts),
            }
            firing += self.job.period;
        }
    }

    fn more_than_once(&mut self, starts: &[Run]) {
        for pair in starts.windows(2) {
            let [first, second] = pair else { continue };
            // A grant between the two may have come to nothing.
            if self.job.rerun && second.attempt > first.attempt {
                if !first.finished {
                    self.figures.count(AGAIN);
                    continue;
                }
                // To the store this is a runner that was lost.
                if self.ended_untold(first) {
                    self.figures.count(AGAIN);
                    self.figures.count(AGAIN_UNTOLD);
                    continue;
                }
            }
            let between = Span {
                from: first.granted() - SLACK,
                to: second.granted() + SLACK,
            };
            let late = second.granted() - second.firing;
            let text = format!("{} {first:?} {second:?}", stamp(second.firing));
            // Under rerun a firing that may have run is started rather than left.
            let unsure_after = if self.job.rerun {
                self.job.start_deadline
            } else {
                UNSURE_AFTER
            };
            if self.forgot(Forgot::All, between) && late <= unsure_after + SLACK {
                self.note(TWICE_WIPE, second.start, text);
            } else if self.forgot(Forgot::Last, between) && late <= self.job.start_deadline + SLACK
            {
                self.note(TWICE_LAST, second.start, text);
            } else {
                self.break_promise(TWICE, second.start, text);
            }
        }
    }

    /// Whether the store could not be told of the end of a run before its lease
    /// was over, or nobody was left to tell it.
    fn ended_untold(&self, run: &Run) -> bool {
        let told_by = Span {
            from: run.end,
            to: run.end + 2 * SECOND,
        };
        let lives = self.lives.iter().filter(|life| life.label == run.label);
        let mut lives = lives.filter(|life| life.from <= run.start && run.start <= life.to);
        lives.any(|life| {
            let failed = |line: &Line| {
                line.event == "not_freed" && line.at >= told_by.from && line.at <= told_by.to
            };
            life.to <= told_by.to || life.lines.iter().any(failed)
        }) || self.frozen_beyond(run, run.end)
    }

    /// Whether the store forgot something of this job at some time in the span.
    fn forgot(&self, what: Forgot, span: Span) -> bool {
        self.facts.losses.iter().any(|loss| {
            loss.forgot == what
                && loss.span.meets(span)
                && loss.job.is_none_or(|job| job == self.job.name)
        })
    }

    fn forgot_anything(&self, span: Span) -> bool {
        self.forgot(Forgot::All, span) || self.forgot(Forgot::Last, span)
    }

    fn overlaps(&mut self) {
        let runs = self.runs.clone();
        for (index, older) in runs.iter().enumerate() {
            for newer in &runs[index + 1..] {
                if newer.start < older.end && older.start < newer.end {
                    self.overlap(older, newer);
                }
            }
        }
    }

    fn overlap(&mut self, older: &Run, newer: &Run) {
        let at = newer.start.max(older.start);
        let until = older.end.min(newer.end);
        let text = format!("for {} ms: {older:?} {newer:?}", (until - at) / MILLI);
        let since = Span {
            from: older.granted() - SLACK,
            to: newer.start + SLACK,
        };
        if self.frozen_beyond(older, newer.start) || self.frozen_beyond(newer, newer.start) {
            self.note(OVERLAP_FROZEN, at, text);
        } else if self.forgot_anything(since) && until <= at + self.job.ttl + SLACK {
            self.note(OVERLAP_LOSS, at, text);
        } else {
            self.break_promise(OVERLAP, at, text);
        }
    }

    /// When the lease of a run ends at the latest, as far as it was extended
    /// before `by`: its last good answer came no earlier than the store's clock
    /// was read for it.
    fn lease_end(&self, run: &Run, by: Us) -> Us {
        let extends = |line: &&Line| {
            matches!(line.event.as_str(), "beat" | "healed" | "lapsed" | "thawed")
                && line.at >= run.granted()
                && line.at <= by
        };
        let lives = self.lives.iter().filter(|life| life.label == run.label);
        let last = lives
            .filter(|life| life.from <= run.start && run.start <= life.to)
            .flat_map(|life| life.lines.iter().filter(extends))
            .map(|line| line.at)
            .max();
        last.unwrap_or(run.granted()).max(run.granted()) + self.job.ttl
    }

    /// Whether the runner stood still from before the end of its lease, as it
    /// was at `by`, until after it.
    fn frozen_beyond(&self, run: &Run, by: Us) -> bool {
        // The holder believes in a hundredth and 20 ms less.
        let believed = self.lease_end(run, by) - self.job.ttl / 100 - 20 * MILLI;
        self.facts.freezes.iter().any(|freeze| {
            freeze.concerns(&run.label)
                && freeze.span.from < believed
                && freeze.span.to >= believed - SLACK - self.job.ttl / 20
        })
    }

    /// No command may live when its lease can be over in the store.
    fn ends(&mut self) {
        for run in self.runs.clone() {
            let over = self.lease_end(&run, run.end);
            if run.end <= over {
                continue;
            }
            let text = format!("by {} ms: {run:?}", (run.end - over) / MILLI);
            if self.frozen_beyond(&run, run.end) {
                self.note(OUTLIVED_FROZEN, over, text);
            } else {
                self.break_promise(OUTLIVED, over, text);
            }
        }
    }

    fn writes(&mut self) {
        for run in self.runs.clone() {
            *self.figures.counts.entry(WRITES).or_default() += u64::from(run.writes);
            *self.figures.counts.entry(REFUSED).or_default() += u64::from(run.refused);
            if !run.refused_at_start {
                continue;
            }
            let since = Span {
                from: run.granted() - SLACK,
                to: run.start,
            };
            if !self.frozen_beyond(&run, run.start) && !self.forgot_anything(since) {
                self.break_promise(REFUSED_START, run.start, format!("{run:?}"));
            }
        }
    }

    fn missed(&mut self, firing: Us) {
        self.figures.count(MISSED);
        let told = self.told(firing);
        if let Some(rule) = self.why(firing, &told) {
            self.figures.count(rule);
        } else {
            let lines: Vec<String> = told.iter().map(ToString::to_string).collect();
            let text = format!("{}\n    {}", stamp(firing), lines.join("\n    "));
            self.break_promise(UNEXPLAINED, firing, text);
        }
    }

    /// The rule by which nobody started a firing.
    fn why(&self, firing: Us, told: &[Told]) -> Option<&'static str> {
        let says = |words: &[&str]| told.iter().any(|one| words.contains(&one.reason.as_str()));
        if says(&["busy", "overlapped"]) && self.was_held(firing) {
            return Some(HELD);
        }
        if says(&["unsure", "before_first"]) && self.had_forgotten(firing) {
            return Some(UNSURE);
        }
        if says(&["orphaned", "replaces"]) {
            return Some(RUNNER_LOST);
        }
        if says(&["not_kept", "stopping", "cannot_start"]) {
            return Some(GIVEN_BACK);
        }
        // From here on each of them needs a reason of its own.
        let excused = |one: &Told| one.is_local() || !one.able || self.overtaken(firing, one);
        if told.iter().all(excused) {
            return Some(if says(&["unreachable", "late", "refused"]) {
                UNREACHED
            } else if told.iter().all(|one| !one.able) {
                NOBODY
            } else {
                SUPERSEDED
            });
        }
        // Some were told that another has it. Whoever had it did not come to start it.
        let asked = self.asked(firing);
        let had_it = |one: &Told| match one.reason.as_str() {
            "unreachable" => self.was_cut_off(&one.label, asked),
            "" => !one.able,
            _ => false,
        };
        let lost: Vec<&Told> = told.iter().filter(|one| had_it(one)).collect();
        let all_cut_off = self.was_cut_off("", asked);
        if lost.iter().any(|one| one.reason == "unreachable") {
            Some(UNANSWERED)
        } else if !lost.is_empty() {
            Some(RUNNER_LOST)
        } else if all_cut_off && self.was_held(firing) {
            Some(HELD)
        } else if all_cut_off {
            // What had waited in the store came to be done: a claim long given
            // up had the lock for a moment, and others found it held.
            Some(SPENT)
        } else {
            None
        }
    }

    /// When claims of a firing may come to the store.
    fn asked(&self, firing: Us) -> Span {
        Span {
            from: firing - SLACK,
            to: self.reached_by(firing) + CLAIMS_TAKE,
        }
    }

    /// Whether answers could fail to reach an instance; any, where none is named.
    fn was_cut_off(&self, label: &str, when: Span) -> bool {
        self.facts.faults.iter().any(|fault| {
            let of_job = || fault.text.starts_with(&format!("{}-", self.job.name));
            let concerns = fault.text == label
                || fault.text.is_empty()
                || fault.text == "all"
                || label.is_empty() && of_job();
            fault.is_of_store() && concerns && fault.span.meets(when)
        })
    }

    /// Whether the store forgot the job after it had last been told of it.
    fn had_forgotten(&self, firing: Us) -> bool {
        let granted = self.runs.iter().map(Run::granted);
        let since = granted.filter(|at| *at < firing).max().unwrap_or(0);
        self.forgot_anything(Span {
            from: since - SLACK,
            to: self.asked(firing).to,
        })
    }

    /// Whether an earlier firing's run, or a dead runner's lease, was in the way
    /// when a claim of the firing could have come to the store.
    fn was_held(&self, firing: Us) -> bool {
        let asked = self.asked(firing);
        let by_run = |run: &Run| {
            // Freeing it takes a second at most, or waits for the lease's end.
            let freed = run.finished && !self.ended_untold(run);
            let held = Span {
                from: run.granted(),
                to: if freed {
                    run.end + SECOND
                } else {
                    self.lease_end(run, run.end)
                },
            };
            run.firing < firing && held.meets(asked)
        };
        // A heartbeat on its way when its sender dies can extend a lease long after.
        let by_lease = |line: &Line| line.held.is_some_and(|held| held.meets(asked));
        self.runs.iter().any(by_run)
            || self
                .lives
                .iter()
                .any(|life| life.lines.iter().any(by_lease))
    }

    /// When the store could be reached again by all after the firing.
    fn reached_by(&self, firing: Us) -> Us {
        let faults = self.facts.faults.iter();
        let ends = faults
            .filter(|fault| fault.is_of_store() && fault.span.from <= firing + CLAIMS_TAKE)
            .map(|fault| fault.span.to);
        let last = ends.max().unwrap_or(firing).max(firing);
        last.min(firing + self.job.start_deadline)
    }

    /// Refused as done, because a newer one had been started or spent before.
    fn overtaken(&self, firing: Us, told: &Told) -> bool {
        told.reason == "done"
            && self
                .runs
                .iter()
                .any(|run| run.firing > firing && run.granted() <= told.at + SLACK)
    }

    /// What each process says about a firing that it could have started.
    fn told(&self, firing: Us) -> Vec<Told> {
        let chance = Span {
            from: firing + SLACK,
            to: firing + self.job.start_deadline,
        };
        let lives = self.lives.iter();
        lives
            .filter(|life| life.from <= chance.to && life.to >= firing)
            .flat_map(|life| self.told_by(life, firing))
            .collect()
    }

    fn told_by(&self, life: &Life, firing: Us) -> Vec<Told> {
        let about = |line: &&Line| match line.event.as_str() {
            "skipped" => {
                line.firing == Some(firing)
                    || line.firing.is_none()
                        && line.at >= firing
                        && line.at <= firing + self.job.start_deadline
            }
            "replaces" | "cannot_start" => line.firing == Some(firing),
            "missed" => line
                .span
                .is_some_and(|(first, last)| first <= firing && firing <= last),
            _ => false,
        };
        let one = |reason: &str, at: Us, able: bool| Told {
            label: life.label.clone(),
            reason: reason.to_owned(),
            at,
            able,
        };
        let explicit: Vec<Told> = life
            .lines
            .iter()
            .filter(about)
            .map(|line| {
                let reason = if line.event == "skipped" {
                    &line.reason
                } else {
                    &line.event
                };
                one(reason, line.at, true)
            })
            .collect();
        if !explicit.is_empty() {
            return explicit;
        }
        if let Some(reason) = held_back(life, firing) {
            return vec![one(&reason, firing, true)];
        }
        vec![one("", life.to, self.was_able(life, firing))]
    }

    /// Whether a process had the time to take a firing: it lived and was not
    /// frozen for two seconds from then on.
    fn was_able(&self, life: &Life, firing: Us) -> bool {
        let needed = Span {
            from: firing - SLACK,
            to: firing + 2 * SECOND,
        };
        let frozen = |freeze: &Freeze| freeze.concerns(&life.label) && freeze.span.meets(needed);
        life.from <= needed.from - 2 * SECOND
            && life.to >= needed.to
            && !self.facts.freezes.iter().any(frozen)
    }
}

/// What an instance said of a firing that it did not start.
#[derive(Clone, Debug)]
struct Told {
    label: String,
    /// empty if it said nothing
    reason: String,
    at: Us,
    /// whether it had the time to take it
    able: bool,
}

impl Told {
    /// A reason that holds for this instance alone.
    fn is_local(&self) -> bool {
        matches!(
            self.reason.as_str(),
            "unreachable" | "late" | "superseded" | "missed" | "early" | "refused"
        )
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let able = if self.able { "" } else { " (not able)" };
        write!(
            f,
            "{} {}: {:?}{able}",
            stamp(self.at),
            self.label,
            self.reason
        )
    }
}

impl Freeze {
    fn concerns(&self, label: &str) -> bool {
        self.label.as_deref().is_none_or(|own| own == label)
    }
}

/// The reason that an instance did not write down as it had told many within a
/// minute: that of the last one told.
fn held_back(life: &Life, firing: Us) -> Option<String> {
    let minute = |line: &&Line| line.at > firing - MINUTE && line.at <= firing + MINUTE;
    let counts = |line: &&Line| line.event == "skipped" && line.reason != "done";
    let told: Vec<&Line> = life.lines.iter().filter(minute).filter(counts).collect();
    if told.len() < TOLD_A_MINUTE {
        return None;
    }
    let earlier = |line: &&&Line| line.firing.is_some_and(|other| other < firing);
    let last = told.iter().filter(earlier).max_by_key(|line| line.at)?;
    Some(last.reason.clone())
}

/// A time of day.
pub fn stamp(at: Us) -> String {
    jiff::Timestamp::from_microsecond(at).map_or_else(
        |_| at.to_string(),
        |time| time.strftime("%H:%M:%S%.3f").to_string(),
    )
}
