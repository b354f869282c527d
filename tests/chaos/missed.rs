//! Why nobody started a firing: what the instances say of it, and whether what
//! they speak of was so.

use crate::facts::{Freeze, Life, Line, Run, SECOND, Span, Us};
use crate::judge::{Case, SLACK, stamp};
use crate::lines::{
    GIVEN_BACK, HELD, MISSED, NOBODY, RUNNER_LOST, SPENT, SUPERSEDED, UNANSWERED, UNEXPLAINED,
    UNREACHED, UNSURE,
};

/// From a firing to its last claim that is answered, where nothing is in the way.
const CLAIMS_TAKE: Us = 2 * SECOND;
/// So many skipped firings are told in a minute by an instance.
const TOLD_A_MINUTE: usize = 10;
const MINUTE: Us = 60 * SECOND;

impl Case<'_> {
    /// A firing that nobody started.
    pub fn missed(&mut self, firing: Us) {
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
        let unsure = |one: &&Told| one.reason == "unsure" || one.reason == "before_first";
        if let Some(last) = told.iter().filter(unsure).map(|one| one.at).max()
            && self.had_forgotten(firing, last)
        {
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

    /// Whether the store had forgotten the job when it said so, after it had
    /// last been told of an earlier firing.
    fn had_forgotten(&self, firing: Us, said: Us) -> bool {
        let granted = self.runs.iter().map(Run::granted);
        let since = granted.filter(|at| *at < firing).max().unwrap_or(0);
        self.forgot_anything(Span {
            from: since - SLACK,
            to: said.max(self.asked(firing).to),
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
