//! Looking into a test server: records, counters and the commands it executed.

use super::redis::RedisServer;
use super::resp::{Resp, Value};
use super::wait::{eventually, ms};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

impl RedisServer {
    /// The record of a lock name: all fields of `solocron:{NAME}`, empty when there is none.
    #[must_use]
    pub fn record(&self, name: &str) -> BTreeMap<String, String> {
        let reply = self.cli(&["HGETALL", &key(name)]);
        reply
            .items()
            .chunks(2)
            .map(|pair| (pair[0].text(), pair[1].text()))
            .collect()
    }

    /// Whether somebody holds the lock by the server's clock.
    #[must_use]
    pub fn held(&self, name: &str) -> bool {
        let record = self.record(name);
        let until = record.get("until").and_then(|u| u.parse::<i64>().ok());
        record.get("state").is_some_and(|s| s == "run") && until.is_some_and(|u| u > self.now_ms())
    }

    /// Fails the test when the lock is not free within `bound`.
    pub fn assert_free(&self, name: &str, bound: Duration) {
        assert!(
            eventually(bound, || !self.held(name)),
            "lock {name} is still held: {:?}",
            self.record(name)
        );
    }

    /// The server's clock in milliseconds.
    ///
    /// # Panics
    /// When the server does not answer.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        let reply = self.cli(&["TIME"]);
        let number = |i: usize| reply.items()[i].text().parse::<i64>().expect("a number");
        number(0) * 1000 + number(1) / 1000
    }

    /// A number of `INFO`, for example `total_commands_processed`.
    ///
    /// # Panics
    /// When there is no such number.
    #[must_use]
    pub fn info(&self, field: &str) -> u64 {
        let info = self.cli(&["INFO", "everything"]).text();
        let value = info
            .lines()
            .find_map(|l| l.strip_prefix(field)?.strip_prefix(':'))
            .unwrap_or_else(|| panic!("no {field} in INFO"));
        value.trim().parse().expect("a number")
    }

    /// How often a command was called, from `INFO commandstats`.
    #[must_use]
    pub fn calls(&self, command: &str) -> u64 {
        let info = self.cli(&["INFO", "commandstats"]).text();
        let prefix = format!("cmdstat_{}:calls=", command.to_lowercase());
        info.lines()
            .find_map(|l| l.strip_prefix(&prefix)?.split(',').next()?.parse().ok())
            .unwrap_or(0)
    }

    /// Connections of others than this test.
    #[must_use]
    pub fn clients(&self) -> u64 {
        self.info("connected_clients") - 1
    }

    /// Starts listening to all commands.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        Monitor::new(self.connect())
    }
}

/// The key of a lock's record with the default prefix.
#[must_use]
pub fn key(name: &str) -> String {
    format!("solocron:{{{name}}}")
}

/// All commands that a server executed since the start of listening.
pub struct Monitor {
    lines: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

impl Monitor {
    fn new(mut resp: Resp) -> Self {
        let reply = resp.call(&["MONITOR"]).expect("MONITOR");
        assert_eq!(reply, Value::Status("OK".into()));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (sink, ended) = (Arc::clone(&lines), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                match resp.read() {
                    Ok(Value::Status(line)) => sink.lock().expect("lines").push(line),
                    Ok(_) => {}
                    // Silence for as long as the read bound.
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                    Err(_) => return,
                }
            }
        });
        Self { lines, stop }
    }

    /// Time in seconds since the epoch and text of every command that came from a client (scripts' own calls left out).
    #[must_use]
    pub fn commands(&self) -> Vec<(f64, String)> {
        std::thread::sleep(ms(20));
        let lines = self.lines.lock().expect("lines");
        lines
            .iter()
            .filter(|l| !l.contains(" lua] "))
            .filter_map(|l| Some((l.split(' ').next()?.parse().ok()?, l.clone())))
            .collect()
    }

    /// The commands whose name is `name`.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<(f64, String)> {
        let quoted = format!("] \"{}\"", name.to_lowercase());
        let mut all = self.commands();
        all.retain(|(_, l)| l.to_lowercase().contains(&quoted));
        all
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // The thread ends with its next line, its read bound or its connection; nobody waits for it.
        self.stop.store(true, Ordering::Relaxed);
    }
}
