//! A lock in a real Redis server: what is sent, and what lies there afterwards.

#[path = "store/ops.rs"]
mod ops;
mod support;

use ops::{KEEP, WITHIN, beat_of, end_of, firing, granted, once, run, whole_run};
use solocron::lock::rules::Verdict;
use solocron::lock::{Free, FreeReply, Owner};
use solocron::store::redis::tls::TlsOptions;
use solocron::store::redis::{RedisStore, key_of};
use solocron::store::{Class, Location, Store};
use std::time::Duration;
use support::wait::{ms, secs};
use support::{RedisServer, Value, wait_until};

fn open(url: &str, name: &str) -> RedisStore {
    match Location::parse(url) {
        Ok(Location::Redis(url)) => {
            RedisStore::open(&url, &TlsOptions::default(), "solocron", name).expect("store")
        }
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn a_whole_run_by_every_way_to_connect() {
    let server = RedisServer::options().password("pass/word").start();
    let login = server.url_as("", "pass%2Fword");
    let socket = format!("{}?pass=pass/word&db=3", server.unix_url());
    let urls = [
        login.clone(),
        format!("{login}/2"),
        login.replace("127.0.0.1", "localhost"),
        socket,
    ];
    for (url, owner) in urls.iter().zip(1..) {
        run(whole_run(&open(url, "job"), owner));
    }
    let sizes = ["0", "2", "3"].map(|db| {
        let mut conn = server.connect();
        conn.call(&["SELECT", db]).expect("SELECT");
        conn.call(&["DBSIZE"]).expect("DBSIZE")
    });
    assert_eq!(sizes, [Value::Int(1), Value::Int(1), Value::Int(1)]);
}

#[test]
fn a_refused_claim_costs_one_round_trip_and_a_run_two() {
    let server = RedisServer::start();
    let monitor = server.monitor();
    run(async {
        let winner = open(&server.url(), "job");
        let claim = once(1);
        let grant = granted(&winner.claim(&claim, WITHIN).await.expect("claim"));
        let loser = open(&server.url(), "job");
        let reply = loser.claim(&once(2), WITHIN).await.expect("claim");
        assert_eq!(reply.verdict, Verdict::Busy);
        assert_eq!(
            reply.before.expect("the winner's record").token,
            grant.token
        );
        winner
            .free(&end_of(&claim, &grant), WITHIN)
            .await
            .expect("free");
    });
    wait_until(secs(2), "all commands seen", || {
        monitor.named("eval").len() == 3
    });
    let sent = monitor
        .commands()
        .into_iter()
        .filter(|(_, line)| !line.contains(" lua]"));
    let sent: Vec<_> = sent.map(|(_, line)| line).collect();
    assert_eq!(sent.len(), 3, "{sent:#?}");
}

#[test]
fn the_key_outlives_the_lease_and_is_never_shortened() {
    let server = RedisServer::start();
    let ttl = || match server.cli(&["PTTL", "solocron:{job}"]) {
        Value::Int(ttl) => ttl,
        other => panic!("{other:?}"),
    };
    run(async {
        let store = open(&server.url(), "job");
        let long = once(1);
        let grant = granted(&store.claim(&long, WITHIN).await.expect("claim"));
        assert!((KEEP - 5_000..=KEEP).contains(&ttl()), "{}", ttl());
        let mut short = end_of(&long, &grant);
        short.keep = 1_000;
        store.free(&short, WITHIN).await.expect("free");
        assert!(ttl() > KEEP - 5_000, "{}", ttl());
        let mut longer = once(2);
        longer.keep = 3 * KEEP;
        granted(&store.claim(&longer, WITHIN).await.expect("claim"));
        assert!(ttl() > 2 * KEEP, "{}", ttl());
    });
}

#[test]
fn a_connection_that_broke_while_idle_is_replaced_within_the_call() {
    let mut server = RedisServer::start();
    run(async {
        let store = open(&server.url(), "job");
        whole_run(&store, 1).await;
        server.kill();
        server.start_again();
        whole_run(&store, 2).await;
        server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        granted(
            &store
                .claim(&firing(3, server.now_ms()), WITHIN)
                .await
                .expect("claim"),
        );
    });
}

#[test]
fn no_connection_is_held_at_rest() {
    let server = RedisServer::start();
    run(async {
        let store = open(&server.url(), "job");
        let before = server.clients();
        store.prepare(WITHIN).await.expect("prepare");
        assert_eq!(server.clients(), before + 1);
        store.rest();
        tokio::time::timeout(secs(2), async {
            while server.clients() > before {
                tokio::time::sleep(ms(2)).await;
            }
        })
        .await
        .expect("the connection goes");
        whole_run(&store, 1).await;
    });
}

#[test]
fn time_limits_are_totals_and_what_may_have_happened_is_told() {
    let server = RedisServer::start();
    run(async {
        let store = open(&server.url(), "job");
        let claim = once(1);
        let kept = open(&server.url(), "job");
        kept.prepare(WITHIN).await.expect("prepare");
        server.pause();
        for (store, sent_at_once) in [(&store, false), (&kept, true)] {
            let start = std::time::Instant::now();
            let err = store.claim(&claim, ms(300)).await.expect_err("no answer");
            let took = start.elapsed();
            assert!(took >= ms(290) && took < ms(450), "{took:?}");
            assert_eq!(err.class, Class::Unreachable);
            assert!(
                err.message
                    .contains(&format!("127.0.0.1:{}", server.port())),
                "{err}"
            );
            // The kernel takes connections for a stopped process: it was sent.
            assert!(err.unsettled, "{sent_at_once} {err:?}");
        }
        let start = std::time::Instant::now();
        let err = store
            .claim(&claim, Duration::from_secs(10))
            .await
            .expect_err("no answer");
        assert!(err.message.contains("no answer within 500 ms"), "{err}");
        assert!(start.elapsed() < ms(1_500), "{:?}", start.elapsed());
        server.resume();
        // What was sent to the stopped server is carried out: the claim is made
        // once more by name, and given up by name.
        let reply = store.claim(&claim, WITHIN).await.expect("claim");
        assert_eq!(
            reply.before.and_then(|record| record.owner),
            Some(claim.owner)
        );
        let give_up = Free {
            owner: claim.owner,
            run: None,
            keep: KEEP,
        };
        assert_eq!(store.free(&give_up, WITHIN).await, Ok(FreeReply::Freed));
        let late = Free {
            owner: Owner(9),
            run: None,
            keep: KEEP,
        };
        assert_eq!(store.free(&late, WITHIN).await, Ok(FreeReply::Voided));
        let reply = store.claim(&once(9), WITHIN).await.expect("claim");
        assert_eq!(reply.verdict, Verdict::Void);
    });
}

#[test]
fn an_operation_can_be_dropped_at_any_moment() {
    let server = RedisServer::start();
    run(async {
        let store = open(&server.url(), "job");
        for limit in 0..60_u32 {
            let claim = once(limit.into());
            let cut = tokio::time::timeout(
                Duration::from_micros(u64::from(limit) * 20),
                store.claim(&claim, WITHIN),
            );
            drop(cut.await);
            // The next answer belongs to the next question.
            let (_, now) = store.read(WITHIN).await.expect("read");
            assert!((now.wall_ms() - server.now_ms()).abs() < 1_000);
            let give_up = Free {
                owner: claim.owner,
                run: None,
                keep: KEEP,
            };
            store.free(&give_up, WITHIN).await.expect("free");
        }
        whole_run(&store, 100).await;
    });
}

#[test]
fn two_names_never_share_a_key() {
    let server = RedisServer::start();
    assert_eq!(key_of("p", "a b"), "p:{a b}");
    assert_eq!(key_of("p", "{x}%"), "p:{%7Bx%7D%25}");
    let names = ["a", "{a}", "%7Ba%7D", "}", "{", "a}{b", "ä ö", "\"'\\"];
    run(async {
        for (number, name) in names.into_iter().enumerate() {
            let store = open(&server.url(), name);
            let claim = once(number as u128);
            granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        }
    });
    assert_eq!(server.cli(&["DBSIZE"]), Value::Int(8));
}

#[test]
fn a_run_that_lost_its_record_writes_it_again() {
    let server = RedisServer::start();
    run(async {
        let store = open(&server.url(), "job");
        let claim = firing(1, server.now_ms());
        let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        server.cli(&["FLUSHALL"]);
        let beat = store
            .beat(&beat_of(&claim, &grant), WITHIN)
            .await
            .expect("beat");
        assert!(beat.held.is_ok());
        let (record, _) = store.read(WITHIN).await.expect("read");
        let record = record.expect("written again");
        assert_eq!(
            (record.owner, record.token, record.firing),
            (Some(claim.owner), grant.token, claim.wanted.firing())
        );
    });
}
