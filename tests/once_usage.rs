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

#[test]
fn a_status_tells_the_end_of_a_schedule() {
    let ended = ["--tz", "UTC", "--cron", "0 0 3 1 1 * 2020"];
    let redis = RedisServer::start();
    let out = Solocron::on(&redis, "x").arg("--status").args(ended).run();
    out.assert_code(0).assert_silent();
    let text = out.out();
    assert!(
        text.lines()
            .any(|line| line == "next     never: the schedule has ended"),
        "{text}"
    );
}

#[test]
fn a_status_tells_databases_and_prefixes_apart() {
    let redis = RedisServer::start();
    let status = |url: &str, prefix: &str| {
        let run = Solocron::at(url, "x").args(["--key-prefix", prefix]);
        run.arg("--status")
            .run()
            .out()
            .replace(&redis.url()["redis://".len()..], "AT")
    };
    let told = |store: &str, key: &str| {
        format!(
            "lock     x\nstore    {store}\nkey      {key}\nstate    free\n\
             result   never started, as far as the store knows\n"
        )
    };
    let (first, second) = (redis.url(), format!("{}/1", redis.url()));
    assert_eq!(status(&first, "p"), told("redis AT", "p:{x}"));
    assert_eq!(status(&second, "p"), told("redis AT database 1", "p:{x}"));
    assert_eq!(status(&first, "q"), told("redis AT", "q:{x}"));
}

#[test]
fn a_directory_that_this_user_cannot_make_has_no_owner_to_run_as() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let open = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(dir.path(), mode).expect("mode");
    };
    let binary = dir.path().join("solocron");
    std::fs::copy(env!("CARGO_BIN_EXE_solocron"), &binary).expect("copy");
    open(0o555);
    let url = format!("file://{}/none/solocron", dir.path().display());
    let mut run = Solocron::program(&binary)
        .args(["--store", &url])
        .lock("x")
        .command(["true"]);
    if rustix::process::geteuid().is_root() {
        let other = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        run = run.under(other);
    }
    let out = run.run();
    open(0o755);
    out.assert_code(77)
        .assert_says(&["that this user can write to"]);
    assert!(!out.stderr.contains("owner"), "{}", out.stderr);
}
