//! Whether the promises were kept, and why a firing was not started.
//!
//! Whatever is not covered by a promise needs a reason that the promise itself
//! names: the store forgot, or a process stood still for longer than the rest of
//! its lease. A missed firing needs one of the rules, and the rule what it
//! speaks of: that the lock was held, that the store forgot, that the store was
//! not to be reached.

use crate::facts::{Facts, Forgot, Freeze, Job, Life, Line, MILLI, Run, SECOND, Span, Us};
use crate::lines::{
    AGAIN, AGAIN_UNTOLD, DUE, LATE, ONCE, OUTLIVED, OUTLIVED_FROZEN, OVERLAP, OVERLAP_FROZEN,
    OVERLAP_LOSS, REFUSED, REFUSED_START, TWICE, TWICE_LAST, TWICE_WIPE, WRITES,
};
use std::collections::BTreeMap;

/// A firing that the store may have forgotten is not started later than this.
const UNSURE_AFTER: Us = 2 * SECOND;
/// What reading a clock here and there may be apart, and a message be under way.
pub const SLACK: Us = 100 * MILLI;

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
    pub fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// A count; 0 for what never happened.
    pub fn of(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

/// One job among the facts.
pub struct Case<'a> {
    pub facts: &'a Facts,
    pub job: &'a Job,
    /// in the order of their grants
    pub runs: Vec<Run>,
    pub lives: Vec<&'a Life>,
    pub figures: Figures,
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
    pub fn break_promise(&mut self, what: &'static str, at: Us, text: String) {
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
            if self.forgot(Forgot::All, between) && late <= self.unsure_after() + SLACK {
                self.note(TWICE_WIPE, second.start, text);
            } else if self.forgot(Forgot::Last, between) && late <= self.last_start(first) + SLACK {
                self.note(TWICE_LAST, second.start, text);
            } else {
                self.break_promise(TWICE, second.start, text);
            }
        }
    }

    /// How late a firing is started that the store may have forgotten; under
    /// rerun one that may have run is started rather than left.
    fn unsure_after(&self) -> Us {
        if self.job.rerun {
            self.job.start_deadline
        } else {
            UNSURE_AFTER
        }
    }

    /// How late a firing is started at all; under rerun it counts from the end
    /// of the lease of a runner that was lost.
    fn last_start(&self, first: &Run) -> Us {
        let from = if self.job.rerun {
            self.lease_end(first, first.end) - first.firing
        } else {
            0
        };
        from + self.job.start_deadline
    }

    /// Whether the store could not be told of the end of a run before its lease
    /// was over, or nobody was left to tell it.
    pub fn ended_untold(&self, run: &Run) -> bool {
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

    pub fn forgot_anything(&self, span: Span) -> bool {
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
    pub fn lease_end(&self, run: &Run, by: Us) -> Us {
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
}

impl Freeze {
    pub fn concerns(&self, label: &str) -> bool {
        self.label.as_deref().is_none_or(|own| own == label)
    }
}

/// A time of day.
pub fn stamp(at: Us) -> String {
    jiff::Timestamp::from_microsecond(at).map_or_else(
        |_| at.to_string(),
        |time| time.strftime("%H:%M:%S%.3f").to_string(),
    )
}
