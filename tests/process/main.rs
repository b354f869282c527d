//! The process layer with real processes, signals, terminals and PID namespaces.
//!
//! What it does depends on the state of a whole process, so the tests run
//! this binary itself as a small supervisor (`--probe`, see `probe`) from a
//! `main` of its own. Filters are given as with the standard harness.
//! `SOLOCRON_LONG=1` runs repetitions in full.

mod init;
mod kit;
mod probe;
mod selfcheck;
mod signals;
mod start;
mod terminal;
mod tree;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Case = (&'static str, fn());

/// Most of a test's time is waiting.
const WORKERS: usize = 4;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == "--probe" => probe::main(args.collect()),
        Some(first) if first == "--selfcheck" => {
            selfcheck::main(&args.next().unwrap_or_default().to_string_lossy());
            ExitCode::SUCCESS
        }
        _ => run(),
    }
}

fn run() -> ExitCode {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let all = [
        init::CASES,
        selfcheck::CASES,
        signals::CASES,
        start::CASES,
        terminal::CASES,
        tree::CASES,
    ];
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|part| name.contains(part));
    let cases: Vec<Case> = all
        .into_iter()
        .flatten()
        .filter(|(name, _)| wanted(name))
        .copied()
        .collect();
    if std::env::args().any(|word| word == "--list") {
        for (name, _) in &cases {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let failed = run_all(&cases);
    println!("\ntest result: {} run, {failed:?} failed", cases.len());
    ExitCode::from(u8::from(!failed.is_empty()))
}

fn lock<'a>(names: &'a Mutex<Vec<&'static str>>) -> MutexGuard<'a, Vec<&'static str>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hang is a failure too: says in which cases, and ends.
fn watch(running: &Mutex<Vec<&'static str>>, done: &AtomicBool) {
    let limit = kit::LIMIT * kit::repeats(10, 500);
    let start = Instant::now();
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        if start.elapsed() > limit {
            println!("hanging: {:?}", lock(running));
            std::process::exit(1);
        }
    }
}

fn run_all(cases: &[Case]) -> Vec<&'static str> {
    let next = AtomicUsize::new(0);
    let (running, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = || {
            while let Some((name, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                lock(&running).push(*name);
                let good = catch_unwind(case).is_ok();
                lock(&running).retain(|other| other != name);
                println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
                if !good {
                    lock(&failed).push(*name);
                }
            }
        };
        scope.spawn(|| watch(&running, &done));
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().expect("a worker");
        }
        done.store(true, Ordering::Relaxed);
    });
    std::mem::take(&mut lock(&failed))
}
