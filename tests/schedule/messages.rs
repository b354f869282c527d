//! What a user is told, and that no input whatever makes the parser panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use solocron::schedule::{Schedule, ZoneChoice, ZoneDb};

use super::long;

fn refusal(expression: &str, given: Option<&str>, lock_name: Option<&str>) -> String {
    let db = ZoneDb::new(None);
    let choice = ZoneChoice {
        db: &db,
        given,
        tz_env: Some("UTC".as_ref()),
    };
    match Schedule::parse(&[expression.to_owned()], &choice, lock_name) {
        Ok(schedule) => panic!("accepted: {}", schedule.describe()),
        Err(error) => error.to_string(),
    }
}

/// Each message names the expression, the field, the text, the legal range and
/// what to write instead.
const FIELD_MESSAGES: &[(&str, &str)] = &[
    (
        "61 * * * *",
        "minute field: \"61\" is out of range, minutes are 0 to 59; write a number from 0 to 59",
    ),
    (
        "60 * * * *",
        "minute field: \"60\" is out of range, minutes are 0 to 59; write 0 for the full hour",
    ),
    (
        "60 * * * * *",
        "second field: \"60\" is out of range, seconds are 0 to 59; write 0 for the full minute",
    ),
    (
        "* 24 * * *",
        "hour field: \"24\" is out of range, hours are 0 to 23; write 0 for midnight",
    ),
    (
        "* * 0 * *",
        "day-of-month field: \"0\" is out of range, days of the month are 1 to 31; write a number from 1 to 31",
    ),
    (
        "* * * 13 *",
        "month field: \"13\" is out of range, months are 1 to 12 or jan to dec; write a number from 1 to 12",
    ),
    (
        "* * * * 8",
        "day-of-week field: \"8\" is out of range, days of the week are 0 to 7 or sun to sat, 0 and 7 are Sunday; write 0 or 7 for Sunday, 1 for Monday",
    ),
    (
        "* * * * * * 2101",
        "year field: \"2101\" is out of range, years are 1970 to 2100; write a number from 1970 to 2100",
    ),
    (
        "* * * * * * H",
        "year field: \"H\" is hashed, which a year cannot be, years are 1970 to 2100; write the year",
    ),
    (
        "x * * * *",
        "minute field: \"x\" is not a value, minutes are 0 to 59; write a number, a range like 1-5, a list like 1,5 or a step like */5",
    ),
    (
        "* * * * monday",
        "day-of-week field: \"monday\" is no name that cron knows, days of the week are 0 to 7 or sun to sat, 0 and 7 are Sunday; write its first three letters, mon",
    ),
    (
        "* * * mon *",
        "month field: \"mon\" is a name for the day-of-week field, months are 1 to 12 or jan to dec; the order is minute hour day-of-month month day-of-week",
    ),
    (
        "1 - 5 * * *",
        "minute field: \"-\" stands between blanks, which separate fields, minutes are 0 to 59; write the range without blanks, like 1-5",
    ),
    (
        "*5 * * * *",
        "minute field: \"*5\" joins * to something, but * stands alone or before a /step, minutes are 0 to 59; write */5 for every 5th value, or *,5, or 5 alone",
    ),
    (
        "0~59 * * * *",
        "minute field: \"0~59\" is a random range, which would differ from host to host, minutes are 0 to 59; write H(first-last), which is the same on every host",
    ),
    (
        "? * * * *",
        "minute field: \"?\" stands for any day, alone and in a day field, minutes are 0 to 59; write *",
    ),
    (
        "h * * * *",
        "minute field: \"h\" is not a value, minutes are 0 to 59; write a capital H for a hashed value",
    ),
    (
        "H(5) * * * *",
        "minute field: \"H(5)\" is not a form of H, minutes are 0 to 59; write H, H/15, H(0-7) or H(0-29)/10",
    ),
    (
        "H(5-61) * * * *",
        "minute field: \"61\" is out of range, minutes are 0 to 59; write a number from 0 to 59",
    ),
    (
        "* * L-3 * *",
        "day-of-month field: \"L\" is not a value, days of the month are 1 to 31; write L for the last day, LW for the last working day, 15W for the working day nearest the 15th",
    ),
    (
        "* * 32W * *",
        "day-of-month field: \"32\" is out of range, days of the month are 1 to 31; write a number from 1 to 31",
    ),
    (
        "* * * * L",
        "day-of-week field: \"L\" lacks the day whose last occurrence it means, days of the week are 0 to 7 or sun to sat, 0 and 7 are Sunday; write 5L for the last Friday, 5#2 for the second Friday of the month",
    ),
    (
        "* * * * jul",
        "day-of-week field: \"jul\" is a name for the month field, days of the week are 0 to 7 or sun to sat, 0 and 7 are Sunday; the order is minute hour day-of-month month day-of-week",
    ),
    (
        "* * * * 5#6",
        "day-of-week field: \"5#6\" asks for a week that no month has, days of the week are 0 to 7 or sun to sat, 0 and 7 are Sunday; write 1 to 5 after the #, like 5#2 for the second Friday",
    ),
    (
        "20-10 * * * *",
        "minute field: \"20-10\" is a range that runs backwards, minutes are 0 to 59; write the smaller value first, or a list: 20-59,0-10",
    ),
    (
        "* * * dec-jan *",
        "month field: \"dec-jan\" is a range that runs backwards, months are 1 to 12 or jan to dec; write the smaller value first, or a list: dec,jan",
    ),
    (
        "* * * * 7-1",
        "day-of-week field: \"7-1\" is a range that runs backwards, days of the week are 0 to 7 or sun to sat, 0 and 7 are Sunday; write the smaller value first, or a list: 7,0-1",
    ),
    (
        "*/4294967296 * * * *",
        "minute field: \"*/4294967296\" has a step that is too large, minutes are 0 to 59; write a whole number from 1 after the slash, like */5",
    ),
    (
        "\u{7}\u{202e} * * * *",
        "minute field: \"\\u{7}\\u{202e}\" is not a value, minutes are 0 to 59; write a number, a range like 1-5, a list like 1,5 or a step like */5",
    ),
];

#[test]
fn field_messages() {
    for (expression, message) in FIELD_MESSAGES {
        assert_eq!(
            refusal(expression, None, Some("publish")),
            format!("schedule {expression:?}: {message}")
        );
    }
}

/// What is wrong with more than one field; the beginning of each message.
const WHOLE_MESSAGES: &[(&str, &str)] = &[
    ("", "is empty; write five fields: minute hour"),
    ("  \n", "is empty; write five fields: minute hour"),
    (
        "*",
        "has 1 field, 5 to 7 are needed; write five fields: minute hour",
    ),
    (
        "* * * *",
        "has 4 fields, 5 to 7 are needed; write five fields: minute hour",
    ),
    (
        "* * * * * * * *",
        "has 8 fields, 5 to 7 are needed; write 5, 6 or 7; the command goes after the options",
    ),
    (
        "*/5 * * * * /opt/report.sh",
        "has \"/opt/report.sh\" after five fields; leave the command out, it goes after the options",
    ),
    (
        "*/5 * * * * root true",
        "has \"root\" after five fields; leave the command out",
    ),
    (
        "\"*/5 * * * *\"",
        "begins with a quote; leave the quotes out, they are for the shell alone",
    ),
    ("'@daily'", "begins with a quote; leave the quotes out"),
    (
        "/5 * * * *",
        "minute field: \"/5\" lacks the values before the slash, minutes are 0 to 59; write them, like */5",
    ),
    (
        "@reboot",
        "@reboot means the start of one machine, which many hosts cannot share; run the command without --cron",
    ),
    ("@Reboot", "@reboot means the start of one machine"),
    (
        "@fortnightly",
        "\"@fortnightly\" is no known nickname; write @yearly, @monthly",
    ),
    (
        "@daily 5",
        "\"@daily\" takes nothing after it, but \"5\" follows; leave that out",
    ),
    (
        "@every",
        "@every lacks its duration; write a duration of whole seconds, like @every 90s",
    ),
    (
        "@every 90",
        "@every 90 has no unit; write @every 90s for seconds or @every 90m for minutes",
    ),
    (
        "@every 1500ms",
        "@every \"1500ms\" is not in whole seconds, 1 or more; write",
    ),
    (
        "@every 0s",
        "@every \"0s\" is not in whole seconds, 1 or more; write",
    ),
    ("@every soon", "@every \"soon\" is no duration; write"),
    (
        "@every 6000w",
        "@every \"6000w\" is longer than 100 years; write",
    ),
    (
        "@every 1M",
        "@every \"1M\" counts months or years, which have no fixed length (minutes are m); write",
    ),
    (
        "@every 1h 2years",
        "@every \"1h 2years\" counts months or years, which have no fixed length (minutes are m); write",
    ),
    (
        "0 0 30 2 *",
        "never fires, no date and time matches all fields; check day-of-month against month",
    ),
    (
        "CRON_TZ= * * * * *",
        "has a zone prefix without a zone; write CRON_TZ=Europe/Berlin",
    ),
    ("TZ=UTC", "is empty; write five fields"),
    (
        "cron_tz=UTC 0 3 * * *",
        "begins with \"cron_tz=UTC\"; only CRON_TZ=Zone or TZ=Zone may stand before the fields",
    ),
    (
        "CRON_TZ=Europe/Berln * * * * *",
        "time zone \"Europe/Berln\" is not known; nearest: Europe/Berlin",
    ),
];

#[test]
fn whole_expression_messages() {
    for (expression, message) in WHOLE_MESSAGES {
        let shown = refusal(expression, None, Some("publish"));
        let wanted = format!("schedule {expression:?}: {message}");
        assert!(shown.starts_with(&wanted), "{shown}\n{wanted}");
    }
    let none = Schedule::parse(
        &[],
        &ZoneChoice {
            db: &ZoneDb::new(None),
            given: None,
            tz_env: None,
        },
        None,
    );
    assert!(
        none.unwrap_err()
            .to_string()
            .contains("there is no expression")
    );
}

#[test]
fn a_hash_needs_the_lock_name() {
    let shown = refusal("H * * * *", None, None);
    assert!(shown.ends_with("is derived from the lock name, which is missing, minutes are 0 to 59; give --lock-name NAME, or write a number"), "{shown}");
}

#[test]
fn a_prefix_must_not_contradict_the_option() {
    let shown = refusal(
        "CRON_TZ=Europe/Berlin * * * * *",
        Some("Europe/Paris"),
        None,
    );
    assert!(shown.ends_with("its prefix asks for the zone Europe/Berlin, but --tz asks for Europe/Paris; leave one of the two out"), "{shown}");
    let db = ZoneDb::new(None);
    // The same zone is no contradiction, nor is the environment one.
    for (given, tz_env) in [
        (Some("europe/BERLIN"), None),
        (None, Some("Europe/Paris".as_ref())),
    ] {
        let choice = ZoneChoice {
            db: &db,
            given,
            tz_env,
        };
        let schedule =
            Schedule::parse(&["TZ=Europe/Berlin\t0 9 * * *".to_owned()], &choice, None).unwrap();
        assert_eq!(schedule.describe(), "0 9 * * * (Europe/Berlin)");
    }
    let shown = refusal("* * * * *", Some("Europe/Pariss"), None);
    assert!(
        shown.contains("--tz \"Europe/Pariss\" is not known; nearest: Europe/Paris"),
        "{shown}"
    );
}

#[test]
fn a_long_expression_is_cut_in_messages() {
    let shown = refusal(&"1,".repeat(100_000), None, None);
    assert!(shown.len() < 1000, "{}", shown.len());
}

/// A word of the grammar, or nearly.
fn word() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        "*",
        "?",
        "L",
        "LW",
        "W",
        "15W",
        "5L",
        "#",
        "5#2",
        "H",
        "H(",
        ")",
        "(0-7)",
        "-",
        "/",
        ",",
        "0",
        "5",
        "7",
        "59",
        "60",
        "1-5",
        "*/5",
        "mon",
        "SUN",
        "jan",
        "dec-jan",
        "@",
        "@daily",
        "@every",
        "90s",
        "CRON_TZ=",
        "TZ=UTC",
        "2026",
        "99999999999999999999",
        "ä",
        "٣",
        "\u{0}",
        "~",
        " ",
        "\t",
        "\n",
    ];
    prop::collection::vec(prop::sample::select(PARTS), 1..5).prop_map(|parts| parts.concat())
}

fn survives(text: &str) {
    let db = ZoneDb::with_paths(Vec::new(), "/nonexistent".into());
    let choice = ZoneChoice {
        db: &db,
        given: None,
        tz_env: Some("Europe/Berlin".as_ref()),
    };
    for lock_name in [None, Some("publish")] {
        match Schedule::parse(&[text.to_owned()], &choice, lock_name) {
            Ok(schedule) => {
                let from = super::instant("2026-03-29T00:59:59Z");
                if let Some(firing) = schedule.next(from) {
                    assert!(firing > from);
                    // What is shown of it means the same.
                    let shown = format!("TZ={} {}", schedule.zone().name(), schedule.expressions());
                    let again = Schedule::parse(&[shown], &choice, lock_name);
                    assert_eq!(again.unwrap().next(firing), schedule.next(firing));
                }
            }
            Err(error) => {
                let shown = error.to_string();
                assert!(
                    shown.starts_with("schedule \"") && shown.contains("; "),
                    "{shown}"
                );
                assert!(!shown.contains(char::is_control), "{shown:?}");
            }
        }
    }
}

/// A fuzz of some seconds; with `SOLOCRON_LONG=1` of ten minutes.
#[test]
fn no_input_makes_the_parser_panic() {
    let end = Instant::now() + Duration::from_secs(if long() { 600 } else { 4 });
    let mut runner = proptest::test_runner::TestRunner::default();
    let text = prop_oneof![
        1 => any::<String>(),
        1 => "[ -~]{0,40}",
        4 => prop::collection::vec(word(), 1..9).prop_map(|words| words.join(" ")),
        4 => prop::collection::vec(prop::sample::select(&["*", "*/7", "0", "5-9", "L", "3#2", "H", "H/9", "1,2", "mon-fri", "2030", "31", "15W", "9-6", "?"][..]), 5..8).prop_map(|words| words.join(" ")),
    ];
    let mut tried = 0_u32;
    while Instant::now() < end {
        let input = text.new_tree(&mut runner).expect("a value").current();
        let outcome = std::panic::catch_unwind(|| survives(&input));
        assert!(outcome.is_ok(), "panicked on {input:?}");
        tried += 1;
    }
    println!("{tried} inputs");
    assert!(tried > 100);
}
