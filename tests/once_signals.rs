//! Signals, terminals and what is inherited in once mode.

mod support;

use std::fs;
use support::{Place, Pty, RedisServer, Signal, Solocron, Witness};
use support::{eventually, ms, secs, wait_until};

/// A shell loop that never ends by itself.
const LOOP: &str = "while :; do sleep 0.05; done";

#[test]
fn a_stop_signal_reaches_the_command_once_and_it_takes_its_time() {
    let signals = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
    ];
    Place::for_each(|place| {
        std::thread::scope(|scope| {
            for (name, signal) in signals {
                scope.spawn(move || stopped_by(place, name, signal));
            }
        });
    });
}

fn stopped_by(place: &Place, name: &str, signal: Signal) {
    let witness = Witness::default();
    let body = format!("trap 'w got; sleep 2; exit 7' {name}; w ready; {LOOP}");
    let mut run = place
        .run(name)
        .args(["--ttl", "1s"])
        .command(witness.job(&body))
        .spawn();
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    run.signal(signal);
    std::thread::sleep(ms(1700));
    assert!(!run.has_ended(), "{name}: the command takes its time");
    assert!(place.held(name), "{name}: held meanwhile");
    let out = run.wait(secs(5));
    place.assert_free(name);
    out.assert_code(7).assert_clean();
    assert_eq!(witness.of("got").len(), 1, "{name}");
}

#[test]
fn other_signals_reach_the_command_too() {
    let place = &Place::each()[1];
    let witness = Witness::default();
    let body = format!(
        "trap 'w usr1' USR1; trap 'w usr2' USR2; trap 'w winch' WINCH; trap 'w term; exit 7' TERM; w ready; {LOOP}"
    );
    let mut run = place.run("x").command(witness.job(&body)).spawn();
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    for (word, signal) in [
        ("usr1", Signal::USR1),
        ("usr2", Signal::USR2),
        ("winch", Signal::WINCH),
        ("term", Signal::TERM),
    ] {
        run.signal(signal);
        wait_until(secs(2), word, || witness.of(word).len() == 1);
    }
    run.wait(secs(2)).assert_code(7).assert_clean();
    assert_eq!(witness.of("usr1").len(), 1);
}

#[test]
fn a_stop_signal_reaches_the_worker_behind_a_shell() {
    Place::for_each(|place| {
        let mut run = place.run("x").sh("sleep 7772; true").spawn();
        wait_until(secs(5), "the sleep runs", || {
            run.tree().iter().any(|p| p.name == "sleep")
        });
        run.signal(Signal::TERM);
        let out = run.wait(secs(3));
        out.assert_code(143).assert_clean();
        assert_eq!(out.status.code(), Some(143), "without a terminal it exits");
        place.assert_free("x");
    });
}

#[test]
fn a_second_stop_signal_kills_the_group() {
    let place = &Place::each()[1];
    let witness = Witness::default();
    let body = format!("trap 'w term' TERM; sleep 100 & {LOOP}");
    let mut run = place.run("x").command(witness.job(&body)).spawn();
    witness.wait_starts(1, secs(5));
    wait_until(secs(5), "the child runs", || {
        run.tree().iter().any(|p| p.name == "sleep")
    });
    run.signal(Signal::TERM);
    wait_until(secs(2), "TERM arrived", || witness.of("term").len() == 1);
    assert!(
        !eventually(ms(700), || run.has_ended()),
        "the sender decides how long"
    );
    run.signal(Signal::TERM);
    run.wait(secs(2)).assert_code(137).assert_clean();
    place.assert_free("x");
}

#[test]
fn kill_after_bounds_what_a_stopped_command_may_take() {
    let place = &Place::each()[1];
    let witness = Witness::default();
    let run = place.run("x").args(["--kill-after", "500ms"]);
    let mut run = run
        .command(witness.job(&format!("trap '' TERM; w ready; {LOOP}")))
        .spawn();
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    run.signal(Signal::TERM);
    assert!(!eventually(ms(350), || run.has_ended()));
    run.wait(secs(2)).assert_code(137).assert_clean();
}

#[test]
fn a_stopped_command_is_woken_to_be_stopped() {
    let place = &Place::each()[1];
    let witness = Witness::default();
    let mut run = place
        .run("x")
        .command(witness.job(&format!("trap 'exit 7' TERM; w ready; {LOOP}")))
        .spawn();
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    support::proc::signal(witness.starts()[0].pid, Signal::STOP);
    run.signal(Signal::TERM);
    run.wait(secs(2)).assert_code(7).assert_clean();
}

#[test]
fn the_stop_signal_of_ones_choice_comes_first() {
    let place = &Place::each()[1];
    let options = ["--timeout", "500ms", "--stop-signal", "INT"];
    let witness = Witness::default();
    let body = format!("trap 'w int; exit 7' INT; {LOOP}");
    place
        .run("x")
        .args(options)
        .command(witness.job(&body))
        .run()
        .assert_code(124);
    assert_eq!(witness.of("int").len(), 1);
}

#[test]
fn on_stop_finish_lets_the_command_end_untouched() {
    let place = &Place::each()[1];
    let witness = Witness::default();
    let body = "trap 'w term' TERM; w ready; sleep 1.5; exit 3";
    let mut run = place
        .run("x")
        .args(["--on-stop", "finish"])
        .command(witness.job(body))
        .spawn();
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    run.signal(Signal::TERM);
    run.wait(secs(5)).assert_code(3).assert_clean();
    assert!(witness.of("term").is_empty());
}

#[test]
fn a_stop_while_waiting_ends_at_once_and_leaves_nothing() {
    Place::for_each(|place| {
        let mut holder = place.run("x").sh("sleep 3; exit 3").spawn();
        wait_until(secs(5), "held", || place.held("x"));
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
            let mut waiting = place
                .run("x")
                .args(["--wait", "60s"])
                .command(["true"])
                .spawn();
            std::thread::sleep(ms(400));
            waiting.signal(signal);
            let out = waiting.wait(ms(600));
            out.assert_code(code).assert_clean();
        }
        holder.wait(secs(6)).assert_code(3);
        place.assert_free("x");
    });
}

#[test]
fn a_stop_while_connecting_ends_at_once_and_leaves_nothing() {
    let redis = RedisServer::start();
    redis.pause();
    let witness = Witness::default();
    let mut run = Solocron::on(&redis, "x")
        .args(["--wait", "60s"])
        .command(witness.job(":"))
        .spawn();
    std::thread::sleep(ms(300));
    run.signal(Signal::TERM);
    let out = run.wait(ms(600));
    out.assert_code(143).assert_clean();
    redis.resume();
    // A claim may still have reached the server: it was given back.
    std::thread::sleep(ms(200));
    redis.assert_free("x", secs(1));
    assert!(witness.starts().is_empty());
}

#[test]
fn no_retry_after_a_stop() {
    let place = &Place::each()[1];
    let witness = Witness::default();
    let body = format!("trap 'exit 7' TERM; w ready; {LOOP}");
    let mut run = place
        .run("x")
        .args(["--retries", "5", "--retry-delay", "0s"])
        .command(witness.job(&body))
        .spawn();
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    run.signal(Signal::TERM);
    run.wait(secs(3)).assert_code(7);
    assert_eq!(witness.starts().len(), 1);
}

/// What a process is born with: ignored and blocked signals, descriptors.
const BORN_WITH: &str =
    "grep -E '^Sig(Blk|Ign)' /proc/self/status; for f in /proc/self/fd/*; do echo ${f##*/}; done";

#[test]
fn the_command_inherits_signals_and_descriptors_as_without_the_prefix() {
    let place = &Place::each()[0];
    for prefix in ["", "trap '' HUP; ", "trap '' HUP USR1; exec 7</dev/null; "] {
        let line = |words: &str| format!("{prefix}exec {words}");
        let outer = Solocron::program("env".as_ref()).sh(BORN_WITH).shell_line();
        let bare = Solocron::program("sh".as_ref())
            .args(["-c", &line(&outer)])
            .run();
        let inner = place.run("x").sh(BORN_WITH).shell_line();
        let ours = Solocron::program("sh".as_ref())
            .args(["-c", &line(&inner)])
            .run();
        ours.assert_code(0);
        assert_eq!(ours.out(), bare.out(), "{prefix:?}");
    }
}

#[test]
fn a_pipe_that_closes_ends_the_command_as_usual() {
    let place = &Place::each()[1];
    let line = format!(
        "{} | head -n 1",
        place.run("x").command(["yes"]).shell_line()
    );
    let out = Solocron::program("sh".as_ref()).args(["-c", &line]).run();
    assert_eq!(out.out(), "y\n");
    assert!(out.took < secs(5));
    place.assert_free("x");
}

#[test]
fn nohup_survives_the_end_of_the_terminal() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x")
        .args(["--ttl", "1s"])
        .command(witness.job("sleep 2; w worked"));
    let pty = Pty::bash();
    pty.send(&format!("nohup {} >/dev/null 2>&1 &\n", run.shell_line()));
    witness.wait_starts(1, secs(5));
    pty.hang_up();
    std::thread::sleep(ms(1300));
    assert!(redis.held("x"), "the lease is renewed");
    wait_until(secs(5), "the end of the work", || {
        !witness.of("worked").is_empty()
    });
    redis.assert_free("x", secs(1));
}

#[test]
fn ctrl_c_arrives_once() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let body = format!("trap 'w int; sleep 0.8; w done; exit 7' INT; w ready; {LOOP}");
    let run = Solocron::on(&redis, "x").command(witness.job(&body));
    let pty = Pty::bash();
    pty.send(&format!("{}; echo \"code=$?\"\n", run.shell_line()));
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    pty.send("\x03");
    pty.wait_text("code=7", secs(5));
    assert_eq!(witness.of("int").len(), 1);
    assert_eq!(
        witness.of("done").len(),
        1,
        "no prompt before the job's end"
    );
    redis.assert_free("x", secs(0));
}

#[test]
fn ctrl_c_stops_a_shell_loop() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let line = Solocron::on(&redis, "x")
        .command(witness.job("exec sleep 3"))
        .shell_line();
    let pty = Pty::bash();
    pty.send(&format!("for i in 1 2 3; do {line}; echo \"L$i\"; done\n"));
    witness.wait_starts(1, secs(5));
    std::thread::sleep(ms(200));
    pty.send("\x03");
    pty.wait_count("ready$ ", 2, secs(3));
    pty.send("echo \"still $((40 + 2))\"\n");
    let screen = pty.wait_text("still 42", secs(5));
    assert!(!screen.contains("\nL1"), "{screen}");
    assert_eq!(witness.starts().len(), 1);
    redis.assert_free("x", secs(0));
}

#[test]
fn a_second_ctrl_c_kills_what_ignores_it() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run =
        Solocron::on(&redis, "x").command(witness.job(&format!("trap '' INT; w ready; {LOOP}")));
    let pty = Pty::bash();
    pty.send(&format!("{}; echo \"code=$?\"\n", run.shell_line()));
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    pty.send("\x03");
    std::thread::sleep(ms(400));
    assert!(!pty.screen().contains("code=1"), "the first one only asks");
    pty.send("\x03");
    pty.wait_text("code=137", secs(5));
    let pid = witness.starts()[0].pid;
    assert!(eventually(secs(1), || !support::proc::alive(pid)));
    redis.assert_free("x", secs(0));
}

#[test]
fn a_time_out_at_a_terminal_spares_the_callers() {
    let redis = RedisServer::start();
    let run = Solocron::on(&redis, "x")
        .args(["--timeout", "500ms"])
        .sh("sleep 7773; true");
    let pty = Pty::bash();
    pty.send(&format!(
        "{} | cat; echo \"code=${{PIPESTATUS[0]}}\"\n",
        run.shell_line()
    ));
    pty.wait_text("code=124", secs(5));
    assert!(support::proc::with_args(&["sleep", "7773"]).is_empty());
    redis.assert_free("x", secs(0));
}

#[test]
fn a_run_in_the_background_of_a_terminal_is_stopped_as_a_group() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").command(witness.job("sleep 7774; true"));
    let pty = Pty::bash();
    pty.send(&format!("{} &\n", run.shell_line()));
    witness.wait_starts(1, secs(5));
    pty.send("kill %1; wait %1; echo \"code=$?\"\n");
    pty.wait_text("code=143", secs(5));
    assert!(eventually(secs(1), || support::proc::with_args(&[
        "sleep", "7774"
    ])
    .is_empty()));
    let _ = fs::metadata(witness.file()).expect("the witness");
}
