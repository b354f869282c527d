//! A lock in a Redis Cluster: its slot is found, and followed where it goes.

#[path = "store/cluster.rs"]
mod cluster;
#[path = "store/ops.rs"]
mod ops;
mod support;

use cluster::Cluster;
use ops::{WITHIN, beat_of, granted, once, run, whole_run};
use rustix::process::Signal;
use solocron::lock::rules::Verdict;
use solocron::store::redis::RedisStore;
use solocron::store::redis::error::COMMANDS;
use solocron::store::redis::tls::TlsOptions;
use solocron::store::{Class, Location, Store};
use std::time::{Duration, Instant};
use support::Value;
use support::redis::free_port;
use support::wait::{ms, secs};

fn open(url: &str, name: &str) -> RedisStore {
    match Location::parse(url) {
        Ok(Location::Redis(url)) => {
            RedisStore::open(&url, &TlsOptions::default(), "solocron", name).expect("store")
        }
        other => panic!("{url}: {other:?}"),
    }
}

/// Beats until one is answered well; how long that took.
async fn beat_until_answered(store: &RedisStore, beat: &solocron::lock::Beat) -> Duration {
    let start = Instant::now();
    loop {
        match store.beat(beat, secs(2)).await {
            Ok(reply) if reply.held.is_ok() => return start.elapsed(),
            Ok(reply) => panic!("{reply:?}"),
            Err(err) => {
                assert!(!err.class.is_final(), "{err}");
                assert!(start.elapsed() < secs(20), "{err}");
                tokio::time::sleep(ms(50)).await;
            }
        }
    }
}

#[test]
fn the_slot_is_found_from_any_node() {
    let cluster = Cluster::start();
    let dead = free_port();
    let url = cluster
        .url()
        .replace("://", &format!("://127.0.0.1:{dead},"));
    for master in 0..3 {
        run(whole_run(&open(&url, &cluster.name_on(master)), 1));
        assert_eq!(cluster.nodes[master].call(&["DBSIZE"]), Value::Int(1));
    }

    // A plain address works for one name in three, and says so for the rest.
    let name = cluster.name_on(2);
    let plain = format!("redis://127.0.0.1:{}", cluster.nodes[0].port);
    let err = run(open(&plain, &name).claim(&once(2), WITHIN)).expect_err("moved");
    let there = format!("this lock is on 127.0.0.1:{}", cluster.nodes[2].port);
    let remedy = format!(
        "write the store address as redis-cluster://127.0.0.1:{}",
        cluster.nodes[0].port
    );
    assert_eq!(err.class, Class::Topology);
    assert!(
        err.message.contains(&there) && err.message.contains(&remedy),
        "{err}"
    );

    // The documented rights are enough, and without one of them it is named.
    for node in &cluster.nodes {
        let mut rule = vec![
            "ACL",
            "SETUSER",
            "solocron",
            "on",
            ">pw",
            "-@all",
            "~solocron:*",
            "+cluster|slots",
        ];
        rule.extend(COMMANDS.split(' '));
        node.call(&rule);
    }
    let url = cluster.url().replace("://", "://solocron:pw@");
    run(whole_run(&open(&url, &name), 3));
    for node in &cluster.nodes {
        node.call(&["ACL", "SETUSER", "solocron", "-time"]);
    }
    let err = run(open(&url, &name).claim(&once(4), WITHIN)).expect_err("not permitted");
    assert!(
        err.class == Class::Permission && err.message.contains("has no permission to run TIME"),
        "{err}"
    );
    for node in &cluster.nodes {
        node.call(&["ACL", "SETUSER", "solocron", "+time", "-cluster|slots"]);
    }
    let err = run(open(&url, &name).claim(&once(5), WITHIN)).expect_err("not permitted");
    assert!(
        err.class == Class::Permission && err.message.contains("CLUSTER"),
        "{err}"
    );
    for node in &cluster.nodes {
        node.call(&["ACL", "SETUSER", "default", "-@all", "+acl", "nopass"]);
    }
    let err = run(open(&cluster.url(), &name).claim(&once(6), WITHIN)).expect_err("not permitted");
    assert!(
        err.class == Class::Permission && err.message.contains("user default of"),
        "{err}"
    );
    for node in &cluster.nodes {
        node.call(&["ACL", "SETUSER", "default", "resetpass", ">secret"]);
    }
    let err = run(open(&cluster.url(), &name).claim(&once(6), WITHIN)).expect_err("no login");
    assert!(
        err.class == Class::Auth && err.message.contains("requires a password"),
        "{err}"
    );
    let wrong = url.replace(":pw@", ":no@");
    let err = run(open(&wrong, &name).claim(&once(6), WITHIN)).expect_err("wrong login");
    assert!(
        err.class == Class::Auth && err.message.contains("rejected"),
        "{err}"
    );
}

#[test]
fn a_killed_master_of_the_shard_is_replaced() {
    let mut cluster = Cluster::start();
    let name = cluster.name_on(0);
    run(async {
        let store = open(&cluster.url(), &name);
        let claim = once(1);
        let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        support::wait_until(secs(5), "the replica has it", || {
            cluster.nodes[3].call(&["DBSIZE"]) == Value::Int(1)
        });
        cluster.nodes[0].kill();
        let took = beat_until_answered(&store, &beat_of(&claim, &grant)).await;
        assert!(took < secs(15), "{took:?}");
        let reply = open(&cluster.url(), &name)
            .claim(&once(2), WITHIN)
            .await
            .expect("claim");
        assert_eq!(reply.verdict, Verdict::Busy);
    });
}

#[test]
fn a_slot_that_moves_is_followed_at_once() {
    let cluster = Cluster::start();
    let name = cluster.name_on(0);
    let slot = cluster.slot(&name).to_string();
    let key = format!("solocron:{{{name}}}");
    let [from, to] = [&cluster.nodes[0], &cluster.nodes[1]];
    run(async {
        let store = open(&cluster.url(), &name);
        let claim = once(1);
        let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        to.call(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from.id]);
        from.call(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to.id]);
        store
            .beat(&beat_of(&claim, &grant), WITHIN)
            .await
            .expect("beat while it moves");
        from.call(&[
            "MIGRATE",
            "127.0.0.1",
            &to.port.to_string(),
            &key,
            "0",
            "1000",
        ]);
        store
            .beat(&beat_of(&claim, &grant), WITHIN)
            .await
            .expect("beat half way");
        for node in [to, from] {
            node.call(&["CLUSTER", "SETSLOT", &slot, "NODE", &to.id]);
        }
        let beat = store
            .beat(&beat_of(&claim, &grant), WITHIN)
            .await
            .expect("beat after it moved");
        assert!(beat.held.is_ok());
        assert_eq!(to.call(&["EXISTS", &key]), Value::Int(1));
    });
}

#[test]
fn a_planned_failover_and_a_silent_node() {
    let cluster = Cluster::start();
    let name = cluster.name_on(0);
    run(async {
        let store = open(&cluster.url(), &name);
        let claim = once(1);
        let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        cluster.nodes[3].call(&["CLUSTER", "FAILOVER"]);
        support::wait_until(secs(10), "the replica takes over", || {
            cluster.nodes[0]
                .call(&["INFO", "replication"])
                .text()
                .contains("role:slave")
        });
        let took = beat_until_answered(&store, &beat_of(&claim, &grant)).await;
        assert!(took < secs(2), "{took:?}");
        cluster.nodes[3].signal(Signal::STOP);
        let start = Instant::now();
        let err = store
            .beat(&beat_of(&claim, &grant), ms(400))
            .await
            .expect_err("silent");
        assert!(start.elapsed() < ms(600), "{:?}", start.elapsed());
        assert_eq!((err.class, err.unsettled), (Class::Unreachable, true));
        let start = Instant::now();
        let err = store
            .beat(&beat_of(&claim, &grant), secs(5))
            .await
            .expect_err("silent");
        assert!(start.elapsed() < ms(2_200), "{:?} {err}", start.elapsed());
        cluster.nodes[3].signal(Signal::CONT);
        beat_until_answered(&store, &beat_of(&claim, &grant)).await;
    });
}
