//! Random histories of claim, beat and free, carried out by the rules and by a
//! store side by side: every answer and every record must be the same.

#[path = "store/history.rs"]
mod history;
mod support;

use history::{History, Reply, Step};
use redis::aio::MultiplexedConnection;
use redis::{Client, Value};
use solocron::lock::{Record, StoreTime};
use solocron::store::redis::script::{
    self, Script, beat_args, beat_reply, claim_args, claim_reply, free_args, free_reply, read_reply,
};
use std::path::PathBuf;
use support::redis::optional_servers;
use support::{RedisServer, long};

/// Steps in the suite and with `SOLOCRON_LONG`.
fn steps() -> u32 {
    if long() { 60_000 } else { 4_000 }
}

/// The one line by which scripts read the clock, and what the tests put there.
const CLOCK: (&str, &str) = (
    "local t = redis.call('TIME')",
    "local t = {ARGV[#ARGV - 1], ARGV[#ARGV]}",
);

struct Scripted {
    conn: MultiplexedConnection,
    texts: [String; 4],
}

impl Scripted {
    async fn new(server: &RedisServer) -> Self {
        let client = Client::open(server.unix_url()).expect("URL");
        let conn = client
            .get_multiplexed_async_connection()
            .await
            .expect("connection");
        let texts = [Script::Claim, Script::Beat, Script::Free, Script::Read].map(|script| {
            let text = script.text();
            assert_eq!(
                text.matches(CLOCK.0).count(),
                1,
                "{script:?} reads the clock once"
            );
            text.replace(CLOCK.0, CLOCK.1)
        });
        Self { conn, texts }
    }

    async fn eval(&mut self, text: usize, mut args: Vec<String>, now: StoreTime) -> Value {
        args.push((now.wall_us / 1_000_000).to_string());
        args.push((now.wall_us % 1_000_000).to_string());
        script::command(&self.texts[text], "solocron:{h}", &args)
            .query_async(&mut self.conn)
            .await
            .expect("answer")
    }

    async fn apply(&mut self, step: &Step, now: StoreTime) -> Reply {
        match step {
            Step::Claim(claim) => {
                let args = claim_args(claim, claim.keep, false);
                let value = self.eval(0, args, now).await;
                Reply::Claim(claim_reply(value).expect("claim").0)
            }
            Step::Beat(beat) => {
                let value = self.eval(1, beat_args(beat, beat.keep), now).await;
                Reply::Beat(beat_reply(value).expect("beat"))
            }
            Step::Free(free) => {
                let value = self.eval(2, free_args(free, free.keep), now).await;
                Reply::Free(free_reply(value).expect("free"))
            }
            Step::Wipe => {
                let () = redis::cmd("DEL")
                    .arg("solocron:{h}")
                    .query_async(&mut self.conn)
                    .await
                    .expect("DEL");
                Reply::Wiped
            }
        }
    }

    async fn record(&mut self, now: StoreTime) -> Option<Record> {
        let value = self.eval(3, Vec::new(), now).await;
        let (record, told) = read_reply(value).expect("record");
        assert_eq!(told, now);
        record
    }
}

async fn compare(program: PathBuf, label: &str, seed: u64) {
    let server = RedisServer::options().program(&program).start();
    let mut scripted = Scripted::new(&server).await;
    let mut history = History::new(seed);
    for number in 0..steps() {
        let (step, now) = history.next();
        let before = history.record.clone();
        let expected = history.apply(&step, now);
        let reply = scripted.apply(&step, now).await;
        let context = || {
            format!("{label}, seed {seed}, step {number} at {now:?}: {step:?}\nbefore: {before:?}")
        };
        assert_eq!(reply, expected, "{}", context());
        assert_eq!(scripted.record(now).await, history.record, "{}", context());
    }
    history.assert_all_answers_seen();
}

fn run(program: PathBuf, label: &str, seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime");
    runtime.block_on(compare(program, label, seed));
}

#[test]
fn the_scripts_say_what_the_rules_say() {
    for seed in 1..=2 {
        run("redis-server".into(), "redis-server", seed);
    }
}

#[test]
fn the_scripts_say_so_on_every_server_at_hand() {
    for (label, program) in optional_servers() {
        run(program, &label, 3);
    }
}
