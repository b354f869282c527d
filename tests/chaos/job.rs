//! The command that the instances run: it writes to the fenced resource with
//! its token until its time is over.

use signal_hook::consts::SIGTERM;
use std::env;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// From one write to the next.
const STEP: Duration = Duration::from_millis(25);

/// Runs as the command: the resource's socket, the job's name, shortest and
/// longest time in milliseconds.
pub fn main(args: &[String]) -> ExitCode {
    let [socket, job, shortest, longest] = args else {
        return ExitCode::from(2);
    };
    let var = |name: &str| env::var(name).unwrap_or_else(|_| "-".to_owned());
    let firing = var("SOLOCRON_FIRING");
    let luck = hash(&firing);
    let (shortest, longest): (u64, u64) = (number(shortest), number(longest));
    let takes = Duration::from_millis(shortest + luck % (longest - shortest + 1));
    // One firing in four is served by a command that ignores the stop signal.
    let stubborn = (luck >> 32).is_multiple_of(4);
    let told = Arc::new(AtomicBool::new(false));
    let _ = signal_hook::flag::register(SIGTERM, Arc::clone(&told));
    let Ok(mut stream) = UnixStream::connect(socket) else {
        return ExitCode::from(3);
    };
    let hello = format!(
        "{job} {} {firing} {} {}\n",
        var("TEST_LABEL"),
        var("SOLOCRON_TOKEN"),
        var("SOLOCRON_ATTEMPT"),
    );
    let end = Instant::now() + takes;
    let mut say = |text: &str| stream.write_all(text.as_bytes()).is_ok();
    if !say(&hello) {
        return ExitCode::from(3);
    }
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        if told.load(Ordering::Relaxed) && !stubborn {
            return ExitCode::from(9);
        }
        std::thread::sleep(STEP.min(left));
        if !say("w\n") {
            return ExitCode::from(3);
        }
    }
    say("e\n");
    ExitCode::SUCCESS
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number of milliseconds")
}

/// The same number for the same text, on every host.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
