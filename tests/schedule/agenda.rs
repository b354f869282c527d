//! The waiting loop in simulated time: a clock that is set, a process that is
//! frozen, a machine that sleeps.

use chrono::{DateTime, TimeDelta, Utc};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use solocron::schedule::{Agenda, Count, Due, Missed, Schedule};

use super::oracle::{self, Expression};
use super::{instant, long, parse};

const DEADLINE: TimeDelta = TimeDelta::seconds(60);

/// What happens to a machine, by its true time.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The clock is set forward or, negative, back. Sleepers wake: a timer on
    /// the real-time clock is cancelled then.
    Set(TimeDelta),
    /// The process stands still: SIGSTOP, suspend.
    Freeze(TimeDelta),
}

/// One answer of the agenda.
#[derive(Debug, Clone, Copy)]
struct Answer {
    reading: DateTime<Utc>,
    due: Due,
}

/// Runs the loop from `start` for `length` of true time.
fn run(
    schedule: &Schedule,
    start: DateTime<Utc>,
    length: TimeDelta,
    events: &[(DateTime<Utc>, Event)],
) -> Vec<Answer> {
    let mut agenda = Agenda::new(schedule.clone(), start, DEADLINE);
    let (mut time, mut skew) = (start, TimeDelta::zero());
    let mut events = events.iter().peekable();
    let mut answers = Vec::new();
    while time < start + length {
        let reading = time + skew;
        let due = agenda.due(reading);
        answers.push(Answer { reading, due });
        match due {
            Due::Wait { until } => {
                assert!(until > reading, "a wait must end later than {reading}");
                assert_eq!(agenda.peek_next(reading), Some(until));
                let wake = until - skew;
                match events.next_if(|(at, _)| *at <= wake) {
                    Some((at, Event::Set(step))) => {
                        time = time.max(*at);
                        skew += *step;
                    }
                    // Still asleep when it goes on, unless the time has come.
                    Some((at, Event::Freeze(span))) => time = wake.max(*at + *span),
                    None => time = wake,
                }
                // No timer is exact.
                time += TimeDelta::microseconds(700);
            }
            Due::Ended => break,
            _ => time += TimeDelta::microseconds(50),
        }
    }
    check(&answers);
    answers
}

/// What holds for every run: no firing early, none twice, always forward.
fn check(answers: &[Answer]) {
    let mut mark = DateTime::<Utc>::MIN_UTC;
    for answer in answers {
        match answer.due {
            Due::Fire { firing, missed, .. } => {
                assert!(
                    firing <= answer.reading,
                    "{firing} is early at {}",
                    answer.reading
                );
                assert!(answer.reading - firing <= DEADLINE, "{firing} is late");
                if let Some(missed) = missed {
                    assert!(missed.first > mark && missed.last < firing);
                }
                assert!(firing > mark, "{firing} again");
                mark = firing;
            }
            Due::Missed(missed) => {
                assert!(missed.first > mark && missed.last >= missed.first);
                mark = missed.last;
            }
            Due::ClockSetBack { from, to } => {
                assert!(from - to > TimeDelta::hours(3));
                mark = to;
            }
            Due::Wait { .. } | Due::Ended => {}
        }
    }
}

fn fired(answers: &[Answer]) -> Vec<DateTime<Utc>> {
    answers
        .iter()
        .filter_map(|answer| match answer.due {
            Due::Fire { firing, .. } => Some(firing),
            _ => None,
        })
        .collect()
}

fn missed(answers: &[Answer]) -> Vec<Missed> {
    answers
        .iter()
        .filter_map(|answer| match answer.due {
            Due::Fire { missed, .. } => missed,
            Due::Missed(missed) => Some(missed),
            _ => None,
        })
        .collect()
}

fn times(times: &[&str]) -> Vec<DateTime<Utc>> {
    times
        .iter()
        .map(|time| instant(&format!("2026-05-13T{time}Z")))
        .collect()
}

fn at(time: &str) -> DateTime<Utc> {
    times(&[time])[0]
}

fn number(number: u32) -> Count {
    Count {
        number,
        more: false,
    }
}

/// The firing log of 26 hours over each change is that of cron(8).
#[test]
fn a_day_and_more_over_daylight_saving_changes_is_that_of_cron() {
    let expressions = [
        "* * * * *",
        "*/15 * * * *",
        "0 * * * *",
        "30 1 * * *",
        "15 2 * * *",
        "0,30 1-2 * * *",
        "*/20 2 * * *",
        "45 1-3 * * 0",
        "*/7 0-4 * * *",
        "0 0 2 * * *",
        "*/30 59 1 * * *",
    ];
    let changes = [
        ("America/New_York", "2026-03-08T07:00:00Z"),
        ("America/New_York", "2026-11-01T06:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ];
    let mut compared = 0;
    for (zone, change) in changes {
        let rules = TimeZone::get(zone).unwrap();
        let start = instant(change) - TimeDelta::hours(13) + TimeDelta::seconds(1);
        let length = TimeDelta::hours(26);
        for text in expressions {
            let answers = run(&parse(text, zone), start, length, &[]);
            // The last one may be due just when the run ends.
            let log: Vec<i64> = fired(&answers).iter().map(DateTime::timestamp).collect();
            let end = (start + length).timestamp();
            let wanted = oracle::firings(
                &Expression::of(text),
                &rules,
                start.timestamp() + 1,
                end - 1,
            );
            let log: Vec<i64> = log
                .into_iter()
                .filter(|firing| *firing > start.timestamp() && *firing < end)
                .collect();
            assert_eq!(log, wanted, "{text} in {zone} around {change}");
            assert!(missed(&answers).is_empty());
            compared += wanted.len();
        }
    }
    println!("{compared} firings around four changes");
}

#[test]
fn every_second_of_a_minute_fires_once() {
    let start = at("12:00:00.5");
    let answers = run(
        &parse("* * * * * *", "UTC"),
        start,
        TimeDelta::seconds(60),
        &[],
    );
    let firings = fired(&answers);
    let wanted: Vec<_> = (0..=60)
        .map(|second| at("12:00:00") + TimeDelta::seconds(second))
        .collect();
    assert_eq!(firings, wanted);
    assert!(missed(&answers).is_empty());
}

#[test]
fn waking_early_waits_for_the_same_instant() {
    let mut agenda = Agenda::new(parse("*/5 * * * *", "UTC"), at("12:02:00"), DEADLINE);
    let until = at("12:05:00");
    for reading in ["12:02:00", "12:04:59", "12:04:59.999", "12:04:59.999999999"] {
        assert_eq!(agenda.due(at(reading)), Due::Wait { until });
    }
    let due = Due::Fire {
        firing: until,
        missed: None,
        startup: false,
    };
    assert_eq!(agenda.due(until), due);
    // Neither now nor on an earlier reading is it due again.
    for reading in ["12:05:00", "12:04:59.9", "12:05:30"] {
        assert_eq!(
            agenda.due(at(reading)),
            Due::Wait {
                until: at("12:10:00")
            }
        );
    }
}

#[test]
fn a_clock_set_forward_by_90_seconds_starts_the_firing_it_skipped() {
    let events = [(at("11:59:00"), Event::Set(TimeDelta::seconds(90)))];
    let answers = run(
        &parse("*/5 * * * *", "UTC"),
        at("11:57:00"),
        TimeDelta::minutes(10),
        &events,
    );
    assert_eq!(fired(&answers), times(&["12:00:00", "12:05:00"]));
    assert!(missed(&answers).is_empty());
}

#[test]
fn a_clock_set_forward_by_an_hour_misses_what_is_too_late() {
    let events = [(at("11:58:00"), Event::Set(TimeDelta::hours(1)))];
    let answers = run(
        &parse("*/5 * * * *", "UTC"),
        at("11:52:00"),
        TimeDelta::minutes(15),
        &events,
    );
    assert_eq!(
        fired(&answers),
        times(&["11:55:00", "13:00:00", "13:05:00"])
    );
    let all = Missed {
        count: number(12),
        first: at("12:00:00"),
        last: at("12:55:00"),
    };
    assert_eq!(missed(&answers), [all]);
}

#[test]
fn a_clock_set_back_by_an_hour_fires_nothing_again() {
    let events = [(at("12:02:00"), Event::Set(TimeDelta::hours(-1)))];
    let answers = run(
        &parse("*/5 * * * *", "UTC"),
        at("11:52:00"),
        TimeDelta::minutes(80),
        &events,
    );
    assert_eq!(
        fired(&answers),
        times(&["11:55:00", "12:00:00", "12:05:00", "12:10:00"])
    );
    assert!(missed(&answers).is_empty());
}

#[test]
fn a_clock_set_back_by_three_hours_is_waited_out_and_by_more_followed() {
    let schedule = parse("*/30 * * * *", "UTC");
    let set = |back| [(at("12:02:00"), Event::Set(back))];
    let start = at("11:59:00");
    let short = run(
        &schedule,
        start,
        TimeDelta::minutes(40),
        &set(TimeDelta::hours(-3)),
    );
    assert_eq!(fired(&short), times(&["12:00:00"]));
    // The agenda's last reading before is that of 12:00.
    let far = run(
        &schedule,
        start,
        TimeDelta::minutes(45),
        &set(TimeDelta::minutes(-190)),
    );
    assert_eq!(fired(&far), times(&["12:00:00", "09:00:00", "09:30:00"]));
    let told = far.iter().find_map(|answer| match answer.due {
        Due::ClockSetBack { from, to } => Some((from, to)),
        _ => None,
    });
    let (from, to) = told.expect("the step is told");
    assert!(
        from - at("12:00:00") < TimeDelta::seconds(1)
            && to - at("08:52:00") < TimeDelta::seconds(1)
    );
}

#[test]
fn three_hours_back_is_the_bound() {
    let mut agenda = Agenda::new(parse("*/30 * * * *", "UTC"), at("12:00:00"), DEADLINE);
    agenda.due(at("12:00:00"));
    let until = at("12:30:00");
    assert_eq!(agenda.due(at("09:00:00")), Due::Wait { until });
    let (from, to) = (at("12:00:00"), at("08:59:59.999"));
    assert_eq!(agenda.due(to), Due::ClockSetBack { from, to });
    assert_eq!(
        agenda.due(to),
        Due::Wait {
            until: at("09:00:00")
        }
    );
}

/// Several small steps back add up, so that nothing waits for a day.
#[test]
fn steps_back_add_up() {
    let events = [
        (at("12:02:00"), Event::Set(TimeDelta::hours(-2))),
        (at("12:03:00"), Event::Set(TimeDelta::hours(-2))),
    ];
    let answers = run(
        &parse("*/30 * * * *", "UTC"),
        at("11:59:00"),
        TimeDelta::minutes(40),
        &events,
    );
    assert_eq!(fired(&answers), times(&["12:00:00", "08:30:00"]));
}

#[test]
fn a_process_stopped_for_eight_seconds_starts_one_late_firing() {
    let events = [(at("12:00:02.5"), Event::Freeze(TimeDelta::seconds(8)))];
    let answers = run(
        &parse("* * * * * *", "UTC"),
        at("12:00:00.5"),
        TimeDelta::seconds(12),
        &events,
    );
    let wanted = [
        "12:00:00", "12:00:01", "12:00:02", "12:00:10", "12:00:11", "12:00:12",
    ];
    assert_eq!(fired(&answers), times(&wanted));
    let all = Missed {
        count: number(7),
        first: at("12:00:03"),
        last: at("12:00:09"),
    };
    assert_eq!(missed(&answers), [all]);
}

#[test]
fn a_night_asleep_is_one_report() {
    let events = [(at("02:00:10"), Event::Freeze(TimeDelta::minutes(481)))];
    let answers = run(
        &parse("*/5 * * * *", "UTC"),
        at("01:58:00"),
        TimeDelta::hours(9),
        &events,
    );
    assert_eq!(
        fired(&answers)[..3],
        times(&["02:00:00", "10:05:00", "10:10:00"])
    );
    // Woken at 10:01:10: that of 10:00 is 70 s old, too late for 60 s.
    let all = Missed {
        count: number(96),
        first: at("02:05:00"),
        last: at("10:00:00"),
    };
    assert_eq!(missed(&answers), [all]);

    let events = [(at("02:00:10"), Event::Freeze(TimeDelta::minutes(480)))];
    let answers = run(
        &parse("*/5 * * * *", "UTC"),
        at("01:58:00"),
        TimeDelta::hours(9),
        &events,
    );
    assert_eq!(
        fired(&answers)[..3],
        times(&["02:00:00", "10:00:00", "10:05:00"])
    );
    assert_eq!(missed(&answers)[0].count, number(95));
}

#[test]
fn a_long_night_is_not_counted_to_the_end() {
    let mut agenda = Agenda::new(
        parse("* * * * * *", "UTC"),
        at("12:00:00.5"),
        TimeDelta::seconds(0),
    );
    let Due::Fire {
        missed: Some(missed),
        firing,
        ..
    } = agenda.due(at("12:00:00.5") + TimeDelta::days(300) - TimeDelta::milliseconds(500))
    else {
        panic!("nothing due");
    };
    assert_eq!(firing, at("12:00:00") + TimeDelta::days(300));
    assert_eq!(
        missed.count,
        Count {
            number: 1000,
            more: true
        }
    );
    assert_eq!(missed.count.to_string(), "more than 1000");
    assert_eq!(missed.last, firing - TimeDelta::seconds(1));
}

#[test]
fn the_last_firing_before_the_start_is_due_within_the_deadline() {
    let first = |expression: &str, start: &str| {
        Agenda::new(parse(expression, "UTC"), at(start), DEADLINE).due(at(start))
    };
    let started = |firing: &str| Due::Fire {
        firing: at(firing),
        missed: None,
        startup: true,
    };
    assert_eq!(first("*/5 * * * *", "12:00:30"), started("12:00:00"));
    assert_eq!(first("*/5 * * * *", "12:00:00"), started("12:00:00"));
    assert_eq!(first("*/5 * * * *", "12:01:00"), started("12:00:00"));
    assert_eq!(
        first("*/5 * * * *", "12:01:00.001"),
        Due::Wait {
            until: at("12:05:00")
        }
    );
    // Older ones within the deadline are another process's to report.
    assert_eq!(first("*/10 * * * * *", "12:00:31"), started("12:00:30"));
    // A start that takes long: the newest fires, those since the start count.
    let mut agenda = Agenda::new(parse("*/10 * * * * *", "UTC"), at("12:00:31"), DEADLINE);
    let passed = Missed {
        count: number(1),
        first: at("12:00:40"),
        last: at("12:00:40"),
    };
    assert_eq!(
        agenda.due(at("12:00:55")),
        Due::Fire {
            firing: at("12:00:50"),
            missed: Some(passed),
            startup: false
        }
    );
}

#[test]
fn years_that_are_over_end_the_loop() {
    let schedule = parse("0 0 12 13 5 * 2026", "UTC");
    let answers = run(&schedule, at("11:00:00"), TimeDelta::days(400), &[]);
    assert_eq!(fired(&answers), times(&["12:00:00"]));
    assert!(matches!(answers.last().unwrap().due, Due::Ended));
    assert!(schedule.check_future(at("11:00:00")).is_ok());
    let error = schedule
        .check_future(at("12:00:00"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no firing after 2026-05-13T12:00:00Z"),
        "{error}"
    );
}

#[test]
fn peeking_looks_past_what_is_dealt_with() {
    let mut agenda = Agenda::new(parse("*/5 * * * *", "UTC"), at("12:02:00"), DEADLINE);
    assert_eq!(agenda.peek_next(at("12:02:00")), Some(at("12:05:00")));
    agenda.due(at("12:05:00"));
    // Also when the clock was set back a little.
    assert_eq!(agenda.peek_next(at("12:03:00")), Some(at("12:10:00")));
    assert_eq!(agenda.peek_next(at("12:21:00")), Some(at("12:25:00")));
}

fn events() -> impl Strategy<Value = Vec<(i64, i64, bool)>> {
    prop::collection::vec((0_i64..40_000, -9000_i64..9000, any::<bool>()), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if long() { 5000 } else { 60 }, ..ProptestConfig::default() })]

    /// Whatever happens to the clock, `run` checks that nothing fires early or
    /// twice. Without a step back every firing is either started or counted.
    #[test]
    fn no_firing_is_lost_or_doubled(
        expression in prop::sample::select(&["*/5 * * * *", "* * * * *", "0,1,2 */2 * * *", "*/40 * * * * *", "30 2 * * *", "@every 7m"][..]),
        start in 1_767_225_600_i64..1_798_761_600,
        events in events(),
    ) {
        let start = DateTime::from_timestamp(start, 0).unwrap();
        let schedule = parse(expression, "America/New_York");
        let mut events: Vec<_> = events
            .into_iter()
            .map(|(at, step, freeze)| {
                let span = TimeDelta::seconds(step);
                (start + TimeDelta::seconds(at), if freeze { Event::Freeze(span.abs()) } else { Event::Set(span) })
            })
            .collect();
        events.sort_by_key(|(at, _)| *at);
        let answers = run(&schedule, start, TimeDelta::hours(12), &events);
        let back = events.iter().any(|(_, event)| matches!(event, Event::Set(step) if *step < TimeDelta::zero()));
        if !back {
            let end = answers.last().unwrap().reading;
            let all = schedule.count(start, end, 100_000).number;
            let started = u32::try_from(fired(&answers).iter().filter(|firing| **firing > start).count()).unwrap();
            let passed: u32 = missed(&answers).iter().map(|missed| missed.count.number).sum();
            prop_assert_eq!(started + passed, all);
        }
    }
}
