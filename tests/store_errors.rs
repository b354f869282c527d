//! What a user reads when Redis does not serve: the class, the place and the
//! remedy, each brought about in a real server.

#[path = "store/ops.rs"]
mod ops;
mod support;

use ops::{WITHIN, end_of, granted, once, run, whole_run};
use solocron::lock::record::KEEP_FOREVER;
use solocron::lock::rules::Verdict;
use solocron::store::redis::RedisStore;
use solocron::store::redis::error::COMMANDS;
use solocron::store::redis::tls::TlsOptions;
use solocron::store::{Class, Location, Store, StoreError};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use support::redis::{free_port, optional_servers};
use support::wait::{ms, secs};
use support::{RedisServer, Value, eventually, wait_until};

fn open(url: &str) -> RedisStore {
    match Location::parse(url) {
        Ok(Location::Redis(url)) => {
            RedisStore::open(&url, &TlsOptions::default(), "solocron", "job").expect("store")
        }
        other => panic!("{url}: {other:?}"),
    }
}

/// The error of a claim that nobody has made before, so that it has to write.
fn claim_error(url: &str) -> StoreError {
    static OWNER: AtomicU64 = AtomicU64::new(1_000);
    let owner = OWNER.fetch_add(1, Ordering::Relaxed);
    run(open(url).claim(&once(owner.into()), WITHIN)).expect_err("an error")
}

/// The claim fails in this class, with a message that has these parts; nothing
/// was carried out.
#[track_caller]
fn expect(url: &str, class: Class, parts: &[&str]) {
    let err = claim_error(url);
    assert_eq!((err.class, err.unsettled), (class, false), "{err}");
    for part in parts {
        assert!(err.message.contains(part), "no {part:?} in: {err}");
    }
    assert!(!err.message.contains('\n'), "{err}");
}

/// Every server at hand: the system's and those of other versions.
fn servers() -> Vec<(String, PathBuf)> {
    let mut all = vec![("redis-server".to_owned(), PathBuf::from("redis-server"))];
    all.extend(optional_servers());
    all
}

fn on_all(args: &[&str], test: impl Fn(&str, &RedisServer)) {
    for (label, program) in servers() {
        let server = RedisServer::options().program(&program).args(args).start();
        test(&label, &server);
    }
}

fn here(server: &RedisServer) -> String {
    format!("redis 127.0.0.1:{}", server.port())
}

#[test]
fn nobody_there() {
    let port = free_port();
    let at = format!("cannot reach redis 127.0.0.1:{port}: connection refused");
    expect(
        &format!("redis://127.0.0.1:{port}"),
        Class::Unreachable,
        &[&at],
    );
    expect(
        "unix:///nonexistent/redis.sock",
        Class::Unreachable,
        &["redis /nonexistent/redis.sock: there is no such socket"],
    );
    expect(
        "redis://no-such-host.invalid",
        Class::Name,
        &["cannot resolve the host name of redis no-such-host.invalid:6379"],
    );
    expect(
        &format!("redis-cluster://127.0.0.1:{port}"),
        Class::Unreachable,
        &["cannot reach redis cluster 127.0.0.1"],
    );
    expect(
        &format!("redis-sentinel://127.0.0.1:{port}/m"),
        Class::Unreachable,
        &["cannot reach sentinel 127.0.0.1"],
    );
}

#[test]
fn a_server_that_says_nothing() {
    let server = RedisServer::options().password("pw").start();
    server.pause();
    let start = std::time::Instant::now();
    // Login is part of connecting: one limit for all of it.
    let at = format!(
        "cannot reach {}: no connection within 1000 ms",
        here(&server)
    );
    expect(&server.url_as("", "pw"), Class::Unreachable, &[&at]);
    assert!(start.elapsed() < ms(1_300), "{:?}", start.elapsed());
}

#[test]
fn wrong_logins() {
    for (_, program) in servers() {
        let server = RedisServer::options()
            .program(&program)
            .password("pw")
            .start();
        let at = here(&server);
        expect(
            &server.url(),
            Class::Auth,
            &[&at, "requires a password", "--store-file"],
        );
        for url in [server.url_as("", "no"), server.url_as("nobody", "pw")] {
            expect(
                &url,
                Class::Auth,
                &[&at, "rejected the user name or password"],
            );
        }
        let err = run(open(&server.url()).read(WITHIN)).expect_err("no password");
        assert_eq!(err.class, Class::Auth);
        let err = run(open(&server.url_as("", "no")).prepare(WITHIN)).expect_err("wrong password");
        assert_eq!(err.class, Class::Auth);
        server.cli(&["ACL", "SETUSER", "off", "off", ">pw", "+@all", "~*"]);
        expect(&server.url_as("off", "pw"), Class::Auth, &["rejected"]);
        server.cli(&["CONFIG", "SET", "requirepass", ""]);
        expect(
            &server.url_as("", "pw"),
            Class::Auth,
            &[&at, "has no password set: leave it out"],
        );
    }
}

#[test]
fn a_database_that_is_not_there() {
    on_all(&[], |_, server| {
        let url = format!("{}/99", server.url());
        expect(
            &url,
            Class::Topology,
            &[&here(server), "has no such database"],
        );
    });
}

#[test]
fn too_many_clients_is_no_wrong_password() {
    let server = RedisServer::options()
        .password("pw")
        .args(&["--maxclients", "1"])
        .start();
    let _only = server.connect();
    expect(
        &server.url_as("", "pw"),
        Class::NotReady,
        &["maximum number of clients"],
    );
}

#[test]
fn a_user_with_the_documented_rights_can_do_everything() {
    on_all(&[], |label, server| {
        let mut rule = vec![
            "ACL",
            "SETUSER",
            "solocron",
            "on",
            ">pw",
            "-@all",
            "~solocron:*",
        ];
        rule.extend(COMMANDS.split(' '));
        server.cli(&rule);
        run(async {
            let store = open(&server.url_as("solocron", "pw"));
            whole_run(&store, 1).await;
            let mut forever = once(2);
            forever.keep = KEEP_FOREVER;
            granted(&store.claim(&forever, WITHIN).await.expect("claim"));
            assert_eq!(
                server.cli(&["PTTL", "solocron:{job}"]),
                Value::Int(-1),
                "{label}"
            );
        });
    });
}

#[test]
fn a_missing_permission_is_named() {
    on_all(&[], |label, server| {
        let mut rule = vec![
            "ACL",
            "SETUSER",
            "solocron",
            "on",
            ">pw",
            "-@all",
            "~solocron:*",
        ];
        rule.extend(COMMANDS.split(' '));
        server.cli(&rule);
        let url = server.url_as("solocron", "pw");
        for word in COMMANDS.split(' ').filter(|word| *word != "+hget") {
            let name = &word[1..];
            server.cli(&["ACL", "SETUSER", "solocron", &format!("-{name}")]);
            let err = run(async {
                let store = open(&url);
                let mut forever = once(2);
                forever.keep = KEEP_FOREVER;
                for claim in [once(1), forever] {
                    let reply = store.claim(&claim, WITHIN).await?;
                    store.read(WITHIN).await?;
                    store
                        .free(&end_of(&claim, &granted(&reply)), WITHIN)
                        .await?;
                }
                Ok::<_, StoreError>(())
            });
            let err = err.expect_err(&format!("{label}: {name} is not needed"));
            assert_eq!(err.class, Class::Permission, "{label}: {err}");
            let may_not = format!("has no permission to run {}", name.to_uppercase());
            assert!(err.message.contains(&may_not), "{label}: {err}");
            assert!(
                err.message
                    .contains("ACL SETUSER solocron ~solocron:* +eval +hset +hget +hmget"),
                "{label}: {err}"
            );
            server.cli(&["ACL", "SETUSER", "solocron", word]);
            server.cli(&["DEL", "solocron:{job}"]);
        }
        expect(
            &format!("{url}/1"),
            Class::Permission,
            &["run SELECT", "+time +select"],
        );
        server.cli(&["ACL", "SETUSER", "solocron", "resetkeys", "~other:*"]);
        expect(
            &url,
            Class::Permission,
            &[
                "user solocron of",
                "has no permission for the key solocron:{job}",
            ],
        );
    });
}

#[test]
fn a_key_of_another_program() {
    on_all(&[], |label, server| {
        server.cli(&["SET", "solocron:{job}", "x"]);
        expect(
            &server.url(),
            Class::KeyMisuse,
            &[
                "the key solocron:{job} on redis 127.0.0.1",
                "holds something else",
                "--key-prefix",
            ],
        );
        server.cli(&["DEL", "solocron:{job}"]);
        let damaged = [
            "token",
            "1",
            "born",
            "2",
            "state",
            "dancing",
            "until",
            "x\n\u{1b}[31m",
        ];
        server.cli(&[&["HSET", "solocron:{job}"][..], &damaged].concat());
        let err = run(open(&server.url()).read(WITHIN)).expect_err("damaged");
        assert!(
            err.message.contains("the record solocron:{job}") && err.message.contains("is damaged"),
            "{label}: {err}"
        );
        assert!(!err.message.contains('\u{1b}'), "{label}: {err}");
        let err = claim_error(&server.url());
        assert!(!err.message.contains('\u{1b}'), "{label}: {err}");
    });
}

#[test]
fn full_memory_stops_no_lock() {
    on_all(&["--maxmemory-policy", "noeviction"], |_, server| {
        server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        let full = server.try_cli(&["SET", "x", "y"]);
        assert!(matches!(full, Value::Error(text) if text.starts_with("OOM")));
        run(whole_run(&open(&server.url()), 1));
    });
}

#[test]
fn refused_writes() {
    on_all(&["--repl-diskless-sync-delay", "0"], |label, server| {
        server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        // Redis 6.2 lets scripts write all the same.
        if !label.starts_with("redis-6.2") {
            expect(
                &server.url(),
                Class::CannotStore,
                &[&here(server), "too few replicas"],
            );
        }
        server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        run(whole_run(&open(&server.url()), 1));
        server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
        expect(
            &server.url(),
            Class::Failover,
            &[&here(server), "is a replica"],
        );
        server.cli(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
        expect(&server.url(), Class::NotReady, &["has lost its master"]);
        server.cli(&["REPLICAOF", "NO", "ONE"]);
        run(whole_run(&open(&server.url()), 2));
    });
}

#[test]
fn a_server_that_cannot_save() {
    let server = RedisServer::options()
        .args(&["--enable-protected-configs", "yes", "--save", "3600 1"])
        .start();
    let gone = tempfile::tempdir().expect("directory");
    server.cli(&["CONFIG", "SET", "dir", gone.path().to_str().expect("text")]);
    drop(gone);
    server.cli(&["BGSAVE"]);
    wait_until(secs(5), "the save fails", || {
        server
            .cli(&["INFO", "persistence"])
            .text()
            .contains("rdb_last_bgsave_status:err")
    });
    expect(&server.url(), Class::CannotStore, &["cannot save to disk"]);
}

#[test]
fn a_server_busy_with_a_script() {
    on_all(&["--lua-time-limit", "20"], |_, server| {
        let mut busy = server.connect();
        busy.send(&["EVAL", "while true do end", "0"])
            .expect("send");
        let claim = || run(open(&server.url()).claim(&once(1), WITHIN));
        let mut err = claim().expect_err("busy");
        // Until the limit has passed the server says nothing at all.
        assert!(eventually(secs(2), || {
            err = claim().expect_err("busy");
            err.class == Class::NotReady
        }));
        assert!(
            err.message
                .contains("busy with a script of another program"),
            "{err}"
        );
        server.cli(&["SCRIPT", "KILL"]);
    });
}

#[test]
fn a_server_that_still_loads() {
    let mut server = RedisServer::options()
        .persistent()
        .args(&[
            "--key-load-delay",
            "2000",
            "--loading-process-events-interval-bytes",
            "1024",
            "--aof-use-rdb-preamble",
            "no",
        ])
        .start();
    let mut conn = server.connect();
    for number in 0..1_500 {
        conn.call(&["SET", &number.to_string(), &"x".repeat(200)])
            .expect("SET");
    }
    server.kill();
    let url = server.url();
    std::thread::scope(|scope| {
        let restart = scope.spawn(|| server.start_again());
        let seen = eventually(secs(20), || {
            run(open(&url).claim(&once(1), WITHIN)).is_err_and(|err| {
                err.class == Class::NotReady && err.message.contains("is still loading its data")
            })
        });
        assert!(seen);
        restart.join().expect("restart");
    });
    run(whole_run(&open(&url), 2));
}

#[test]
fn the_wrong_kind_of_server() {
    on_all(&[], |_, server| {
        let at = format!("127.0.0.1:{}", server.port());
        let expected = format!("is no cluster: write the store address as redis://{at}");
        expect(
            &format!("redis-cluster://{at}"),
            Class::Topology,
            &[&expected],
        );
        let expected = format!(
            "sentinel {at} is no sentinel: give the sentinels' ports, or write redis://{at}"
        );
        expect(
            &format!("redis-sentinel://{at}/m"),
            Class::Topology,
            &[&expected],
        );
        server.cli(&["ACL", "SETUSER", "default", "on", ">pw"]);
    });
}

#[test]
fn a_server_without_scripts() {
    let server = RedisServer::options()
        .args(&["--rename-command", "EVAL", ""])
        .start();
    expect(
        &server.url(),
        Class::Topology,
        &["does not run scripts (EVAL), which the lock needs"],
    );
}

#[test]
fn a_record_is_safe_from_eviction_where_that_can_be() {
    on_all(&["--maxmemory-policy", "volatile-ttl"], |label, server| {
        let ttl = || server.cli(&["PTTL", "solocron:{job}"]);
        run(async {
            let store = open(&server.url());
            let claim = once(2);
            let reply = store.claim(&claim, WITHIN).await.expect("claim");
            let grant = granted(&reply);
            assert_eq!(reply.before, None);
            assert_eq!(ttl(), Value::Int(-1), "{label}");
            let (record, _) = store.read(WITHIN).await.expect("read");
            assert_eq!(record.expect("record").keep, KEEP_FOREVER);
            server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
            server.try_cli(&["SET", "x", "y"]);
            store
                .free(&end_of(&claim, &grant), WITHIN)
                .await
                .expect("free");
            assert_eq!(ttl(), Value::Int(-1), "{label}");
            assert!(store.take_warnings().is_empty());
        });
    });
}

#[test]
fn a_server_that_evicts_any_key_is_warned_of_once() {
    let server = RedisServer::options()
        .args(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"])
        .start();
    run(async {
        let store = open(&server.url());
        granted(&store.claim(&once(1), WITHIN).await.expect("claim"));
        let reply = store.claim(&once(2), WITHIN).await.expect("claim");
        assert_eq!(reply.verdict, Verdict::Busy);
        let warnings = store.take_warnings();
        assert!(
            warnings.len() == 1
                && warnings[0].contains(&here(&server))
                && warnings[0].contains("noeviction"),
            "{warnings:?}"
        );
        assert!(store.take_warnings().is_empty());
        assert_eq!(server.calls("info"), 1);
    });
}
