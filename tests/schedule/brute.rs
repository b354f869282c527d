//! `next` against the brute force of [`super::oracle`].

use chrono::{DateTime, Utc};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use solocron::schedule::Schedule;

use super::oracle::{self, Expression, Random, civil};
use super::{long, parse, try_parse};

const ZONES: [&str; 22] = [
    "America/New_York",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Havana",
    "America/St_Johns",
    "America/Nuuk",
    "America/Caracas",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Tehran",
    "Asia/Gaza",
    "Asia/Pyongyang",
    "Africa/Cairo",
    "Africa/Juba",
    "Europe/Volgograd",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Tongatapu",
];

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(second, 0).unwrap()
}

fn second(text: &str) -> i64 {
    super::instant(text).timestamp()
}

/// The instants at which a zone changes its offset from 2015 to 2037.
fn changes(zone: &TimeZone) -> Vec<i64> {
    let start = Timestamp::from_second(second("2015-01-01T00:00:00Z")).unwrap();
    zone.following(start)
        .map(|change| change.timestamp().as_second())
        .take_while(|change| *change < second("2038-01-01T00:00:00Z"))
        .collect()
}

/// Compares `next` from every firing of the brute force, from a second on
/// either side of it, and from random instants.
fn compare(
    schedule: &Schedule,
    wanted: &[i64],
    from: i64,
    to: i64,
    random: &mut Random,
    what: &str,
) -> usize {
    let mut bases = vec![from];
    for firing in wanted.iter().take(400) {
        bases.extend([firing - 1, *firing, firing + 1]);
    }
    bases.extend((0..100).map(|_| random.within(from, to)));
    for base in bases.iter().filter(|base| (from..to).contains(*base)) {
        let expected = wanted.iter().find(|firing| *firing > base);
        let found = schedule.next(at(*base)).map(|firing| firing.timestamp());
        match (expected, found) {
            (Some(expected), Some(found)) if *expected == found => {}
            (None, found) if found.is_none_or(|found| found > to) => {}
            _ => panic!(
                "{what} after {}: next says {:?}, the scan {:?}",
                at(*base),
                found.map(at),
                expected.map(|firing| at(*firing))
            ),
        }
    }
    bases.len()
}

#[test]
fn next_equals_a_scan_over_seconds_around_every_change() {
    let rounds = if long() { 40 } else { 1 };
    let seed = if long() { rand_seed() } else { 20_260_308 };
    println!("seed {seed}");
    let mut random = Random(seed);
    let (mut cases, mut looks, mut silent) = (0, 0, 0);
    for zone in ZONES {
        let rules = TimeZone::get(zone).unwrap();
        for change in changes(&rules) {
            for _ in 0..rounds {
                // Without the long run, a third of the changes.
                if !long() && !random.chance(3) {
                    continue;
                }
                let (from, to) = (change - 7 * 3600, change + 7 * 3600);
                let wall = oracle::Clock::new(&rules, from, to).wall(change);
                let expression = Expression::near(&mut random, wall);
                let Ok(schedule) = try_parse(&[&expression.text()], zone) else {
                    continue;
                };
                let wanted = oracle::firings(&expression, &rules, from, to);
                silent += usize::from(wanted.is_empty());
                cases += 1;
                let what = format!("seed {seed}, {:?} in {zone}", expression.text());
                looks += compare(&schedule, &wanted, from, to, &mut random, &what);
            }
        }
    }
    println!(
        "{cases} expressions around changes of {} zones, {looks} instants, {silent} without a firing there",
        ZONES.len()
    );
    assert!(
        cases > 100 && silent * 2 < cases,
        "{cases} cases, {silent} silent"
    );
}

fn rand_seed() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// Jumps larger than a day, and zones that skip a date.
#[test]
fn next_equals_a_scan_over_large_jumps() {
    let mut random = Random(7);
    let jumps = [
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("Pacific/Kwajalein", "1993-08-21T12:00:00Z"),
        ("Pacific/Kiritimati", "1994-12-31T10:40:00Z"),
        ("Africa/Monrovia", "1972-01-07T00:44:30Z"),
        ("Asia/Manila", "1978-03-21T16:00:00Z"),
        ("Antarctica/Casey", "2010-03-04T15:00:00Z"),
        ("America/Anchorage", "1983-10-30T12:00:00Z"),
        ("Europe/Lisbon", "1992-09-27T01:00:00Z"),
    ];
    for (zone, jump) in jumps {
        let rules = TimeZone::get(zone).unwrap();
        let jump = second(jump);
        for _ in 0..if long() { 200 } else { 8 } {
            let (from, to) = (jump - 30 * 3600, jump + 30 * 3600);
            let expression =
                Expression::near(&mut random, oracle::Clock::new(&rules, from, to).wall(jump));
            let Ok(schedule) = try_parse(&[&expression.text()], zone) else {
                continue;
            };
            let wanted = oracle::firings(&expression, &rules, from, to);
            let what = format!("{:?} in {zone}", expression.text());
            compare(&schedule, &wanted, from, to, &mut random, &what);
        }
    }
}

/// Made-up zones: changes of just under, just, and just over three hours.
#[test]
fn the_bounds_of_three_hours_are_those_of_cron() {
    for (rules, gap_fires, repeats) in [
        ("AAA0BBB-2:59,M3.2.0/2,M11.1.0/5", true, false),
        ("AAA0BBB-3,M3.2.0/2,M11.1.0/5", false, false),
        ("AAA0BBB-3:01,M3.2.0/2,M11.1.0/5", false, true),
    ] {
        let db = solocron::schedule::ZoneDb::new(None);
        let choice = solocron::schedule::ZoneChoice {
            db: &db,
            given: None,
            tz_env: Some(rules.as_ref()),
        };
        let schedule = Schedule::parse(&["30 2 * * *".to_owned()], &choice, None).unwrap();
        let day = |from: &str, to: &str| {
            schedule
                .count(super::instant(from), super::instant(to), 9)
                .number
        };
        assert_eq!(
            day("2026-03-07T12:00:00Z", "2026-03-08T12:00:00Z") == 1,
            gap_fires,
            "{rules}"
        );
        // The clock goes back on 2026-11-01 at 05:00 on the wall, to 02:01 and less.
        let twice = Schedule::parse(&["30 4 * * *".to_owned()], &choice, None).unwrap();
        let count = twice.count(
            super::instant("2026-10-31T12:00:00Z"),
            super::instant("2026-11-01T12:00:00Z"),
            9,
        );
        assert_eq!(count.number == 2, repeats, "{rules}");
    }
}

/// Dates alone, over decades and past the years the crate `cron` knows.
#[test]
fn dates_equal_a_scan_over_days() {
    let mut random = Random(11);
    let spans = [(1969, 40), (2020, 60), (2090, 60), (2290, 30)];
    for round in 0..if long() { 4000 } else { 150 } {
        let (year, length) = spans[round % spans.len()];
        let from = second(&format!("{year}-01-01T00:00:00Z"));
        let wall = random.within(from, from + 366 * 86_400);
        let mut expression = Expression::near(&mut random, wall);
        (expression.minute, expression.hour) = (oracle::Part::only(7), oracle::Part::only(3));
        expression.second = None;
        if random.chance(3) {
            expression.day = oracle::Part::only(29);
            expression.month = oracle::Part::only(2);
        }
        let Ok(schedule) = try_parse(&[&expression.text()], "UTC") else {
            continue;
        };
        let first = from / 86_400;
        let wanted: Vec<i64> = (first..first + length * 365)
            .filter(|day| expression.day_matches(*day))
            .map(|day| day * 86_400 + 3 * 3600 + 7 * 60)
            .take(300)
            .collect();
        let mut base = from;
        for firing in wanted {
            let found = schedule.next(at(base)).map(|found| found.timestamp());
            assert_eq!(
                found.map(at),
                Some(at(firing)),
                "{:?} after {}",
                expression.text(),
                at(base)
            );
            base = firing;
        }
    }
}

/// `L`, `LW`, `15W`, `5L`, `5#2` by their definitions, day by day.
#[test]
fn calendar_terms_equal_a_scan_over_days() {
    let next_month = |day: i64| {
        (1..=31)
            .map(|later| civil(day + later))
            .find(|date| date.2 == 1)
    };
    let last_of = |day: i64| {
        (0..31)
            .map(|later| day + later)
            .take_while(|later| civil(*later).1 == civil(day).1)
            .last()
            .unwrap()
    };
    let is_workday = |day: i64| (1..=5).contains(&civil(day).3);
    let nearest = |day: i64| {
        let same = |other: &i64| civil(*other).1 == civil(day).1 && is_workday(*other);
        (0..3)
            .flat_map(|far| [day - far, day + far])
            .find(same)
            .unwrap()
    };
    let day_terms: [(&str, &dyn Fn(i64) -> bool); 5] = [
        ("L", &|day| next_month(day) == Some(civil(day + 1))),
        ("LW", &|day| nearest_last(last_of(day)) == day),
        ("1W", &|day| nearest(day - civil(day).2 + 1) == day),
        ("15W", &|day| nearest(day - civil(day).2 + 15) == day),
        ("31W", &|day| {
            civil(last_of(day)).2 == 31 && nearest(last_of(day)) == day
        }),
    ];
    let weekday_terms: [(&str, &dyn Fn(i64) -> bool); 4] = [
        ("5L", &|day| {
            civil(day).3 == 5 && civil(day + 7).1 != civil(day).1
        }),
        ("sunL", &|day| {
            civil(day).3 == 0 && civil(day + 7).1 != civil(day).1
        }),
        ("5#2", &|day| {
            civil(day).3 == 5 && (8..=14).contains(&civil(day).2)
        }),
        ("7#5", &|day| civil(day).3 == 0 && civil(day).2 > 28),
    ];
    let from = second("2026-01-01T00:00:00Z") / 86_400;
    let check = |text: String, matches: &dyn Fn(i64) -> bool| {
        let schedule = parse(&text, "UTC");
        let mut base = from * 86_400 - 1;
        for day in (from..from + 8 * 365).filter(|day| matches(*day)) {
            let found = schedule.next(at(base)).map(|found| found.timestamp());
            assert_eq!(
                found.map(at),
                Some(at(day * 86_400)),
                "{text} after {}",
                at(base)
            );
            base = day * 86_400;
        }
    };
    for (term, matches) in day_terms {
        check(format!("0 0 {term} * *"), matches);
        check(format!("0 0 3,{term} * *"), &|day| {
            civil(day).2 == 3 || matches(day)
        });
        check(format!("0 0 {term} * 1"), &|day| {
            civil(day).3 == 1 || matches(day)
        });
        check(format!("0 0 {term} * */2"), &|day| {
            civil(day).3 % 2 == 0 && matches(day)
        });
    }
    for (term, matches) in weekday_terms {
        check(format!("0 0 * * {term}"), matches);
        check(format!("0 0 * * 3,{term}"), &|day| {
            civil(day).3 == 3 || matches(day)
        });
        check(format!("0 0 ? 2,5 {term}"), &|day| {
            [2, 5].contains(&civil(day).1) && matches(day)
        });
        check(format!("0 0 */2 * {term}"), &|day| {
            civil(day).2 % 2 == 1 && matches(day)
        });
        check(format!("0 0 13,L * {term}"), &|day| {
            civil(day).2 == 13 || civil(day + 1).2 == 1 || matches(day)
        });
    }
}

/// The last Monday to Friday of a month, from its last day.
fn nearest_last(last: i64) -> i64 {
    (0..3)
        .map(|back| last - back)
        .find(|day| (1..=5).contains(&civil(*day).3))
        .unwrap()
}

/// At the ends of what the types can hold there may be no firing, but no panic.
#[test]
fn the_ends_of_time_are_survived() {
    let texts = [
        "* * * * *",
        "30 2 * * *",
        "0 0 29 2 *",
        "0 0 L * 5#2",
        "0 0 0 1 1 * 2030",
        "@every 7h",
    ];
    let mut instants = vec![DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC];
    for second in [
        -377_705_023_201,
        253_402_207_200,
        253_402_300_799,
        i64::from(i32::MIN),
        i64::from(i32::MAX),
        0,
    ] {
        instants.extend([-90_000, -1, 0, 1, 90_000].map(|near| at(second + near)));
    }
    for zone in ["UTC", "America/New_York", "Asia/Tokyo"] {
        for schedule in texts.map(|text| parse(text, zone)) {
            for instant in &instants {
                let found = schedule.next(*instant);
                assert!(found.is_none_or(|found| found > *instant));
                let day = chrono::TimeDelta::days(1);
                if let Some(start) = instant.checked_sub_signed(day) {
                    let last = schedule.last_at_or_before(*instant, start);
                    assert!(last.is_none_or(|last| last <= *instant && last >= start));
                }
                if zone == "UTC" {
                    let _ = schedule.longest_gap(*instant);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if long() { 2000 } else { 60 }, ..ProptestConfig::default() })]

    /// A union fires when any of its parts does, once.
    #[test]
    fn a_union_is_the_merge_of_its_parts(seed: u64, zone in prop::sample::select(&ZONES[..]), from in 1_420_000_000_i64..2_140_000_000) {
        let mut random = Random(seed);
        let texts: Vec<String> = (0..3).map(|_| Expression::near(&mut random, from).text()).collect();
        let parts: Vec<Schedule> = texts.iter().filter_map(|text| try_parse(&[text], zone).ok()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        prop_assume!(parts.len() == texts.len());
        let union = try_parse(&texts, zone).unwrap();
        let mut base = at(from);
        for _ in 0..60 {
            let wanted = parts.iter().filter_map(|part| part.next(base)).min();
            prop_assert_eq!(union.next(base), wanted);
            let Some(firing) = wanted else { break };
            prop_assert!(firing > base);
            base = firing;
        }
    }

    /// The last firing found backwards is the one found by walking forwards.
    #[test]
    fn looking_back_equals_walking_forward(seed: u64, zone in prop::sample::select(&ZONES[..]), from in 1_420_000_000_i64..2_140_000_000, span in 0_i64..200_000) {
        let mut random = Random(seed);
        let text = Expression::near(&mut random, from).text();
        let Ok(schedule) = try_parse(&[&text], zone) else { return Ok(()) };
        let (start, end) = (at(from), at(from + span));
        let mut base = at(from - 1);
        let (mut last, mut count) = (None, 0_u32);
        while let Some(firing) = schedule.next(base).filter(|firing| *firing <= end) {
            base = firing;
            last = Some(firing);
            count += 1;
            prop_assume!(count < 5000);
        }
        prop_assert_eq!(schedule.last_at_or_before(end, start), last);
        let counted = schedule.count(at(from - 1), end, 5000);
        prop_assert_eq!((counted.number, counted.more), (count, false));
        if count > 0 {
            let counted = schedule.count(at(from - 1), end, count - 1);
            prop_assert_eq!((counted.number, counted.more), (count - 1, true));
        }
    }
}
