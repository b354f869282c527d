//! Checks of the library from inside a process of its own: `--selfcheck NAME`.

use std::ffi::OsString;
use std::time::Duration;

use solocron::process::{
    Child, Ended, Inherited, Origin, Placement, Signal, Signals, Spec, StartError, Stdin, spawn,
};

use crate::Case;
use crate::kit::{alive, bare, binary, children, having, output, state, text, unique, until};
use crate::probe::{runtime, still_there};

pub const CASES: &[Case] = &[
    ("self::every_status", || check("every_status")),
    ("self::every_signal", || check("every_signal")),
    ("self::wait_again", || check("wait_again")),
    ("self::status_is_not_taken", || check("status_is_not_taken")),
    ("self::freeze", || check("freeze")),
    ("self::earlier_leftovers", || check("earlier_leftovers")),
    ("self::origin", || check("origin")),
    ("self::too_long", || check("too_long")),
    ("self::start_is_quick", || check("start_is_quick")),
];

fn check(name: &str) {
    let output = output(&mut bare(&[&binary(), "--selfcheck", name]));
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

pub fn main(name: &str) {
    let inherited = Inherited::capture();
    let signals = Signals::install(&inherited).expect("signals");
    let bench = Bench { inherited, signals };
    let run = async {
        match name {
            "every_status" => every_status(bench).await,
            "every_signal" => every_signal(bench).await,
            "wait_again" => wait_again(bench).await,
            "status_is_not_taken" => status_is_not_taken(bench).await,
            "freeze" => freeze(bench).await,
            "earlier_leftovers" => earlier_leftovers(bench).await,
            "origin" => origin(bench).await,
            "too_long" => too_long(&bench),
            "start_is_quick" => start_is_quick(bench).await,
            other => panic!("{other}?"),
        }
    };
    runtime().block_on(async {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, run).await.expect("it hangs");
    });
}

struct Bench {
    inherited: Inherited,
    signals: Signals,
}

impl Bench {
    fn spawn(&self, words: &[&str]) -> Child {
        self.try_spawn(words).expect("started")
    }

    fn try_spawn(&self, words: &[&str]) -> Result<Child, StartError> {
        let spec = Spec {
            argv: words.iter().map(OsString::from).collect(),
            shell: false,
            env_set: Vec::new(),
            env_remove: Vec::new(),
            stdin: Stdin::Null,
            placement: Placement::OwnGroup,
            inherited: self.inherited.clone(),
        };
        spawn(&spec)
    }
}

async fn every_status(bench: Bench) {
    for status in 0..=255 {
        let mut child = bench.spawn(&["sh", "-c", &format!("exit {status}")]);
        assert_eq!(child.wait().await.expect("wait"), Ended::Exited(status));
        assert_eq!(child.ended().expect("ended").status(), status);
    }
}

async fn every_signal(bench: Bench) {
    let harmless = [
        "CHLD", "CONT", "URG", "WINCH", "STOP", "TSTP", "TTIN", "TTOU",
    ];
    for number in (1..=31).chain([34, 64]) {
        let signal = Signal::from_number(number).expect("a signal");
        if signal.name().is_some_and(|name| harmless.contains(&name)) {
            continue;
        }
        let script = format!("kill -{number} $$; sleep 9");
        let mut child = bench.spawn(&["sh", "-c", &script]);
        let ended = child.wait().await.expect("wait");
        assert!(
            matches!(ended, Ended::Signaled { signal, .. } if signal == number),
            "{signal}: {ended}"
        );
        assert_eq!(ended.status(), 128 + number);
    }
}

async fn wait_again(bench: Bench) {
    let mut child = bench.spawn(&["sleep", "0.1"]);
    let mut cancelled = 0;
    let ended = loop {
        match tokio::time::timeout(Duration::from_millis(10), child.wait()).await {
            Ok(ended) => break ended.expect("wait"),
            Err(_) => cancelled += 1,
        }
    };
    assert!(cancelled > 1);
    assert_eq!(ended, Ended::Exited(0));
    assert_eq!(child.wait().await.expect("again"), ended);
    assert_eq!(child.try_wait().expect("again"), Some(ended));
    assert_eq!(still_there(&child).await, 0);
    assert!(child.gone(3).await);
}

/// Reaping orphans at the very moment when the command has ended and nobody
/// has asked for its status yet.
async fn status_is_not_taken(mut bench: Bench) {
    let script = "for i in 1 2 3; do (setsid true &); done; exit 3";
    let mut child = bench.spawn(&["sh", "-c", script]);
    until("it has ended", || state(child.pid()) == Some('Z'));
    while bench.signals.try_next().is_some() {}
    assert_eq!(state(child.pid()), Some('Z'));
    assert_eq!(child.wait().await.expect("wait"), Ended::Exited(3));
    let own = i32::try_from(std::process::id()).expect("a pid");
    until("the orphans are reaped", || {
        while bench.signals.try_next().is_some() {}
        children(own).is_empty()
    });
}

async fn freeze(bench: Bench) {
    let word = unique();
    let script = format!("setsid sleep {word} & sleep {word}");
    let mut child = bench.spawn(&["sh", "-c", &script]);
    until("both sleep", || having(&word).len() == 2);
    let states = |want: char| having(&word).iter().all(|pid| state(*pid) == Some(want));
    child.freeze();
    until("all are stopped", || {
        states('T') && state(child.pid()) == Some('T')
    });
    child.thaw();
    until("all go on", || {
        states('S') && state(child.pid()) == Some('S')
    });
    child.freeze();
    child.stop(Signal::TERM);
    let ended = child.wait().await.expect("wait");
    assert_eq!(ended.status(), 143, "a frozen command acts on a stop");
    assert!(child.gone(100).await);
    assert_eq!(having(&word), [0; 0]);
}

async fn earlier_leftovers(bench: Bench) {
    let (old, new) = (unique(), unique());
    let script = format!("sleep {old} & setsid sleep {old} & exit 0");
    let mut first = bench.spawn(&["sh", "-c", &script]);
    until("the first has left something", || having(&old).len() == 2);
    first.wait().await.expect("wait");
    assert_eq!(still_there(&first).await, 1);
    drop(first);
    let script = format!("sleep {new} & (setsid sleep {new} &) ; sleep {new}");
    let mut second = bench.spawn(&["sh", "-c", &script]);
    until("the second runs", || having(&new).len() == 3);
    second.stop(Signal::TERM);
    second.wait().await.expect("wait");
    assert!(second.gone(200).await);
    assert_eq!(having(&new), [0; 0]);
    let left = having(&old);
    assert_eq!(left.len(), 2, "what an earlier run left is not touched");
    for pid in left {
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    }
}

async fn origin(mut bench: Bench) {
    let own = i32::try_from(std::process::id()).expect("a pid");
    let script = format!("kill -USR1 {own}; sleep 0.05; kill -USR2 {own}; sleep 9");
    let mut child = bench.spawn(&["sh", "-c", &script]);
    for want in [Signal::USR1, Signal::USR2] {
        let caught = bench.signals.next().await;
        assert_eq!(caught.signal, want);
        assert_eq!(caught.origin, Origin::User { pid: child.pid() });
    }
    assert_eq!(bench.signals.try_next(), None);
    let pid = child.pid();
    assert!(alive(pid));
    child.kill_all();
    assert_eq!(child.wait().await.expect("wait").status(), 137);
    assert_eq!(bench.signals.next().await.signal, Signal::CHLD);
}

/// A start and an end cost little more than the kernel's own work, however
/// much memory this process has.
async fn start_is_quick(bench: Bench) {
    let ballast = vec![1_u8; 200 << 20];
    let start = std::time::Instant::now();
    for _ in 0..50 {
        let mut child = bench.spawn(&["/bin/true"]);
        assert_eq!(child.wait().await.expect("wait"), Ended::Exited(0));
    }
    let each = start.elapsed() / 50;
    println!("{each:?} each");
    assert!(each < Duration::from_millis(30), "{each:?}");
    assert_eq!(ballast[ballast.len() / 2], 1);
}

/// One argument may have 128 KiB, see execve(2).
fn too_long(bench: &Bench) {
    let error = bench
        .try_spawn(&["true", &"x".repeat(200_000)])
        .expect_err("too long");
    assert!(matches!(error, StartError::TooLong), "{error}");
    assert_eq!(error.status(), 126);
    let nul = bench.try_spawn(&["true", "a\0b"]).expect_err("a NUL");
    assert!(nul.to_string().contains("NUL"), "{nul}");
}
