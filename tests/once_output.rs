//! What is said and what passes through in once mode.

mod support;

use serde_json::Value as Json;
use std::fs;
use support::{Mode, Place, Proxy, Pty, RedisServer, Running, Solocron, Witness};
use support::{eventually, ms, secs, wait_until};

/// This host's name as others see it.
fn host() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

fn hold(place: &Place, lock: &str) -> Running {
    let run = place
        .run(lock)
        .args(["--ttl", "20s"])
        .sh("exec sleep 60")
        .spawn();
    wait_until(secs(10), "the holder holds", || place.held(lock));
    run
}

/// The words of a run as they are typed, to be run in a terminal.
fn words(run: &Solocron) -> Vec<String> {
    [
        "sh".into(),
        "-c".into(),
        format!("exec {}", run.shell_line()),
    ]
    .to_vec()
}

#[test]
fn busy_on_a_terminal_names_lock_holder_age_and_time_left() {
    Place::for_each(|place| {
        let holder = hold(place, "publish");
        let mut pty = Pty::run(&words(&place.run("publish").sh("true")));
        assert_eq!(pty.wait(secs(10)), 75);
        let screen = pty.screen();
        for word in [
            "publish",
            &host(),
            &format!("pid {}", holder.pid()),
            "held by",
            "lease ends in",
        ] {
            assert!(screen.contains(word), "no {word:?} in {screen}");
        }
        assert_eq!(screen.trim().lines().count(), 1, "{screen}");
    });
}

#[test]
fn status_tells_the_holder_and_the_last_run() {
    Place::for_each(|place| {
        let status = |format: &str| {
            place
                .run("job")
                .args(["--status", "--log-format", format])
                .run()
        };
        let json = |code: i32| -> Json {
            let out = status("json");
            out.assert_code(code);
            serde_json::from_str(&out.out()).unwrap_or_else(|e| panic!("{e}: {}", out.out()))
        };
        // Nothing known yet.
        status("text").assert_code(0).assert_silent();
        json(0);
        let holder = hold(place, "job");
        let text = status("text");
        text.assert_code(75);
        for word in ["job", &host(), &holder.pid().to_string()] {
            assert!(text.out().contains(word), "no {word:?} in {}", text.out());
        }
        let held = json(75).to_string();
        assert!(
            held.contains(&format!("\"pid\":{}", holder.pid())),
            "{held}"
        );
        assert!(held.contains(&host()), "{held}");
        drop(holder);
        // The holder is dead: nobody holds once its lease is over or was never freed.
        place.run("other").sh("exit 3").run().assert_code(3);
        let out = place
            .run("other")
            .args(["--status", "--log-format", "json"])
            .run();
        out.assert_code(0);
        assert!(
            out.out().contains("failed") && out.out().contains('3'),
            "{}",
            out.out()
        );
    });
}

#[test]
fn status_without_a_store_is_69() {
    let url = format!("redis://127.0.0.1:{}", support::redis::free_port());
    let out = Solocron::at(&url, "x").arg("--status").run();
    out.assert_code(69).assert_says(&["127.0.0.1"]);
}

#[test]
fn streams_pass_byte_for_byte() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut wanted = b"{\"json\": 1}\n".to_vec();
    wanted.extend(vec![b'x'; 1024 * 1024]);
    wanted.extend(b"\n\xff\xfe no final newline");
    let file = dir.path().join("bytes");
    fs::write(&file, &wanted).expect("file");
    let place = &Place::each()[1];
    let line = format!(
        "cat '{0}'; head -c 70 '{0}' >&2; test -t 1 || echo off >&2",
        file.display()
    );
    let out = place.run("bytes").sh(&line).run();
    out.assert_code(0);
    assert!(out.stdout == wanted, "stdout differs");
    assert_eq!(out.stderr.as_bytes(), [&wanted[..70], b"off\n"].concat());
    let mut pty = Pty::run(&words(
        &place
            .run("tty")
            .sh("test -t 0 && test -t 1 && test -t 2 && exit 5"),
    ));
    assert_eq!(pty.wait(secs(10)), 5, "{}", pty.screen());
}

#[test]
fn stdin_is_the_callers() {
    let place = &Place::each()[1];
    let witness = Witness::default();
    let file = witness.path("input");
    fs::write(&file, "to the command\n").expect("file");
    let out = place.run("stdin").stdin(&file).command(["cat"]).run();
    assert_eq!(out.out(), "to the command\n");
}

#[test]
fn log_lines_follow_level_and_format() {
    let place = &Place::each()[0];
    let run = |options: &[&str]| place.run("job").args(options).command(["true"]).run();
    run(&[]).assert_code(0).assert_silent();
    let out = run(&["-v"]);
    out.assert_says(&["job", "started", "ended"]);
    assert!(out.stderr.lines().count() <= 3, "{}", out.stderr);
    let out = run(&["-v", "--log-format", "json"]);
    assert!(out.stderr.lines().count() >= 2, "{}", out.stderr);
    for line in out.stderr.lines() {
        let json: Json = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(json.is_object());
    }
    let _holder = hold(place, "job");
    run(&["-v"]).assert_code(75).assert_says(&["held by"]);
    run(&["-q"]).assert_code(75).assert_silent();
}

#[test]
fn a_background_process_is_left_alone_with_one_warning() {
    Place::for_each(|place| {
        let mut run = place
            .run("bg")
            .sh("sleep 60 & echo started; exit 0")
            .spawn();
        let out = run.wait(secs(5));
        out.assert_code(0).assert_says(&["left"]);
        assert!(out.took < secs(2), "{:?}", out.took);
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        assert_eq!(out.out(), "started\n");
        assert_eq!(run.started().len(), 1, "the sleep lives");
        place.assert_free("bg");
    });
}

#[test]
fn failed_commands_are_tried_again_under_one_lease() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let options = ["--retries", "2", "--retry-delay", "100ms"];
        let out = place
            .run("r")
            .args(options)
            .command(witness.job("[ $SOLOCRON_ATTEMPT = 3 ]"))
            .run();
        out.assert_code(0);
        let starts = witness.starts();
        assert_eq!(
            starts.iter().map(|s| s.attempt).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        assert!(
            starts.iter().all(|s| s.token == starts[0].token),
            "{starts:?}"
        );
        assert!(starts[1].at - starts[0].at > 100.0);
        let out = place
            .run("r")
            .args(options)
            .command(witness.job("exit 4"))
            .run();
        out.assert_code(4);
        assert_eq!(witness.starts().len(), 6);
    });
}

#[test]
fn a_message_that_cannot_be_written_is_no_error() {
    let place = &Place::each()[1];
    let inner = place
        .run("x")
        .arg("-vv")
        .sh("sleep 0.2; exit 0")
        .shell_line();
    for line in [
        "{ INNER 2>&-; echo $? >&3; }",
        "{ INNER 2>/dev/full; echo $? >&3; }",
        "{ INNER 2>&1; echo $? >&3; } | true",
    ] {
        let line = format!("exec 3>&1; {}", line.replace("INNER", &inner));
        let out = Solocron::program("bash".as_ref()).args(["-c", &line]).run();
        assert_eq!(out.out(), "0\n", "{line}: {}", out.stderr);
    }
}

#[test]
fn a_flood_of_store_errors_is_one_line() {
    let redis = RedisServer::start();
    let proxy = Proxy::to(redis.port());
    proxy.set(Mode::Refuse);
    let run = Solocron::at(&proxy.url(), "x")
        .args(["--wait", "3s", "-v"])
        .command(["true"]);
    let out = run.run();
    out.assert_code(69);
    assert!(proxy.accepted() > 2, "it tries again: {}", proxy.accepted());
    assert!(out.stderr.lines().count() <= 3, "{}", out.stderr);
}

#[test]
fn no_colour_where_none_is_wanted() {
    let place = &Place::each()[1];
    let run = |no_color: bool| {
        let run = place.run("x").arg("-v").command(["true"]);
        let run = if no_color {
            run.env("NO_COLOR", "1")
        } else {
            run
        };
        let mut pty = Pty::run(&words(&run));
        assert_eq!(pty.wait(secs(10)), 0);
        pty.screen()
    };
    assert!(!run(true).contains('\u{1b}'));
    let out = place.run("x").arg("-v").command(["true"]).run();
    assert!(!out.stderr.contains('\u{1b}'), "{}", out.stderr);
}

#[test]
fn nothing_is_left_over_after_a_quick_run() {
    Place::for_each(|place| {
        let mut run = place.run("x").command(["true"]).spawn();
        run.wait(secs(5)).assert_code(0).assert_clean();
        assert!(eventually(ms(100), || run.started().is_empty()));
        place.assert_free("x");
    });
}
