//! The test parts themselves: what the other tests stand on.

mod support;

use std::path::Path;
use support::proc::Proc;
use support::witness::now_ms;
use support::{Mode, Proxy, Pty, RedisServer, Resp, Running, Signal, Solocron, Value, Witness};
use support::{secs, wait_until};

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
    let mut outsider = Resp::tcp(redis.port()).expect("connection");
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

#[test]
fn proxy_passes_stalls_cuts_and_counts() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    let mut conn = Resp::tcp(proxy.port()).expect("connection");
    for _ in 0..3 {
        conn.call(&["INCR", "n"]).expect("reply");
    }
    assert_eq!((proxy.accepted(), proxy.trips()), (1, 3));
    proxy.set(Mode::Stall);
    conn.send(&["INCR", "n"]).expect("sent");
    assert!(conn.read().is_err(), "stalled");
    assert_eq!(redis.cli(&["GET", "n"]).text(), "3");
    proxy.set(Mode::StallReplies);
    wait_until(secs(2), "request through", || {
        redis.cli(&["GET", "n"]).text() == "4"
    });
    proxy.set(Mode::Pass);
    assert_eq!(conn.read().expect("reply"), Value::Int(4));
    proxy.cut();
    assert!(conn.call(&["PING"]).is_err(), "cut");
    proxy.set(Mode::Refuse);
    let refused = Resp::tcp(proxy.port()).and_then(|mut c| c.call(&["PING"]));
    assert!(refused.is_err());
}

#[test]
fn proxy_loses_the_reply_but_not_the_request() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.lose_replies("incr", 1, 1);
    let mut conn = Resp::tcp(proxy.port()).expect("connection");
    assert_eq!(conn.call(&["INCR", "n"]).expect("reply"), Value::Int(1));
    assert!(conn.call(&["INCR", "n"]).is_err());
    assert_eq!(proxy.lost(), 1);
    assert_eq!(redis.cli(&["GET", "n"]).text(), "2");
}

/// `env -- COMMAND` stands for the binary: it runs the command and is replaced by it.
fn env() -> Solocron {
    Solocron::program(Path::new("env"))
}

#[test]
fn run_has_its_own_session_and_no_surroundings() {
    let run = env()
        .sh("echo $$; cat; env | grep -c -e ^SOLOCRON -e ^REDIS_URL; exit 7")
        .spawn();
    let pid = run.pid();
    let mut run: Running = run;
    let out = run.wait(secs(5));
    assert_eq!(out.code(), 7);
    assert_eq!(out.out(), format!("{pid}\n0\n"));
    assert_ne!(
        Proc::read(std::process::id().try_into().unwrap())
            .unwrap()
            .session,
        pid
    );
    out.assert_clean().assert_silent();
}

#[test]
fn leftovers_are_found_and_killed_wherever_they_hang() {
    let mut run = env().sh("setsid -f sleep 60; sleep 61 & exit 0").spawn();
    let out = run.wait(secs(5));
    wait_until(secs(2), "both sleeps", || run.started().len() == 2);
    assert_eq!(out.code(), 0);
    let left = run.started();
    drop(run);
    assert!(left.iter().all(|p| !support::proc::alive(p.pid)));
}

#[test]
fn wrong_clock_is_wrong_for_the_binary_and_right_for_the_command() {
    let run = |offset: &str| {
        // The first word stands for the binary, the command comes after `--`.
        let out = Solocron::program(Path::new("sh"))
            .args(["-c", "date +%s%3N; shift; exec \"$@\"", "sh"])
            .skew(offset)
            .command(["date", "+%s%3N"])
            .run();
        let times: Vec<i64> = out.out().lines().map(|l| l.parse().unwrap()).collect();
        (times[0] - now_ms(), times[1] - now_ms())
    };
    for (offset, wanted) in [("+2s", 2000), ("-0.3s", -300), ("-5s", -5000)] {
        let (ours, theirs) = run(offset);
        assert!((ours - wanted).abs() < 250, "{offset}: {ours}");
        assert!(theirs.abs() < 250, "{offset}: {theirs}");
    }
}

#[test]
fn witness_tells_starts_ends_and_overlaps() {
    let witness = Witness::default();
    let job = |firing: &str, body: &str| {
        env()
            .env("SOLOCRON_FIRING", firing)
            .env("SOLOCRON_TOKEN", "5")
            .env("SOLOCRON_ATTEMPT", "1")
            .label("a")
            .command(witness.job(body))
    };
    let out = job("2026-01-02T03:04:05Z", "w middle; exit 3").run();
    out.assert_code(3);
    let all = witness.entries();
    let words: Vec<_> = all.iter().map(|e| e.what.as_str()).collect();
    assert_eq!(words, ["start", "middle", "end"]);
    assert_eq!(
        (all[0].firing, all[0].token, all[0].attempt),
        (Some(1_767_323_045_000), 5, 1)
    );
    assert_eq!(all[0].label, "a");
    witness.assert_no_overlap();
    witness.assert_once_each();
    witness.assert_none_early();
    let mut first = job("2026-01-02T03:04:06Z", "sleep 0.5").spawn();
    witness.wait_starts(2, secs(5));
    job("2026-01-02T03:04:06Z", ":").run().assert_code(0);
    let _ = first.wait(secs(5));
    let fails =
        |check: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err();
    assert!(fails(&|| witness.assert_no_overlap()));
    assert!(fails(&|| witness.assert_once_each()));
    assert!(fails(&|| witness.assert_tokens_rise()));
}

#[test]
fn terminal_has_job_control() {
    let pty = Pty::bash();
    pty.send("sleep 100\n");
    wait_until(secs(5), "sleep runs", || {
        support::proc::children(pty.pid())
            .iter()
            .any(|p| p.name == "sleep")
    });
    pty.send("\x03");
    pty.wait_count("ready$ ", 2, secs(5));
    pty.send("echo \"code $?\"\n");
    pty.wait_text("code 130", secs(5));
}

#[test]
fn terminal_ends_with_its_command() {
    let mut pty = Pty::run(&["sh", "-c", "test -t 1 && read x && echo got $x; exit 4"]);
    pty.send("abc\n");
    pty.wait_text("got abc", secs(5));
    assert_eq!(pty.wait(secs(5)), 4);
}

#[test]
fn process_1_of_a_namespace_gets_the_signals() {
    let mut run = env()
        .in_pid_namespace()
        .sh("trap 'exit 9' TERM; echo $$; while :; do sleep 0.05; done")
        .spawn();
    wait_until(secs(5), "pid told", || run.stdout() == b"1\n");
    run.signal(Signal::TERM);
    assert_eq!(run.wait(secs(5)).code(), 9);
}
