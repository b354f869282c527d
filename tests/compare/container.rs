//! As process 1 of a PID namespace.

use crate::Row;
use crate::bench::Bench;
use crate::support::{Running, Signal, proc};
use crate::support::{eventually, ms, secs};
use std::time::{Duration, Instant};

pub const ROWS: &[Row] = &[
    Row {
        name: "process 1: five orphans of a command that exits with 3",
        right: "no zombie, 3",
        case: orphans,
    },
    Row {
        name: "process 1: TERM in the first 50 ms, ten times",
        right: "10 end",
        case: early_term,
    },
    Row {
        name: "process 1: TERM, worker behind a shell",
        right: "143, worker had time",
        case: worker,
    },
];

fn orphans(bench: &Bench) -> String {
    let line = "for i in 1 2 3 4 5; do (setsid sleep 0.05 &); done; sleep 0.5
        grep -h '^State' /proc/[0-9]*/status | grep -c Z; exit 3";
    let out = bench.run(&["sh", "-c", line]).in_pid_namespace().run();
    let zombies = match out.out().trim() {
        "0" => "no zombie".to_owned(),
        number => format!("{number} zombies"),
    };
    format!("{zombies}, {}", out.code())
}

/// The pid of process 1, once the tool itself runs and waits for signals or has
/// started the command: what comes before that nobody can catch.
fn init(run: &Running, tool: &str) -> i32 {
    let begin = Instant::now();
    loop {
        let pid = run.pid();
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let blocks = |mask: String| u64::from_str_radix(&mask, 16) != Ok(0);
        let runs = || {
            proc::status_line(pid, "SigBlk").is_some_and(blocks) || !proc::children(pid).is_empty()
        };
        if exe.file_name().is_some_and(|name| name == tool) && runs() {
            return pid;
        }
        assert!(begin.elapsed() < secs(10), "{tool} does not start");
    }
}

fn name(bench: &Bench) -> String {
    let program = bench.behind::<&str>(&[]).remove(0);
    let program = std::path::Path::new(&program);
    program
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

fn early_term(bench: &Bench) -> String {
    let trial = |number: u64| {
        let one = bench.another();
        let run = one.run(&["sleep", one.word()]).in_pid_namespace();
        let mut run = run.spawn();
        let pid = init(&run, &name(bench));
        std::thread::sleep(Duration::from_micros(number * 5_300));
        proc::signal(pid, Signal::TERM);
        eventually(secs(2), || run.has_ended())
    };
    let ended = std::thread::scope(|scope| {
        let all: Vec<_> = (0..10)
            .map(|number| scope.spawn(move || trial(number)))
            .collect();
        let ends = all.into_iter().map(|one| one.join().expect("a trial"));
        ends.filter(|ended| *ended).count()
    });
    format!("{ended} end")
}

/// Whether a worker behind a shell gets the signal itself, or only the kill that
/// comes with the end of process 1.
fn worker(bench: &Bench) -> String {
    let worker = "trap 'sleep 0.2; echo bye >>got; exit' TERM; echo ready >>got; while :; do sleep 0.02; done";
    let worker = bench.file("worker", worker.as_bytes(), 0o755);
    let line = format!("sh {worker}; true");
    let mut run = bench.run(&["sh", "-c", &line]).in_pid_namespace().spawn();
    bench.wait_line("got", "ready");
    run.signal(Signal::TERM);
    let code = if eventually(secs(3), || run.has_ended()) {
        run.wait(secs(1)).code().to_string()
    } else {
        "runs on".to_owned()
    };
    std::thread::sleep(ms(300));
    let had_time = bench.lines("got").contains(&"bye".to_owned());
    let time = if had_time { "had time" } else { "was killed" };
    format!("{code}, worker {time}")
}
