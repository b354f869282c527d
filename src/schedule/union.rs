//! A schedule: the union of one or more expressions, each in its own zone.

use std::ffi::OsStr;
use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};
use jiff::Timestamp;

use super::error::{Problem, ScheduleError};
use super::naive::Naive;
use super::next;
use super::parse::{self, Kind};
use super::zone::{Zone, ZoneDb, ZoneError};

/// Where an expression without a zone prefix gets its zone from: `--tz`, else
/// the value of `TZ`, else the zone of the system, else UTC.
#[derive(Debug, Clone, Copy)]
pub struct ZoneChoice<'a> {
    /// Finds zones by name.
    pub db: &'a ZoneDb,
    /// The value of `--tz`; a prefix must not contradict it.
    pub given: Option<&'a str>,
    /// The value of the environment variable `TZ`.
    pub tz_env: Option<&'a OsStr>,
}

impl ZoneChoice<'_> {
    /// The zone for expressions that name none.
    ///
    /// # Errors
    /// `--tz` or `TZ` is not a zone.
    pub fn zone(&self) -> Result<Zone, ZoneError> {
        match (self.given, self.tz_env) {
            (Some(name), _) => self.db.zone(name).map_err(|error| ZoneError {
                origin: "--tz",
                ..error
            }),
            (None, Some(value)) => self.db.from_tz(value),
            (None, None) => Ok(self.db.system()),
        }
    }
}

/// The zones of the expressions while they are read; the default is looked up
/// once, and only if an expression needs it.
struct Zones<'a> {
    choice: &'a ZoneChoice<'a>,
    default: Option<Zone>,
}

impl Zones<'_> {
    fn default(&mut self) -> Result<Zone, Problem> {
        if self.default.is_none() {
            self.default = Some(self.choice.zone().map_err(Problem::Zone)?);
        }
        Ok(self.default.clone().unwrap_or_else(Zone::utc))
    }

    /// The zone of an expression with or without a prefix.
    fn of(&mut self, prefix: Option<&str>) -> Result<Zone, Problem> {
        let Some(name) = prefix else {
            return self.default();
        };
        let zone = self.choice.db.zone(name).map_err(Problem::Zone)?;
        if self.choice.given.is_some() {
            let given = self.default()?;
            if given.name() != zone.name() {
                return Err(Problem::ZoneConflict {
                    given: given.name().to_owned(),
                    prefix: zone.name().to_owned(),
                });
            }
        }
        Ok(zone)
    }
}

/// One or more expressions; a firing of several of them at one instant is one.
#[derive(Debug, Clone)]
pub struct Schedule {
    entries: Vec<Entry>,
    zones: Vec<Zone>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// As given, without a prefix.
    text: String,
    /// Index into the schedule's zones.
    zone: usize,
    /// Fields written; 0 for `@every`.
    fields: usize,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    Every(i64),
    Calendar { naive: Naive, wildcard: bool },
}

impl Entry {
    fn next(&self, zones: &[Zone], after: i64) -> Option<i64> {
        match &self.rule {
            Rule::Every(period) => after
                .div_euclid(*period)
                .checked_add(1)?
                .checked_mul(*period),
            Rule::Calendar { naive, wildcard } => {
                next::next(naive, *wildcard, zones[self.zone].rules(), after)
            }
        }
    }
}

impl Schedule {
    /// Reads expressions. `lock_name` is what `H` is derived from.
    ///
    /// # Errors
    /// The first expression that is not understood, names an unknown zone,
    /// contradicts `--tz`, or never fires. Without any expression: an error
    /// too.
    pub fn parse(
        expressions: &[String],
        zone: &ZoneChoice<'_>,
        lock_name: Option<&str>,
    ) -> Result<Self, ScheduleError> {
        let mut schedule = Self {
            entries: Vec::new(),
            zones: Vec::new(),
        };
        if expressions.is_empty() {
            let problem = Problem::Form {
                reason: "there is no expression".into(),
                remedy: "write one, like \"*/5 * * * *\"".into(),
            };
            return Err(ScheduleError {
                expression: String::new(),
                problem,
            });
        }
        let mut zones = Zones {
            choice: zone,
            default: None,
        };
        for expression in expressions {
            schedule
                .add(expression, &mut zones, lock_name)
                .map_err(|problem| ScheduleError {
                    expression: expression.clone(),
                    problem,
                })?;
        }
        Ok(schedule)
    }

    fn add(
        &mut self,
        expression: &str,
        zones: &mut Zones<'_>,
        lock_name: Option<&str>,
    ) -> Result<(), Problem> {
        let parsed = parse::parse(expression, lock_name)?;
        let zone = zones.of(parsed.zone.as_deref())?;
        let (rule, fields) = match parsed.kind {
            Kind::Every(period) => (Rule::Every(period), 0),
            Kind::Calendar(calendar) => {
                let naive = Naive::new(&calendar);
                if !naive.fires() {
                    return Err(Problem::NeverFires);
                }
                let wildcard = calendar.is_wildcard();
                (Rule::Calendar { naive, wildcard }, calendar.written)
            }
        };
        let entry = Entry {
            text: parsed.text,
            zone: self.zone_index(zone),
            fields,
            rule,
        };
        // A match of the fields may still lie in gaps of the zone alone.
        if entry.next(&self.zones, BEFORE_ALL).is_none() {
            return Err(Problem::NeverFires);
        }
        let known = |other: &Entry| other.text == entry.text && other.zone == entry.zone;
        if !self.entries.iter().any(known) {
            self.entries.push(entry);
        }
        Ok(())
    }

    fn zone_index(&mut self, zone: Zone) -> usize {
        let known = self
            .zones
            .iter()
            .position(|known| known.name() == zone.name());
        known.unwrap_or_else(|| {
            self.zones.push(zone);
            self.zones.len() - 1
        })
    }

    /// The first firing strictly later than `after`, if there is one within
    /// 400 years and before the end of the year 9999, up to which there are
    /// zone rules and RFC 3339 can write it.
    #[must_use]
    pub fn next(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.next_in_zone(after).map(|(firing, _)| firing)
    }

    /// As [`Schedule::next`], with the zone of the expression that fires; of
    /// several that fire then, the first given.
    #[must_use]
    pub fn next_in_zone(&self, after: DateTime<Utc>) -> Option<(DateTime<Utc>, &Zone)> {
        let after = after.timestamp();
        let (firing, zone) = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry.next(&self.zones, after)?, entry.zone)))
            .min_by_key(|(firing, _)| *firing)
            .filter(|(firing, _)| *firing <= Timestamp::MAX.as_second())?;
        Some((DateTime::from_timestamp(firing, 0)?, &self.zones[zone]))
    }

    /// The firings later than `after`, in order, each with the zone of the
    /// expression that fires.
    pub fn firings(&self, after: DateTime<Utc>) -> impl Iterator<Item = (DateTime<Utc>, &Zone)> {
        let mut from = after;
        std::iter::from_fn(move || {
            let next = self.next_in_zone(from)?;
            from = next.0;
            Some(next)
        })
    }

    /// Checks that there is a firing after `now`: a year field may be over.
    ///
    /// # Errors
    /// No expression has one; the error names the first.
    pub fn check_future(&self, now: DateTime<Utc>) -> Result<(), ScheduleError> {
        if self.next(now).is_some() {
            return Ok(());
        }
        Err(ScheduleError {
            expression: self.entries[0].text.clone(),
            problem: Problem::Ended {
                after: now.to_rfc3339_opts(SecondsFormat::Secs, true),
            },
        })
    }

    /// An expression has six or seven fields, so that its first is seconds:
    /// worth saying at start, as many take the first field for minutes.
    #[must_use]
    pub fn has_seconds(&self) -> bool {
        self.entries.iter().any(|entry| entry.fields > 5)
    }

    /// The zone firings are shown in: that of the first expression.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zones[self.entries[0].zone]
    }

    /// The expressions without their zones, separated by `; `. Equal schedules
    /// written with other blanks or duplicates give equal text.
    #[must_use]
    pub fn expressions(&self) -> String {
        let texts: Vec<&str> = self
            .entries
            .iter()
            .map(|entry| entry.text.as_str())
            .collect();
        texts.join("; ")
    }

    /// The expressions with their zones, for messages and records:
    /// `*/5 * * * * (Europe/Berlin)`.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let separator = if text.is_empty() { "" } else { "; " };
            let zone = self.zones[entry.zone].name();
            let _ = write!(text, "{separator}{} ({zone})", entry.text);
        }
        text
    }

    /// Takes up changed zone rules, see [`Zone::refresh`]. Cheap: one `stat` a
    /// zone. Returns whether any rules changed.
    pub fn refresh(&mut self) -> bool {
        let mut changed = false;
        for zone in &mut self.zones {
            changed |= zone.refresh();
        }
        changed
    }
}

/// Before the first year an expression can name, in seconds.
const BEFORE_ALL: i64 = -2 * 86_400;
