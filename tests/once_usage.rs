//! What is refused before anything is done, and how it is said.

mod support;

use support::{Place, Proxy, RedisServer, Solocron};

#[test]
fn a_shell_line_as_one_word_is_explained() {
    let place = Place::each();
    let out = place[1].run("line").command(["echo one | cat"]).run();
    out.assert_code(127)
        .assert_says(&["echo one | cat", "--shell"]);
    let out = place[1]
        .run("line")
        .arg("--shell")
        .command(["echo one | cat"])
        .run();
    out.assert_code(0);
    assert_eq!(out.out(), "one\n");
}

#[test]
fn impossible_skip_statuses_are_refused_before_any_traffic() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    for code in ["600", "-1", "256", "x"] {
        let out = Solocron::at(&proxy.url(), "x")
            .args(["--skip-exit-code", code])
            .command(["true"])
            .run();
        out.assert_code(2).assert_says(&["skip-exit-code"]);
    }
    assert_eq!(proxy.accepted(), 0);
}

#[test]
fn help_and_version_end_with_0_and_show_no_surroundings() {
    for flag in ["-h", "--help", "-V", "--version"] {
        let run = Solocron::default().arg(flag);
        let run = run
            .env("REDIS_URL", "redis://:s3cret@h")
            .env("SOLOCRON_STORE", "redis://:s3cret@h");
        let out = run.env("SOLOCRON_LOCK_NAME", "s3cret").run();
        out.assert_code(0);
        assert!(!out.out().is_empty());
        assert!(!out.out().contains("s3cret"), "{flag}: {}", out.out());
        assert!(!out.stderr.contains("s3cret"), "{flag}: {}", out.stderr);
    }
}

#[test]
fn usage_errors_are_2_and_name_what_is_wrong() {
    let long = "n".repeat(201);
    let cases: &[(&[&str], &[&str])] = &[
        (&["true"], &["lock-name"]),
        (&["--lock-name", "x"], &["command"]),
        (&["--lock-name", "", "true"], &["lock-name"]),
        (&["--lock-name", &long, "true"], &["lock-name", "200"]),
        (&["--lock-name", "a\nb", "true"], &["lock-name", "control"]),
        (
            &["--lock-name", "x", "--frobnicate", "true"],
            &["--frobnicate"],
        ),
        (&["--lock-name", "x", "--ttl", "0", "true"], &["--ttl"]),
        (
            &["--lock-name", "x", "--ttl", "0s", "true"],
            &["--ttl", "1s"],
        ),
        (
            &["--lock-name", "x", "--ttl", "100ms", "true"],
            &["--ttl", "1s"],
        ),
        (
            &["--lock-name", "x", "--ttl", "30", "true"],
            &["--ttl", "30s"],
        ),
        (
            &["--lock-name", "x", "--wait", "soon", "true"],
            &["--wait", "soon"],
        ),
        (
            &["--lock-name", "x", "--stop-signal", "NOPE", "true"],
            &["--stop-signal", "NOPE"],
        ),
        (
            &["--lock-name", "x", "--on-lock-lost", "cry", "true"],
            &["--on-lock-lost", "cry"],
        ),
        (
            &["--lock-name", "x", "--log-format", "xml", "true"],
            &["--log-format", "xml"],
        ),
    ];
    for (args, words) in cases {
        let out = Solocron::default()
            .args(["--store", "file:///nowhere"])
            .args(*args)
            .run();
        assert_eq!(out.code(), 2, "{args:?}: {}", out.stderr);
        out.assert_says(words);
        assert!(out.stdout.is_empty(), "{args:?}: nothing on stdout");
    }
}

#[test]
fn store_urls_that_would_be_misread_are_refused() {
    let cases: &[(&str, &[&str])] = &[
        ("http://h:1", &["http"]),
        ("redis://h:1?db=3", &["db"]),
        ("redis://h:1/x", &["database"]),
        ("redis://user@h:1", &["password"]),
        ("rediss://h:1#insecure", &["insecure"]),
        ("redis://h:1?frob=1", &["frob"]),
        ("h:6379", &["redis://"]),
    ];
    for (url, words) in cases {
        let out = Solocron::at(url, "x").command(["true"]).run();
        assert_eq!(out.code(), 2, "{url}: {}", out.stderr);
        out.assert_says(words);
    }
    let out = Solocron::at("redis://u:s3cret@h:1?frob=1", "x")
        .command(["true"])
        .run();
    out.assert_code(2);
    assert!(!out.stderr.contains("s3cret"), "{}", out.stderr);
}

#[test]
fn without_a_store_and_a_terminal_it_refuses_and_says_what_to_set() {
    let out = Solocron::default().lock("x").command(["true"]).run();
    out.assert_code(2).assert_says(&["--store", "REDIS_URL"]);
}

#[test]
fn what_the_schedule_refuses_is_told_by_what_was_given() {
    for (env, args, words) in [
        (
            Some("foo"),
            &["--cron", "0 3 * * *"][..],
            &["SOLOCRON_TZ \"foo\" is not known"][..],
        ),
        (
            Some("UTC"),
            &["--cron", "CRON_TZ=Asia/Tokyo 0 3 * * *"],
            &["but SOLOCRON_TZ asks for UTC"],
        ),
        (
            None,
            &["--cron", "0 3 * * *", "--tz", "foo"],
            &["--tz \"foo\" is not known"],
        ),
        (None, &["--cron", "-1 * * * *"], &["minute", "-1"]),
    ] {
        let mut run = Solocron::default().args(["--next", "1"]).args(args);
        if let Some(zone) = env {
            run = run.env("SOLOCRON_TZ", zone);
        }
        run.run().assert_code(2).assert_says(words);
    }
}
