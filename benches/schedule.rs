//! Reading an expression, and finding the next firing.
//!
//! `cargo bench --bench schedule`

use chrono::{DateTime, Utc};
use divan::{Bencher, black_box};
use solocron::schedule::{Agenda, Schedule, ZoneChoice, ZoneDb};

fn main() {
    divan::main();
}

const CASES: &str = include_str!("../tests/cases/schedules.jsonl");

fn parse(db: &ZoneDb, expressions: &[&str], zone: &str) -> Schedule {
    let choice = ZoneChoice {
        db,
        given: Some(zone),
        tz_env: None,
    };
    let expressions: Vec<String> = expressions.iter().map(|text| (*text).to_owned()).collect();
    Schedule::parse(&expressions, &choice, Some("publish")).expect("a good expression")
}

fn instant(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text)
        .expect("an instant")
        .to_utc()
}

#[divan::bench(args = ["*/5 * * * *", "0 9-17/2 1,15 jan-jun mon-fri", "H H(0-7) L * 5#2", "@daily"])]
fn read(bencher: Bencher, expression: &str) {
    let db = ZoneDb::new(None);
    bencher.bench(|| parse(&db, &[black_box(expression)], "UTC"));
}

#[divan::bench(args = ["UTC", "Europe/Berlin", "europe/berlin"])]
fn load_zone(bencher: Bencher, name: &str) {
    let db = ZoneDb::new(None);
    bencher.bench(|| db.zone(black_box(name)).expect("a zone"));
}

/// Expression, zone, the instant to start from.
const NEXT: [(&str, &[&str], &str, &str); 10] = [
    (
        "dense",
        &["* * * * * *"],
        "Europe/Berlin",
        "2026-05-13T10:17:30Z",
    ),
    (
        "five minutes",
        &["*/5 * * * *"],
        "UTC",
        "2026-05-13T10:17:30Z",
    ),
    (
        "weekdays",
        &["30 9 * * 1-5"],
        "Europe/Berlin",
        "2026-05-15T10:17:30Z",
    ),
    (
        "29 February",
        &["0 0 29 2 *"],
        "Europe/Berlin",
        "2028-03-01T00:00:00Z",
    ),
    (
        "29 February on a Monday",
        &["0 0 * 2 1#5"],
        "Europe/Berlin",
        "2044-03-01T00:00:00Z",
    ),
    ("past 2100", &["0 0 29 2 *"], "UTC", "2096-03-01T00:00:00Z"),
    (
        "last workday",
        &["0 18 LW * *"],
        "Europe/Berlin",
        "2026-05-13T10:17:30Z",
    ),
    (
        "end of the first pass",
        &["*/20 * * * *"],
        "America/New_York",
        "2026-11-01T05:50:00Z",
    ),
    (
        "fixed in a gap",
        &["30 2 * * *"],
        "America/New_York",
        "2026-03-08T06:59:00Z",
    ),
    (
        "union of four",
        &["*/5 * * * *", "0 9 * * 1-5", "30 2 L * *", "@every 7m"],
        "Europe/Berlin",
        "2026-05-13T10:17:30Z",
    ),
];

#[divan::bench(args = NEXT.map(|case| case.0))]
fn next(bencher: Bencher, name: &str) {
    let (_, expressions, zone, from) = NEXT
        .into_iter()
        .find(|case| case.0 == name)
        .expect("a case of the list");
    let schedule = parse(&ZoneDb::new(None), expressions, zone);
    let from = instant(from);
    bencher.bench(|| schedule.next(black_box(from)));
}

/// The whole case file: one `next` for each instant in it, in one go.
#[divan::bench]
fn next_of_all_cases(bencher: Bencher) {
    let db = ZoneDb::new(None);
    let cases: Vec<(Schedule, DateTime<Utc>)> = CASES
        .lines()
        .flat_map(|line| {
            let case: serde_json::Value = serde_json::from_str(line).expect("a case");
            let text = |key: &str| case[key].as_str().expect("text").to_owned();
            let schedule = parse(&db, &[&text("expr")], &text("tz"));
            let firings = case["next"].as_array().expect("a list").clone();
            let firings = firings
                .into_iter()
                .map(|firing| firing.as_str().expect("text").to_owned());
            std::iter::once(text("from"))
                .chain(firings)
                .map(|from| (schedule.clone(), instant(&from)))
                .collect::<Vec<_>>()
        })
        .collect();
    bencher
        .counter(divan::counter::ItemsCount::new(cases.len()))
        .bench(|| {
            for (schedule, from) in &cases {
                black_box(schedule.next(*from));
            }
        });
}

#[divan::bench(args = ["* * * * *", "*/5 8-18 * * 1-5", "0 0 29 2 *"])]
fn longest_gap(bencher: Bencher, expression: &str) {
    let schedule = parse(&ZoneDb::new(None), &[expression], "Europe/Berlin");
    let from = instant("2026-05-13T10:17:30Z");
    bencher.bench(|| schedule.longest_gap(black_box(from)));
}

/// Ten hours asleep on an every-minute schedule.
#[divan::bench]
fn agenda_after_a_night(bencher: Bencher) {
    let schedule = parse(&ZoneDb::new(None), &["* * * * *"], "Europe/Berlin");
    let start = instant("2026-05-13T20:17:30Z");
    let deadline = chrono::TimeDelta::seconds(60);
    bencher
        .with_inputs(|| Agenda::new(schedule.clone(), start, deadline))
        .bench_values(|mut agenda| agenda.due(start + chrono::TimeDelta::hours(10)));
}
