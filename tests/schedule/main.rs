//! The schedule layer from outside: case files, an independent brute force,
//! the waiting loop in simulated time, zones, texts.

mod agenda;
mod brute;
mod cases;
mod messages;
mod oracle;
mod scenarios;
mod texts;
mod zones;

use chrono::{DateTime, Utc};
use solocron::schedule::{Schedule, ScheduleError, ZoneChoice, ZoneDb};

/// Many more repetitions are wanted.
fn long() -> bool {
    std::env::var_os("SOLOCRON_LONG").is_some_and(|value| value == "1")
}

fn instant(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).expect(text).to_utc()
}

/// Parses expressions in a zone, with a lock name for `H`.
fn try_parse(expressions: &[&str], zone: &str) -> Result<Schedule, ScheduleError> {
    let db = ZoneDb::new(None);
    let choice = ZoneChoice {
        db: &db,
        given: Some(zone),
        tz_env: None,
    };
    let expressions: Vec<String> = expressions.iter().map(|text| (*text).to_owned()).collect();
    Schedule::parse(&expressions, &choice, Some("publish"))
}

fn parse(expression: &str, zone: &str) -> Schedule {
    try_parse(&[expression], zone).unwrap_or_else(|error| panic!("{error}"))
}

/// The next `number` firings after an instant given as RFC 3339.
fn next(schedule: &Schedule, from: &str, number: usize) -> Vec<DateTime<Utc>> {
    let firings = schedule.firings(instant(from));
    firings.map(|(firing, _)| firing).take(number).collect()
}
