//! Everything that belongs to a command: groups, grandchildren, orphans.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::Case;
use crate::kit::{
    alive, children, finish, having, output, pid_of, probe, repeats, send, start, state, status,
    text, unique, until,
};

pub const CASES: &[Case] = &[
    (
        "tree::killed_with_its_supervisor",
        killed_with_its_supervisor,
    ),
    ("tree::term_reaches_the_group", term_reaches_the_group),
    ("tree::second_stop_kills", second_stop_kills),
    (
        "tree::forced_stop_finds_everything",
        forced_stop_finds_everything,
    ),
    ("tree::term_is_given_first", term_is_given_first),
    ("tree::leftovers_live_on", leftovers_live_on),
    (
        "tree::panic_takes_the_command_along",
        panic_takes_the_command_along,
    ),
    ("tree::status_with_orphans", status_with_orphans),
];

/// A shell with a grandchild and descendants that left its group in several ways.
fn family(word: &str) -> String {
    format!(
        "sleep {word} & setsid sleep {word} & (setsid sh -c 'sleep {word} & sleep {word}' &) ; \
         (env -i /usr/bin/setsid /bin/sleep {word} &) ; wait; sleep {word}"
    )
}

const FAMILY: usize = 5;

fn killed_with_its_supervisor() {
    for _ in 0..repeats(5, 100) {
        let word = unique();
        let mut supervisor = start(&mut probe(&["sleep", &word]));
        until("the command runs", || having(&word).len() == 2);
        send(pid_of(&supervisor), Signal::KILL);
        let killed = Instant::now();
        until("the command is gone", || having(&word).is_empty());
        assert!(killed.elapsed() < Duration::from_secs(1));
        finish(&mut supervisor);
    }
}

fn term_reaches_the_group() {
    let word = unique();
    let script = format!("sleep {word}; true");
    let mut supervisor = start(&mut probe(&["sh", "-c", &script]));
    until("the grandchild runs", || having(&word).len() == 1);
    send(pid_of(&supervisor), Signal::TERM);
    assert_eq!(finish(&mut supervisor), 143);
    assert_eq!(having(&word), [0; 0]);
}

fn second_stop_kills() {
    let word = unique();
    let script = format!("trap '' TERM; sleep {word}; sleep {word}");
    let mut supervisor = start(&mut probe(&["sh", "-c", &script]));
    until("it sleeps", || having(&word).len() == 1);
    send(pid_of(&supervisor), Signal::TERM);
    std::thread::sleep(Duration::from_millis(100));
    assert!(alive(pid_of(&supervisor)));
    assert_eq!(having(&word).len(), 1, "the first one leaves it alone");
    send(pid_of(&supervisor), Signal::TERM);
    assert_eq!(finish(&mut supervisor), 137);
    assert_eq!(having(&word), [0; 0]);
}

fn forced_stop_finds_everything() {
    for (ignore, want) in [("", 143), ("trap '' TERM; ", 137)] {
        for _ in 0..repeats(2, 50) {
            let word = unique();
            let script = format!("{ignore}{}", family(&word));
            let words = ["--stop", "250", "--kill-after", "200", "sh", "-c", &script];
            let mut supervisor = start(&mut probe(&words));
            until("all run", || having(&word).len() == FAMILY);
            assert_eq!(finish(&mut supervisor), want, "{ignore}");
            assert_eq!(having(&word), [0; 0], "{ignore}");
        }
    }
}

/// A stop is no KILL: what left the group has its chance too.
fn term_is_given_first() {
    let job = "$SIG{TERM} = sub { print \"bye $$\\n\"; exit 7 }; $| = 1; sleep 1 while 1";
    let script = "setsid perl -e \"$JOB\" & perl -e \"$JOB\"";
    let mut command = probe(&["--stop", "600", "--kill-after", "5000", "sh", "-c", script]);
    let output = output(command.env("JOB", job));
    assert_eq!(text(&output.stdout).matches("bye").count(), 2);
}

fn leftovers_live_on() {
    let word = unique();
    let script = format!("sleep {word} & sleep {word} & setsid sleep {word} & exit 3");
    let mut command = probe(&["sh", "-c", &script]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null());
    let began = Instant::now();
    let mut child = start(child);
    assert_eq!(finish(&mut child), 3);
    assert!(began.elapsed() < Duration::from_secs(2));
    let mut stderr = [0; 100];
    let stderr = {
        use std::io::Read;
        let length = child.stderr.take().expect("piped").read(&mut stderr);
        text(&stderr[..length.expect("read")])
    };
    assert_eq!(stderr, "probe: 2 left\n");
    let left = having(&word);
    assert_eq!(left.len(), 3, "a normal end leaves the background alone");
    for pid in left {
        send(pid, Signal::KILL);
    }
}

fn panic_takes_the_command_along() {
    let word = unique();
    let script = family(&word);
    let mut command = probe(&["--panic", "250", "sh", "-c", &script]);
    let mut supervisor = start(command.stderr(Stdio::null()));
    until("all run", || having(&word).len() == FAMILY);
    assert_eq!(finish(&mut supervisor), 101);
    until("all are gone", || having(&word).is_empty());
}

/// Five detached processes each time; the status is the command's and nothing
/// stays a zombie.
fn status_with_orphans() {
    let script = "for i in 1 2 3 4 5; do (setsid sleep 0.05 &); done; exit 3";
    for _ in 0..repeats(40, 2000) {
        let output = output(&mut probe(&["sh", "-c", script]));
        assert_eq!(status(output.status), 3);
        // On a busy machine one may not have left the group yet.
        let stderr = text(&output.stderr);
        assert!(stderr.is_empty() || stderr.ends_with("left\n"), "{stderr}");
    }
    let word = unique();
    let script = format!("{}; exec sleep {word}", script.replace("exit 3", ":"));
    let mut supervisor = start(&mut probe(&["sh", "-c", &script]));
    until("the command sleeps", || having(&word).len() == 1);
    let own = pid_of(&supervisor);
    until("no zombie is left", || {
        children(own).len() == 1 && children(own).iter().all(|pid| state(*pid) != Some('Z'))
    });
    send(own, Signal::TERM);
    assert_eq!(finish(&mut supervisor), 143);
}
