//! What one Redis bears: claims of many instances, spoken by one program over
//! a connection for each.

use std::time::Instant;

use chrono::Utc;
use solocron::lock::rules::{EndedRun, Outcome};
use solocron::lock::{Claim, Free, OnRunnerLost, Overlap, Owner, Wanted};
use solocron::store::redis::script::{self, Script};

use crate::place::{Place, rounds};
use crate::report::{Report, Sample};
use crate::support::{RedisServer, Resp, Value};

/// As a real instance writes it.
const INFO: &str = r#"{"host":"web-1.example.internal","pid":12345,"version":"0.1.0","command":"manage.py","schedule":["*/5 * * * *"],"zone":"Europe/Berlin"}"#;

pub fn measure(_place: &Place, report: &mut Report) {
    for (instances, locks) in [(10, 1), (100, 1), (1000, 1), (1000, 1000)] {
        load(report, instances, locks);
    }
}

/// Some instances, evenly on some locks: at a firing all claim at once.
struct Fleet {
    conns: Vec<Resp>,
    locks: usize,
    owners: u128,
}

fn load(report: &mut Report, instances: usize, locks: usize) {
    let server = RedisServer::start();
    let mut fleet = Fleet {
        conns: (0..instances).map(|_| server.connect()).collect(),
        locks,
        owners: 0,
    };
    let mut rates = Sample::default();
    server.cli(&["CONFIG", "RESETSTAT"]);
    for _ in 0..rounds(30_000 / instances).max(5) {
        let start = Instant::now();
        let granted = fleet.fire();
        #[expect(clippy::cast_precision_loss, reason = "few")]
        rates.add(instances as f64 / start.elapsed().as_secs_f64());
        assert_eq!(granted, locks, "one run a lock");
    }
    let what = format!(
        "{instances} instances on {locks} lock{}",
        if locks > 1 { "s" } else { "" }
    );
    report.note(format!("{what}: claims a second"), "", rates);
    let stats = server.cli(&["INFO", "commandstats"]).text();
    let line = stats.lines().find(|line| line.starts_with("cmdstat_eval:"));
    let line = line.expect("scripts ran");
    let number = |name: &str| {
        let part = line
            .split([':', ','])
            .find_map(|part| part.strip_prefix(name));
        part.and_then(|text| text.parse::<f64>().ok())
            .expect("a number")
    };
    report.note(
        format!("{what}: script on the server"),
        "µs",
        number("usec_per_call=").into(),
    );
    if locks == 1 && instances == 10 {
        let bytes = server.cli(&["MEMORY", "USAGE", &key(0)]).text();
        let bytes: f64 = bytes.parse().expect("a number");
        report.note("memory of a record", "B", bytes.into());
    }
}

fn key(lock: usize) -> String {
    format!("solocron:{{load-{lock}}}")
}

impl Fleet {
    /// One firing: claims of all, and the winners' frees after. Gives the number
    /// of winners.
    fn fire(&mut self) -> usize {
        let at = Utc::now().timestamp_millis();
        // Two firings of one lock are never the same instant.
        while Utc::now().timestamp_millis() <= at {}
        let text = Script::Claim.text();
        let mut claims = Vec::new();
        for (index, conn) in self.conns.iter_mut().enumerate() {
            self.owners += 1;
            let claim = claim(self.owners, at);
            let args = script::claim_args(&claim, claim.keep, false);
            send(conn, text, &key(index % self.locks), &args);
            claims.push(claim);
        }
        let replies = self
            .conns
            .iter_mut()
            .map(|conn| conn.read().expect("a reply"));
        let replies: Vec<Value> = replies.collect();
        let text = Script::Free.text();
        let mut winners = Vec::new();
        for (index, reply) in replies.iter().enumerate() {
            if let Some(free) = granted(&claims[index], reply) {
                let args = script::free_args(&free, free.keep);
                send(
                    &mut self.conns[index],
                    text,
                    &key(index % self.locks),
                    &args,
                );
                winners.push(index);
            }
        }
        for index in &winners {
            let reply = self.conns[*index].read().expect("a reply");
            assert_eq!(words(&reply)[0], "freed");
        }
        winners.len()
    }
}

fn send(conn: &mut Resp, text: &str, key: &str, args: &[String]) {
    let head = ["EVAL", text, "1", key];
    let words: Vec<&str> = head
        .into_iter()
        .chain(args.iter().map(String::as_str))
        .collect();
    conn.send(&words).expect("sent");
}

fn claim(owner: u128, at: i64) -> Claim {
    Claim {
        owner: Owner(owner),
        wanted: Wanted::Firing {
            at,
            start_deadline: 60_000,
            overlap: Overlap::Skip,
            on_runner_lost: OnRunnerLost::Skip,
        },
        ttl: 30_000,
        keep: 86_400_000,
        info: INFO.to_owned(),
    }
}

fn words(reply: &Value) -> Vec<String> {
    let words = reply.items().get(2).expect("three parts").items();
    words.iter().map(Value::text).collect()
}

/// What the winner says at the end of its run.
fn granted(claim: &Claim, reply: &Value) -> Option<Free> {
    let words = words(reply);
    if words[0] != "granted" {
        return None;
    }
    let number = |at: usize| words[at].parse::<i64>().expect("a number");
    Some(Free {
        owner: claim.owner,
        run: Some(EndedRun {
            token: words[1].parse().expect("a token"),
            mark_told: number(6),
            firing: claim.wanted.firing(),
            attempt: 1,
            grants: 1,
            started: number(5),
            once: false,
            outcome: Outcome::Done,
            code: Some(0),
            info: claim.info.clone(),
        }),
        keep: claim.keep,
    })
}
