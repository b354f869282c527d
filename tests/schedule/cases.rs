//! The two case files: expressions with their next firings, and expressions to
//! be refused. Instants are compared, not strings.

use std::ffi::OsStr;

use chrono::{DateTime, Utc};
use solocron::schedule::{Problem, Schedule, ScheduleError, ZoneChoice, ZoneDb};

const VALID: &str = include_str!("../cases/schedules.jsonl");
const INVALID: &str = include_str!("../cases/schedules-invalid.jsonl");

fn lines(text: &str) -> impl Iterator<Item = serde_json::Value> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).expect("a case is a line of JSON"))
}

fn text<'a>(case: &'a serde_json::Value, key: &str) -> &'a str {
    case[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} in {case}"))
}

fn instant(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).expect(text).to_utc()
}

fn parse(expression: &str, zone: &str) -> Result<Schedule, ScheduleError> {
    let db = ZoneDb::new(None);
    let choice = ZoneChoice {
        db: &db,
        given: Some(zone),
        tz_env: Some(OsStr::new("Asia/Tokyo")),
    };
    Schedule::parse(&[expression.to_owned()], &choice, None)
}

#[test]
fn every_valid_case_gives_its_instants() {
    let (mut passed, mut far, mut failures) = (0, 0, Vec::new());
    for case in lines(VALID) {
        let expression = text(&case, "expr");
        let schedule = match parse(expression, text(&case, "tz")) {
            Ok(schedule) => schedule,
            Err(error) => {
                failures.push(error.to_string());
                continue;
            }
        };
        let wanted: Vec<_> = case["next"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|next| instant(next.as_str().expect("text")))
            .collect();
        let mut from = instant(text(&case, "from"));
        let mut found = Vec::new();
        while found.len() < wanted.len() {
            let Some(firing) = schedule.next(from) else {
                break;
            };
            found.push(firing);
            from = firing;
        }
        if found == wanted {
            passed += 1;
            far += u32::from(case["far"].as_bool() == Some(true));
        } else {
            failures.push(format!(
                "{expression} in {}: wanted {wanted:?}, found {found:?}",
                text(&case, "tz")
            ));
        }
    }
    println!(
        "valid cases: {passed} passed ({far} of them past 2100), {} failed",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(passed, 220);
}

#[test]
fn every_invalid_case_is_refused_with_a_reason() {
    let (mut syntax, mut never, mut failures) = (0, 0, Vec::new());
    for case in lines(INVALID) {
        let expression = text(&case, "expr");
        let Err(error) = parse(expression, "UTC") else {
            failures.push(format!("{expression:?} was accepted"));
            continue;
        };
        println!("{error}");
        let named = error.to_string().contains(&format!("{expression:?}"));
        let kind_fits = match (text(&case, "kind"), &error.problem) {
            ("never-fires", Problem::NeverFires) => {
                never += 1;
                true
            }
            ("syntax" | "ext-syntax", Problem::Field(field)) => {
                syntax += 1;
                let shown = error.to_string();
                shown.contains(field.field.name())
                    && shown.contains(field.field.legal())
                    && !field.remedy.is_empty()
                    && expression.contains(&field.text)
            }
            ("syntax", Problem::Form { reason, remedy }) => {
                syntax += 1;
                !reason.is_empty() && !remedy.is_empty()
            }
            _ => false,
        };
        if !named || !kind_fits {
            failures.push(format!("{expression:?}: {error}"));
        }
    }
    println!(
        "invalid cases: {syntax} refused as syntax, {never} as never firing, {} failed",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(syntax + never, 44);
}
