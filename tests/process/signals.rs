//! Signals on their way to the command.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::Case;
use crate::kit::{
    Dice, Started, finish, having, pid_of, prefixed, probe, repeats, send, start, unique, until,
};

pub const CASES: &[Case] = &[
    ("signals::each_arrives_once", each_arrives_once),
    ("signals::early_ones_are_kept", early_ones_are_kept),
    (
        "signals::ignored_ones_stay_ignored",
        ignored_ones_stay_ignored,
    ),
    (
        "signals::stopped_command_acts_on_term",
        stopped_command_acts_on_term,
    ),
    ("signals::term_at_any_moment", term_at_any_moment),
    (
        "signals::suspended_without_a_terminal",
        suspended_without_a_terminal,
    ),
];

/// Prints `ready`, then the name of each signal it gets; exits 7 a little
/// after a stop signal.
pub const JOB: &str = r#"
    use Time::HiRes "time";
    $| = 1;
    for my $name (qw(HUP INT QUIT TERM USR1 USR2 WINCH CONT)) {
        $SIG{$name} = sub { print "$name\n"; $end = time + 0.3 if $name =~ /HUP|INT|QUIT|TERM/ };
    }
    print "ready\n";
    select undef, undef, undef, 0.02 until $end and time > $end;
    exit 7;
"#;

fn started(command: &mut Command) -> (Started, BufReader<ChildStdout>) {
    let mut child = start(command.stdout(Stdio::piped()));
    let lines = BufReader::new(child.stdout.take().expect("piped"));
    (child, lines)
}

fn line(from: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("read");
    line.trim_end().to_owned()
}

fn rest(from: BufReader<ChildStdout>) -> Vec<String> {
    from.lines().map(|line| line.expect("read")).collect()
}

fn each_arrives_once() {
    for (signal, name) in [
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::TERM, "TERM"),
    ] {
        let (mut child, mut lines) = started(&mut probe(&["perl", "-e", JOB]));
        assert_eq!(line(&mut lines), "ready");
        send(pid_of(&child), signal);
        assert_eq!(finish(&mut child), 7, "{name}");
        // A stop is followed by CONT.
        let mut seen = rest(lines);
        seen.sort();
        let mut want = vec![name.to_owned(), "CONT".to_owned()];
        want.sort();
        assert_eq!(seen, want);
    }
    let (mut child, mut lines) = started(&mut probe(&["perl", "-e", JOB]));
    assert_eq!(line(&mut lines), "ready");
    for (signal, name) in [
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::WINCH, "WINCH"),
        (Signal::CONT, "CONT"),
    ] {
        send(pid_of(&child), signal);
        assert_eq!(line(&mut lines), name);
    }
    send(pid_of(&child), Signal::TERM);
    assert_eq!(finish(&mut child), 7);
}

/// What arrives between the handlers and the runtime, and between that and the
/// command, is not lost.
fn early_ones_are_kept() {
    let word = unique();
    let (mut child, mut lines) = started(&mut probe(&["--deaf", "300", "sleep", &word]));
    assert_eq!(line(&mut lines), "deaf");
    send(pid_of(&child), Signal::TERM);
    assert_eq!(finish(&mut child), 143);
    let (mut child, mut lines) = started(&mut probe(&[
        "--deaf", "1", "--idle", "20000", "sleep", &word,
    ]));
    assert_eq!(line(&mut lines), "deaf");
    send(pid_of(&child), Signal::USR1);
    std::thread::sleep(Duration::from_millis(50));
    send(pid_of(&child), Signal::INT);
    assert_eq!(finish(&mut child), 130);
    assert_eq!(having(&word), [0; 0]);
}

fn ignored_ones_stay_ignored() {
    let word = unique();
    let prefix = ["env", "--ignore-signal=HUP", "--ignore-signal=INT"];
    let mut child = start(&mut prefixed(&prefix, &["sleep", &word]));
    until("it sleeps", || having(&word).len() == 2);
    for signal in [Signal::HUP, Signal::INT] {
        send(pid_of(&child), signal);
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(having(&word).len(), 2);
    send(pid_of(&child), Signal::TERM);
    assert_eq!(finish(&mut child), 143);
}

fn stopped_command_acts_on_term() {
    let word = unique();
    let mut child = start(&mut probe(&["sleep", &word]));
    // Not before it has executed its program: until then the probe waits for it.
    let sleeps = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name == "sleep\n")
    };
    until("it sleeps", || having(&word).iter().any(sleeps));
    let own = pid_of(&child);
    for pid in having(&word).into_iter().filter(|pid| *pid != own) {
        send(pid, Signal::STOP);
    }
    send(own, Signal::TERM);
    assert_eq!(finish(&mut child), 143);
}

/// From exec to exit there is no moment in which TERM is lost, hangs, or
/// leaves the command behind.
fn term_at_any_moment() {
    let mut dice = Dice::new(4711);
    for _ in 0..repeats(60, 500) {
        let word = unique();
        let mut child = probe(&["sh", "-c", &format!("sleep {word}; :")]);
        let mut child = start(child.stderr(Stdio::null()));
        std::thread::sleep(Duration::from_micros(dice.below(25_000)));
        send(pid_of(&child), Signal::TERM);
        let status = finish(&mut child);
        assert!(matches!(status, 143 | -15), "{status}");
        until("nothing is left", || having(&word).is_empty());
    }
}

/// TSTP is passed on; without a terminal the supervisor itself goes on, since
/// nobody would continue it.
fn suspended_without_a_terminal() {
    let word = unique();
    let mut child = start(&mut probe(&["sleep", &word]));
    until("it sleeps", || having(&word).len() == 2);
    let own = pid_of(&child);
    let command = having(&word)
        .into_iter()
        .find(|pid| *pid != own)
        .expect("the command");
    send(own, Signal::TSTP);
    until("it is stopped", || crate::kit::state(command) == Some('T'));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(crate::kit::state(own), Some('S'));
    send(own, Signal::CONT);
    until("it goes on", || crate::kit::state(command) == Some('S'));
    send(own, Signal::TERM);
    assert_eq!(finish(&mut child), 143);
}
