//! The judge of the chaos program: what it must find, and what it must let pass.

#[path = "chaos/facts.rs"]
#[allow(dead_code, reason = "a part of the chaos program")]
mod facts;
#[path = "chaos/judge.rs"]
#[allow(dead_code, reason = "a part of the chaos program")]
mod judge;
#[path = "chaos/lines.rs"]
#[allow(dead_code, reason = "a part of the chaos program")]
mod lines;
#[path = "chaos/missed.rs"]
mod missed;

use facts::{Facts, Fault, Forgot, Freeze, Job, Life, Line, Loss, MILLI, Run, SECOND, Span, Us};
use judge::{Figures, judge};

/// Some minute.
const T: Us = 1_800_000_000 * SECOND;

fn job(rerun: bool) -> Job {
    Job {
        name: "j",
        period: 2 * SECOND,
        ttl: 3 * SECOND,
        start_deadline: 8 * SECOND,
        queue: false,
        rerun,
        takes: (0, SECOND),
    }
}

/// A run of the firing at `T` plus so many seconds, granted `late` after it.
fn run(label: &str, firing: Us, late: Us, takes: Us) -> Run {
    let firing = T + firing * SECOND;
    let granted = firing + late;
    Run {
        job: "j".into(),
        label: label.into(),
        firing,
        token: u64::try_from(granted).unwrap(),
        attempt: 1,
        start: granted + 5 * MILLI,
        end: granted + takes,
        finished: true,
        writes: 3,
        refused: 0,
        refused_at_start: false,
    }
}

fn life(label: &str, lines: Vec<Line>) -> Life {
    Life {
        job: "j".into(),
        label: label.into(),
        from: T - 10 * SECOND,
        to: T + 60 * SECOND,
        lines,
    }
}

fn line(event: &str, at: Us) -> Line {
    Line {
        at: T + at,
        event: event.into(),
        ..Line::default()
    }
}

fn skipped(reason: &str, firing: Us) -> Line {
    Line {
        reason: reason.into(),
        firing: Some(T + firing * SECOND),
        ..line("skipped", firing * SECOND + MILLI)
    }
}

fn span(from: Us, to: Us) -> Span {
    Span {
        from: T + from,
        to: T + to,
    }
}

/// Three firings, at 2, 4 and 6 s, of a job with two instances.
fn facts(runs: Vec<Run>) -> Facts {
    Facts {
        jobs: vec![job(false)],
        window: Some(span(MILLI, 7 * SECOND)),
        runs,
        lives: vec![life("j-a", vec![]), life("j-b", vec![])],
        ..Facts::default()
    }
}

/// One ordinary run for each of these firings.
fn ordinary(firings: &[Us]) -> Vec<Run> {
    firings
        .iter()
        .map(|firing| run("j-a", *firing, MILLI, 200 * MILLI))
        .collect()
}

fn verdict(facts: &Facts) -> Figures {
    judge(facts, &facts.jobs[0])
}

/// The kinds of broken promises.
fn broken(facts: &Facts) -> Vec<&'static str> {
    verdict(facts).broken.iter().map(|one| one.what).collect()
}

#[test]
fn ordinary_runs_are_fine() {
    let figures = verdict(&facts(ordinary(&[2, 4, 6])));
    assert_eq!((figures.of(lines::DUE), figures.of(lines::ONCE)), (3, 3));
    assert!(
        figures.broken.is_empty() && figures.outside.is_empty(),
        "{figures:?}"
    );
}

#[test]
fn a_second_start_breaks_the_promise_unless_the_store_forgot() {
    let mut twice = facts(ordinary(&[2, 4, 6]));
    twice.runs.push(run("j-b", 4, 500 * MILLI, 100 * MILLI));
    assert_eq!(broken(&twice), [lines::TWICE]);
    let loss = |forgot, from, to| Loss {
        job: None,
        forgot,
        span: span(from, to),
    };
    twice.losses = vec![loss(Forgot::All, 4_300 * MILLI, 4_310 * MILLI)];
    let figures = verdict(&twice);
    assert_eq!(
        (figures.broken.len(), figures.of(lines::TWICE_WIPE)),
        (0, 1)
    );
    // Before the first start it is no excuse, and so it is not for another job.
    twice.losses = vec![loss(Forgot::All, 3_000 * MILLI, 3_010 * MILLI)];
    assert_eq!(broken(&twice), [lines::TWICE]);
    twice.losses = vec![Loss {
        job: Some("other"),
        ..loss(Forgot::All, 4_300 * MILLI, 4_310 * MILLI)
    }];
    assert_eq!(broken(&twice), [lines::TWICE]);
    // Later than two seconds only lost writes are.
    twice.runs.pop();
    twice.runs.push(run("j-b", 4, 2_500 * MILLI, 100 * MILLI));
    twice.runs.pop_if(|run| run.firing == T + 6 * SECOND);
    twice.losses = vec![loss(Forgot::All, 4_300 * MILLI, 4_310 * MILLI)];
    assert!(broken(&twice).contains(&lines::TWICE));
    twice.losses = vec![loss(Forgot::Last, 4_300 * MILLI, 4_310 * MILLI)];
    assert!(!broken(&twice).contains(&lines::TWICE));
}

#[test]
fn rerun_asks_for_a_second_start_of_what_did_not_end() {
    let mut again = facts(ordinary(&[2, 4, 6]));
    again.jobs = vec![job(true)];
    again.lives.push(life("j-c", vec![]));
    again.runs[1].finished = false;
    let mut second = run("j-b", 4, 1_900 * MILLI, 50 * MILLI);
    second.attempt = 2;
    again.runs.push(second);
    assert_eq!(broken(&again), [""; 0]);
    assert_eq!(verdict(&again).of(lines::AGAIN), 1);
    again.runs[1].finished = true;
    assert_eq!(broken(&again), [lines::TWICE]);
    again.lives[0].lines = vec![line("not_freed", 4_700 * MILLI)];
    assert_eq!(broken(&again), [""; 0]);
    // The same number again is no rerun.
    again.runs.last_mut().unwrap().attempt = 1;
    assert_eq!(broken(&again), [lines::TWICE]);
    // The end was told and the store lost it: again, late by the first run's lease.
    again.lives[0].lines = vec![line("beat", 8_000 * MILLI)];
    again.runs[1].end = T + 8_500 * MILLI;
    let last = again.runs.last_mut().unwrap();
    last.token = u64::try_from(T + 13 * SECOND).unwrap();
    last.attempt = 2;
    (last.start, last.end) = (T + 13_005 * MILLI, T + 13_100 * MILLI);
    assert!(broken(&again).contains(&lines::TWICE));
    again.losses = vec![Loss {
        job: None,
        forgot: Forgot::Last,
        span: span(7_000 * MILLI, 9_000 * MILLI),
    }];
    assert!(!broken(&again).contains(&lines::TWICE));
}

#[test]
fn a_start_that_only_the_log_knows_counts() {
    let mut twice = facts(ordinary(&[2, 4, 6]));
    let started = Line {
        firing: Some(T + 4 * SECOND),
        token: u64::try_from(T + 4_500 * MILLI).unwrap(),
        attempt: 1,
        ..line("started", 4_510 * MILLI)
    };
    twice.lives[1].lines = vec![started];
    assert_eq!(broken(&twice), [lines::TWICE]);
}

#[test]
fn overlapping_runs_break_the_promise_unless_one_was_frozen() {
    let mut both = facts(ordinary(&[2, 4, 6]));
    // From 2.0 to 5.1, its lease extended at 3 s and over at 6.
    both.runs[0].end = T + 5_100 * MILLI;
    both.lives[0].lines = vec![line("beat", 3_000 * MILLI)];
    both.runs[1].label = "j-b".into();
    assert_eq!(broken(&both), [lines::OVERLAP]);
    // Frozen, but not beyond the lease.
    let freeze = |label: &str, from, to| Freeze {
        label: Some(label.into()),
        span: span(from, to),
    };
    both.freezes = vec![freeze("j-a", 3_500 * MILLI, 4_500 * MILLI)];
    assert_eq!(broken(&both), [lines::OVERLAP]);
    // Of another.
    both.freezes = vec![freeze("j-c", 3_500 * MILLI, 6_500 * MILLI)];
    assert_eq!(broken(&both), [lines::OVERLAP]);
    both.freezes = vec![freeze("j-a", 3_500 * MILLI, 6_500 * MILLI)];
    assert_eq!(broken(&both), [""; 0]);
    assert_eq!(verdict(&both).of(lines::OVERLAP_FROZEN), 1);
    // After a loss two may overlap, but not for longer than a lease.
    both.freezes.clear();
    both.losses = vec![Loss {
        job: None,
        forgot: Forgot::All,
        span: span(3_100 * MILLI, 3_110 * MILLI),
    }];
    assert_eq!(broken(&both), [""; 0]);
    both.runs[0].end = T + 9 * SECOND;
    both.runs[1].end = T + 9 * SECOND;
    assert!(broken(&both).contains(&lines::OVERLAP));
}

#[test]
fn a_command_that_outlives_its_lease_is_found() {
    let mut late = facts(ordinary(&[2, 6]));
    late.runs[0].end = T + 5_500 * MILLI;
    late.lives[0].lines = vec![skipped("overlapped", 4)];
    assert_eq!(broken(&late), [lines::OUTLIVED]);
    late.lives[0].lines.push(line("beat", 3_000 * MILLI));
    assert_eq!(broken(&late), [""; 0]);
    late.lives[0].lines.pop();
    late.freezes = vec![Freeze {
        label: None,
        span: span(4_000 * MILLI, 5_450 * MILLI),
    }];
    assert_eq!(broken(&late), [""; 0]);
}

#[test]
fn a_stale_token_at_a_start_is_found() {
    let mut stale = facts(ordinary(&[2, 4, 6]));
    stale.runs[1].refused = 3;
    stale.runs[1].refused_at_start = true;
    assert_eq!(broken(&stale), [lines::REFUSED_START]);
    assert_eq!(verdict(&stale).of(lines::REFUSED), 3);
}

/// What is said of a firing at 4 s that nobody started.
fn missed(lines: [Vec<Line>; 2], change: impl FnOnce(&mut Facts)) -> Option<&'static str> {
    let mut facts = facts(ordinary(&[2, 6]));
    for (life, lines) in facts.lives.iter_mut().zip(lines) {
        life.lines = lines;
    }
    change(&mut facts);
    let figures = verdict(&facts);
    assert_eq!(figures.of(lines::MISSED), 1);
    let mut counts = figures.counts.iter();
    let rules = [
        lines::HELD,
        lines::UNSURE,
        lines::SUPERSEDED,
        lines::RUNNER_LOST,
        lines::GIVEN_BACK,
        lines::UNREACHED,
        lines::UNANSWERED,
        lines::SPENT,
        lines::NOBODY,
    ];
    counts.find_map(|(name, _)| rules.iter().find(|rule| *rule == name).copied())
}

#[test]
fn a_missed_firing_needs_a_rule_and_what_it_speaks_of() {
    let done = || vec![skipped("done", 4)];
    let fine = |_: &mut Facts| {};
    let say = |reason: &str| [vec![skipped(reason, 4)], done()];
    // Nobody has anything to say for it.
    assert_eq!(missed([vec![], vec![]], fine), None);
    assert_eq!(missed([done(), done()], fine), None);
    // Busy, but nobody held it; and somebody did.
    assert_eq!(missed(say("busy"), fine), None);
    let holds = |facts: &mut Facts| facts.runs[0].end = T + 4_100 * MILLI;
    assert_eq!(missed(say("busy"), holds), Some(lines::HELD));
    // Forgotten, but the store was fine; and it was not.
    assert_eq!(missed(say("unsure"), fine), None);
    let forgot = |facts: &mut Facts| {
        facts.losses = vec![Loss {
            job: Some("j"),
            forgot: Forgot::All,
            span: span(3 * SECOND, 3 * SECOND),
        }];
    };
    assert_eq!(missed(say("unsure"), forgot), Some(lines::UNSURE));
    // One could not reach the store; the other could.
    assert_eq!(missed(say("unreachable"), fine), None);
    let one_way = |text: &str| Fault {
        kind: "network of one, one way",
        span: span(3_900 * MILLI, 5 * SECOND),
        text: text.into(),
    };
    let cut_off = |facts: &mut Facts| facts.faults = vec![one_way("j-a")];
    assert_eq!(missed(say("unreachable"), cut_off), Some(lines::UNANSWERED));
    let another = |facts: &mut Facts| facts.faults = vec![one_way("k-a")];
    assert_eq!(missed(say("unreachable"), another), None);
    let both = [vec![skipped("unreachable", 4)], vec![skipped("late", 4)]];
    assert_eq!(missed(both, fine), Some(lines::UNREACHED));
    assert_eq!(missed(say("orphaned"), fine), Some(lines::RUNNER_LOST));
    assert_eq!(missed(say("stopping"), fine), Some(lines::GIVEN_BACK));
    // Two were told that it runs elsewhere, and whoever had it died.
    let dies = |facts: &mut Facts| facts.lives[0].to = T + 4_050 * MILLI;
    assert_eq!(missed([vec![], done()], dies), Some(lines::RUNNER_LOST));
    let all_dead = |facts: &mut Facts| {
        facts.lives.pop();
        facts.lives[0].to = T + 4_050 * MILLI;
    };
    assert_eq!(missed([vec![], done()], all_dead), Some(lines::NOBODY));
    let frozen = |facts: &mut Facts| {
        facts.freezes = ["j-a", "j-b"]
            .map(|label| Freeze {
                label: Some(label.into()),
                span: span(3 * SECOND, 9 * SECOND),
            })
            .to_vec();
    };
    assert_eq!(missed([vec![], vec![]], frozen), Some(lines::NOBODY));
}

#[test]
fn what_an_instance_held_back_is_what_it_told_last() {
    let told = |count: Us| -> Vec<Line> {
        let firing = |n: Us| T + 2 * SECOND - n * SECOND;
        let one = |n: Us| Line {
            firing: Some(firing(n)),
            at: firing(n),
            ..skipped("unreachable", 2)
        };
        (0..count).rev().map(one).collect()
    };
    let fine = |_: &mut Facts| {};
    assert_eq!(missed([told(10), told(10)], fine), Some(lines::UNREACHED));
    // Not when it had told few.
    assert_eq!(missed([told(9), told(10)], fine), None);
}
