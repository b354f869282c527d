//! Instances of the real binary while everything around them fails: they are
//! killed and frozen, their networks cut and slowed, their store stopped,
//! restarted and wiped, their clocks wrong.
//!
//! A seed decides on the faults; `--help` tells the rest. The suite runs 20 s.

mod crew;
mod dice;
mod facts;
mod faults;
mod ground;
mod job;
mod judge;
mod lines;
mod logs;
mod missed;
mod options;
mod resource;
#[path = "../support/mod.rs"]
mod support;
mod table;
#[path = "../store/watched.rs"]
mod watched;

use crate::crew::{Instance, State};
use crate::dice::Dice;
use crate::facts::{Facts, Freeze, Job, MILLI, SECOND, Span};
use crate::faults::Scene;
use crate::ground::Ground;
use crate::options::{Asked, HELP, Options};
use crate::resource::{Resource, now_us};
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const JOBS: [Job; 4] = [
    Job {
        name: "quick",
        period: SECOND,
        ttl: 3 * SECOND,
        start_deadline: 8 * SECOND,
        queue: false,
        rerun: false,
        takes: (0, 30 * MILLI),
    },
    Job {
        name: "long",
        period: 2 * SECOND,
        ttl: 3 * SECOND,
        start_deadline: 8 * SECOND,
        queue: false,
        rerun: false,
        takes: (200 * MILLI, 4 * SECOND),
    },
    Job {
        name: "queue",
        period: 3 * SECOND,
        ttl: 4 * SECOND,
        start_deadline: 8 * SECOND,
        queue: true,
        rerun: false,
        takes: (300 * MILLI, 4 * SECOND),
    },
    Job {
        name: "rerun",
        period: 4 * SECOND,
        ttl: 2 * SECOND,
        start_deadline: 8 * SECOND,
        queue: false,
        rerun: true,
        takes: (500 * MILLI, 3 * SECOND),
    },
];

/// How long the instances run before anything goes wrong.
const CALM: Duration = Duration::from_secs(3);
/// How often things are looked at.
const STEP: Duration = Duration::from_millis(10);
/// A pause of this program longer than this is one of the machine.
const STALL: Duration = Duration::from_millis(60);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = words.split_first()
        && first == "job"
    {
        return job::main(rest);
    }
    match options::read(words) {
        Ok(Asked::Run(options)) => run(&options),
        Ok(Asked::Help) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Asked::List) => {
            println!("chaos: test");
            ExitCode::SUCCESS
        }
        Ok(Asked::Nothing) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> ExitCode {
    let (facts, failures) = play(options);
    let all: Vec<_> = facts
        .jobs
        .iter()
        .map(|job| judge::judge(&facts, job))
        .collect();
    let mut text = format!(
        "seed {}, {} s of faults, {} instances of each job on {:?}; ",
        options.seed, options.seconds, options.instances, options.store
    );
    text += &table::faults(&facts);
    text += &table::figures(&facts, &all);
    text += &table::findings(&facts, &all);
    for failure in &failures {
        let _ = writeln!(text, "broken: {failure}");
    }
    print!("{text}");
    if let Some(dir) = &options.keep {
        let _ = std::fs::write(dir.join("report"), &text);
        let _ = std::fs::write(
            dir.join("facts"),
            format!("{:#?}", (&facts.faults, &facts.runs)),
        );
    }
    let good = failures.is_empty() && all.iter().all(|figures| figures.broken.is_empty());
    println!("chaos ... {}", if good { "ok" } else { "FAILED" });
    ExitCode::from(u8::from(!good))
}

/// Runs everything; what was seen, and what failed outright.
fn play(options: &Options) -> (Facts, Vec<String>) {
    let scratch = tempfile::tempdir().expect("temporary directory");
    let dir = options.keep.as_deref().unwrap_or(scratch.path());
    std::fs::create_dir_all(dir).expect("a directory for the logs");
    let mut yard = crew::yard(dir);
    yard.socket = scratch.path().join("resource");
    let resource = Resource::at(&yard.socket);
    let ground = Ground::start(options.store);
    let mut crew = Vec::new();
    for job in JOBS {
        for letter in ('a'..='z').take(options.instances) {
            let (url, proxy) = ground.way();
            let label = format!("{}-{letter}", job.name);
            crew.push(Instance::new(job.clone(), label, url, proxy));
        }
    }
    let facts = Facts {
        jobs: JOBS.to_vec(),
        ..Facts::default()
    };
    let stalls = Stalls::watch();
    let mut scene = Scene::new(crew, ground, yard, Dice::new(options.seed), facts);
    for index in 0..scene.crew.len() {
        scene.start(index);
    }
    std::thread::sleep(CALM);
    let from = now_us();
    let seconds = i64::try_from(options.seconds).expect("a span");
    let end = from + seconds * SECOND;
    let mut next = from;
    while now_us() < end {
        scene.tend(false);
        if now_us() >= next {
            scene.inject();
            let pause = i64::try_from(scene.dice.between(50, 1_500)).expect("a span");
            next = now_us() + pause * MILLI;
        }
        std::thread::sleep(STEP);
    }
    scene.tend(true);
    // What fell due last may be made up for.
    let calm_at = now_us() + 5 * SECOND;
    while now_us() < calm_at {
        scene.tend(true);
        std::thread::sleep(STEP);
    }
    finish(scene, &resource, &stalls, Span { from, to: end })
}

fn finish(
    mut scene: Scene,
    resource: &Resource,
    stalls: &Stalls,
    window: Span,
) -> (Facts, Vec<String>) {
    for one in &mut scene.crew {
        one.tell_to_stop();
    }
    for index in 0..scene.crew.len() {
        while matches!(scene.crew[index].state, State::Leaving(..)) {
            if let Some(left) = scene.crew[index].has_left(&scene.yard) {
                scene.note_left(left);
            } else {
                std::thread::sleep(STEP);
            }
        }
    }
    let mut facts = scene.facts;
    if let Ground::Watched(failing) = &scene.ground {
        facts.losses.extend(failing.unsettled());
    }
    facts.runs = resource.runs();
    facts.freezes.extend(stalls.take());
    facts.window = Some(window);
    (facts, scene.failures)
}

/// Spans in which the machine let nobody run, this program at least.
struct Stalls {
    seen: Arc<Mutex<Vec<Freeze>>>,
    stopped: Arc<AtomicBool>,
}

impl Stalls {
    fn watch() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stopped = Arc::new(AtomicBool::new(false));
        let (theirs, ended) = (Arc::clone(&seen), Arc::clone(&stopped));
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let from = now_us();
                std::thread::sleep(STEP);
                let to = now_us();
                let bound = i64::try_from((STEP + STALL).as_micros()).expect("a span");
                if to - from > bound {
                    let mut seen = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.push(Freeze {
                        label: None,
                        span: Span { from, to },
                    });
                }
            }
        });
        Self { seen, stopped }
    }

    fn take(&self) -> Vec<Freeze> {
        self.stopped.store(true, Ordering::Relaxed);
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
