//! Without a terminal.

use crate::bench::Bench;
use crate::support::{Running, Signal, Solocron, proc};
use crate::support::{eventually, ms, secs};
use crate::{NOT_APPLICABLE, Row};
use std::time::Instant;

pub const ROWS: &[Row] = &[
    Row {
        name: "command exits with 0, 3, 255",
        right: "0, 3, 255",
        case: statuses,
    },
    Row {
        name: "command dies of SIGKILL",
        right: "137",
        case: |bench| bench.status(&["sh", "-c", "kill -9 $$"]),
    },
    Row {
        name: "not found",
        right: "127",
        case: |bench| bench.status(&["/no/such/command"]),
    },
    Row {
        name: "not executable",
        right: "126",
        case: |bench| bench.status(&[bench.file("plain", b"#!/bin/sh\nexit 0\n", 0o644)]),
    },
    Row {
        name: "text file without `#!` that exits with 5",
        right: "5",
        case: |bench| bench.status(&[bench.file("script", b"x=5\nexit $x\n", 0o755)]),
    },
    Row {
        name: "garbage",
        right: "126",
        case: |bench| {
            let bytes = b"\xff\xfe\x83\xc1\x9e\xd2\x88\xf1\xaa\xbc";
            bench.status(&[bench.file("garbage", bytes, 0o755)])
        },
    },
    Row {
        name: "TERM",
        right: "143, command ended",
        case: term,
    },
    Row {
        name: "TERM, trapped by a command that exits with 7",
        right: "7",
        case: term_trapped,
    },
    Row {
        name: "TERM, worker behind a shell",
        right: "worker ended",
        case: term_worker,
    },
    Row {
        name: "TERM to the process group it was started in",
        right: "arrives once, 7",
        case: term_group,
    },
    Row {
        name: "USR1",
        right: "arrives once",
        case: usr1,
    },
    Row {
        name: "`kill -9` of the tool itself",
        right: "command ended",
        case: killed,
    },
    Row {
        name: "background process keeps stdout open",
        right: "ends at once",
        case: leftover,
    },
    Row {
        name: "lock with a background process left",
        right: "free",
        case: lock_with_leftover,
    },
    Row {
        name: "blocked and ignored signals",
        right: "inherited",
        case: inherited,
    },
    Row {
        name: "open file descriptors",
        right: "inherited",
        case: descriptors,
    },
    Row {
        name: "`yes \\| head`",
        right: "141",
        case: broken_pipe,
    },
];

fn statuses(bench: &Bench) -> String {
    let one = |code: &str| bench.status(&["sh", "-c", &format!("exit {code}")]);
    ["0", "3", "255"].map(one).join(", ")
}

/// Waits a little for the end of the tool: its status, or nothing.
fn ended(run: &mut Running) -> Option<i32> {
    eventually(secs(3), || run.has_ended()).then(|| run.wait(secs(1)).code())
}

fn code_of(ended: Option<i32>) -> String {
    ended.map_or_else(|| "runs on".to_owned(), |code| code.to_string())
}

/// What became of the sleep of this case.
fn fate(bench: &Bench, what: &str) -> String {
    if eventually(ms(500), || bench.sleeper().is_none()) {
        format!("{what} ended")
    } else {
        format!("{what} runs on")
    }
}

fn term(bench: &Bench) -> String {
    let mut run = bench.start(&["sleep", bench.word()]);
    bench.wait_sleeper();
    run.signal(Signal::TERM);
    let code = code_of(ended(&mut run));
    format!("{code}, {}", fate(bench, "command"))
}

/// A command that writes each TERM, INT and USR1 down, and exits with 7 half a
/// second after the first that is to end it.
pub fn scribe(bench: &Bench) -> Vec<String> {
    let script = r#"open F, '>>', $ARGV[0]; sub out { syswrite F, "$_[0]\n" }
        for my $s (qw(TERM INT USR1)) { $SIG{$s} = sub { out($s); $end //= time if $s ne 'USR1' } }
        use Time::HiRes qw(time sleep); out('ready');
        while (1) { sleep 0.02; exit 7 if defined $end && time > $end + 0.5 }"#;
    let file = bench.path("got").display().to_string();
    ["perl", "-e", script, &file].map(str::to_owned).to_vec()
}

/// How often the command got a signal.
pub fn times(bench: &Bench, signal: &str) -> String {
    match bench
        .lines("got")
        .iter()
        .filter(|line| *line == signal)
        .count()
    {
        0 => "does not arrive".to_owned(),
        1 => "arrives once".to_owned(),
        2 => "arrives twice".to_owned(),
        more => format!("arrives {more} times"),
    }
}

fn term_trapped(bench: &Bench) -> String {
    let mut run = bench.start(&scribe(bench));
    bench.wait_line("got", "ready");
    run.signal(Signal::TERM);
    code_of(ended(&mut run))
}

fn term_worker(bench: &Bench) -> String {
    let line = format!("sleep {}; true", bench.word());
    let mut run = bench.start(&["sh", "-c", &line]);
    bench.wait_sleeper();
    run.signal(Signal::TERM);
    let _ = ended(&mut run);
    fate(bench, "worker")
}

/// As a shell's `kill %1` does, and the end of a session.
fn term_group(bench: &Bench) -> String {
    let mut run = bench.start(&scribe(bench));
    bench.wait_line("got", "ready");
    proc::signal_group(run.pid(), Signal::TERM);
    let code = code_of(ended(&mut run));
    std::thread::sleep(ms(400));
    format!("{}, {code}", times(bench, "TERM"))
}

fn usr1(bench: &Bench) -> String {
    let mut run = bench.start(&scribe(bench));
    bench.wait_line("got", "ready");
    run.signal(Signal::USR1);
    let arrived = || bench.lines("got").contains(&"USR1".to_owned());
    let _ = eventually(ms(700), arrived);
    if run.has_ended() {
        return format!("{}, ends the tool", times(bench, "USR1"));
    }
    times(bench, "USR1")
}

fn killed(bench: &Bench) -> String {
    let mut run = bench.start(&["sleep", bench.word()]);
    bench.wait_sleeper();
    run.signal(Signal::KILL);
    let _ = ended(&mut run);
    fate(bench, "command")
}

fn leftover(bench: &Bench) -> String {
    let line = format!("sleep {} & echo started", bench.word());
    // `cat` waits for the last who has the pipe open, the tool must not.
    let behind = bench.run(&["sh", "-c", &line]).shell_line();
    let begin = Instant::now();
    let whole = format!("{{ {behind}; echo $? >status; }} | cat");
    let shell = Solocron::program("sh".as_ref())
        .args(["-c", &whole])
        .current_dir(&bench.path("."))
        .spawn();
    let there = eventually(secs(3), || !bench.lines("status").is_empty());
    let took = begin.elapsed();
    drop(shell);
    match bench.lines("status").first() {
        Some(code) if there && code == "0" && took < secs(2) => "ends at once".to_owned(),
        Some(code) => format!("ends with {code} after {} ms", took.as_millis()),
        None => "waits".to_owned(),
    }
}

fn lock_with_leftover(bench: &Bench) -> String {
    if !bench.is("solocron") && !bench.is("flock") {
        return NOT_APPLICABLE.to_owned();
    }
    let line = format!("sleep {} &", bench.word());
    let first = bench.start(&["sh", "-c", &line]);
    bench.wait_sleeper();
    let _ = eventually(secs(3), || first.children().is_empty());
    let mut second = bench.start(&["true"]);
    match ended(&mut second) {
        Some(0) => "free".to_owned(),
        _ => "held".to_owned(),
    }
}

/// What a command prints in odd surroundings, behind the tool or alone.
fn shown(bench: &Bench, outer: &str, command: &[&str], alone: bool) -> String {
    let run = if alone {
        Solocron::program("env".as_ref()).args(command)
    } else {
        bench.run(command)
    };
    let whole = format!("{outer} {}", run.shell_line());
    let out = Solocron::program("sh".as_ref()).args(["-c", &whole]).run();
    out.out()
}

fn same<T: PartialEq>(bench: &Bench, outer: &str, command: &[&str], read: fn(&str) -> T) -> String {
    let ours = shown(bench, outer, command, false);
    let theirs = shown(bench, outer, command, true);
    assert!(!theirs.is_empty(), "{command:?} prints nothing");
    let same = read(&ours) == read(&theirs);
    (if same { "inherited" } else { "changed" }).to_owned()
}

/// Sets of signals, without the two that the C library keeps for itself: its
/// `posix_spawn` has them ignored, and whoever has threads catches them.
fn signals(text: &str) -> Vec<u64> {
    let masks = text
        .split_whitespace()
        .filter_map(|word| u64::from_str_radix(word, 16).ok());
    masks.map(|mask| mask & !(0b11 << 31)).collect()
}

fn inherited(bench: &Bench) -> String {
    let outer = "exec env --ignore-signal=HUP --ignore-signal=USR2 --block-signal=USR1";
    same(
        bench,
        outer,
        &["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"],
        signals,
    )
}

fn descriptors(bench: &Bench) -> String {
    let line = "for f in /proc/self/fd/*; do echo ${f##*/}; done";
    same(
        bench,
        "exec 7</dev/null; exec",
        &["sh", "-c", line],
        str::to_owned,
    )
}

fn broken_pipe(bench: &Bench) -> String {
    let behind = bench.run(&["yes"]).shell_line();
    let line = format!("{behind} | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}");
    let out = Solocron::program("bash".as_ref()).args(["-c", &line]).run();
    out.out().trim().to_owned()
}
