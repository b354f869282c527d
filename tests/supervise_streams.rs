//! Standard output and error: passed on untouched, and never a reason to stop.

mod support;

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use support::fleet::{EACH_SECOND, at, soon};
use support::{Place, Pty, RedisServer, Running, Signal, Solocron, Witness, proc};
use support::{long, ms, secs, wait_until};

fn local() -> Place {
    let [_, place] = Place::each();
    place
}

/// What a job says on both streams: lines, one of a MiB, bytes that are no text,
/// no line end at the last.
const SAYS: &str = r#"echo '{"level":"info"}'; echo 'a line of text' >&2
head -c 1048576 /dev/zero | tr '\0' x; printf '\377\376'; test -t 1; echo "tty=$?"; printf end"#;

#[test]
fn the_output_of_a_schedule_passes_byte_for_byte_and_costs_no_memory() {
    let place = local();
    let bare = Solocron::program("env".as_ref())
        .args(["sh", "-c", SAYS])
        .run();
    let run = place.run("x").args(at(&[soon(secs(1)), soon(secs(3))]));
    let mut run = run.sh(SAYS).spawn();
    let memory = |run: &Running| -> u64 {
        let line = proc::status_line(run.pid(), "VmHWM").expect("it runs");
        line.trim_end_matches(" kB").parse().expect("a number")
    };
    let ended = |n: usize| move |text: String| text.matches("ended with status 0").count() == n;
    wait_until(secs(5), "the first run", || ended(1)(run.stderr()));
    let before = memory(&run);
    wait_until(secs(5), "the second run", || ended(2)(run.stderr()));
    assert!(
        memory(&run) < before + 1024,
        "{} kB after {before}",
        memory(&run)
    );
    run.signal(Signal::TERM);
    let out = run.wait(secs(2));
    assert!(out.stdout == [&bare.stdout[..], &bare.stdout[..]].concat());
    assert_eq!(out.stderr.matches("a line of text\n").count(), 2);
    assert!(!out.out().contains("solocron"));
}

/// Runs a shell line with this as its standard error, in a session of its own.
fn with_stderr(line: &str, stderr: impl Into<Stdio>) -> Loud {
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", &format!("exec {line}")]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    support::solocron::clear_environment(&mut command);
    Loud(command.spawn().expect("setsid, of util-linux"))
}

struct Loud(std::process::Child);

impl Loud {
    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a pid")
    }

    /// Sends TERM; its status, which must come within 3 s.
    fn stop(mut self) -> Option<i32> {
        proc::signal(self.pid(), Signal::TERM);
        let mut status = None;
        wait_until(secs(3), "its end", || {
            status = self.0.try_wait().expect("its state");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Loud {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A schedule that says as much as it can, whose command holds the lock longer
/// than its ttl: four heartbeats a run.
fn talker(place: &Place, witness: &Witness) -> String {
    let run = place
        .run("x")
        .args(EACH_SECOND)
        .args(["--ttl", "1s", "-vvv"]);
    run.command(witness.job("exec >/dev/null 2>&1; sleep 1.4; w worked"))
        .shell_line()
}

/// The schedule goes on: its runs work to their end, with the lock held.
fn goes_on(place: &Place, witness: &Witness, runs: usize) {
    let before = witness.of("worked").len();
    wait_until(secs(5), "a run", || {
        witness.starts().len() > witness.of("end").len()
    });
    std::thread::sleep(ms(1150));
    let held = place.held("x") || witness.starts().len() == witness.of("end").len();
    assert!(held, "the lease is renewed");
    wait_until(secs(12), "runs that work to their end", || {
        witness.of("worked").len() >= before + runs
    });
    assert_eq!(witness.by_firing().len(), witness.starts().len());
}

#[test]
fn a_reader_that_is_gone_stops_nothing() {
    let (place, witness) = (local(), Witness::default());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let run = with_stderr(&talker(&place, &witness), writer);
    witness.wait_starts(1, secs(10));
    drop(reader);
    goes_on(&place, &witness, 2);
    assert_eq!(run.stop(), Some(0));
    place.assert_free("x");
}

/// Fills what `write` writes to until it takes no more.
fn fill(mut write: impl FnMut(&[u8]) -> std::io::Result<usize>) {
    let block = [b'.'; 1024];
    while write(&block).is_ok() {}
    while write(b".").is_ok() {}
}

#[test]
fn a_reader_that_reads_nothing_stops_nothing() {
    let (place, witness) = (local(), Witness::default());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    // Through a description of its own: the one that is handed on blocks.
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let own = OpenOptions::new()
        .write(true)
        .custom_flags(0o4000)
        .open(path);
    let own = own.expect("the pipe once more");
    fill(|bytes| std::io::Write::write(&mut &own, bytes));
    let run = with_stderr(&talker(&place, &witness), writer);
    goes_on(&place, &witness, 2);
    assert_eq!(run.stop(), Some(0));
    place.assert_free("x");
    drop(reader);
}

#[test]
fn a_slow_reader_stops_nothing_and_is_told_what_it_missed() {
    let (place, witness) = (local(), Witness::default());
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let own = OpenOptions::new()
        .write(true)
        .custom_flags(0o4000)
        .open(path);
    let own = own.expect("the pipe once more");
    fill(|bytes| std::io::Write::write(&mut &own, bytes));
    drop(own);
    let run = with_stderr(&talker(&place, &witness), writer);
    goes_on(&place, &witness, 1);
    let slow = std::thread::spawn(move || {
        let mut all = Vec::new();
        let mut buffer = [0; 512];
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            all.extend(&buffer[..n]);
            std::thread::sleep(ms(5));
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    goes_on(&place, &witness, 2);
    assert_eq!(run.stop(), Some(0));
    let read = slow.join().expect("the reader");
    assert!(read.contains("lines were dropped"), "{read}");
    // No line is torn: each begins with the time or is the note.
    let lines = read.trim_start_matches('.').lines();
    let whole = |line: &str| line.starts_with("20") || line.starts_with("solocron warning");
    let torn: Vec<&str> = lines.filter(|line| !whole(line)).collect();
    assert!(torn.is_empty(), "{torn:?}");
    place.assert_free("x");
}

/// As under systemd.
#[test]
fn a_socket_that_nobody_reads_stops_nothing() {
    let (place, witness) = (local(), Witness::default());
    let (reader, writer) = UnixStream::pair().expect("a socket");
    writer.set_nonblocking(true).expect("mode");
    fill(|bytes| std::io::Write::write(&mut &writer, bytes));
    writer.set_nonblocking(false).expect("mode");
    let run = with_stderr(&talker(&place, &witness), OwnedFd::from(writer));
    goes_on(&place, &witness, 2);
    assert_eq!(run.stop(), Some(0));
    place.assert_free("x");
    drop(reader);
}

#[test]
fn a_full_disk_and_a_closed_stream_stop_nothing() {
    std::thread::scope(|scope| {
        for redirection in ["2>/dev/full", "2>&-", "2>&- >&- <&-"] {
            scope.spawn(move || {
                let (place, witness) = (local(), Witness::default());
                let line = format!("{} {redirection}", talker(&place, &witness));
                let run = with_stderr(&line, Stdio::null());
                goes_on(&place, &witness, 2);
                assert_eq!(run.stop(), Some(0), "{redirection}");
                place.assert_free("x");
            });
        }
    });
}

#[test]
fn a_terminal_that_is_held_with_ctrl_s_stops_nothing() {
    let (place, witness) = (local(), Witness::default());
    let pty = Pty::bash();
    pty.send(&format!("{}; echo \"code=$?\"\n", talker(&place, &witness)));
    witness.wait_starts(1, secs(10));
    pty.send("\x13");
    goes_on(&place, &witness, 2);
    pty.send("\x11");
    goes_on(&place, &witness, 1);
    pty.send("\x03");
    pty.wait_text("code=0", secs(4));
    place.assert_free("x");
}

#[test]
fn firings_behind_one_long_run_do_not_flood_the_log() {
    let redis = RedisServer::start();
    let mut holder = Solocron::on(&redis, "x").sh("sleep 30").spawn();
    wait_until(secs(5), "held", || redis.held("x"));
    let run = |label: &str| {
        let run = Solocron::on(&redis, "x").args(EACH_SECOND);
        run.args(["--start-deadline", "1s"])
            .label(label)
            .command(["true"])
            .spawn()
    };
    let mut all: Vec<Running> = ["a", "b", "c"].into_iter().map(run).collect();
    std::thread::sleep(secs(if long() { 20 } else { 6 }));
    for run in &mut all {
        run.signal(Signal::TERM);
        let out = run.wait(secs(3));
        out.assert_code(0);
        let count = |words: &str| out.stderr.matches(words).count();
        assert_eq!(count("waiting for the lock"), 1, "{}", out.stderr);
        let skips = count("not started");
        assert!((1..=10).contains(&skips), "{skips}: {}", out.stderr);
    }
    holder.signal(Signal::TERM);
    let _ = holder.wait(secs(3));
}

#[test]
fn a_limit_of_file_sizes_costs_messages_and_not_the_schedule() {
    let (place, witness) = (Place::Redis(RedisServer::start()), Witness::default());
    let dir = tempfile::tempdir().expect("temporary directory");
    let log = dir.path().join("log");
    let line = talker(&place, &witness);
    // In blocks of 512 or 1024 bytes; the witness stays below.
    let script = format!("ulimit -f 1; exec {line} 2>'{}'", log.display());
    let mut run = Solocron::program("sh".as_ref())
        .args(["-c", &script])
        .spawn();
    wait_until(secs(10), "the log is full", || {
        fs::metadata(&log).is_ok_and(|log| log.len() >= 512)
    });
    goes_on(&place, &witness, 1);
    run.signal(Signal::TERM);
    run.wait(secs(3)).assert_code(0).assert_clean();
    place.assert_free("x");
    // The command has the signal as it would have it without the prefix.
    let out = place.run("x").sh("grep SigIgn /proc/self/status").run();
    let text = out.out();
    let mask = text.split_whitespace().nth(1).expect("a mask");
    let mask = u64::from_str_radix(mask, 16).expect("a mask");
    assert_eq!(mask & (1 << 24), 0, "{text}");
}
