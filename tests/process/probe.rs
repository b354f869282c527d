//! A small supervisor over the library: what the real one does with a command,
//! without store and schedule.
//!
//! `--probe [OPTION]... COMMAND [ARG]...`:
//! `--idle MS` waits before the start; `--deaf MS` does, without looking;
//! `--stop MS` stops the command after that time, `--kill-after MS` kills what
//! is left after that; `--panic MS` panics; `--null`, `--shell`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use solocron::process::{
    self, Caught, Child, Inherited, Kind, Placement, Signal, Signals, Spec, Stdin, init,
};

pub struct Options {
    idle: Option<Duration>,
    deaf: Option<Duration>,
    stop: Option<Duration>,
    kill_after: Duration,
    panic: Option<Duration>,
    null: bool,
    shell: bool,
    argv: Vec<OsString>,
}

const NEVER: Duration = Duration::from_secs(1_000_000);

fn parse(args: Vec<OsString>) -> Options {
    let mut options = Options {
        idle: None,
        deaf: None,
        stop: None,
        kill_after: NEVER,
        panic: None,
        null: false,
        shell: false,
        argv: Vec::new(),
    };
    let mut args = args.into_iter().peekable();
    while let Some(word) = args.next_if(|word| word.to_string_lossy().starts_with("--")) {
        let mut time = || {
            let number = args.next().expect("a time");
            Duration::from_millis(number.to_string_lossy().parse().expect("milliseconds"))
        };
        match &*word.to_string_lossy() {
            "--idle" => options.idle = Some(time()),
            "--deaf" => options.deaf = Some(time()),
            "--stop" => options.stop = Some(time()),
            "--kill-after" => options.kill_after = time(),
            "--panic" => options.panic = Some(time()),
            "--null" => options.null = true,
            "--shell" => options.shell = true,
            other => panic!("{other}?"),
        }
    }
    options.argv = args.collect();
    options
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

pub fn main(args: Vec<OsString>) -> ExitCode {
    let inherited = Inherited::capture();
    init::split_if_pid1(&inherited);
    let mut signals = Signals::install(&inherited).expect("signals");
    let options = parse(args);
    if let Some(time) = options.deaf {
        println!("deaf");
        std::thread::sleep(time);
    }
    let status = runtime().block_on(run(options, &inherited, &mut signals));
    ExitCode::from(u8::try_from(status).expect("a status"))
}

async fn run(options: Options, inherited: &Inherited, signals: &mut Signals) -> i32 {
    if let Some(signal) = stopped_early(options.idle, signals).await {
        return 128 + signal.number();
    }
    let spec = Spec {
        argv: options.argv.clone(),
        shell: options.shell,
        env_set: vec![("PROBE_SET".into(), "yes".into())],
        env_remove: vec!["PROBE_REMOVE".into()],
        stdin: if options.null {
            Stdin::Null
        } else {
            Stdin::Inherit
        },
        placement: Placement::detect(),
        inherited: inherited.clone(),
    };
    match process::spawn(&spec) {
        Ok(child) => supervise(child, options, signals).await,
        Err(error) => {
            eprintln!("probe: {error}");
            error.status()
        }
    }
}

async fn stopped_early(idle: Option<Duration>, signals: &mut Signals) -> Option<Signal> {
    while let Some(caught) = signals.try_next() {
        if caught.signal.kind() == Kind::Stop {
            return Some(caught.signal);
        }
    }
    let rest = tokio::time::sleep(idle?);
    tokio::pin!(rest);
    loop {
        tokio::select! {
            () = &mut rest => return None,
            caught = signals.next() => match caught.signal.kind() {
                Kind::Stop => return Some(caught.signal),
                Kind::Suspend => process::suspend_self(),
                _ => {}
            }
        }
    }
}

async fn supervise(mut child: Child, options: Options, signals: &mut Signals) -> i32 {
    let stop = tokio::time::sleep(options.stop.unwrap_or(NEVER));
    let kill = tokio::time::sleep(NEVER);
    let panic = tokio::time::sleep(options.panic.unwrap_or(NEVER));
    tokio::pin!(stop, kill, panic);
    let (mut stops, mut stopped) = (0, false);
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended.expect("wait"),
            caught = signals.next() => react(&mut child, &caught, &mut stops),
            () = &mut stop, if !stopped => {
                stopped = true;
                child.stop(Signal::TERM);
                kill.set(tokio::time::sleep(options.kill_after));
            }
            () = &mut kill => {
                child.kill_all();
                kill.set(tokio::time::sleep(NEVER));
            }
            () = &mut panic => panic!("on purpose"),
        }
    };
    if stopped || stops > 1 {
        assert!(child.gone(500).await, "something of the command is left");
    } else {
        match still_there(&child).await {
            0 => {}
            left => eprintln!("probe: {left} left"),
        }
    }
    if let Some(signal) = child.placement().dies_with(ended) {
        process::die_of(signal);
    }
    ended.status()
}

/// What is left of a command's group, looked at twice: a daemon takes a moment
/// to have a session of its own.
pub async fn still_there(child: &Child) -> usize {
    if child.leftovers() > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    child.leftovers()
}

fn react(child: &mut Child, caught: &Caught, stops: &mut u32) {
    match caught.signal.kind() {
        Kind::Stop => {
            *stops += 1;
            if *stops == 2 {
                child.kill_all();
            } else {
                child.forward(caught);
            }
        }
        Kind::Suspend => child.suspend(caught),
        Kind::Child => drop(child.follow_stop()),
        Kind::Message | Kind::Continue => drop(child.forward(caught)),
    }
}
