//! What the instances say, read back from their JSON logs.

use crate::facts::{Line, Span, Us};
use serde_json::Value;
use std::time::Duration;

/// The lines of a log whose clock was `ahead` of the true one.
pub fn read(text: &str, ahead: Us) -> Vec<Line> {
    text.lines().filter_map(|line| parse(line, ahead)).collect()
}

fn parse(text: &str, ahead: Us) -> Option<Line> {
    // What a killed process was writing may be cut off.
    let value: Value = serde_json::from_str(text).ok()?;
    let word = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
    let at = instant(word("time"))? - ahead;
    Some(Line {
        at,
        event: word("event").to_owned(),
        reason: word("reason").to_owned(),
        firing: instant(word("firing")),
        token: number("token"),
        attempt: u32::try_from(number("attempt")).unwrap_or(u32::MAX),
        held: value.get("holder").and_then(|holder| held(holder, at)),
        span: instant(word("first")).zip(instant(word("last"))),
        text: text.to_owned(),
    })
}

fn held(holder: &Value, at: Us) -> Option<Span> {
    let span = |name: &str| {
        let seconds = holder.get(name)?.as_f64()?;
        Some(Us::try_from(Duration::from_secs_f64(seconds).as_micros()).expect("a span"))
    };
    Some(Span {
        from: at - span("age")?,
        to: at + span("left")?,
    })
}

fn instant(text: &str) -> Option<Us> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.as_microsecond())
}
