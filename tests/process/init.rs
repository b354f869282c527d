//! As process 1 of a PID namespace (`unshare`, which needs root).

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::Case;
use crate::kit::{
    Dice, Pty, binary, children, finish, having, output, pid_of, prefixed, repeats, send, start,
    state, status, text, unique, until,
};
use crate::signals::JOB;

pub const CASES: &[Case] = &[
    ("init::status_with_orphans", status_with_orphans),
    ("init::signals_are_passed_on", signals_are_passed_on),
    ("init::early_term", early_term),
    (
        "init::leftovers_get_term_and_time",
        leftovers_get_term_and_time,
    ),
    (
        "init::stubborn_leftovers_are_killed",
        stubborn_leftovers_are_killed,
    ),
    ("init::inner_killed", inner_killed),
    ("init::zombies_of_others", zombies_of_others),
    ("init::signal_state", signal_state),
    ("init::ignored_child_signal", ignored_child_signal),
    ("init::ctrl_c_arrives_once", ctrl_c_arrives_once),
];

const UNSHARE: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

fn as_pid1(words: &[&str]) -> Command {
    prefixed(&UNSHARE, words)
}

/// The pid of process 1, seen from outside.
fn pid1(unshare: &Child) -> i32 {
    let mut found = None;
    until("process 1 is there", || {
        let binary = binary();
        let is_ours = |pid: &i32| {
            std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == *binary)
        };
        found = children(pid_of(unshare)).into_iter().find(is_ours);
        found.is_some()
    });
    found.expect("found")
}

fn inner(init: i32) -> i32 {
    let mut found = None;
    until("the inner process is there", || {
        found = children(init).first().copied();
        found.is_some()
    });
    found.expect("found")
}

fn status_with_orphans() {
    let script = "for i in 1 2 3 4 5; do (setsid sleep 0.02 &); done; exit 3";
    for _ in 0..repeats(15, 2000) {
        let output = output(&mut as_pid1(&["sh", "-c", script]));
        assert_eq!(status(output.status), 3);
        assert_eq!(text(&output.stderr), "");
    }
    let killed = output(&mut as_pid1(&["sh", "-c", "kill -9 $$"]));
    assert_eq!(status(killed.status), 137);
}

fn signals_are_passed_on() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP] {
        let mut command = as_pid1(&["perl", "-e", JOB]);
        let mut child = start(command.stdout(Stdio::piped()));
        let init = pid1(&child);
        let mut out = child.stdout.take().expect("piped");
        let mut seen = [0; 6];
        std::io::Read::read_exact(&mut out, &mut seen).expect("ready");
        send(init, Signal::USR1);
        std::thread::sleep(Duration::from_millis(50));
        send(init, signal);
        assert_eq!(finish(&mut child), 7);
        let rest = std::io::read_to_string(out).expect("read");
        assert_eq!(rest.matches("USR1").count(), 1, "{rest}");
        let stops = ["TERM", "INT", "QUIT", "HUP"];
        let count: usize = stops.iter().map(|name| rest.matches(name).count()).sum();
        assert_eq!(count, 1, "{rest}");
    }
}

/// From the moment that the program is there: process 1 gets no second chance.
fn early_term() {
    let mut dice = Dice::new(815);
    for _ in 0..repeats(25, 300) {
        let word = unique();
        let mut child = as_pid1(&["sh", "-c", &format!("sleep {word}; :")]);
        let mut child = start(child.stderr(Stdio::null()));
        let init = pid1(&child);
        let blocks = || {
            let status = std::fs::read_to_string(format!("/proc/{init}/status"));
            let blocks = |text: String| !text.contains("SigBlk:\t0000000000000000");
            // While it waits for one, the mask is not shown.
            status.is_ok_and(blocks) || !children(init).is_empty()
        };
        let start = Instant::now();
        while !blocks() {
            assert!(start.elapsed() < Duration::from_secs(5));
        }
        std::thread::sleep(Duration::from_micros(dice.below(30_000)));
        send(init, Signal::TERM);
        assert_eq!(finish(&mut child), 143);
        until("nothing is left", || having(&word).is_empty());
    }
}

fn leftovers_get_term_and_time() {
    let job = "$SIG{TERM} = sub { select undef, undef, undef, 0.2; print qq(bye\\n); exit }; \
               $| = 1; print qq(up\\n); sleep 1 while 1";
    let script = "setsid perl -e \"$JOB\" & while ! kill -0 $! ; do :; done; sleep 0.3; exit 4";
    let mut command = as_pid1(&["sh", "-c", script]);
    let output = output(command.env("JOB", job));
    assert_eq!(status(output.status), 4);
    assert_eq!(text(&output.stdout), "up\nbye\n");
}

fn stubborn_leftovers_are_killed() {
    let word = unique();
    let script = format!("setsid sh -c 'trap \"\" TERM; sleep {word}' & sleep 0.2; exit 4");
    let start = Instant::now();
    let output = output(&mut as_pid1(&["sh", "-c", &script]));
    assert_eq!(status(output.status), 4);
    assert!(start.elapsed() < Duration::from_secs(6));
    assert_eq!(having(&word), [0; 0]);
}

fn inner_killed() {
    let word = unique();
    let mut child = start(&mut as_pid1(&["sleep", &word]));
    until("it sleeps", || having(&word).len() >= 3);
    send(inner(pid1(&child)), Signal::KILL);
    assert_eq!(finish(&mut child), 137);
    assert_eq!(having(&word), [0; 0]);
}

/// Orphans are reaped while the command runs, whoever adopts them.
fn zombies_of_others() {
    let word = unique();
    let script = format!("for i in 1 2 3 4 5; do (setsid sleep 0.02 &); done; exec sleep {word}");
    let mut child = start(&mut as_pid1(&["sh", "-c", &script]));
    let init = pid1(&child);
    let inner = inner(init);
    let sleeping = || having(&word).len() == 1;
    until("the command sleeps", sleeping);
    until("no zombie is left", || {
        let all: Vec<i32> = [children(init), children(inner)].concat();
        all.len() == 2 && all.iter().all(|pid| state(*pid) != Some('Z'))
    });
    send(init, Signal::TERM);
    assert_eq!(finish(&mut child), 143);
}

fn signal_state() {
    let prefix = ["env", "--ignore-signal=HUP", "--block-signal=USR1"];
    let all = [&prefix[..], &UNSHARE].concat();
    let lines = |command: &mut Command| -> Vec<String> {
        let shown = text(&output(command).stdout);
        let wanted = |line: &&str| line.starts_with("SigBlk") || line.starts_with("SigIgn");
        shown.lines().filter(wanted).map(str::to_owned).collect()
    };
    let job = ["cat", "/proc/self/status"];
    let direct = lines(&mut crate::kit::bare(&[&all[..], &job].concat()));
    assert_eq!(direct.len(), 2);
    assert_eq!(lines(&mut prefixed(&all, &job)), direct);
}

/// With CHLD ignored the kernel would reap instead of us.
fn ignored_child_signal() {
    let prefix = [&UNSHARE[..], &["env", "--ignore-signal=CHLD"]].concat();
    let output = output(&mut prefixed(&prefix, &["sh", "-c", "exit 9"]));
    assert_eq!(status(output.status), 9);
}

/// As under `docker run -it`: init, program and command share the terminal.
fn ctrl_c_arrives_once() {
    let job = JOB.replace("\"$name\\n\"", "\"got-$name\\n\"");
    let binary = binary();
    let pty = Pty::run(&[&UNSHARE[..], &[&binary, "--probe", "perl", "-e", &job]].concat());
    pty.wait_for("ready");
    // Nobody could continue us: without effect, as for the command alone.
    pty.send("\x1a");
    std::thread::sleep(Duration::from_millis(100));
    pty.send("\x03");
    let mut pty = pty;
    assert_eq!(finish(&mut pty.leader), 7);
    let shown = pty.shown();
    assert_eq!(shown.matches("got-INT").count(), 1, "{shown}");
}
