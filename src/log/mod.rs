//! The log: events as lines on standard error.

mod message;
mod stderr;

use std::cell::RefCell;
use std::io::Write;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber, field, span};

use crate::clock::Clock;
use crate::event::{Event, Level, Listener, Skip};
use crate::lock::Boot;

/// Repeats of one trouble are told once in this span.
const REPEAT_AFTER: Duration = Duration::from_secs(60);
/// So many skipped firings are told in that span.
const SKIPS_TOLD: u32 = 10;

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The listener that writes lines.
pub struct Log<'a> {
    lock: String,
    clock: &'a dyn Clock,
    repeats: RefCell<Repeats>,
}

impl<'a> Log<'a> {
    /// A log for the job that goes by `lock`.
    #[must_use]
    pub fn new(lock: &str, clock: &'a dyn Clock) -> Self {
        Self {
            lock: crate::info::shown(lock),
            clock,
            repeats: RefCell::default(),
        }
    }
}

impl Listener for Log<'_> {
    fn on_event(&self, event: &Event) {
        let Some(added) = self.repeats.borrow_mut().pass(event, self.clock.boot()) else {
            return;
        };
        let text = format!("{}: {}{added}", self.lock, message::of(event));
        let json = || serde_json::to_string(event).unwrap_or_default();
        let time = self.clock.wall();
        macro_rules! tell {
            ($level:ident) => {
                tracing::$level!(
                    at = time.timestamp_micros(),
                    lock = self.lock,
                    json = field::display(lazily(&json)),
                    "{text}"
                )
            };
        }
        match event.level() {
            Level::Error => tell!(error),
            Level::Warn => tell!(warn),
            Level::Info => tell!(info),
            Level::Debug => tell!(debug),
            Level::Trace => tell!(trace),
        }
    }
}

/// Displays what `make` gives, made only when somebody reads it.
fn lazily<F: Fn() -> String>(make: F) -> impl std::fmt::Display {
    struct Lazy<F>(F);
    impl<F: Fn() -> String> std::fmt::Display for Lazy<F> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&(self.0)())
        }
    }
    Lazy(make)
}

/// Holds back what would flood the log: a trouble with the store is told when
/// it changes and once a minute, and of skipped firings a number a minute.
/// What was held back is counted with the next line that it belongs to.
#[derive(Default)]
struct Repeats {
    store: Option<Trouble>,
    skips: Skips,
    told_waiting: Option<Boot>,
}

struct Trouble {
    class: &'static str,
    told_at: Boot,
    held_back: u64,
}

#[derive(Default)]
struct Skips {
    since: Boot,
    told: u32,
    held_back: u64,
}

impl Repeats {
    /// Whether `event` is to be told at `now`, and what to add about others
    /// that were not.
    fn pass(&mut self, event: &Event, now: Boot) -> Option<String> {
        match event {
            // Good news only after bad.
            Event::StoreAnswered => self.store.take().map(|_| String::new()),
            Event::StoreFailed { class, .. } => self.pass_failure(class, now),
            Event::Skipped {
                skip: Skip::WaitOver { .. } | Skip::Done | Skip::Stopping,
                ..
            } => Some(String::new()),
            Event::Skipped { .. } => self.pass_skip(now),
            Event::Started { .. } | Event::Stopped { .. } => {
                self.told_waiting = None;
                Some(self.skips.counted())
            }
            Event::Waiting { .. } => self.pass_waiting(now),
            _ => Some(String::new()),
        }
    }

    fn pass_failure(&mut self, class: &'static str, now: Boot) -> Option<String> {
        let mut added = String::new();
        if let Some(trouble) = &mut self.store
            && trouble.class == class
        {
            if now < trouble.told_at + REPEAT_AFTER {
                trouble.held_back += 1;
                return None;
            }
            if trouble.held_back > 0 {
                added = format!(" ({} more failures not shown)", trouble.held_back);
            }
        }
        self.store = Some(Trouble {
            class,
            told_at: now,
            held_back: 0,
        });
        Some(added)
    }

    /// Every firing waits behind one long run.
    fn pass_waiting(&mut self, now: Boot) -> Option<String> {
        if self.told_waiting.is_some_and(|at| now < at + REPEAT_AFTER) {
            return None;
        }
        self.told_waiting = Some(now);
        Some(String::new())
    }

    fn pass_skip(&mut self, now: Boot) -> Option<String> {
        let skips = &mut self.skips;
        if skips.told == 0 || now >= skips.since + REPEAT_AFTER {
            skips.since = now;
            skips.told = 0;
        }
        if skips.told == SKIPS_TOLD {
            skips.held_back += 1;
            return None;
        }
        skips.told += 1;
        Some(skips.counted())
    }
}

impl Skips {
    fn counted(&mut self) -> String {
        match std::mem::take(&mut self.held_back) {
            0 => String::new(),
            n => format!(" ({n} more skipped firings not shown)"),
        }
    }
}

/// Says something on standard error without a log: before there is one.
pub fn say(text: &str) {
    let _ = writeln!(stderr::Stderr, "{text}");
}

/// Sends log lines of `level` and above to standard error.
///
/// Colour is used where `colour` says so.
pub fn start(format: Format, level: LevelFilter, colour: bool) {
    // Only one log can be started in a process; tests start several.
    let _ = tracing::subscriber::set_global_default(Lines {
        format,
        level,
        colour,
    });
}

/// What turns tracing events into lines. It knows nothing of spans: nobody
/// here opens one.
struct Lines {
    format: Format,
    level: LevelFilter,
    colour: bool,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let line = match self.format {
            Format::Text => text_line(event, self.colour),
            Format::Json => json_line(event),
        };
        let _ = stderr::Stderr.write_all(line.as_bytes());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The fields of a log line, picked out of a tracing event.
#[derive(Default)]
struct Fields {
    at: Option<DateTime<Utc>>,
    lock: String,
    json: String,
    message: String,
    want_json: bool,
}

impl field::Visit for Fields {
    fn record_i64(&mut self, field: &field::Field, value: i64) {
        if field.name() == "at" {
            self.at = DateTime::from_timestamp_micros(value);
        }
    }

    fn record_str(&mut self, field: &field::Field, value: &str) {
        if field.name() == "lock" {
            value.clone_into(&mut self.lock);
        }
    }

    fn record_debug(&mut self, field: &field::Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "json" if self.want_json => self.json = format!("{value:?}"),
            _ => {}
        }
    }
}

fn pick(event: &tracing::Event<'_>, want_json: bool) -> Fields {
    let mut fields = Fields {
        want_json,
        ..Fields::default()
    };
    event.record(&mut fields);
    fields
}

fn time_of(fields: &Fields) -> String {
    fields
        .at
        .map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true))
        .unwrap_or_default()
}

fn text_line(event: &tracing::Event<'_>, colour: bool) -> String {
    let fields = pick(event, false);
    let (word, code) = match *event.metadata().level() {
        tracing::Level::ERROR => ("error", "\x1b[31m"),
        tracing::Level::WARN => ("warning", "\x1b[33m"),
        tracing::Level::INFO => ("info", "\x1b[32m"),
        tracing::Level::DEBUG => ("debug", "\x1b[34m"),
        tracing::Level::TRACE => ("trace", "\x1b[35m"),
    };
    let time = time_of(&fields);
    let message = &fields.message;
    if colour {
        format!("\x1b[2m{time}\x1b[0m solocron {code}{word}\x1b[0m: {message}\n")
    } else {
        format!("{time} solocron {word}: {message}\n")
    }
}

fn json_line(event: &tracing::Event<'_>) -> String {
    let fields = pick(event, true);
    let mut line = serde_json::Map::new();
    line.insert("time".into(), time_of(&fields).into());
    let level = event.metadata().level().as_str().to_ascii_lowercase();
    line.insert("level".into(), level.into());
    line.insert("lock".into(), fields.lock.into());
    line.insert("message".into(), fields.message.into());
    if let Ok(serde_json::Value::Object(data)) = serde_json::from_str(&fields.json) {
        line.extend(data);
    }
    format!("{}\n", serde_json::Value::Object(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Boot {
        Duration::from_secs(seconds)
    }

    fn failed(class: &'static str) -> Event {
        Event::StoreFailed {
            error: format!("{class} at some moment"),
            class,
        }
    }

    fn skipped(skip: Skip) -> Event {
        Event::Skipped { firing: None, skip }
    }

    #[expect(clippy::unnecessary_wraps, reason = "as `pass` gives it")]
    fn told(added: &str) -> Option<String> {
        Some(added.to_owned())
    }

    #[test]
    fn a_trouble_is_told_on_change_and_once_a_minute() {
        let mut repeats = Repeats::default();
        assert_eq!(repeats.pass(&failed("unreachable"), s(0)), told(""));
        for now in 1..60 {
            assert_eq!(repeats.pass(&failed("unreachable"), s(now)), None);
        }
        let counted = told(" (59 more failures not shown)");
        assert_eq!(repeats.pass(&failed("unreachable"), s(60)), counted);
        assert_eq!(repeats.pass(&failed("unreachable"), s(61)), None);
        assert_eq!(repeats.pass(&failed("auth"), s(61)), told(""));
    }

    #[test]
    fn good_news_comes_only_after_bad() {
        let mut repeats = Repeats::default();
        assert_eq!(repeats.pass(&Event::StoreAnswered, s(0)), None);
        repeats.pass(&failed("unreachable"), s(1));
        repeats.pass(&failed("unreachable"), s(2));
        assert_eq!(repeats.pass(&Event::StoreAnswered, s(3)), told(""));
        assert_eq!(repeats.pass(&Event::StoreAnswered, s(4)), None);
        assert_eq!(repeats.pass(&failed("unreachable"), s(5)), told(""));
    }

    #[test]
    fn of_a_flood_of_skips_some_are_told_and_the_rest_counted() {
        let started = Event::Started {
            firing: None,
            token: 1,
            attempt: 1,
            pid: 1,
            late: None,
        };
        let mut repeats = Repeats::default();
        for now in 0..10 {
            assert_eq!(repeats.pass(&skipped(Skip::Overlapped), s(now)), told(""));
        }
        for now in 10..60 {
            assert_eq!(repeats.pass(&skipped(Skip::Overlapped), s(now)), None);
        }
        assert_eq!(repeats.pass(&skipped(Skip::Done), s(59)), told(""));
        let counted = told(" (50 more skipped firings not shown)");
        assert_eq!(repeats.pass(&skipped(Skip::Unsure), s(60)), counted);
        for now in 61..75 {
            repeats.pass(&skipped(Skip::Unsure), s(now));
        }
        let counted = told(" (5 more skipped firings not shown)");
        assert_eq!(repeats.pass(&started, s(75)), counted);
        assert_eq!(repeats.pass(&started, s(76)), told(""));
    }

    #[test]
    fn a_wait_is_told_once_a_minute_until_something_starts() {
        let waiting = Event::Waiting { holder: None };
        let mut repeats = Repeats::default();
        assert_eq!(repeats.pass(&waiting, s(0)), told(""));
        assert_eq!(repeats.pass(&waiting, s(59)), None);
        assert_eq!(repeats.pass(&waiting, s(60)), told(""));
        let stopped = Event::Stopped {
            reason: String::new(),
        };
        repeats.pass(&stopped, s(61));
        assert_eq!(repeats.pass(&waiting, s(61)), told(""));
    }
}
