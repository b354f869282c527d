//! How firings are printed, and how `--from` is read.

use chrono::{
    DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Utc,
};
use jiff::Timestamp;
use jiff::civil;

use super::zone::Zone;

/// The instant in the zone's wall time, RFC 3339 with offset. An offset with
/// seconds (before 1973) is rounded to minutes, as RFC 3339 has no seconds
/// there; the instant stays exact.
#[must_use]
pub fn rfc3339(instant: DateTime<Utc>, zone: &Zone) -> String {
    local(instant, zone).to_rfc3339_opts(SecondsFormat::Secs, false)
}

fn local(instant: DateTime<Utc>, zone: &Zone) -> DateTime<FixedOffset> {
    let seconds = Timestamp::from_second(instant.timestamp())
        .map_or(0, |timestamp| zone.rules().to_offset(timestamp).seconds());
    let whole_minutes = seconds - seconds % 60;
    let offset = FixedOffset::east_opt(whole_minutes).unwrap_or_else(|| chrono::Offset::fix(&Utc));
    instant.with_timezone(&offset)
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

fn weekday(instant: DateTime<Utc>, zone: &Zone) -> &'static str {
    let index = local(instant, zone).weekday().num_days_from_sunday();
    WEEKDAYS[index as usize]
}

/// One line of `--next` at a terminal: instant, weekday, zone, how far off.
#[must_use]
pub fn terminal_line(instant: DateTime<Utc>, zone: &Zone, now: DateTime<Utc>) -> String {
    format!(
        "{}  {}  {}  {}",
        rfc3339(instant, zone),
        weekday(instant, zone),
        zone.name(),
        relative(instant, now)
    )
}

/// One line of `--next` in a pipe: the instant, RFC 3339 with offset.
#[must_use]
pub fn plain_line(instant: DateTime<Utc>, zone: &Zone) -> String {
    rfc3339(instant, zone)
}

/// One line of `--next` as JSON: `firing` (RFC 3339, UTC), `local` (with the
/// zone's offset), `zone`, `weekday` and `in_seconds`, negative in the past.
#[must_use]
pub fn json_line(instant: DateTime<Utc>, zone: &Zone, now: DateTime<Utc>) -> String {
    serde_json::json!({
        "firing": instant.to_rfc3339_opts(SecondsFormat::Secs, true),
        "local": rfc3339(instant, zone),
        "zone": zone.name(),
        "weekday": weekday(instant, zone),
        "in_seconds": (instant - now).num_seconds(),
    })
    .to_string()
}

/// How far `instant` is from `now`, in its two largest units: `in 3h 12m`,
/// `2d 4h ago`, `now`.
#[must_use]
pub fn relative(instant: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let span = instant - now;
    let size = span.abs();
    if size < TimeDelta::seconds(1) {
        return "now".to_owned();
    }
    let text = two_units(size.num_seconds());
    if span > TimeDelta::zero() {
        format!("in {text}")
    } else {
        format!("{text} ago")
    }
}

fn two_units(seconds: i64) -> String {
    let units = [
        (365 * 86_400, "y"),
        (86_400, "d"),
        (3600, "h"),
        (60, "m"),
        (1, "s"),
    ];
    let mut rest = seconds;
    let mut parts: Vec<String> = Vec::new();
    for (index, (size, name)) in units.iter().enumerate() {
        let number = rest / size;
        rest %= size;
        if number > 0 {
            parts.push(format!("{number}{name}"));
        }
        let last = index + 1 == units.len();
        if parts.len() == 2 || (!parts.is_empty() && number == 0) || last {
            break;
        }
    }
    parts.join(" ")
}

/// The length of a date.
const DATE: usize = "2026-03-29".len();

/// Reads the value of `--from`: RFC 3339 with an offset or `Z`; a local time in
/// `zone` without one; or a date, meaning its first instant there. Seconds may
/// be left out, so may the colon in the offset, and a blank may stand for the
/// `T` and before the offset, as date(1) writes it. A local time in a gap is
/// moved on by the gap; of a repeated one the first is meant.
///
/// # Errors
/// It is none of these; the text says what to write.
pub fn parse_from(text: &str, zone: &Zone) -> Result<DateTime<Utc>, String> {
    let text = text.trim();
    let joined = match text.split_at_checked(DATE) {
        Some((date, time)) => {
            let mark = if time.starts_with(' ') { "T" } else { "" };
            format!("{date}{mark}{}", time.replace(' ', ""))
        }
        None => text.to_owned(),
    };
    if let Ok(instant) = DateTime::parse_from_rfc3339(&joined) {
        return Ok(instant.with_timezone(&Utc));
    }
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
    if let Some(instant) = formats
        .iter()
        .find_map(|format| DateTime::parse_from_str(&joined, &format!("{format}%#z")).ok())
    {
        return Ok(instant.with_timezone(&Utc));
    }
    let naive = formats
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(&joined, format).ok())
        .or_else(|| {
            let date = NaiveDate::parse_from_str(&joined, "%Y-%m-%d").ok()?;
            date.and_hms_opt(0, 0, 0)
        });
    naive
        .and_then(|naive| instant_of(naive, zone))
        .ok_or_else(|| {
            format!(
                "time {text:?} is not understood; write it like 2026-03-29T01:30:00+01:00, \
                 2026-03-29T01:30 for the time in {}, or 2026-03-29",
                zone.name()
            )
        })
}

fn instant_of(naive: NaiveDateTime, zone: &Zone) -> Option<DateTime<Utc>> {
    let seconds = naive.and_utc().timestamp();
    let wall = Timestamp::from_second(seconds).ok()?;
    let civil: civil::DateTime = jiff::tz::Offset::UTC.to_datetime(wall);
    let instant = zone.rules().to_timestamp(civil).ok()?;
    DateTime::from_timestamp(instant.as_second(), 0)
}
