//! The test servers themselves: what the other tests stand on.

mod support;

use support::wait::secs;
use support::{RedisServer, Value};

#[test]
fn server_keeps_its_port_and_loses_its_memory() {
    let mut redis = RedisServer::start();
    redis.cli(&["SET", "a", "1"]);
    let port = redis.port();
    redis.kill();
    redis.start_again();
    assert_eq!(redis.port(), port);
    assert_eq!(redis.cli(&["GET", "a"]), Value::Nil);
}

#[test]
fn persistent_server_keeps_its_memory() {
    let mut redis = RedisServer::options().persistent().start();
    redis.cli(&["SET", "a", "1"]);
    redis.kill();
    redis.start_again();
    assert_eq!(redis.cli(&["GET", "a"]).text(), "1");
}

#[test]
fn password_is_required_on_the_port() {
    let redis = RedisServer::options().password("s3cret").start();
    let mut outsider = support::Resp::tcp(redis.port()).expect("connection");
    let reply = outsider.call(&["PING"]).expect("reply");
    assert!(matches!(reply, Value::Error(e) if e.starts_with("NOAUTH")));
    assert_eq!(redis.cli(&["PING"]).text(), "PONG");
}

#[test]
fn paused_server_is_silent_until_resumed() {
    let redis = RedisServer::start();
    let mut conn = redis.connect();
    redis.pause();
    assert!(conn.call(&["PING"]).is_err());
    redis.resume();
    assert_eq!(redis.cli(&["PING"]).text(), "PONG");
}

#[test]
fn monitor_sees_commands_and_held_reads_the_record() {
    let redis = RedisServer::start();
    let monitor = redis.monitor();
    let until = (redis.now_ms() + 300).to_string();
    redis.cli(&["HSET", "solocron:{x}", "state", "run", "until", &until]);
    assert!(redis.held("x"));
    redis.assert_free("x", secs(1));
    assert_eq!(monitor.named("hset").len(), 1);
    assert_eq!(redis.calls("hset"), 1);
    assert_eq!(redis.clients(), 1, "the monitor");
}

#[test]
fn tls_server_speaks_tls_only() {
    let redis = RedisServer::options().tls().start();
    assert!(redis.url().starts_with("rediss://"));
    let out = std::process::Command::new("redis-cli")
        .args(["-p", &redis.port().to_string(), "--tls", "--cacert"])
        .arg(redis.ca())
        .arg("ping")
        .output()
        .expect("redis-cli");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "PONG\n");
}

#[test]
fn servers_of_other_versions_start_where_present() {
    for (label, program) in support::redis::optional_servers() {
        let redis = RedisServer::options().program(&program).start();
        assert_eq!(redis.cli(&["PING"]).text(), "PONG", "{label}");
    }
}
