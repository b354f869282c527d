//! How `solocron --next` prints and where it takes zone and start from; what a schedule tells when it starts.

mod support;

use chrono::{DateTime, Utc};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::solocron::clear_environment;
use support::{Outcome, Pty, Signal, Solocron};
use support::{eventually, secs, wait_until};

/// The binary with `--next` and these words.
fn next(words: &[&str]) -> Solocron {
    Solocron::default().arg("--next").args(words)
}

/// The one line that it prints.
#[track_caller]
fn line(run: Solocron) -> String {
    let out = run.run();
    out.assert_code(0).assert_silent();
    let text = out.out();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().to_owned()
}

/// A refusal, whose text is on stderr.
#[track_caller]
fn refused(run: Solocron, words: &[&str]) -> Outcome {
    let out = run.run();
    out.assert_code(2).assert_says(words);
    assert!(out.stdout.is_empty(), "{}", out.out());
    out
}

const DAILY: [&str; 3] = ["1", "--cron", "0 3 * * *"];

#[test]
fn a_pipe_gets_instants_and_nothing_else() {
    let words = ["3", "--cron", "30 9 * * mon", "--tz", "Asia/Kathmandu"];
    let out = next(&words).args(["--from", "2026-05-01"]).run();
    out.assert_code(0).assert_silent();
    assert_eq!(
        out.out(),
        "2026-05-04T09:30:00+05:45\n2026-05-11T09:30:00+05:45\n2026-05-18T09:30:00+05:45\n"
    );
}

#[test]
fn a_terminal_gets_weekday_zone_and_how_far_off_it_is() {
    let binary = env!("CARGO_BIN_EXE_solocron");
    let words = [
        "--next",
        "2",
        "--cron",
        "0 0 29 2 *",
        "--tz",
        "europe/berlin",
    ];
    let mut pty = Pty::run(&[&[binary], &words[..]].concat());
    assert_eq!(pty.wait(secs(10)), 0);
    let screen = pty.screen();
    let lines: Vec<Vec<&str>> = screen.lines().map(|l| l.split("  ").collect()).collect();
    assert_eq!(lines.len(), 2, "{screen:?}");
    for parts in lines {
        let [at, weekday, zone, off] = parts[..] else {
            panic!("{screen:?}");
        };
        let at = DateTime::parse_from_rfc3339(at).expect("RFC 3339");
        assert_eq!(weekday, at.format("%a").to_string());
        assert_eq!(zone, "Europe/Berlin");
        assert!(off.trim_end().starts_with("in "), "{off:?}");
    }
    let past = ["--from", "2020-01-01"];
    let mut pty = Pty::run(&[&[binary], &words[..], &past].concat());
    assert_eq!(pty.wait(secs(10)), 0);
    let screen = pty.screen();
    assert!(
        screen.contains("2020-02-29T00:00:00+01:00  Sat  Europe/Berlin  "),
        "{screen:?}"
    );
    assert!(screen.lines().next().is_some_and(|l| l.ends_with(" ago")));
}

#[test]
fn json_is_one_object_a_line() {
    let words = ["2", "--cron", "TZ=america/new_york 30 1 * * *"];
    let more = [
        "--log-format",
        "json",
        "--from",
        "2026-11-01T00:00:00-04:00",
    ];
    let out = next(&words).args(more).run();
    out.assert_code(0).assert_silent();
    let text = out.out();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["firing"], "2026-11-01T05:30:00Z");
    assert_eq!(lines[0]["local"], "2026-11-01T01:30:00-04:00");
    assert_eq!(lines[0]["zone"], "America/New_York");
    assert_eq!(lines[0]["weekday"], "Sun");
    // The second pass of the night is passed over.
    assert_eq!(lines[1]["firing"], "2026-11-02T06:30:00Z");
    let off = lines[0]["in_seconds"].as_i64().expect("a number");
    let firing: DateTime<Utc> = "2026-11-01T05:30:00Z".parse().expect("an instant");
    assert!(
        (off - (firing - Utc::now()).num_seconds()).abs() < 60,
        "{off}"
    );
}

#[test]
fn a_reader_that_has_enough_ends_it_without_a_word() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_solocron"));
    clear_environment(&mut command);
    command
        .args([
            "--next",
            "1000000",
            "--cron",
            "* * * * *",
            "--tz",
            "Europe/Berlin",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn().expect("the binary");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    reader.read_line(&mut first).expect("a line");
    drop(reader);
    let out = child.wait_with_output().expect("its end");
    assert!(
        DateTime::parse_from_rfc3339(first.trim_end()).is_ok(),
        "{first:?}"
    );
    assert_eq!(out.status.code(), Some(0));
    assert!(
        out.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    // Printing them all takes several times as long.
    assert!(started.elapsed() < secs(2), "{:?}", started.elapsed());
}

#[test]
fn an_answer_that_is_lost_is_an_error() {
    let full = || {
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full")
    };
    for words in [
        &["--next", "1", "--cron", "@daily"][..],
        &["--help"],
        &["--version"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_solocron"));
        clear_environment(&mut command);
        let out = command
            .args(words)
            .stdout(full())
            .output()
            .expect("the binary");
        let told = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(125), "{words:?}: {told}");
        assert!(
            told.contains("standard output") && told.contains("No space left"),
            "{told}"
        );
    }
}

#[test]
fn the_number_has_its_range() {
    for number in ["0", "-1", "1.5", "x", "", "1000001", "99999999999999999999"] {
        refused(
            next(&[number, "--cron", "@daily"]),
            &["--next", "from 1 to 1000000"],
        );
    }
    let out = next(&["002", "--cron", "@daily"]).run();
    assert_eq!(out.assert_code(0).out().lines().count(), 2);
    refused(next(&["1"]), &["--cron"]);
}

#[test]
fn nothing_but_the_schedule_is_needed() {
    // No store, no lock name, no home, no terminal; a store that is named is left alone.
    let run = next(&[
        "1",
        "--cron",
        "0 3 1 1 *",
        "--tz",
        "UTC",
        "--from",
        "2026-06-01",
    ]);
    let run = run
        .env("REDIS_URL", "redis://127.0.0.1:1")
        .under(["env", "-u", "HOME"]);
    assert_eq!(line(run), "2027-01-01T03:00:00+00:00");
    refused(next(&DAILY).command(["true"]), &["--next", "true"]);
    refused(next(&DAILY).args(["--wait", "1m"]), &["--wait", "--next"]);
}

#[test]
fn the_start_may_be_written_in_many_ways() {
    let words = [
        "1",
        "--cron",
        "* * * * * *",
        "--tz",
        "Europe/Berlin",
        "--from",
    ];
    for (from, wanted) in [
        ("2026-03-01T00:00:00Z", "2026-03-01T01:00:01+01:00"),
        ("2026-03-01T00:00:00.999Z", "2026-03-01T01:00:01+01:00"),
        ("2026-03-01t00:00:00z", "2026-03-01T01:00:01+01:00"),
        ("2026-03-01T00:00:00+05:30", "2026-02-28T19:30:01+01:00"),
        ("2026-03-01T00:00:00+0530", "2026-02-28T19:30:01+01:00"),
        ("2026-03-01 00:00:00 +0530", "2026-02-28T19:30:01+01:00"),
        ("2026-03-01 00:00:00+00:00", "2026-03-01T01:00:01+01:00"),
        ("2026-03-01T00:00Z", "2026-03-01T01:00:01+01:00"),
        ("2026-03-01T00:00:00", "2026-03-01T00:00:01+01:00"),
        ("2026-03-01 00:00", "2026-03-01T00:00:01+01:00"),
        ("2026-03-01", "2026-03-01T00:00:01+01:00"),
        ("2026-07-01", "2026-07-01T00:00:01+02:00"),
        ("1969-12-31T23:59:59Z", "1970-01-01T01:00:00+01:00"),
        // Within the gap, and the first of two.
        ("2026-03-29T02:30", "2026-03-29T03:30:01+02:00"),
        ("2026-10-25T02:30", "2026-10-25T02:30:01+02:00"),
    ] {
        assert_eq!(line(next(&words).arg(from)), wanted, "{from}");
    }
    for from in [
        "",
        "yesterday",
        "2026-02-29",
        "2026-03-",
        "2026-03-01T25:00",
        "1774747800",
    ] {
        refused(
            next(&words).arg(from),
            &["--from", "2026-03-29T01:30", "Europe/Berlin"],
        );
    }
}

#[test]
fn zones_have_names_in_any_case_and_wrong_ones_get_the_nearest() {
    let at = |zone: &str| {
        let words = [
            "1",
            "--cron",
            "0 3 * * *",
            "--from",
            "2026-07-01T12:00Z",
            "--tz",
            zone,
        ];
        line(next(&words))
    };
    for (zone, wanted) in [
        ("Europe/Berlin", "2026-07-02T03:00:00+02:00"),
        ("EUROPE/berlin", "2026-07-02T03:00:00+02:00"),
        ("utc", "2026-07-02T03:00:00+00:00"),
        ("etc/gmt-2", "2026-07-02T03:00:00+02:00"),
        ("us/eastern", "2026-07-02T03:00:00-04:00"),
        (
            "america/argentina/buenos_aires",
            "2026-07-02T03:00:00-03:00",
        ),
    ] {
        assert_eq!(at(zone), wanted, "{zone}");
    }
    for (zone, told) in [
        ("Europe/Berln", "nearest: Europe/Berlin"),
        ("Berlin", "nearest: Europe/Berlin"),
        ("new york", "nearest: America/New_York"),
        ("UTC+2", "Etc/GMT-2"),
        ("GMT+2", "Etc/GMT-2"),
        ("+02:00", "an offset is no zone"),
        ("../../etc/passwd", "is not known"),
        ("right/Europe/Berlin", "is not known"),
        ("", "is not known"),
    ] {
        let run = next(&DAILY).arg("--tz").arg(zone);
        refused(run, &["--tz", &format!("{zone:?}"), told]);
    }
}

#[test]
fn the_zone_comes_from_the_option_else_from_tz() {
    let words = ["1", "--cron", "0 3 * * *", "--from", "2026-07-01T12:00Z"];
    let with = |tz: &str| next(&words).env("TZ", tz);
    for (tz, offset) in [
        ("Asia/Tokyo", "+09:00"),
        (":Asia/Tokyo", "+09:00"),
        ("asia/tokyo", "+09:00"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "+02:00"),
        ("EST5EDT", "-04:00"),
        ("<+0530>-5:30", "+05:30"),
        ("UTC0", "+00:00"),
    ] {
        assert_eq!(
            line(with(tz)),
            format!("2026-07-02T03:00:00{offset}"),
            "{tz}"
        );
    }
    let given = with("Asia/Tokyo").args(["--tz", "Europe/Paris"]);
    assert!(line(given).ends_with("+02:00"));
    let ours = with("Asia/Tokyo").env("SOLOCRON_TZ", "Europe/Paris");
    assert!(line(ours).ends_with("+02:00"));
    for (tz, told) in [
        ("Asia/Tokio", "nearest: Asia/Tokyo"),
        ("EST5EDT,M3", "POSIX"),
        ("/etc/passwd", "without a compiled time zone file"),
    ] {
        refused(with(tz), &["TZ", tz, told]);
    }
}

#[test]
fn a_host_without_zone_data_has_the_bundled_copy() {
    let empty = tempfile::tempdir().expect("temporary directory");
    let dir = empty.path().to_str().expect("UTF-8");
    let words = ["1", "--cron", "30 2 * * *", "--tz", "europe/BERLIN"];
    for tzdir in [dir, "/nonexistent"] {
        let run = next(&words).args(["--from", "2026-03-28T12:00Z"]);
        assert_eq!(line(run.env("TZDIR", tzdir)), "2026-03-29T03:00:00+02:00");
        assert!(version(Some(tzdir)).starts_with("bundled tzdata 20"));
    }
    // With a file of one's own in it, that one counts.
    let tokyo = Path::new("/usr/share/zoneinfo/Asia/Tokyo");
    std::fs::create_dir(empty.path().join("Europe")).expect("a folder");
    std::fs::copy(tokyo, empty.path().join("Europe/Berlin")).expect("zone data of the system");
    let run = next(&words).args(["--from", "2026-03-28T12:00Z"]);
    assert_eq!(line(run.env("TZDIR", dir)), "2026-03-29T02:30:00+09:00");
    assert!(version(None).starts_with("system tzdata 20"));
    assert!(version(None).ends_with("(/usr/share/zoneinfo)"));
}

/// What `--version` says of the zone data.
fn version(tzdir: Option<&str>) -> String {
    let run = Solocron::default().arg("--version");
    let run = match tzdir {
        Some(dir) => run.env("TZDIR", dir),
        None => run,
    };
    let text = run.run().assert_code(0).out();
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("time zone data: "));
    line.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// A schedule on the embedded store, and its messages at start.
fn started(exprs: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("temporary directory");
    let crons = exprs.iter().flat_map(|expr| ["--cron", expr]);
    let run = Solocron::local(dir.path(), "x")
        .args(["--tz", "UTC"])
        .args(crons);
    let mut run = run.command(["true"]).spawn();
    wait_until(secs(5), "told", || run.stderr().contains("schedule "));
    assert!(!eventually(secs(0), || run.has_ended()), "{}", run.stderr());
    run.signal(Signal::TERM);
    run.wait(secs(5)).assert_code(0).stderr.clone()
}

#[test]
fn six_fields_are_told_at_start_with_the_next_three_firings() {
    let told = started(&["15 30 4 1 1 *"]);
    let first = told
        .lines()
        .find(|l| l.contains("schedule "))
        .unwrap_or_default();
    assert!(first.contains("the first is seconds"), "{told}");
    assert_eq!(first.matches("-01-01T04:30:15Z").count(), 3, "{told}");
    let told = started(&["30 4 1 1 *", "@every 900d"]);
    let first = told
        .lines()
        .find(|l| l.contains("schedule "))
        .unwrap_or_default();
    assert!(!first.contains("seconds"), "{told}");
    assert!(
        first.contains("\"30 4 1 1 *; @every 900d\" in UTC; next "),
        "{told}"
    );
    assert!(!first.contains(", 2"), "one firing is enough: {told}");
}

#[test]
fn a_schedule_that_cannot_fire_does_not_start() {
    for (expr, words) in [
        ("0 0 30 2 *", &["never fires", "day-of-month"][..]),
        ("0 0 0 29 2 * 2027", &["never fires"]),
        ("@reboot", &["@reboot", "many hosts", "without --cron"]),
        ("61 * * * *", &["minute field", "\"61\"", "0 to 59"]),
        ("-5 * * * *", &["minute field", "\"-5\""]),
    ] {
        let run = Solocron::local(Path::new("/nonexistent"), "x");
        let run = run
            .args(["--cron", "@daily", "--cron", expr])
            .command(["true"]);
        refused(run, words);
    }
    let run = Solocron::local(Path::new("/nonexistent"), "x");
    let run = run.args(["--cron", "* * * * * * 2020"]).command(["true"]);
    refused(run, &["no firing after", "year field"]);
}
