//! What `--next` prints and what `--from` takes.

use proptest::prelude::*;
use solocron::schedule::text::{json_line, parse_from, plain_line, relative, terminal_line};
use solocron::schedule::{Zone, ZoneDb};

use super::instant;

fn zone(name: &str) -> Zone {
    ZoneDb::new(None).zone(name).unwrap()
}

#[test]
fn lines_of_next() {
    let firing = instant("2026-03-29T01:00:00Z");
    let now = instant("2026-03-28T21:48:00Z");
    let berlin = zone("Europe/Berlin");
    assert_eq!(plain_line(firing, &berlin), "2026-03-29T03:00:00+02:00");
    assert_eq!(
        terminal_line(firing, &berlin, now),
        "2026-03-29T03:00:00+02:00  Sun  Europe/Berlin  in 3h 12m"
    );
    assert_eq!(
        json_line(firing, &berlin, now),
        r#"{"firing":"2026-03-29T01:00:00Z","in_seconds":11520,"local":"2026-03-29T03:00:00+02:00","weekday":"Sun","zone":"Europe/Berlin"}"#
    );
    assert_eq!(
        plain_line(firing, &Zone::utc()),
        "2026-03-29T01:00:00+00:00"
    );
    assert_eq!(
        plain_line(firing, &zone("Asia/Kathmandu")),
        "2026-03-29T06:45:00+05:45"
    );
    assert_eq!(
        plain_line(firing, &zone("America/St_Johns")),
        "2026-03-28T22:30:00-02:30"
    );
    assert_eq!(
        plain_line(instant("2104-02-29T00:00:00Z"), &berlin),
        "2104-02-29T01:00:00+01:00"
    );
    // An offset with seconds cannot be written: the instant still is right.
    let early = instant("1970-06-01T00:00:00Z");
    let shown = plain_line(early, &zone("Africa/Monrovia"));
    assert_eq!(shown, "1970-05-31T23:16:00-00:44");
    assert_eq!(instant(&shown), early);
}

#[test]
fn how_far_off() {
    let now = instant("2026-05-13T10:17:30.5Z");
    for (at, shown) in [
        ("2026-05-13T10:17:31Z", "now"),
        ("2026-05-13T10:17:30Z", "now"),
        ("2026-05-13T10:17:32Z", "in 1s"),
        ("2026-05-13T10:18:00Z", "in 29s"),
        ("2026-05-13T10:20:00Z", "in 2m 29s"),
        ("2026-05-13T11:17:31Z", "in 1h"),
        ("2026-05-13T12:20:00Z", "in 2h 2m"),
        ("2026-05-15T10:17:31Z", "in 2d"),
        ("2026-05-15T16:17:31Z", "in 2d 6h"),
        ("2028-05-15T10:17:31Z", "in 2y 3d"),
        ("2026-05-13T10:17:00Z", "30s ago"),
        ("2026-05-12T10:16:00Z", "1d ago"),
    ] {
        assert_eq!(relative(instant(at), now), shown, "{at}");
    }
}

#[test]
fn times_to_start_from() {
    let berlin = zone("Europe/Berlin");
    for (given, wanted) in [
        ("2026-03-29T01:30:00+01:00", "2026-03-29T00:30:00Z"),
        ("2026-03-29t01:30:00z", "2026-03-29T01:30:00Z"),
        ("2026-03-29T01:30:00.25Z", "2026-03-29T01:30:00.25Z"),
        ("2026-03-29 01:30:00+01:00", "2026-03-29T00:30:00Z"),
        ("2026-03-29T01:30+01:00", "2026-03-29T00:30:00Z"),
        ("2026-03-29T01:30Z", "2026-03-29T01:30:00Z"),
        ("2026-03-29T01:30:00+0100", "2026-03-29T00:30:00Z"),
        ("2026-03-29T01:30:00.5+01", "2026-03-29T00:30:00.5Z"),
        ("2026-03-29 01:30:00 +0100", "2026-03-29T00:30:00Z"),
        ("2026-03-29T01:30:00 Z", "2026-03-29T01:30:00Z"),
        ("2026-03-29T01:30:00", "2026-03-29T00:30:00Z"),
        ("2026-03-29T01:30", "2026-03-29T00:30:00Z"),
        (" 2026-03-29 01:30 ", "2026-03-29T00:30:00Z"),
        ("2026-03-29", "2026-03-28T23:00:00Z"),
        // In the gap: moved on by it. In the repeat: the first pass.
        ("2026-03-29T02:30", "2026-03-29T01:30:00Z"),
        ("2026-10-25T02:30", "2026-10-25T00:30:00Z"),
    ] {
        assert_eq!(parse_from(given, &berlin), Ok(instant(wanted)), "{given}");
    }
    // A day without midnight begins at the gap's end.
    assert_eq!(
        parse_from("2026-03-29", &zone("Asia/Beirut")),
        Ok(instant("2026-03-28T22:00:00Z"))
    );
    for given in [
        "",
        "tomorrow",
        "2026-13-01",
        "2026-02-30",
        "12:00",
        "2026-03-29T25:00",
        "2026-03-29T01:30:00+01:00x",
        "2026-03-29T01:30:00+99:00",
        "2026-03-29T01:30:00+1",
        "2026 -03-29",
        "äöüßé 01:30",
        "ääääää ",
        "1774747800",
        "\u{7}",
    ] {
        let error = parse_from(given, &berlin).unwrap_err();
        assert!(
            error.ends_with("write it like 2026-03-29T01:30:00+01:00, 2026-03-29T01:30 for the time in Europe/Berlin, or 2026-03-29"),
            "{error}"
        );
        assert!(error.contains(&format!("{:?}", given.trim())), "{error}");
    }
}

proptest! {
    /// What is printed names the instant it was printed for, and can be given
    /// back to `--from`.
    #[test]
    fn what_is_printed_can_be_read(second in -2_000_000_000_i64..8_000_000_000, name in prop::sample::select(&["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Monrovia", "Europe/Amsterdam"][..])) {
        let zone = zone(name);
        let instant = chrono::DateTime::from_timestamp(second, 0).unwrap();
        let line = plain_line(instant, &zone);
        prop_assert_eq!(super::instant(&line), instant);
        prop_assert_eq!(parse_from(&line, &zone), Ok(instant));
    }

    #[test]
    fn no_time_makes_the_reader_panic(text in any::<String>(), near in "[0-9TZ:+. -]{0,30}") {
        let _ = parse_from(&text, &Zone::utc());
        let _ = parse_from(&near, &Zone::utc());
    }
}
