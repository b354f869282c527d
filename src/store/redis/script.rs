//! The scripts as they are sent, their arguments and their replies.

use std::fmt::Display;
use std::str::FromStr;

use redis::{Cmd, Value};

use crate::lock::record::{Ms, Owner, Record, State, StoreTime};
use crate::lock::rules::{
    Beat, BeatReply, Claim, ClaimReply, Extent, Free, FreeReply, Grant, Loss, OnRunnerLost,
    Outcome, Overlap, Verdict, Wanted,
};

/// The fields of a record in the order in which scripts tell them.
const FIELDS: [&str; 17] = [
    "owner", "token", "firing", "state", "attempt", "grants", "until", "ttl", "mark", "born",
    "once", "void", "keep", "started", "ended", "code", "info",
];

/// A script as it is sent, whole, with every call.
///
/// Sending the digest instead would need further permissions and a second
/// round trip whenever a server has not seen the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Script {
    /// [`crate::lock::rules::claim`]
    Claim,
    /// [`crate::lock::rules::beat`]
    Beat,
    /// [`crate::lock::rules::free`]
    Free,
    /// The record and the clock, for display.
    Read,
}

impl Script {
    /// The text for the server, without comments and indentation.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Claim => CLAIM.text(),
            Self::Beat => BEAT.text(),
            Self::Free => FREE.text(),
            Self::Read => READ.text(),
        }
    }
}

const RECORD: &str = include_str!("lua/record.lua");
static CLAIM: Lean = Lean::of(&[RECORD, include_str!("lua/claim.lua")]);
static BEAT: Lean = Lean::of(&[RECORD, include_str!("lua/beat.lua")]);
static FREE: Lean = Lean::of(&[RECORD, include_str!("lua/free.lua")]);
static READ: Lean = Lean::of(&[include_str!("lua/read.lua")]);

/// A text without comment lines and indentation, made when this program is
/// compiled: every instance has it ready at the moment of a firing.
struct Lean {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Lean {
    const MAX: usize = 6 * 1024;

    const fn of(parts: &[&str]) -> Self {
        let mut lean = Self {
            bytes: [0; Self::MAX],
            len: 0,
        };
        let mut part = 0;
        while part < parts.len() {
            let mut rest = parts[part].as_bytes();
            while !rest.is_empty() {
                let mut end = 0;
                while end < rest.len() && rest[end] != b'\n' {
                    end += 1;
                }
                let (line, after) = rest.split_at(end);
                lean.add(line.trim_ascii_start());
                rest = after.trim_ascii_start();
            }
            part += 1;
        }
        lean
    }

    const fn add(&mut self, line: &[u8]) {
        if matches!(line, [] | [b'-', b'-', ..]) {
            return;
        }
        let (_, free) = self.bytes.split_at_mut(self.len);
        let (place, free) = free.split_at_mut(line.len());
        place.copy_from_slice(line);
        free[0] = b'\n';
        self.len += line.len() + 1;
    }

    fn text(&self) -> &str {
        // Cut from whole texts at line ends.
        str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// The command that runs a script's text on one key.
#[must_use]
pub fn command(text: &str, key: &str, args: &[String]) -> Cmd {
    let mut cmd = redis::cmd("EVAL");
    cmd.arg(text).arg(1).arg(key).arg(args);
    cmd
}

fn or_empty<T: Display>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn flag(value: bool) -> String {
    if value { "1" } else { "" }.to_owned()
}

/// The arguments of [`Script::Claim`]. `keep` replaces the claim's own; with
/// `memory` the reply ends in what INFO says about memory, where permitted.
#[must_use]
pub fn claim_args(claim: &Claim, keep: Ms, memory: bool) -> Vec<String> {
    let mut args = vec![
        claim.owner.to_string(),
        claim.ttl.to_string(),
        keep.to_string(),
        claim.info.clone(),
    ];
    args.extend(match &claim.wanted {
        Wanted::Firing {
            at,
            start_deadline,
            overlap,
            on_runner_lost,
        } => [
            at.to_string(),
            start_deadline.to_string(),
            match overlap {
                Overlap::Skip => "skip".to_owned(),
                Overlap::Queue => "queue".to_owned(),
            },
            match on_runner_lost {
                OnRunnerLost::Skip => "skip".to_owned(),
                OnRunnerLost::Rerun => "rerun".to_owned(),
            },
            String::new(),
        ],
        Wanted::Once { per } => [
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            or_empty(*per),
        ],
    });
    args.push(flag(memory));
    args
}

/// The arguments of [`Script::Beat`]. `keep` replaces the beat's own.
#[must_use]
pub fn beat_args(beat: &Beat, keep: Ms) -> Vec<String> {
    vec![
        beat.owner.to_string(),
        beat.token.to_string(),
        beat.until_told.to_string(),
        beat.mark_told.to_string(),
        or_empty(beat.firing),
        beat.attempt.to_string(),
        beat.grants.to_string(),
        beat.started.to_string(),
        flag(beat.once),
        beat.ttl.to_string(),
        keep.to_string(),
        beat.info.clone(),
    ]
}

/// The arguments of [`Script::Free`]. `keep` replaces the request's own.
#[must_use]
pub fn free_args(free: &Free, keep: Ms) -> Vec<String> {
    let mut args = vec![free.owner.to_string(), keep.to_string()];
    let Some(run) = &free.run else {
        args.resize(12, String::new());
        return args;
    };
    args.extend([
        match run.outcome {
            Outcome::Done => "done".to_owned(),
            Outcome::Failed => "failed".to_owned(),
            Outcome::NotStarted => "unstarted".to_owned(),
            Outcome::Rerun => "rerun".to_owned(),
        },
        run.token.to_string(),
        run.mark_told.to_string(),
        or_empty(run.firing),
        run.attempt.to_string(),
        run.grants.to_string(),
        run.started.to_string(),
        flag(run.once),
        or_empty(run.code),
        run.info.clone(),
    ]);
    args
}

/// A reply that no script of ours gives: what was found in place of what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadReply(pub String);

fn odd<T>(what: impl Into<String>) -> Result<T, BadReply> {
    Err(BadReply(what.into()))
}

/// What all scripts that change a record answer.
struct Told {
    now: StoreTime,
    before: Option<Record>,
    words: Vec<String>,
    memory: Option<String>,
}

impl Told {
    fn read(value: Value) -> Result<Self, BadReply> {
        let Value::Array(mut parts) = value else {
            return odd("a reply that is no array");
        };
        let memory = match parts.len() {
            4 => parts.pop().map(text).transpose()?.flatten(),
            _ => None,
        };
        let Ok([now, before, words]) = <[Value; 3]>::try_from(parts) else {
            return odd("a reply that is not of three parts");
        };
        let (Value::Array(before), Value::Array(words)) = (before, words) else {
            return odd("a reply whose parts are no arrays");
        };
        let before: Vec<Option<String>> = before.into_iter().map(text).collect::<Result<_, _>>()?;
        let words = words
            .into_iter()
            .map(|word| text(word).map(Option::unwrap_or_default))
            .collect::<Result<_, _>>()?;
        let wall_us = number("time", text(now)?.as_deref())?;
        let field = |name: &str| {
            let index = FIELDS.iter().position(|field| *field == name)?;
            before.get(index)?.as_deref()
        };
        Ok(Self {
            now: StoreTime::from_wall_us(wall_us),
            before: record(field)?,
            words,
            memory,
        })
    }

    fn word(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn number<T: FromStr>(&self, index: usize) -> Result<T, BadReply> {
        number("answer", self.words.get(index).map(String::as_str))
    }
}

fn text(value: Value) -> Result<Option<String>, BadReply> {
    match value {
        Value::Nil => Ok(None),
        Value::Int(number) => Ok(Some(number.to_string())),
        Value::BulkString(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(bad) => Ok(Some(String::from_utf8_lossy(bad.as_bytes()).into_owned())),
        },
        Value::SimpleString(text) => Ok(Some(text)),
        _ => odd("a value that is no text"),
    }
}

fn number<T: FromStr>(name: &str, text: Option<&str>) -> Result<T, BadReply> {
    let text = text.unwrap_or_default();
    text.parse()
        .map_err(|_| BadReply(format!("{name} is {text:?}")))
}

fn optional<T: FromStr>(name: &str, text: Option<&str>) -> Result<Option<T>, BadReply> {
    match text {
        None | Some("") => Ok(None),
        given => number(name, given).map(Some),
    }
}

/// The record that these fields make; none where there is no record.
fn record<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Record>, BadReply> {
    if field("token").is_none() || field("born").is_none() {
        return Ok(None);
    }
    let owner = |text: &str| -> Result<Owner, BadReply> { number("owner", Some(text)) };
    Ok(Some(Record {
        owner: field("owner")
            .filter(|text| !text.is_empty())
            .map(owner)
            .transpose()?,
        token: number("token", field("token"))?,
        firing: optional("firing", field("firing"))?,
        state: number::<State>("state", field("state"))?,
        attempt: number("attempt", field("attempt"))?,
        grants: number("grants", field("grants"))?,
        until: number("until", field("until"))?,
        ttl: number("ttl", field("ttl"))?,
        mark: number("mark", field("mark"))?,
        born: number("born", field("born"))?,
        once: optional("once", field("once"))?,
        void: field("void")
            .unwrap_or_default()
            .split_ascii_whitespace()
            .map(owner)
            .collect::<Result<_, _>>()?,
        keep: number("keep", field("keep"))?,
        started: number("started", field("started"))?,
        ended: optional("ended", field("ended"))?,
        code: optional("code", field("code"))?,
        info: field("info").unwrap_or_default().to_owned(),
    }))
}

/// Reads the reply of [`Script::Claim`], and what INFO said if it was asked.
///
/// # Errors
///
/// The reply is none that the script gives.
pub fn claim_reply(value: Value) -> Result<(ClaimReply, Option<String>), BadReply> {
    let told = Told::read(value)?;
    let verdict = match told.word() {
        "granted" => Verdict::Granted(Grant {
            token: told.number(1)?,
            attempt: told.number(2)?,
            grants: told.number(3)?,
            until: told.number(4)?,
            started: told.number(5)?,
            mark: told.number(6)?,
        }),
        "busy" => Verdict::Busy,
        "early" => Verdict::Early(told.number(1)?),
        "late" => Verdict::Late(told.number(1)?),
        "running" => Verdict::Running,
        "done" => Verdict::Done,
        "orphaned" => Verdict::Orphaned,
        "unsure" => Verdict::Unsure,
        "void" => Verdict::Void,
        "stale" => Verdict::Stale,
        other => return odd(format!("the verdict {other:?}")),
    };
    let reply = ClaimReply {
        verdict,
        now: told.now,
        before: told.before,
    };
    Ok((reply, told.memory))
}

/// Reads the reply of [`Script::Beat`].
///
/// # Errors
///
/// The reply is none that the script gives.
pub fn beat_reply(value: Value) -> Result<BeatReply, BadReply> {
    let told = Told::read(value)?;
    let held = match told.word() {
        "extended" => Ok(Extent::Extended),
        "lapsed" => Ok(Extent::Lapsed),
        "healed" => Ok(Extent::Healed),
        "ended" => Err(Loss::Ended),
        "gone" => Err(Loss::Gone),
        "taken" => Err(Loss::Taken),
        other => return odd(format!("the word {other:?} for a lease")),
    };
    Ok(BeatReply {
        held: match held {
            Ok(extent) => Ok((told.number(2)?, extent)),
            Err(loss) => Err(loss),
        },
        mark: told.number(1)?,
        now: told.now,
        before: told.before,
    })
}

/// Reads the reply of [`Script::Free`].
///
/// # Errors
///
/// The reply is none that the script gives.
pub fn free_reply(value: Value) -> Result<FreeReply, BadReply> {
    match Told::read(value)?.word() {
        "freed" => Ok(FreeReply::Freed),
        "already" => Ok(FreeReply::AlreadyFree),
        "voided" => Ok(FreeReply::Voided),
        "alien" => Ok(FreeReply::NotMine),
        other => odd(format!("the word {other:?} for an end")),
    }
}

/// Reads the reply of [`Script::Read`].
///
/// # Errors
///
/// The reply is none that the script gives.
pub fn read_reply(value: Value) -> Result<(Option<Record>, StoreTime), BadReply> {
    let Value::Array(parts) = value else {
        return odd("a reply that is no array");
    };
    let Ok([seconds, micros, fields]) = <[Value; 3]>::try_from(parts) else {
        return odd("a reply that is not of three parts");
    };
    let Value::Array(fields) = fields else {
        return odd("a record that is no array");
    };
    let seconds: i64 = number("time", text(seconds)?.as_deref())?;
    let micros: i64 = number("time", text(micros)?.as_deref())?;
    let fields: Vec<String> = fields
        .into_iter()
        .map(|field| text(field).map(Option::unwrap_or_default))
        .collect::<Result<_, _>>()?;
    let field = |name: &str| {
        let mut pairs = fields.chunks_exact(2);
        pairs
            .find(|pair| pair[0] == name)
            .map(|pair| pair[1].as_str())
    };
    let now = StoreTime::from_wall_us(seconds * 1_000_000 + micros);
    Ok((record(field)?, now))
}
