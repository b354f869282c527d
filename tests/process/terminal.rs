//! A real terminal with a real shell on it.

use rustix::process::Signal;

use crate::Case;
use crate::kit::{Pty, finish, having, send, state, unique, until};
use crate::signals::JOB;

pub const CASES: &[Case] = &[
    ("terminal::ctrl_c_arrives_once", ctrl_c_arrives_once),
    ("terminal::ctrl_c_twice_kills", ctrl_c_twice_kills),
    ("terminal::loop_stops", loop_stops),
    ("terminal::ctrl_z_and_fg", ctrl_z_and_fg),
    ("terminal::ctrl_z_and_bg", ctrl_z_and_bg),
    (
        "terminal::background_then_foreground",
        background_then_foreground,
    ),
    ("terminal::background_reader", background_reader),
    ("terminal::reads_and_sets", reads_and_sets),
    ("terminal::in_a_pipeline", in_a_pipeline),
    ("terminal::sent_to_us_alone", sent_to_us_alone),
    (
        "terminal::forced_stop_spares_the_group",
        forced_stop_spares_the_group,
    ),
    ("terminal::leftovers_live_on", leftovers_live_on),
    ("terminal::modes_are_restored", modes_are_restored),
    ("terminal::foreground_is_restored", foreground_is_restored),
    ("terminal::hang_up", hang_up),
    ("terminal::nohup", nohup),
];

/// A shell with the job of [`JOB`] in `$JOB`.
fn bash() -> Pty {
    let pty = Pty::bash();
    let job = JOB
        .replace('\n', " ")
        .replace("\"$name\\n\"", "\"got-$name\\n\"");
    pty.run_line(&format!("JOB='{job}'"));
    pty
}

/// The pid of `sleep WORD` that is no shell and no probe.
fn sleeper(word: &str) -> i32 {
    let is_sleep = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\0")
    };
    let mut found = None;
    until("it sleeps", || {
        found = having(word).into_iter().find(is_sleep);
        found.is_some()
    });
    found.expect("found")
}

/// The probe that started it.
fn supervisor(command: i32) -> i32 {
    crate::kit::parent(command).expect("a parent")
}

fn ctrl_c_arrives_once() {
    let pty = bash();
    pty.line("$PROBE perl -e \"$JOB\"; echo status=$?");
    pty.wait_for("ready");
    pty.send("\x03");
    pty.wait_for("prompt$ ");
    let shown = pty.shown();
    assert_eq!(shown.matches("got-INT").count(), 1, "{shown}");
    assert!(shown.contains("status=7"), "{shown}");
    assert!(!shown.contains("got-CONT"), "{shown}");
}

fn ctrl_c_twice_kills() {
    let pty = bash();
    let word = unique();
    pty.line(&format!(
        "$PROBE sh -c 'trap \"\" INT; sleep {word}; sleep {word}'; echo status=$?"
    ));
    sleeper(&word);
    pty.send("\x03");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!pty.shown().contains("status="));
    pty.send("\x03");
    pty.wait_for("status=137");
    assert_eq!(having(&word), [0; 0]);
}

fn loop_stops() {
    let pty = bash();
    let word = unique();
    pty.line(&format!(
        "for i in 1 2 3; do $PROBE sleep {word}; echo L$i; done"
    ));
    sleeper(&word);
    pty.send("\x03");
    pty.wait_for("prompt$ ");
    let shown = pty.shown();
    assert!(!shown.contains("L1"), "{shown}");
    assert!(pty.run_line("echo status=$?").contains("status=130"));
    assert_eq!(having(&word), [0; 0]);
}

fn ctrl_z_and_fg() {
    let pty = bash();
    let word = unique();
    for round in 0..3 {
        if round == 0 {
            pty.line(&format!("$PROBE sleep {word}"));
        } else {
            pty.line("fg");
        }
        let command = sleeper(&word);
        let own = supervisor(command);
        until("both run", || {
            state(command) == Some('S') && state(own) == Some('S')
        });
        pty.forget();
        pty.send("\x1a");
        pty.wait_for("Stopped");
        pty.wait_for("prompt$ ");
        assert_eq!((state(command), state(own)), (Some('T'), Some('T')));
    }
    pty.line("fg");
    let command = sleeper(&word);
    until("it runs", || state(command) == Some('S'));
    pty.send("\x03");
    pty.wait_for("prompt$ ");
    assert_eq!(having(&word), [0; 0]);
    assert_eq!(pty.run_line("jobs").matches("PROBE").count(), 0);
}

fn ctrl_z_and_bg() {
    let pty = bash();
    let word = unique();
    pty.line(&format!("$PROBE sleep {word}"));
    let command = sleeper(&word);
    pty.send("\x1a");
    pty.wait_for("prompt$ ");
    assert!(pty.run_line("bg").contains("sleep"));
    let own = supervisor(command);
    until("both run", || {
        state(command) == Some('S') && state(own) == Some('S')
    });
    pty.run_line("kill %1");
    until("both are gone", || having(&word).is_empty());
    let shown = pty.run_line("wait; jobs; echo done");
    assert!(shown.contains("done"), "{shown}");
}

/// Started in the background the command has its own group; keys reach it
/// through us once the job is in the foreground.
fn background_then_foreground() {
    let pty = bash();
    pty.line("$PROBE perl -e \"$JOB\" &");
    pty.wait_for("ready");
    pty.line("fg");
    pty.wait_for("JOB");
    std::thread::sleep(std::time::Duration::from_millis(100));
    pty.send("\x1a");
    pty.wait_for("Stopped");
    pty.wait_for("prompt$ ");
    pty.line("fg");
    pty.wait_for("got-CONT");
    pty.send("\x03");
    pty.wait_for("prompt$ ");
    let shown = pty.shown();
    assert_eq!(shown.matches("got-INT").count(), 1, "{shown}");
    assert!(pty.run_line("echo status=$?").contains("status=7"));
}

/// In the background it may not read; in the foreground it gets the keyboard.
fn background_reader() {
    let pty = bash();
    pty.line("$PROBE sh -c 'read a; echo \"<$a>\"; read a; echo \"<$a>\"; exit 4' &");
    // Told at the next prompt.
    until("it is stopped", || pty.run_line("jobs").contains("Stopped"));
    pty.line("fg");
    pty.send("one\n");
    pty.wait_for("<one>");
    pty.send("\x1a");
    pty.wait_for("Stopped");
    pty.wait_for("prompt$ ");
    pty.line("fg");
    pty.send("two\n");
    pty.wait_for("<two>");
    pty.wait_for("prompt$ ");
    assert!(pty.run_line("echo status=$?").contains("status=4"));
}

fn reads_and_sets() {
    let pty = bash();
    pty.line("$PROBE sh -c 'echo ask; read a; echo \"<$a>\"'");
    pty.wait_for("ask");
    pty.send("secret\n");
    pty.wait_for("<secret>");
    pty.wait_for("prompt$ ");
    let shown = pty.run_line("$PROBE stty sane; echo status=$?");
    assert!(shown.contains("status=0"), "{shown}");
    // What a command sets and leaves is meant.
    let shown = pty.run_line("sh -c '$PROBE stty -echo; stty -a; stty echo'");
    assert!(shown.contains("-echo "), "{shown}");
    let shown = pty.run_line("$PROBE sh -c 'test -t 0 && test -t 1 && test -t 2 && echo ttys'");
    assert!(shown.contains("ttys"), "{shown}");
    let shown = pty.run_line("$PROBE tty");
    assert!(shown.contains("/dev/pts/"), "{shown}");
}

fn in_a_pipeline() {
    let pty = bash();
    pty.line("$PROBE seq 1 100000 | less");
    pty.wait_for("\n22\r\n");
    pty.send("q");
    pty.wait_for("prompt$ ");
    let shown = pty.run_line("echo ${PIPESTATUS[0]}; jobs; stty -a");
    assert!(shown.contains("141"), "{shown}");
    assert!(shown.contains(" icanon"), "{shown}");
    assert!(!shown.contains("Stopped"), "{shown}");
    let shown = pty.run_line("seq 3 | $PROBE cat | tail -1");
    assert!(shown.contains('3'), "{shown}");
}

/// INT from another process to the supervisor alone is passed on, once, and
/// also to what the command has started; TSTP stops both.
fn sent_to_us_alone() {
    let pty = bash();
    let word = unique();
    pty.line(&format!("$PROBE sh -c 'sleep {word}; exit 5'"));
    let sleep = sleeper(&word);
    let shell = supervisor(sleep);
    let own = supervisor(shell);
    send(own, Signal::TSTP);
    pty.wait_for("prompt$ ");
    assert_eq!((state(shell), state(own)), (Some('T'), Some('T')));
    pty.line("fg");
    until("both run", || {
        state(shell) == Some('S') && state(own) == Some('S')
    });
    send(own, Signal::TERM);
    pty.wait_for("prompt$ ");
    until("all are gone", || having(&word).is_empty());
    pty.line("$PROBE perl -e \"$JOB\"");
    pty.wait_for("ready");
    let shown = pty.shown();
    assert!(!shown.contains("got-"), "{shown}");
}

/// A stop of ours in a shared group reaches the command's descendants and
/// nothing else in the group.
fn forced_stop_spares_the_group() {
    let pty = bash();
    let (word, other) = (unique(), unique());
    pty.line(&format!(
        "sleep {other} | $PROBE --stop 300 --kill-after 100 sh -c \
         'trap \"\" TERM; sleep {word}; sleep {word}' 2>&1 | cat; echo status=${{PIPESTATUS[1]}}"
    ));
    sleeper(&word);
    let bystander = sleeper(&other);
    until("the command is gone", || having(&word).is_empty());
    assert!(state(bystander) == Some('S'));
    send(bystander, Signal::KILL);
    pty.wait_for("status=137");
}

fn leftovers_live_on() {
    let pty = bash();
    let word = unique();
    let shown = pty.run_line(&format!(
        "$PROBE sh -c 'sleep {word} & exit 3'; echo status=$?"
    ));
    assert!(shown.contains("probe: 1 left"), "{shown}");
    assert!(shown.contains("status=3"), "{shown}");
    send(sleeper(&word), Signal::KILL);
}

fn modes_are_restored() {
    let pty = bash();
    let shown = pty.run_line("sh -c '$PROBE sh -c \"stty raw -echo; kill -9 \\$\\$\"; stty -a'");
    assert!(shown.contains(" icanon"), "{shown}");
    assert!(shown.contains(" echo "), "{shown}");
}

/// A shell as the command takes the foreground; killed, it does not take it along.
fn foreground_is_restored() {
    let pty = bash();
    pty.line(
        "sh -c '$PROBE bash --norc --noprofile -ic \"kill -9 \\$\\$\"; read a; echo \"<$a>\"'",
    );
    std::thread::sleep(std::time::Duration::from_millis(200));
    pty.send("still here\n");
    pty.wait_for("<still here>");
    pty.wait_for("prompt$ ");
}

fn hang_up() {
    let pty = bash();
    let word = unique();
    pty.line(&format!("$PROBE sh -c 'sleep {word}; :'"));
    sleeper(&word);
    let mut shell = pty.hang_up();
    until("all are gone", || having(&word).is_empty());
    finish(&mut shell);
}

fn nohup() {
    let pty = bash();
    let word = unique();
    pty.line(&format!(
        "nohup $PROBE sleep {word} >/dev/null 2>&1 </dev/null"
    ));
    let command = sleeper(&word);
    let own = supervisor(command);
    let mut shell = pty.hang_up();
    finish(&mut shell);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(having(&word).len(), 2, "it survives the terminal");
    send(own, Signal::TERM);
    until("both are gone", || having(&word).is_empty());
}
