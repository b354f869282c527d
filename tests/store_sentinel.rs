//! A lock behind sentinels: the master is asked for, and a failover followed.

#[path = "store/ops.rs"]
mod ops;
mod support;
#[path = "store/watched.rs"]
mod watched;

use ops::{WITHIN, beat_of, firing, granted, once, run, whole_run};
use solocron::lock::Owner;
use solocron::lock::rules::Verdict;
use solocron::store::redis::RedisStore;
use solocron::store::redis::tls::TlsOptions;
use solocron::store::{Class, Location, Store};
use std::time::{Duration, Instant};
use support::redis::free_port;
use support::wait::{ms, secs};
use support::{RedisServer, Value, wait_until};
use watched::Watched;

fn open(url: &str) -> RedisStore {
    match Location::parse(url) {
        Ok(Location::Redis(url)) => {
            RedisStore::open(&url, &TlsOptions::default(), "solocron", "job").expect("store")
        }
        other => panic!("{url}: {other:?}"),
    }
}

fn has_record(server: &RedisServer) -> bool {
    server.cli(&["EXISTS", "solocron:{job}"]) == Value::Int(1)
}

/// Tries until the claim is answered; how long that took.
async fn claim_until_answered(store: &RedisStore, owner: u128) -> (Verdict, Duration) {
    let start = Instant::now();
    loop {
        match store.claim(&once(owner), secs(2)).await {
            Ok(reply) => return (reply.verdict, start.elapsed()),
            Err(err) => {
                assert!(!err.class.is_final(), "{err}");
                assert!(start.elapsed() < secs(20), "{err}");
                tokio::time::sleep(ms(50)).await;
            }
        }
    }
}

#[test]
fn the_master_is_found_and_a_planned_failover_followed() {
    let watched = Watched::start();
    watched.wait_until_ready();
    let [old, new] = &watched.servers;
    run(async {
        let store = open(&watched.url());
        whole_run(&store, 1).await;
        let claim = firing(2, old.now_ms());
        let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        let other = open(&watched.url());
        other.prepare(WITHIN).await.expect("prepare");
        assert!(other.grant_stands(WITHIN).await.expect("answer"));
        // The new master knows nothing of the run, as if its last writes were lost.
        old.cli(&["CLIENT", "KILL", "TYPE", "replica"]);
        let reply = watched.sentinels[0].call(&["SENTINEL", "FAILOVER", "mymaster"]);
        assert_eq!(reply, Some(Value::Status("OK".into())));
        watched.wait_for_master(new);
        new.cli(&["DEL", "solocron:{job}"]);
        let beat = store
            .beat(&beat_of(&claim, &grant), WITHIN)
            .await
            .expect("beat");
        assert!(beat.held.is_ok(), "{beat:?}");
        assert!(has_record(new));
        assert!(!other.grant_stands(WITHIN).await.expect("answer"));
        let mut again = claim.clone();
        again.owner = Owner(3);
        let reply = other.claim(&again, WITHIN).await.expect("claim");
        assert_eq!(reply.verdict, Verdict::Running);
    });
}

#[test]
fn a_prepared_claim_is_one_round_trip_to_the_master() {
    let watched = Watched::start();
    run(async {
        let store = open(&watched.url());
        store.prepare(WITHIN).await.expect("prepare");
        let asked = |one: &watched::Sentinel| {
            let stats = one.call(&["INFO", "stats"]).expect("INFO").text();
            let line = stats
                .lines()
                .find_map(|line| line.strip_prefix("total_connections_received:"));
            line.and_then(|count| count.trim().parse::<u32>().ok())
                .expect("a number")
        };
        let commands = watched.servers[0].calls("eval");
        let before: Vec<u32> = watched.sentinels.iter().map(asked).collect();
        granted(&store.claim(&once(1), WITHIN).await.expect("claim"));
        let after: Vec<u32> = watched.sentinels.iter().map(asked).collect();
        // Each look at a sentinel is itself a connection.
        let new: Vec<u32> = before
            .iter()
            .zip(&after)
            .map(|(before, after)| after - before)
            .collect();
        assert_eq!(new, [1, 1, 1]);
        assert_eq!(watched.servers[0].calls("eval"), commands + 1);
    });
}

#[test]
fn a_killed_master_is_replaced_and_a_run_lives_on() {
    let mut watched = Watched::start();
    watched.wait_until_ready();
    watched.sentinels[2].kill();
    run(async {
        let store = open(&watched.url());
        let claim = once(1);
        let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        let beat = beat_of(&claim, &grant);
        // A write that no replica has yet is lost with its master.
        wait_until(secs(5), "the replica has it", || {
            has_record(&watched.servers[1])
        });
        watched.servers[0].kill();
        let other = open(&watched.url());
        let (verdict, took) = claim_until_answered(&other, 2).await;
        assert_eq!(verdict, Verdict::Busy);
        assert!(took < secs(15), "{took:?}");
        let beat = store.beat(&beat, WITHIN).await.expect("beat");
        assert!(beat.held.is_ok(), "{beat:?}");
        assert!(has_record(&watched.servers[1]));
    });
}

#[test]
fn a_name_that_no_sentinel_knows() {
    let watched = Watched::start();
    let url = watched.url().replace("mymaster", "other");
    let err = run(open(&url).claim(&once(1), WITHIN)).expect_err("unknown");
    assert_eq!(err.class, Class::Topology);
    assert!(
        err.message
            .contains("knows no master \"other\": check the name"),
        "{err}"
    );
}

#[test]
fn one_sentinel_that_answers_is_enough() {
    let mut watched = Watched::start();
    for sentinel in &mut watched.sentinels[1..] {
        sentinel.kill();
    }
    run(whole_run(&open(&watched.url()), 1));
    watched.sentinels[0].kill();
    let err = run(open(&watched.url()).claim(&once(1), WITHIN)).expect_err("none left");
    assert_eq!((err.class, err.unsettled), (Class::Unreachable, false));
    assert!(
        err.message.contains("cannot reach sentinel 127.0.0.1"),
        "{err}"
    );
}

#[test]
fn sentinels_may_want_a_login() {
    let rights = "-@all +sentinel|get-master-addr-by-name +sentinel|master";
    let lines = format!("user watcher on >spw {rights}\nuser default on >pw {rights}");
    let watched = Watched::start_with(&lines);
    let server = &watched.servers[0];
    let url = watched.url();
    let err = run(open(&url).claim(&once(1), WITHIN)).expect_err("no login");
    assert_eq!(err.class, Class::Auth);
    assert!(
        err.message.contains("sentinel 127.0.0.1") && err.message.contains("requires a password"),
        "{err}"
    );
    let with = |text: &str| format!("{url}?{text}");
    run(whole_run(
        &open(&with("sentinel_user=watcher&sentinel_pass=spw")),
        1,
    ));
    let err =
        run(open(&with("sentinel_pass=no")).claim(&once(1), WITHIN)).expect_err("wrong login");
    assert!(
        err.message.contains("sentinel 127.0.0.1") && err.message.contains("rejected"),
        "{err}"
    );
    // Where both have the same password it is enough to give it once.
    server.cli(&["CONFIG", "SET", "requirepass", "pw"]);
    let shared = url.replace("://", "://:pw@");
    run(whole_run(&open(&shared), 2));
    let err = run(open(&with("sentinel_pass=pw")).claim(&once(3), WITHIN))
        .expect_err("no login at the master");
    assert!(
        err.message.contains(&format!(
            "redis 127.0.0.1:{} requires a password",
            server.port()
        )),
        "{err}"
    );
}

#[test]
fn silent_sentinels_cost_little_time() {
    let mut watched = Watched::start();
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("port");
    let silent = silent.local_addr().expect("address").port();
    let dead = free_port();
    let url = watched
        .url()
        .replace("://", &format!("://127.0.0.1:{silent},127.0.0.1:{dead},"));
    run(async {
        let store = open(&url);
        let claim = once(1);
        let start = Instant::now();
        let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        assert!(start.elapsed() < ms(500), "{:?}", start.elapsed());
        // Where only one answers, a heartbeat of a short lease still gets through.
        for sentinel in &mut watched.sentinels[1..] {
            sentinel.pause();
        }
        let beat = store
            .beat(&beat_of(&claim, &grant), ms(100))
            .await
            .expect("beat");
        assert!(beat.held.is_ok());
    });
}
