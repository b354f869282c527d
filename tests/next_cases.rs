//! What schedules mean, as `solocron --next` prints it: the two case files, and spellings that people use.

mod support;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output};
use support::solocron::clear_environment;

const VALID: &str = include_str!("cases/schedules.jsonl");
const INVALID: &str = include_str!("cases/schedules-invalid.jsonl");

/// What `--next` says of these words.
fn next<S: AsRef<OsStr>>(words: &[S]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_solocron"));
    clear_environment(&mut command);
    command
        .arg("--next")
        .args(words)
        .output()
        .expect("the binary")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The lines of a good answer, each in the form RFC 3339 to the second, with a numeric offset.
#[track_caller]
fn firings(words: &[&str]) -> Vec<DateTime<FixedOffset>> {
    let out = next(words);
    assert!(
        out.status.code() == Some(0) && out.stderr.is_empty(),
        "{words:?}: {:?} {}",
        out.status,
        text(&out.stderr)
    );
    let read = |line: &str| {
        let firing = DateTime::parse_from_rfc3339(line)
            .unwrap_or_else(|error| panic!("{words:?}: {line:?}: {error}"));
        assert_eq!(line, firing.format("%Y-%m-%dT%H:%M:%S%:z").to_string());
        firing
    };
    text(&out.stdout).lines().map(read).collect()
}

/// The one line of a refusal.
#[track_caller]
fn refusal<S: AsRef<OsStr>>(words: &[S]) -> String {
    let shown: Vec<_> = words.iter().map(|word| word.as_ref().display()).collect();
    let out = next(words);
    let told = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{shown:?}: {told}");
    assert!(out.stdout.is_empty(), "{shown:?}: {}", text(&out.stdout));
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(told.ends_with("\nTry 'solocron --help'.\n"), "{told}");
    let line = told.lines().next().unwrap_or_default();
    line.strip_prefix("solocron: ")
        .unwrap_or_else(|| panic!("{told}"))
        .to_owned()
}

fn cases(file: &str) -> impl Iterator<Item = serde_json::Value> {
    file.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).expect("a case is a line of JSON"))
}

fn word<'a>(case: &'a serde_json::Value, key: &str) -> &'a str {
    case[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} in {case}"))
}

#[test]
fn every_valid_case_prints_its_instants() {
    let (mut same, mut far, mut failures) = (0, 0, Vec::new());
    for case in cases(VALID) {
        let wanted: Vec<DateTime<FixedOffset>> =
            serde_json::from_value(case["next"].clone()).expect("instants");
        let count = wanted.len().to_string();
        let (expr, zone, from) = (word(&case, "expr"), word(&case, "tz"), word(&case, "from"));
        let found = firings(&[&count, "--from", from, "--tz", zone, "--cron", expr]);
        // The offset is the zone's at that instant, so that it has to be the same too.
        let offsets = |all: &[DateTime<FixedOffset>]| -> Vec<String> {
            all.iter().map(DateTime::to_rfc3339).collect()
        };
        if found == wanted && offsets(&found) == offsets(&wanted) {
            same += 1;
            far += u32::from(case["far"].as_bool() == Some(true));
        } else {
            failures.push(format!(
                "{expr:?} in {zone}: wanted {wanted:?}, found {found:?}"
            ));
        }
    }
    println!(
        "valid cases: {same} right ({far} of them past 2100), {} wrong",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(same, 220);
}

/// The legal values of each field as a refusal tells them.
const LEGAL: [(&str, &str); 6] = [
    ("second", "seconds are 0 to 59"),
    ("minute", "minutes are 0 to 59"),
    ("hour", "hours are 0 to 23"),
    ("day-of-month", "days of the month are 1 to 31"),
    ("month", "months are 1 to 12 or jan to dec"),
    ("day-of-week", "days of the week are 0 to 7 or sun to sat"),
];

/// Whether a refusal names a field, a part of the expression, the legal values and a remedy.
fn explains_field(expr: &str, told: &str) -> bool {
    LEGAL.iter().any(|(field, legal)| {
        let Some(rest) = told.strip_prefix(&format!("schedule {expr:?}: {field} field: \"")) else {
            return false;
        };
        let part = rest.split('"').next().unwrap_or_default();
        let remedy = rest.rsplit("; ").next().unwrap_or_default();
        !part.is_empty() && expr.contains(part) && rest.contains(legal) && remedy.len() > 5
    })
}

#[test]
fn every_invalid_case_is_refused_with_what_to_write() {
    let (mut syntax, mut never, mut failures) = (0, 0, Vec::new());
    for case in cases(INVALID) {
        let expr = word(&case, "expr");
        let told = refusal(&["1", "--tz", "UTC", "--cron", expr]);
        match word(&case, "kind") {
            "never-fires" if told.contains("never fires") && told.contains("; check ") => {
                never += 1;
            }
            "syntax" if expr.starts_with('@') && told.contains("; ") => syntax += 1,
            "syntax" | "ext-syntax" if explains_field(expr, &told) => syntax += 1,
            kind => failures.push(format!("{kind} {expr:?}: {told}")),
        }
    }
    println!(
        "invalid cases: {syntax} refused as syntax, {never} as never firing, {} badly",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!((syntax, never), (40, 4));
    let told = refusal(&["1", "--cron", "H * * * *"]);
    assert!(told.contains("give --lock-name NAME"), "{told}");
}

/// Spellings of one schedule.
const SAME: &[&[&str]] = &[
    // Blanks around and between.
    &[
        "*/7 * * * *",
        " */7  *\t* * * ",
        "\t*/7\t*\t*\t*\t*\n",
        "*/7 * * * *\r\n",
    ],
    &["0 7 1 3 *", "00 007 01 003 *", "0 7 1 MAR *", "0 7 1 mar ?"],
    // Sunday, and ranges that end in it.
    &[
        "0 0 * * 0",
        "0 0 * * 7",
        "0 0 * * 07",
        "0 0 * * sun",
        "0 0 * * SUN",
        "0 0 * * sun-0",
        "0 0 * * 7-7",
    ],
    &[
        "0 0 * * *",
        "0 0 * * 0-7",
        "0 0 * * 0-6",
        "0 0 * * 1-7",
        "0 0 * * mon-sun",
        "0 0 * * sun-sat",
        "0 0 * * Mon-0",
        "0 0 ? * *",
        "0 0 * * ?",
        "0 0 ? * ?",
        "0 0 * */1 *",
        "@daily",
        "@DAILY",
        "@Midnight",
        " @daily\t",
        "0 0 0 * * *",
        "0 0 0 * * * *",
        "0 0 0 ? * ? 1970-2100",
    ],
    // No star, so that either day field may match, and the week's matches always.
    &["0 0 * * *", "0 0 13 * 0-7", "0 0 31 * sun-sat"],
    // A star, so that both must match.
    &["0 0 13 * *", "0 0 13 * */1", "0 0 13 * *,fri", "0 0 13 * ?"],
    &["0 0 * * 5", "0 0 */1 * 5", "0 0 *,13 * fri", "0 0 ? * FRI"],
    &[
        "0 0 * * 6,0",
        "0 0 * * 6-7",
        "0 0 * * sat-sun",
        "0 0 * * sat,7",
    ],
    // Steps.
    &[
        "0,40 * * * *",
        "*/40 * * * *",
        "0/40 * * * *",
        "0-59/40 * * * *",
    ],
    &[
        "0 * * * *",
        "*/60 * * * *",
        "*/90 * * * *",
        "@hourly",
        "@HOURLY",
    ],
    &[
        "5 * * * *",
        "5/55 * * * *",
        "5/100 * * * *",
        "5-5/2 * * * *",
    ],
    &[
        "0 0 * 1,6,11 *",
        "0 0 * */5 *",
        "0 0 * JAN-DEC/5 *",
        "0 0 * 1/5 *",
    ],
    &[
        "0 0 * * 0,2,4,6",
        "0 0 * * 0-7/2",
        "0 0 * * */2",
        "0 0 * * sun-sat/2",
    ],
    &["0 0 * * 1,4,0", "0 0 * * 1-7/3", "0 0 * * 1/3"],
    // Lists with doubles and overlaps, in any order.
    &["1,2,3 * * * *", "3,2,1 * * * *", "1-3,2,2-3,1 * * * *"],
    &["* * * * *", "*,*/5 * * * *", "0-59 * * * *", "0 * * * * *"],
    // Seconds and years.
    &["*/5 * * * *", "0 */5 * * * *", "0 */5 * * * ? *"],
    &[
        "0,15,30,45 * * * * *",
        "*/15 * * * * *",
        "0/15 * * * * *",
        "0-59/15 * * * * * *",
    ],
    &["0 0 1 1 *", "@yearly", "@Annually", "0 0 0 1 JAN ?"],
    &[
        "0 0 0 1 1 * 2027,2030,2033",
        "0 0 0 1 1 ? 2027-2033/3",
        "0 0 0 1 1 * 2027,2030-2033/3",
    ],
    // The terms of the day fields, in any case.
    &["0 0 L * *", "0 0 l * *", "0 0 L * ?", "0 0 l,L * *"],
    &["0 0 LW * *", "0 0 lw * *", "0 0 Lw * ?"],
    &["0 0 15W * *", "0 0 15w * *", "0 0 015W * *"],
    &["0 0 * * 5L", "0 0 * * FRIL", "0 0 * * fril", "0 0 ? * 5l"],
    &["0 0 * * 0L", "0 0 * * 7L", "0 0 * * sunL"],
    &[
        "0 0 * * 1#1",
        "0 0 * * mon#1",
        "0 0 ? * MON#1",
        "0 0 * * 01#1",
    ],
    &["0 0 * * 0#2", "0 0 * * 7#2", "0 0 * * Sun#2"],
    &["0 0 1,L * *", "0 0 L,1 * *", "0 0 1,1,L * ?"],
    &["0 0 * * 1#1,1#3", "0 0 * * mon#3,mon#1"],
    // Durations.
    &[
        "@every 90s",
        "@EVERY 90s",
        "@every 1m30s",
        "@every 1m 30s",
        "@every  90sec",
        "\t@Every\t90s ",
    ],
    &["@every 1h", "@every 60m", "@every 3600s"],
];

#[test]
fn spellings_of_one_schedule_print_the_same() {
    for group in SAME {
        let print = |expr: &str| {
            let from = "2026-02-26T23:30:00+00:00";
            firings(&[
                "40",
                "--tz",
                "Europe/Berlin",
                "--from",
                from,
                "--cron",
                expr,
            ])
        };
        let wanted = print(group[0]);
        for other in &group[1..] {
            assert_eq!(print(other), wanted, "{other:?} and {:?}", group[0]);
        }
    }
}

/// Schedules with their next firings after the first instant of March 2026, a Sunday, in UTC.
const MEANT: &[(&str, &[&str])] = &[
    (
        "@every 90s",
        &["2026-03-01T00:01:30", "2026-03-01T00:03:00"],
    ),
    // 7 does not divide a day: multiples since 1970.
    ("@every 7h", &["2026-03-01T05:00:00", "2026-03-01T12:00:00"]),
    (
        "0-10/5,30 59 23 * * *",
        &["2026-03-01T23:59:00", "2026-03-01T23:59:05"],
    ),
    ("0 0 L * *", &["2026-03-31T00:00:00", "2026-04-30T00:00:00"]),
    (
        "0 0 LW * *",
        &[
            "2026-03-31T00:00:00",
            "2026-04-30T00:00:00",
            "2026-05-29T00:00:00",
        ],
    ),
    (
        "0 0 1W * *",
        &[
            "2026-03-02T00:00:00",
            "2026-04-01T00:00:00",
            "2026-05-01T00:00:00",
        ],
    ),
    (
        "0 0 15W * *",
        &["2026-03-16T00:00:00", "2026-04-15T00:00:00"],
    ),
    (
        "0 0 31W * *",
        &["2026-03-31T00:00:00", "2026-05-29T00:00:00"],
    ),
    (
        "0 0 * * 5L",
        &["2026-03-27T00:00:00", "2026-04-24T00:00:00"],
    ),
    (
        "0 0 * * 5#5",
        &["2026-05-29T00:00:00", "2026-07-31T00:00:00"],
    ),
    (
        "0 0 * * 1#1,3#2",
        &["2026-03-02T00:00:00", "2026-03-11T00:00:00"],
    ),
    (
        "0 0 L,1W * 5L",
        &[
            "2026-03-02T00:00:00",
            "2026-03-27T00:00:00",
            "2026-03-31T00:00:00",
        ],
    ),
    (
        "0 0 L * */2",
        &[
            "2026-03-31T00:00:00",
            "2026-04-30T00:00:00",
            "2026-05-31T00:00:00",
        ],
    ),
    (
        "0 12 13 * fri",
        &[
            "2026-03-06T12:00:00",
            "2026-03-13T12:00:00",
            "2026-03-20T12:00:00",
        ],
    ),
    (
        "0 12 */13 * fri",
        &["2026-03-27T12:00:00", "2026-05-01T12:00:00"],
    ),
    ("0 0 30 2 1", &["2027-02-01T00:00:00"]),
    (
        "0 0 29 2 *",
        &["2028-02-29T00:00:00", "2032-02-29T00:00:00"],
    ),
    ("0 0 0 29 2 ? 2027-2099/4", &[]),
    (
        "0 0 0 1 1 ? 2027/30",
        &["2027-01-01T00:00:00", "2057-01-01T00:00:00"],
    ),
];

#[test]
fn schedules_mean_what_they_say() {
    for (expr, wanted) in MEANT {
        let words = ["1", "--tz", "UTC", "--from", "2026-03-01", "--cron", expr];
        if wanted.is_empty() {
            assert!(refusal(&words).contains("never fires"), "{expr:?}");
            continue;
        }
        let count = wanted.len().to_string();
        let found = firings(&[&[count.as_str()], &words[1..]].concat());
        let found: Vec<_> = found.iter().map(DateTime::to_utc).collect();
        let wanted: Vec<_> = wanted.iter().map(|at| utc(at)).collect();
        assert_eq!(found, wanted, "{expr:?}");
    }
}

fn utc(text: &str) -> DateTime<Utc> {
    format!("{text}Z").parse().expect("an instant")
}

/// Expressions to be refused, with what has to be told.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "-1 * * * *",
        &["minute field: \"-1\"", "no negative values", "0 to 59"],
    ),
    ("-1 * * * * *", &["second field: \"-1\""]),
    ("--5 * * * *", &["minute field: \"--5\""]),
    ("+5 * * * *", &["minute field: \"+5\"", "0 to 59"]),
    (
        "60 0 0 * * *",
        &[
            "second field: \"60\"",
            "0 to 59",
            "write 0 for the full minute",
        ],
    ),
    (
        "0 60 0 * * *",
        &["minute field: \"60\"", "write 0 for the full hour"],
    ),
    (
        "0 0 24 * * *",
        &["hour field: \"24\"", "0 to 23", "write 0 for midnight"],
    ),
    ("0 0 0 0 * *", &["day-of-month field: \"0\"", "1 to 31"]),
    ("0 0 * 0 *", &["month field: \"0\"", "1 to 12"]),
    ("0 0 * * 8", &["day-of-week field: \"8\"", "0 to 7"]),
    (
        "0 0 0 1 1 * 1969",
        &["year field: \"1969\"", "1970 to 2100"],
    ),
    (
        "0 0 0 1 1 * 2101",
        &["year field: \"2101\"", "1970 to 2100"],
    ),
    (
        "0 0 0 1 1 * 2030-2020",
        &["year field: \"2030-2020\"", "backwards"],
    ),
    (
        "0 0 * * 7-1",
        &["day-of-week field: \"7-1\"", "a list: 7,0-1"],
    ),
    (
        "0 0 * * sat-mon",
        &["day-of-week field: \"sat-mon\"", "a list: sat-7,0-mon"],
    ),
    (
        "0 0 * * 1,2,",
        &["day-of-week field: \"1,2,\"", "empty list item"],
    ),
    (
        "0 0 ,1 * *",
        &["day-of-month field: \",1\"", "empty list item"],
    ),
    ("0 0 1/2/3 * *", &["day-of-month field: \"1/2/3\"", "step"]),
    ("0 0 1-5/ * *", &["day-of-month field: \"1-5/\"", "step"]),
    ("0 0 1-2-3 * *", &["day-of-month field:", "2-3"]),
    ("0 0 ?/2 * *", &["day-of-month field: \"?\"", "write *"]),
    ("? 0 * * *", &["minute field: \"?\"", "write *"]),
    ("0 0 L-3 * *", &["day-of-month field: \"L\"", "LW"]),
    ("0 0 W * *", &["day-of-month field: \"W\"", "15W"]),
    ("0 0 32W * *", &["day-of-month field: \"32\"", "1 to 31"]),
    ("0 0 * * L", &["day-of-week field: \"L\"", "5L"]),
    ("0 0 * * 5W", &["day-of-week field: \"5W\"", "5L"]),
    ("0 0 * * 8L", &["day-of-week field: \"8\"", "0 to 7"]),
    ("0 0 * * 1#", &["day-of-week field: \"1#\"", "1 to 5"]),
    ("0 0 * * 1#6", &["day-of-week field: \"1#6\"", "1 to 5"]),
    ("0 0 * * #1", &["day-of-week field: \"#1\"", "5#2"]),
    ("0 0 * * 1#1#1", &["day-of-week field: \"1#1#1\"", "1 to 5"]),
    (
        "0 0 * * friday",
        &["day-of-week field: \"friday\"", "first three letters, fri"],
    ),
    ("0 0 * mon *", &["month field: \"mon\"", "day-of-week"]),
    ("mon 0 * * *", &["minute field: \"mon\"", "day-of-week"]),
    ("L 0 * * *", &["minute field: \"L\""]),
    ("*\u{a0}* * * *", &["4 fields", "5 to 7"]),
    ("", &["is empty", "five fields"]),
    ("* * * * * * * *", &["8 fields", "5, 6 or 7"]),
    ("'0 0 * * *'", &["quote"]),
    (
        "*/5 * * * * /opt/job",
        &["/opt/job", "leave the command out"],
    ),
    ("cron_tz=UTC 0 0 * * *", &["cron_tz=UTC", "CRON_TZ=Zone"]),
    ("MAILTO=me 0 0 * * *", &["MAILTO=me", "CRON_TZ=Zone"]),
    (
        "CRON_TZ= 0 0 * * *",
        &["prefix without a zone", "CRON_TZ=Europe/Berlin"],
    ),
    (
        "TZ=Europe/Berln 0 0 * * *",
        &["Europe/Berln", "nearest: Europe/Berlin"],
    ),
    (
        "@reboot",
        &[
            "@reboot",
            "many hosts cannot share",
            "run the command without --cron",
        ],
    ),
    ("@REBOOT", &["@reboot means"]),
    ("@every", &["lacks its duration", "@every 90s"]),
    ("@every 90", &["has no unit", "@every 90s"]),
    ("@every 0s", &["\"0s\"", "1 or more"]),
    ("@every 1500ms", &["\"1500ms\"", "whole seconds"]),
    ("@every -5s", &["\"-5s\"", "@every 90s"]),
    ("@weeekly", &["\"@weeekly\"", "@weekly"]),
    (
        "0 0 30 2 *",
        &["never fires", "check day-of-month against month"],
    ),
    ("0 0 31 2,4,6,9,11 *", &["never fires"]),
    ("0 0 30 2 */2", &["never fires"]),
    ("0 0 30W 2 ?", &["never fires"]),
    ("0 0 0 29 2 * 2027", &["never fires"]),
    ("* * * 31 4 ? 2026-2030", &["never fires"]),
];

#[test]
fn what_is_refused_is_refused_as_what_it_is() {
    for (expr, words) in REFUSED {
        // As a word of its own: it may begin with a minus.
        let told = refusal(&["1", "--tz", "UTC", "--cron", expr]);
        let begin = format!("schedule {expr:?}: ");
        assert!(told.starts_with(&begin), "{told}");
        for word in *words {
            assert!(told.contains(word), "{expr:?}: no {word:?} in {told}");
        }
    }
    let bytes = OsStr::from_bytes(b"\xff * * * *");
    let told = refusal(&[OsStr::new("1"), OsStr::new("--cron"), bytes]);
    assert!(told.contains("--cron"), "{told}");
}

#[test]
fn several_schedules_are_one_and_what_they_share_is_once() {
    let union = |exprs: &[&str]| {
        let mut words = vec!["12", "--tz", "UTC", "--from", "2026-03-01"];
        words.extend(exprs.iter().flat_map(|expr| ["--cron", expr]));
        firings(&words)
    };
    let minutes = |all: &[DateTime<FixedOffset>]| -> Vec<i64> {
        let start = utc("2026-03-01T00:00:00");
        all.iter()
            .map(|at| (at.to_utc() - start).num_minutes())
            .collect()
    };
    let wanted = [10, 15, 20, 30, 40, 45, 50, 60, 70, 75, 80, 90];
    for exprs in [
        &["*/10 * * * *", "*/15 * * * *"][..],
        &["*/15 * * * *", "*/10 * * * *"],
        &[
            "*/15 * * * *",
            "*/10 * * * *",
            "*/15  * * * *",
            "0 */30 * * * *",
        ],
        &["@every 10m", "*/15 * * * *"],
    ] {
        assert_eq!(minutes(&union(exprs)), wanted, "{exprs:?}");
    }
    // Lines are as good as several options, and as the environment.
    assert_eq!(minutes(&union(&["*/10 * * * *\n*/15 * * * *"])), wanted);
    let mut command = Command::new(env!("CARGO_BIN_EXE_solocron"));
    clear_environment(&mut command);
    command
        .args(["--next", "12", "--from", "2026-03-01"])
        .env("SOLOCRON_CRON", "*/10 * * * *\n*/15 * * * *\n")
        .env("SOLOCRON_TZ", "utc");
    let out = text(&command.output().expect("the binary").stdout);
    let lines: Vec<_> = out
        .lines()
        .map(|at| at.parse().expect("RFC 3339"))
        .collect();
    assert_eq!(minutes(&lines), wanted);
}

#[test]
fn each_firing_of_a_union_is_shown_in_its_own_zone() {
    let words = ["4", "--from", "2026-03-01T00:00Z"];
    let crons = [
        "--cron",
        "CRON_TZ=europe/berlin 0 9 * * *",
        "--cron",
        "TZ=America/New_York\t0 9 * * *",
    ];
    let found = firings(&[&words[..], &crons].concat());
    let shown: Vec<_> = found.iter().map(DateTime::to_rfc3339).collect();
    let wanted = [
        "2026-03-01T09:00:00+01:00",
        "2026-03-01T09:00:00-05:00",
        "2026-03-02T09:00:00+01:00",
        "2026-03-02T09:00:00-05:00",
    ];
    assert_eq!(shown, wanted);
    let told = refusal(&[&words[..], &["--tz", "UTC"], &crons].concat());
    assert!(
        told.contains("asks for the zone Europe/Berlin, but --tz asks for UTC; leave one"),
        "{told}"
    );
    let same = [
        "1",
        "--tz",
        "EUROPE/Berlin",
        "--cron",
        "CRON_TZ=Europe/berlin 0 9 * * *",
    ];
    assert_eq!(firings(&same).len(), 1);
}

#[test]
fn hashed_fields_come_from_the_lock_name() {
    let print = |name: &str, expr: &str| {
        let from = ["--tz", "UTC", "--from", "2026-03-01"];
        let more = ["8", "--lock-name", name, "--cron", expr];
        firings(&[&more[..1], &from, &more[1..]].concat())
    };
    // The first 8 bytes of the SHA-256 of `minute`, a zero byte and the name, modulo 60.
    assert_eq!(print("publish", "H * * * *"), print("x", "59 * * * *"));
    assert_eq!(
        print("publish", "H/15 * * * *"),
        print("x", "14/15 * * * *")
    );
    let within = print("publish", "H(0-7) H(9-17) * * *");
    for at in &within {
        let (minute, hour) = (at.format("%M").to_string(), at.format("%H").to_string());
        assert!(minute.as_str() <= "07", "{at}");
        assert!(("09"..="17").contains(&hour.as_str()), "{at}");
    }
    assert_eq!(within[1] - within[0], TimeDelta::days(1));
    let names: Vec<String> = (0..40).map(|n| format!("job-{n}")).collect();
    let mut minutes: Vec<_> = names
        .iter()
        .map(|name| print(name, "H H H * *")[0])
        .collect();
    minutes.sort_unstable();
    minutes.dedup();
    assert!(
        minutes.len() >= 38,
        "40 names share {} instants",
        minutes.len()
    );
}

#[test]
fn years_far_off_are_reached() {
    let print = |from: &str| {
        let words = ["2", "--tz", "Europe/Berlin", "--from", from];
        firings(&[&words[..], &["--cron", "0 12 29 2 *"]].concat())
    };
    let years = |from: &str| -> Vec<String> {
        let all = print(from);
        all.iter().map(|at| at.format("%Y").to_string()).collect()
    };
    assert_eq!(years("1899-01-01"), ["1904", "1908"]);
    assert_eq!(years("2096-03-01"), ["2104", "2108"]);
    assert_eq!(years("2196-03-01"), ["2204", "2208"]);
    assert_eq!(years("9000-01-01"), ["9004", "9008"]);
    // Fewer than asked for are no error, none at all is one.
    assert_eq!(years("9996-01-01"), ["9996"]);
    let none = ["1", "--from", "9999-12-30T00:00Z", "--cron", "0 12 29 2 *"];
    assert!(refusal(&none).contains("no firing after 9999-12-30T00:00:00Z"));
    let over = ["1", "--from", "2026-01-01", "--cron", "* * * * * * 2020"];
    assert!(refusal(&over).contains("check the year field"));
}
