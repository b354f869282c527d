//! An expression into its fields: prefix, nickname or five to seven fields.

use std::time::Duration;

use super::error::{Problem, quote};
use super::field::{self, FIELDS, Field, FieldSpec};

/// An expression as understood, before a zone is chosen.
#[derive(Debug, Clone)]
pub(super) struct Parsed {
    /// The zone of a `CRON_TZ=` or `TZ=` prefix.
    pub zone: Option<String>,
    /// The expression without the prefix, one blank between two fields.
    pub text: String,
    /// What it says.
    pub kind: Kind,
}

/// The two kinds of schedule.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// `@every`: multiples of so many seconds since the Unix epoch.
    Every(i64),
    /// Fields matched against the calendar.
    Calendar(Box<Calendar>),
}

/// The seven fields; absent ones are filled in.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    /// In the order of [`FIELDS`].
    pub fields: [FieldSpec; 7],
    /// How many fields were written; 5 for a nickname.
    pub written: usize,
}

impl Calendar {
    pub fn get(&self, field: Field) -> &FieldSpec {
        &self.fields[field as usize]
    }

    /// A *wildcard* schedule follows the clock through a daylight saving
    /// change, a fixed one does not: cron(8).
    pub fn is_wildcard(&self) -> bool {
        [Field::Second, Field::Minute, Field::Hour]
            .into_iter()
            .any(|field| self.get(field).star)
    }
}

const NICKNAMES: [(&str, &str); 7] = [
    ("yearly", "0 0 1 1 *"),
    ("annually", "0 0 1 1 *"),
    ("monthly", "0 0 1 * *"),
    ("weekly", "0 0 * * 0"),
    ("daily", "0 0 * * *"),
    ("midnight", "0 0 * * *"),
    ("hourly", "0 * * * *"),
];
const NICKNAME_LIST: &str =
    "write @yearly, @monthly, @weekly, @daily, @hourly, @every DURATION, or five fields";

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// Reads one expression; `lock_name` is what `H` is derived from.
///
/// # Errors
/// The first thing that is not understood.
pub(super) fn parse(expression: &str, lock_name: Option<&str>) -> Result<Parsed, Problem> {
    let trimmed = expression.trim_matches([' ', '\t', '\r', '\n']);
    if trimmed.starts_with(['"', '\'']) {
        return Err(form(
            "begins with a quote",
            "leave the quotes out, they are for the shell alone",
        ));
    }
    let (zone, rest) = prefix(trimmed)?;
    let words: Vec<&str> = rest
        .split(is_blank)
        .filter(|word| !word.is_empty())
        .collect();
    let text = words.join(" ");
    let kind = match words.first() {
        None => return Err(form("is empty", FIELD_LIST)),
        Some(word) if word.starts_with('@') => nickname(word, &words[1..])?,
        Some(word) if word.contains('=') => {
            return Err(form(
                format!("begins with {}", quote(word)),
                "only CRON_TZ=Zone or TZ=Zone may stand before the fields",
            ));
        }
        Some(_) => Kind::Calendar(Box::new(calendar(&words, lock_name)?)),
    };
    Ok(Parsed { zone, text, kind })
}

fn form(reason: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem::Form {
        reason: reason.into(),
        remedy: remedy.into(),
    }
}

/// Splits off `CRON_TZ=Zone` or `TZ=Zone`.
fn prefix(text: &str) -> Result<(Option<String>, &str), Problem> {
    let Some(rest) = text
        .strip_prefix("CRON_TZ=")
        .or_else(|| text.strip_prefix("TZ="))
    else {
        return Ok((None, text));
    };
    let (zone, rest) = rest.split_once(is_blank).unwrap_or((rest, ""));
    if zone.is_empty() {
        return Err(form(
            "has a zone prefix without a zone",
            "write CRON_TZ=Europe/Berlin before the fields",
        ));
    }
    Ok((Some(zone.to_owned()), rest))
}

fn nickname(word: &str, arguments: &[&str]) -> Result<Kind, Problem> {
    let name = word[1..].to_ascii_lowercase();
    match name.as_str() {
        "every" => return every(&arguments.join(" ")),
        "reboot" => {
            return Err(form(
                "@reboot means the start of one machine, which many hosts cannot share",
                "run the command without --cron at start-up, or write a time",
            ));
        }
        _ => {}
    }
    let Some((_, fields)) = NICKNAMES.iter().find(|(known, _)| *known == name) else {
        return Err(form(
            format!("{} is no known nickname", quote(word)),
            NICKNAME_LIST,
        ));
    };
    if !arguments.is_empty() {
        return Err(form(
            format!(
                "{} takes nothing after it, but {} follows",
                quote(word),
                quote(&arguments.join(" "))
            ),
            "leave that out; the command goes after the options, not into the schedule",
        ));
    }
    let words: Vec<&str> = fields.split(' ').collect();
    Ok(Kind::Calendar(Box::new(calendar(&words, None)?)))
}

fn every(text: &str) -> Result<Kind, Problem> {
    let remedy = "write a duration of whole seconds, like @every 90s or @every 1h 30m";
    if text.is_empty() {
        return Err(form("@every lacks its duration", remedy));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(form(
            format!("@every {text} has no unit"),
            format!("write @every {text}s for seconds or @every {text}m for minutes"),
        ));
    }
    let Ok(duration) = humantime::parse_duration(text) else {
        return Err(form(
            format!("@every {} is no duration", quote(text)),
            remedy,
        ));
    };
    // humantime knows them, and `1M` is too near to `1m`.
    let no_fixed_length = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .any(|unit| unit.starts_with(['M', 'y']) || unit.starts_with("mo"));
    if no_fixed_length {
        return Err(form(
            format!(
                "@every {} counts months or years, which have no fixed length (minutes are m)",
                quote(text)
            ),
            remedy,
        ));
    }
    if duration < Duration::from_secs(1) || duration.subsec_nanos() != 0 {
        return Err(form(
            format!("@every {} is not in whole seconds, 1 or more", quote(text)),
            remedy,
        ));
    }
    match i64::try_from(duration.as_secs()) {
        Ok(seconds) if seconds <= MAX_EVERY => Ok(Kind::Every(seconds)),
        _ => Err(form(
            format!("@every {} is longer than 100 years", quote(text)),
            remedy,
        )),
    }
}

/// 100 years of 365.25 days, in seconds.
const MAX_EVERY: i64 = 3_155_760_000;

const FIELD_LIST: &str = "write five fields: minute hour day-of-month month day-of-week, \
    like \"*/5 * * * *\"; six begin with seconds, seven end with the year";

fn calendar(words: &[&str], lock_name: Option<&str>) -> Result<Calendar, Problem> {
    let written = words.len();
    let first = match written {
        5 => Field::Minute,
        6 | 7 => Field::Second,
        _ => return Err(field_count(words)),
    } as usize;
    let mut fields = FIELDS.map(FieldSpec::star);
    fields[Field::Second as usize] = FieldSpec::only(0);
    for (field, word) in FIELDS[first..].iter().zip(words) {
        match field::parse(*field, word, lock_name) {
            Ok(spec) => fields[*field as usize] = spec,
            Err(error) => return Err(command_after(words).unwrap_or(Problem::Field(error))),
        }
    }
    Ok(Calendar { fields, written })
}

/// The error for a whole crontab line: five fields and a command.
fn command_after(words: &[&str]) -> Option<Problem> {
    let word = words.get(5)?;
    if Field::Weekday.shortened(word).is_some() {
        return None;
    }
    let is_command = word.starts_with(['/', '.', '~', '$'])
        || word.len() > 3 && word.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let fields = FIELDS[1..].iter().zip(&words[..5]);
    let five_are_good = || {
        fields
            .clone()
            .all(|(field, word)| field::parse(*field, word, Some("")).is_ok())
    };
    (is_command && five_are_good()).then(|| {
        form(
            format!("has {} after five fields", quote(word)),
            "leave the command out, it goes after the options",
        )
    })
}

fn field_count(words: &[&str]) -> Problem {
    let fields = if words.len() == 1 { "field" } else { "fields" };
    let remedy = if words.len() > 7 {
        "write 5, 6 or 7; the command goes after the options, not into the schedule"
    } else {
        FIELD_LIST
    };
    form(
        format!("has {} {fields}, 5 to 7 are needed", words.len()),
        remedy,
    )
}
