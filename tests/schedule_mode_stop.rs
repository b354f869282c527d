//! The end of a schedule: idle, connecting, running.

mod support;

use support::fleet::{EACH_SECOND, at, sleep_until, soon};
use support::witness::f64_of;
use support::{Place, RedisServer, Running, Signal, Solocron, Witness};
use support::{eventually, ms, now_ms, secs, wait_until};

/// A shell loop that never ends by itself.
const LOOP: &str = "while :; do sleep 0.05; done";

/// The signals that stop a schedule.
const STOPS: [(&str, Signal); 4] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("HUP", Signal::HUP),
];

/// A schedule with nothing to do for a day.
fn idle(place: &Place) -> Running {
    let run = place
        .run("x")
        .args(at(&[soon(secs(86_400))]))
        .command(["true"])
        .spawn();
    wait_until(secs(5), "it is up", || run.stderr().contains("schedule"));
    run
}

#[test]
fn idle_it_ends_at_once_with_0() {
    Place::for_each(|place| {
        for (name, signal) in STOPS {
            let mut run = idle(place);
            run.signal(signal);
            let begin = now_ms();
            let out = run.wait(secs(3));
            assert!(now_ms() - begin < 500, "{name}");
            out.assert_code(0).assert_clean();
        }
    });
}

#[test]
fn idle_it_does_nothing_at_usr1_and_usr2() {
    let place = &Place::each()[0];
    let mut run = idle(place);
    for signal in [Signal::USR1, Signal::USR2, Signal::WINCH, Signal::CONT] {
        run.signal(signal);
        assert!(!eventually(ms(200), || run.has_ended()));
    }
}

#[test]
fn an_ignored_hup_stays_ignored() {
    let place = &Place::each()[0];
    let run = place
        .run("x")
        .args(at(&[soon(secs(86_400))]))
        .command(["true"]);
    let mut run = run.under(["nohup"]).spawn();
    wait_until(secs(5), "it is up", || run.stderr().contains("schedule"));
    run.signal(Signal::HUP);
    assert!(!eventually(ms(500), || run.has_ended()));
    run.signal(Signal::TERM);
    run.wait(ms(700)).assert_code(0);
}

#[test]
fn a_stop_while_the_store_is_silent_ends_soon() {
    let redis = RedisServer::start();
    redis.pause();
    let witness = Witness::default();
    let mut run = Solocron::on(&redis, "x")
        .args(EACH_SECOND)
        .command(witness.job(":"))
        .spawn();
    std::thread::sleep(secs(3));
    run.signal(Signal::TERM);
    run.wait(secs(1)).assert_code(0).assert_clean();
    redis.resume();
    std::thread::sleep(ms(200));
    redis.assert_free("x", secs(1));
    assert!(witness.starts().is_empty());
}

#[test]
fn a_running_command_is_told_once_and_takes_its_time() {
    Place::for_each(|place| {
        std::thread::scope(|scope| {
            for (name, signal) in STOPS {
                scope.spawn(move || stopped_while_running(place, name, signal));
            }
        });
    });
}

fn stopped_while_running(place: &Place, name: &str, signal: Signal) {
    let witness = Witness::default();
    let body = format!("trap 'w got; sleep 2.5; w done; exit 7' {name}; w ready; {LOOP}");
    let run = place.run(name).args(EACH_SECOND).args(["--ttl", "2s"]);
    let mut run = run.command(witness.job(&body)).spawn();
    wait_until(secs(6), "ready", || !witness.of("ready").is_empty());
    run.signal(signal);
    wait_until(secs(2), "the command is told", || {
        !witness.of("got").is_empty()
    });
    std::thread::sleep(ms(2100));
    let held = place.held(name);
    assert!(
        held || !witness.of("done").is_empty(),
        "{name}: held while the command takes its time"
    );
    let out = run.wait(secs(4));
    let ended = f64_of(now_ms());
    place.assert_free(name);
    out.assert_code(0).assert_clean();
    let after = ended - witness.of("end")[0].at;
    assert!(
        after < 1000.0,
        "{name}: {after} ms after the command\n{}",
        out.stderr
    );
    assert_eq!(witness.of("got").len(), 1, "{name}");
    assert_eq!(witness.starts().len(), 1, "{name}: no new firing");
    let last = out.stderr.lines().last().unwrap_or_default().to_owned();
    assert!(
        last.contains(name),
        "{name}: the reason is told last: {}",
        out.stderr
    );
}

#[test]
fn twice_kills_what_ignores_the_first() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(1));
    let run = Solocron::on(&redis, "x")
        .args(at(&[due]))
        .args(["--on-stop", "finish"]);
    let mut run = run
        .command(witness.job(&format!("trap 'w term' TERM; sleep 100 & {LOOP}")))
        .spawn();
    witness.wait_starts(1, secs(5));
    run.signal(Signal::TERM);
    assert!(!eventually(ms(500), || run.has_ended()), "it waits");
    assert!(
        witness.of("term").is_empty(),
        "and leaves the command alone"
    );
    run.signal(Signal::TERM);
    let out = run.wait(secs(2));
    out.assert_code(0).assert_clean();
    redis.assert_free("x", secs(0));
}

#[test]
fn on_stop_finish_lets_the_command_end() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x")
        .args(EACH_SECOND)
        .args(["--on-stop", "finish"]);
    let mut run = run
        .command(witness.job("trap 'w term' TERM; sleep 2; w worked"))
        .spawn();
    witness.wait_starts(1, secs(5));
    run.signal(Signal::TERM);
    run.wait(secs(4)).assert_code(0).assert_clean();
    assert_eq!(witness.of("worked").len(), 1);
    assert!(witness.of("term").is_empty());
    assert_eq!(witness.starts().len(), 1);
}

#[test]
fn rerun_gives_back_a_firing_that_our_own_stop_ended() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let due = soon(secs(1));
    let make = |label: &str| {
        let run = Solocron::on(&redis, "x").args(at(&[due])).args([
            "--on-runner-lost",
            "rerun",
            "--ttl",
            "2s",
        ]);
        let body =
            format!("[ $SOLOCRON_ATTEMPT = 1 ] || exit 0; trap 'exit 7' TERM; w ready; {LOOP}");
        run.label(label).command(witness.job(&body)).spawn()
    };
    let mut first = make("a");
    wait_until(secs(5), "ready", || !witness.of("ready").is_empty());
    let second = make("b");
    sleep_until(now_ms() + 500);
    first.signal(Signal::TERM);
    first.wait(secs(3)).assert_code(0);
    let starts = witness.wait_starts(2, secs(6));
    assert_eq!((starts[1].label.as_str(), starts[1].attempt), ("b", 2));
    drop(second);
}

#[test]
fn a_stop_in_the_terminal_ends_an_idle_schedule() {
    let place = &Place::each()[0];
    let run = place
        .run("x")
        .args(at(&[soon(secs(86_400))]))
        .command(["true"]);
    let pty = support::Pty::bash();
    pty.send(&format!("{}; echo \"code=$?\"\n", run.shell_line()));
    pty.wait_text("six fields", secs(5));
    pty.send("\x03");
    pty.wait_text("code=0", secs(2));
}
