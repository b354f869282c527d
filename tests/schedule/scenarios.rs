//! Known mistakes of other schedulers, each with the right value.

use chrono::TimeDelta;

use super::{instant, next, parse, try_parse};

/// The firings of an expression, compared as instants.
fn expect(expression: &str, zone: &str, from: &str, wanted: &[&str]) {
    let wanted: Vec<_> = wanted.iter().map(|text| instant(text)).collect();
    let found = next(&parse(expression, zone), from, wanted.len());
    assert_eq!(found, wanted, "{expression} in {zone} from {from}");
}

#[test]
fn weekdays_count_from_sunday_as_0_and_7() {
    // 2026-01-01 is a Thursday.
    let from = "2026-01-01T00:00:00Z";
    expect("0 0 * * 1", "UTC", from, &["2026-01-05T00:00:00Z"]);
    expect("0 0 * * 0", "UTC", from, &["2026-01-04T00:00:00Z"]);
    expect("0 0 * * 7", "UTC", from, &["2026-01-04T00:00:00Z"]);
    expect(
        "0 0 * * 1-5",
        "UTC",
        "2026-01-02T00:00:00Z",
        &["2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"],
    );
    expect(
        "0 0 * * 5-7",
        "UTC",
        from,
        &[
            "2026-01-02T00:00:00Z",
            "2026-01-03T00:00:00Z",
            "2026-01-04T00:00:00Z",
            "2026-01-09T00:00:00Z",
        ],
    );
    expect(
        "0 0 * * 0-6",
        "UTC",
        from,
        &[
            "2026-01-02T00:00:00Z",
            "2026-01-03T00:00:00Z",
            "2026-01-04T00:00:00Z",
        ],
    );
    expect(
        "0 0 * * 6-0",
        "UTC",
        from,
        &[
            "2026-01-03T00:00:00Z",
            "2026-01-04T00:00:00Z",
            "2026-01-10T00:00:00Z",
        ],
    );
    expect(
        "0 0 * * */2",
        "UTC",
        from,
        &[
            "2026-01-03T00:00:00Z",
            "2026-01-04T00:00:00Z",
            "2026-01-06T00:00:00Z",
            "2026-01-08T00:00:00Z",
        ],
    );
}

#[test]
fn names_are_three_letters_in_any_case() {
    let from = "2026-01-01T00:00:00Z";
    let weekend = [
        "2026-01-02T00:00:00Z",
        "2026-01-03T00:00:00Z",
        "2026-01-04T00:00:00Z",
        "2026-01-09T00:00:00Z",
    ];
    expect("0 0 * * fri-sun", "UTC", from, &weekend);
    expect("0 0 * * FRI-7", "UTC", from, &weekend);
    expect(
        "0 0 * * mon-5",
        "UTC",
        from,
        &["2026-01-02T00:00:00Z", "2026-01-05T00:00:00Z"],
    );
    expect(
        "0 0 * * sun-tue",
        "UTC",
        from,
        &[
            "2026-01-04T00:00:00Z",
            "2026-01-05T00:00:00Z",
            "2026-01-06T00:00:00Z",
            "2026-01-11T00:00:00Z",
        ],
    );
    expect(
        "0 0 1 1-mar *",
        "UTC",
        from,
        &[
            "2026-02-01T00:00:00Z",
            "2026-03-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
        ],
    );
    for name in ["sunday", "Thurs", "january"] {
        let field = if name == "january" {
            format!("0 0 1 {name} *")
        } else {
            format!("0 0 * * {name}")
        };
        let error = try_parse(&[&field], "UTC").unwrap_err().to_string();
        assert!(error.contains("first three letters"), "{error}");
    }
}

#[test]
fn two_restricted_day_fields_widen_each_other() {
    let from = "2026-02-01T00:00:00Z";
    expect(
        "0 0 13 * Fri",
        "UTC",
        from,
        &[
            "2026-02-06T00:00:00Z",
            "2026-02-13T00:00:00Z",
            "2026-02-20T00:00:00Z",
            "2026-02-27T00:00:00Z",
            "2026-03-06T00:00:00Z",
            "2026-03-13T00:00:00Z",
        ],
    );
    // A star step is no restriction to this rule, though it restricts.
    expect(
        "0 0 13 * */2",
        "UTC",
        from,
        &["2026-06-13T00:00:00Z", "2026-08-13T00:00:00Z"],
    );
    expect(
        "0 0 1-31 * 1",
        "UTC",
        from,
        &["2026-02-02T00:00:00Z", "2026-02-03T00:00:00Z"],
    );
}

#[test]
fn steps_reach_to_the_end_of_the_range() {
    let from = "2026-01-01T00:00:00Z";
    expect(
        "5/15 * * * *",
        "UTC",
        from,
        &[
            "2026-01-01T00:05:00Z",
            "2026-01-01T00:20:00Z",
            "2026-01-01T00:35:00Z",
            "2026-01-01T00:50:00Z",
            "2026-01-01T01:05:00Z",
        ],
    );
    for (wide, plain) in [
        ("*/60 * * * *", "0 * * * *"),
        ("*/61 * * * *", "0 * * * *"),
        ("*/4294967295 * * * *", "0 * * * *"),
        ("0 */24 * * *", "0 0 * * *"),
        ("*/59 * * * *", "0,59 * * * *"),
        ("0 */23 * * *", "0 0,23 * * *"),
    ] {
        assert_eq!(
            next(&parse(wide, "UTC"), from, 5),
            next(&parse(plain, "UTC"), from, 5),
            "{wide}"
        );
    }
    // Weekdays run to 7: a step from Monday reaches Sunday.
    expect(
        "0 0 * * 1/2",
        "UTC",
        from,
        &[
            "2026-01-02T00:00:00Z",
            "2026-01-04T00:00:00Z",
            "2026-01-05T00:00:00Z",
            "2026-01-07T00:00:00Z",
        ],
    );
}

#[test]
fn a_typo_is_no_other_schedule() {
    for typo in [
        "0 *5 * * * *",
        "*5 * * * * *",
        "0 1 - 5 * * * *",
        "0 */ 5 * * * *",
        "0 0 0 1 , 2 * *",
        "10-5 * * * *",
        "*/0 * * * *",
    ] {
        assert!(try_parse(&[typo], "UTC").is_err(), "{typo}");
    }
    // Six fields are seconds first, and the caller can tell.
    let schedule = parse("30 4 1 1 * 7", "UTC");
    assert!(schedule.has_seconds() && !parse("4 1 1 * 7", "UTC").has_seconds());
    assert_eq!(
        next(&schedule, "2026-01-01T00:00:00Z", 1),
        [instant("2026-01-01T01:04:30Z")]
    );
}

#[test]
fn nicknames_in_any_case() {
    let from = "2026-05-13T10:17:30Z";
    for (nickname, fields) in [
        ("@HOURLY", "0 * * * *"),
        ("@Daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 1 *"),
    ] {
        assert_eq!(
            next(&parse(nickname, "UTC"), from, 4),
            next(&parse(fields, "UTC"), from, 4)
        );
        assert!(!parse(nickname, "UTC").has_seconds());
    }
    // Counted from the epoch, in any zone.
    expect(
        "@every 5m",
        "Asia/Kathmandu",
        from,
        &["2026-05-13T10:20:00Z", "2026-05-13T10:25:00Z"],
    );
    expect(
        "@EVERY 1h 30m",
        "UTC",
        "1970-01-01T00:00:00Z",
        &["1970-01-01T01:30:00Z", "1970-01-01T03:00:00Z"],
    );
    expect(
        "@every 7s",
        "UTC",
        "1969-12-31T23:59:50Z",
        &["1969-12-31T23:59:53Z", "1970-01-01T00:00:00Z"],
    );
}

#[test]
fn a_fixed_time_in_a_gap_fires_at_its_end() {
    for (expression, zone, from, wanted) in [
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00:00-05:00",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00+01:00",
            ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00:00+10:30",
            ["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"],
        ),
        (
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-03-21T12:00:00Z",
            ["2026-03-22T03:00:00+01:00", "2026-03-23T02:30:00+01:00"],
        ),
        (
            "0 0 * * *",
            "America/Sao_Paulo",
            "2018-11-03T12:00:00-03:00",
            ["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"],
        ),
        (
            "0 0 * * *",
            "Asia/Beirut",
            "2026-03-28T12:00:00+02:00",
            ["2026-03-29T01:00:00+03:00", "2026-03-30T00:00:00+03:00"],
        ),
        (
            "30 0 * * *",
            "Africa/Cairo",
            "2026-04-23T12:00:00+02:00",
            ["2026-04-24T01:00:00+03:00", "2026-04-25T00:30:00+03:00"],
        ),
        (
            "0 0 * * Sun",
            "America/Santiago",
            "2022-09-05T00:00:00-04:00",
            ["2022-09-11T01:00:00-03:00", "2022-09-18T00:00:00-03:00"],
        ),
        // Several of them are one, with the one that is due there anyway.
        (
            "0,30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00:00-05:00",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
        ),
        (
            "0 2,3 * * *",
            "America/New_York",
            "2026-03-07T12:00:00-05:00",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"],
        ),
        // A gap at the end of the last day of March: the instant is in April of no calendar.
        (
            "30 23 * * *",
            "America/Nuuk",
            "2026-03-28T00:00:00-02:00",
            ["2026-03-29T00:00:00-01:00", "2026-03-29T23:30:00-01:00"],
        ),
    ] {
        expect(expression, zone, from, &wanted);
    }
}

#[test]
fn a_fixed_time_in_a_repeat_fires_in_the_first_pass() {
    for (expression, zone, from, wanted) in [
        (
            "30 1 * * *",
            "America/New_York",
            "2026-11-01T00:00:00-04:00",
            ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00+02:00",
            ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-05T00:00:00+11:00",
            ["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
        ),
        (
            "30 23 * * *",
            "Africa/Cairo",
            "2026-10-29T12:00:00+03:00",
            ["2026-10-29T23:30:00+03:00", "2026-10-30T23:30:00+02:00"],
        ),
        (
            "30 23 * * *",
            "America/Sao_Paulo",
            "2018-02-17T12:00:00-02:00",
            ["2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"],
        ),
        // Lists and ranges are fixed too.
        (
            "30 1-1 * * *",
            "America/New_York",
            "2026-11-01T00:00:00-04:00",
            ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        ),
    ] {
        expect(expression, zone, from, &wanted);
    }
}

#[test]
fn a_wildcard_goes_through_both_passes_in_order() {
    let both = [
        "2026-11-01T01:00:00-04:00",
        "2026-11-01T01:20:00-04:00",
        "2026-11-01T01:40:00-04:00",
        "2026-11-01T01:00:00-05:00",
        "2026-11-01T01:20:00-05:00",
        "2026-11-01T01:40:00-05:00",
        "2026-11-01T02:00:00-05:00",
    ];
    expect(
        "*/20 * * * *",
        "America/New_York",
        "2026-11-01T00:50:00-04:00",
        &both,
    );
    // Asked from each of them anew, as a loop does.
    for pair in both.windows(2) {
        expect("*/20 * * * *", "America/New_York", pair[0], &pair[1..]);
    }
    // From within the second pass: never back.
    expect(
        "*/20 * * * *",
        "America/New_York",
        "2026-11-01T01:10:00-05:00",
        &both[4..],
    );
    expect(
        "30 1 * * *",
        "America/New_York",
        "2026-11-01T01:10:00-05:00",
        &["2026-11-02T01:30:00-05:00"],
    );
    // Six fields: a star for seconds makes a wildcard as well.
    expect(
        "* 30 1 * * *",
        "America/New_York",
        "2026-11-01T01:30:59-04:00",
        &["2026-11-01T01:30:00-05:00"],
    );
    expect(
        "0 30 1 * * *",
        "America/New_York",
        "2026-11-01T01:30:59-04:00",
        &["2026-11-02T01:30:00-05:00"],
    );
}

#[test]
fn a_day_left_out_is_followed() {
    expect(
        "0 * * * *",
        "Pacific/Apia",
        "2011-12-29T23:00:00-10:00",
        &["2011-12-31T00:00:00+14:00"],
    );
    expect(
        "0 12 30 12 *",
        "Pacific/Apia",
        "2011-12-29T12:00:00-10:00",
        &["2012-12-30T12:00:00+14:00"],
    );
}

#[test]
fn leap_days_are_found_however_far() {
    expect(
        "0 0 29 2 *",
        "UTC",
        "2096-03-01T00:00:00Z",
        &["2104-02-29T00:00:00Z"],
    );
    expect(
        "0 0 29 2 *",
        "Europe/Berlin",
        "2096-03-01T00:00:00Z",
        &["2104-02-29T00:00:00+01:00", "2108-02-29T00:00:00+01:00"],
    );
    expect(
        "0 0 * 2 1#5",
        "UTC",
        "2026-01-01T00:00:00Z",
        &[
            "2044-02-29T00:00:00Z",
            "2072-02-29T00:00:00Z",
            "2112-02-29T00:00:00Z",
            "2140-02-29T00:00:00Z",
        ],
    );
    expect(
        "0 0 1 1 *",
        "UTC",
        "2399-06-01T00:00:00Z",
        &["2400-01-01T00:00:00Z"],
    );
    expect(
        "0 0 29 2 *",
        "UTC",
        "2396-03-01T00:00:00Z",
        &["2400-02-29T00:00:00Z"],
    );
    expect(
        "0 0 1 1 *",
        "UTC",
        "1960-06-01T00:00:00Z",
        &["1961-01-01T00:00:00Z"],
    );
}

#[test]
fn what_never_fires_is_refused() {
    for never in [
        "0 0 30 2 *",
        "0 0 31 4 *",
        "* * * 30 2 *",
        "0 0 30 2 */2",
        "0 0 31W 2 *",
        "0 0 */2 2 1#5",
        "0 0 0 30 2 * 2026-2030",
        "* 30 2 8 3 * 2026",
    ] {
        // 2 to 29 February is its only fifth Monday: odd days have none.
        let zone = "America/New_York";
        let result = try_parse(&[never], zone);
        let possible = never == "0 0 */2 2 1#5";
        assert_eq!(result.is_ok(), possible, "{never}: {result:?}");
    }
    // Not never: either day field may match.
    expect(
        "0 0 30 2 1",
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2026-02-02T00:00:00Z"],
    );
    expect(
        "0 0 31 4 fri",
        "UTC",
        "2026-05-13T00:00:00Z",
        &["2027-04-02T00:00:00Z"],
    );
}

#[test]
fn the_year_field_bounds() {
    expect(
        "0 0 0 1 1 * 2100",
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2100-01-01T00:00:00Z"],
    );
    assert!(next(&parse("0 0 0 1 1 * 2100", "UTC"), "2100-01-01T00:00:00Z", 1).is_empty());
    for year in ["1969", "2101", "0"] {
        let error = try_parse(&[&format!("0 0 0 1 1 * {year}")], "UTC")
            .unwrap_err()
            .to_string();
        assert!(error.contains("years are 1970 to 2100"), "{error}");
    }
    // The second pass of a year's last matching hour still counts.
    expect(
        "*/30 0 1 1 11 * 2026",
        "America/New_York",
        "2026-11-01T01:00:30-04:00",
        &["2026-11-01T01:00:00-05:00", "2026-11-01T01:00:30-05:00"],
    );
    assert!(
        next(
            &parse("*/30 0 1 1 11 * 2026", "America/New_York"),
            "2026-11-01T01:00:30-05:00",
            1
        )
        .is_empty()
    );
}

#[test]
fn next_is_later_than_any_fraction_of_a_second() {
    let schedule = parse("*/5 * * * *", "UTC");
    for (from, wanted) in [
        ("2026-05-13T12:04:59.999999999Z", "2026-05-13T12:05:00Z"),
        ("2026-05-13T12:05:00Z", "2026-05-13T12:10:00Z"),
        ("2026-05-13T12:05:00.000000001Z", "2026-05-13T12:10:00Z"),
        // A leap second reads as the second before it.
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
    ] {
        assert_eq!(
            schedule.next(instant(from)),
            Some(instant(wanted)),
            "{from}"
        );
    }
}

#[test]
fn zones_may_differ_within_a_union_and_duplicates_are_one() {
    let schedule = try_parse(&["0 9 * * *", "0  9 * * *", "@every 6h"], "Europe/Berlin").unwrap();
    assert_eq!(
        schedule.describe(),
        "0 9 * * * (Europe/Berlin); @every 6h (Europe/Berlin)"
    );
    assert_eq!(schedule.expressions(), "0 9 * * *; @every 6h");

    let db = solocron::schedule::ZoneDb::new(None);
    let choice = solocron::schedule::ZoneChoice {
        db: &db,
        given: None,
        tz_env: Some("America/New_York".as_ref()),
    };
    let texts = [
        "0 9 * * *",
        "CRON_TZ=Europe/Berlin 0 15 * * *",
        "TZ=utc 30 12 * * *",
    ]
    .map(str::to_owned);
    let schedule = solocron::schedule::Schedule::parse(&texts, &choice, None).unwrap();
    let mut from = instant("2026-03-20T00:00:00Z");
    let mut found = Vec::new();
    for _ in 0..3 {
        let (firing, zone) = schedule.next_in_zone(from).unwrap();
        found.push((firing, zone.name().to_owned()));
        from = firing;
    }
    // In these weeks Berlin is five hours ahead of New York.
    let wanted = [
        ("2026-03-20T12:30:00Z", "UTC"),
        ("2026-03-20T13:00:00Z", "America/New_York"),
        ("2026-03-20T14:00:00Z", "Europe/Berlin"),
    ];
    assert_eq!(
        found,
        wanted.map(|(firing, zone)| (instant(firing), zone.to_owned()))
    );
    // In summer six: both fire at once, which is one firing.
    let summer = next(&schedule, "2026-07-01T00:00:00Z", 3);
    assert_eq!(
        summer,
        [
            instant("2026-07-01T12:30:00Z"),
            instant("2026-07-01T13:00:00Z"),
            instant("2026-07-02T12:30:00Z")
        ]
    );
}

#[test]
fn hashed_fields_are_stable_and_independent() {
    let from = "2026-01-01T00:00:00Z";
    // From the documented algorithm, worked out by hand for "publish".
    let minute = 0xc8b4_38cb_cbba_550b_u64;
    let hour = 0xc680_888b_a648_9e6b_u64;
    for (hashed, plain) in [
        ("H * * * *".to_owned(), format!("{} * * * *", minute % 60)),
        (
            "H H * * *".to_owned(),
            format!("{} {} * * *", minute % 60, hour % 24),
        ),
        (
            "H/15 * * * *".to_owned(),
            format!("{}-59/15 * * * *", minute % 15),
        ),
        (
            "H(0-7) * * * *".to_owned(),
            format!("{} * * * *", minute % 8),
        ),
        (
            "H(30-59)/7 H(1-5) * * *".to_owned(),
            format!("{}-59/7 {} * * *", 30 + minute % 7, 1 + hour % 5),
        ),
        (
            "H(0-3)/100 * * * *".to_owned(),
            format!("{} * * * *", minute % 4),
        ),
        (
            "0 H/5 * * *".to_owned(),
            format!("0 {}-23/5 * * *", hour % 5),
        ),
    ] {
        assert_eq!(
            next(&parse(&hashed, "UTC"), from, 30),
            next(&parse(&plain, "UTC"), from, 30),
            "{hashed} is {plain}"
        );
    }
    // A day that every month has, and a legal weekday and month.
    for hashed in ["0 0 H * *", "0 0 1 H *", "0 0 * * H", "H 0 0 * * *"] {
        assert!(parse(hashed, "UTC").next(instant(from)).is_some());
    }
    assert_eq!(next(&parse("0 0 H * *", "UTC"), from, 24).len(), 24);
    assert!(
        parse("0 0 H * *", "UTC").longest_gap(instant(from))
            <= std::time::Duration::from_secs(31 * 86_400)
    );
}

#[test]
fn the_longest_gap_is_found() {
    let day = 86_400;
    let from = instant("2026-05-13T10:17:30Z");
    for (expression, seconds) in [
        ("* * * * *", 60),
        ("*/7 * * * *", 420),
        ("0 0 * * *", day),
        ("*/5 8-18 * * *", 13 * 3600 + 300),
        ("0 9 * * 1-5", 3 * day),
        ("* * * 12 *", 335 * day + 60),
        ("0 0 1 * *", 31 * day),
        ("0 0 1 1 *", 366 * day),
        ("0 0 29 2 *", 1461 * day),
        // 2072 to 2112, as 2100 is no leap year.
        ("0 0 * 2 1#5", 14_609 * day),
        ("@every 36h", 36 * 3600),
        ("0 0 0 1 1 * 2030", 0),
    ] {
        let gap = parse(expression, "UTC").longest_gap(from);
        assert_eq!(
            gap.as_secs(),
            u64::try_from(seconds).unwrap(),
            "{expression}"
        );
    }
    // Berlin's night of 23 hours and of 25 hours.
    let gap = parse("0 12 * * *", "Europe/Berlin").longest_gap(from);
    assert_eq!(gap, TimeDelta::hours(25).to_std().unwrap());
}
