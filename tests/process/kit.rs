//! What the tests share: running the probe, waiting for a condition, finding
//! processes, a pseudo-terminal.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

/// Far more than anything here takes, also on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Waits until `done` holds.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LIMIT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Repetitions: a sample, or in full with `SOLOCRON_LONG=1`.
pub fn repeats(sample: u32, full: u32) -> u32 {
    if std::env::var_os("SOLOCRON_LONG").is_some_and(|value| value == "1") {
        full
    } else {
        sample
    }
}

/// Pseudo-random numbers from a fixed seed (`xorshift64`), so that a run can be repeated.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

pub fn binary() -> String {
    let path = std::env::current_exe().expect("this program");
    path.to_str().expect("a plain path").to_owned()
}

/// The probe with these words, by whitespace; no terminal of ours in its life.
pub fn probe(words: &[&str]) -> Command {
    prefixed(&[], words)
}

/// As [`probe`], with another program's words in front of it.
pub fn prefixed(prefix: &[&str], words: &[&str]) -> Command {
    let binary = binary();
    let mut all: Vec<&str> = vec!["setsid"];
    all.extend(prefix);
    all.extend([binary.as_str(), "--probe"]);
    all.extend(words);
    command(&all)
}

/// The same surroundings without the probe.
pub fn bare(words: &[&str]) -> Command {
    let mut all = vec!["setsid"];
    all.extend(words);
    command(&all)
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

/// A started process that does not outlive its test.
pub struct Started(Child);

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
pub fn start(command: &mut Command) -> Started {
    Started(command.spawn().expect("started"))
}

#[track_caller]
pub fn output(command: &mut Command) -> Output {
    command.output().expect("started")
}

/// 128+n as a shell shows it, and the status itself for a death by signal.
pub fn status(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| -status.signal().expect("a signal"))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A number that no other process has among its arguments, for `sleep`: five
/// minutes and a little.
pub fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("300.{:05}{next:03}", std::process::id() % 100_000)
}

/// Living processes that have `word` as one of their arguments.
pub fn having(word: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").expect("/proc");
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|part| part == word.as_bytes())
        })
        .filter(|pid| alive(*pid))
        .collect()
}

/// The state letter of `/proc/PID/stat`.
pub fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = &stat[stat.rfind(')')? + 2..];
    rest.chars().next()
}

pub fn alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

pub fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = &stat[stat.rfind(')')? + 4..];
    rest.split(' ').next()?.parse().ok()
}

pub fn children(pid: i32) -> Vec<i32> {
    let all = fs::read_dir("/proc").expect("/proc");
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|child| parent(*child) == Some(pid))
        .collect()
}

pub fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("a pid")
}

pub fn send(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).expect("a pid"), signal);
}

/// Waits for a process with a limit, and kills it beyond that.
#[track_caller]
pub fn finish(child: &mut Child) -> i32 {
    let start = Instant::now();
    loop {
        if let Some(ended) = child.try_wait().expect("wait") {
            return status(ended);
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Files that the tests execute, written before anything is started: a file
/// that is open for writing in any process cannot be executed.
pub fn fixtures() -> &'static TempDir {
    static FIXTURES: OnceLock<TempDir> = OnceLock::new();
    FIXTURES.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("mode");
        let garbage = [0xff, 0xfe, 0x83, 0xc1, 0x9e, 0xd2, 0x88, 0xf1, 0xaa, 0xbc];
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(64, 0);
        let files: [(&str, u32, &[u8]); 9] = [
            ("plain", 0o755, b"echo \"plain $1\"\nexit 5\n"),
            ("empty", 0o755, b""),
            ("garbage", 0o755, &garbage),
            ("elf", 0o755, &elf),
            ("mode0644", 0o644, b"#!/bin/sh\nexit 0\n"),
            ("nointerp", 0o755, b"#! /no/such/interp -x\nexit 0\n"),
            ("crlf", 0o755, b"#!/bin/sh\r\nexit 0\r\n"),
            ("denied/tool", 0o644, b"#!/bin/sh\nexit 1\n"),
            ("good/tool", 0o755, b"#!/bin/sh\nexit 42\n"),
        ];
        for (name, mode, content) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
            fs::write(&path, content).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("mode");
        }
        fs::create_dir_all(dir.path().join("asdir/tool")).expect("directory");
        dir
    })
}

pub fn fixture(name: &str) -> String {
    let path: PathBuf = fixtures().path().join(name);
    path.to_str().expect("a plain path").to_owned()
}

/// A pseudo-terminal with a session on it.
pub struct Pty {
    master: File,
    seen: RefCell<Vec<u8>>,
    pub leader: Started,
}

impl Pty {
    /// Runs these words as leader of a new session on a new terminal.
    pub fn run(words: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a pty");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        rustix::fs::fcntl_setfl(&master, rustix::fs::OFlags::NONBLOCK).expect("nonblocking");
        // Wide enough that no line is wrapped.
        let mut size = rustix::termios::tcgetwinsize(&master).expect("size");
        (size.ws_row, size.ws_col) = (24, 4000);
        rustix::termios::tcsetwinsize(&master, size).expect("size");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let name = name.to_str().expect("text");
        let slave = || {
            let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
            rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("slave")
        };
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .args(words)
            .env("PS1", "prompt$ ")
            .env("PROBE", format!("{} --probe", binary()))
            .stdin(slave())
            .stdout(slave())
            .stderr(slave());
        let leader = start(&mut command);
        Self {
            master: File::from(master),
            seen: RefCell::default(),
            leader,
        }
    }

    /// An interactive bash, at its first prompt.
    pub fn bash() -> Self {
        let pty = Self::run(&["bash", "--norc", "--noprofile", "-i"]);
        pty.wait_for("prompt$ ");
        pty
    }

    pub fn send(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).expect("sent");
    }

    /// Everything shown since the start or the last [`forget`](Self::forget).
    pub fn shown(&self) -> String {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = (&self.master).read(&mut buffer) {
            self.seen.borrow_mut().extend(&buffer[..length]);
        }
        text(&self.seen.borrow())
    }

    pub fn forget(&self) {
        self.shown();
        self.seen.borrow_mut().clear();
    }

    /// Waits until `what` is shown.
    #[track_caller]
    pub fn wait_for(&self, what: &str) {
        let start = Instant::now();
        while !self.shown().contains(what) {
            assert!(
                start.elapsed() < LIMIT,
                "{what:?} was never shown, only: {}",
                self.shown()
            );
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Types a line into bash; what is shown counts from behind its echo.
    #[track_caller]
    pub fn line(&self, line: &str) {
        self.forget();
        self.send(line);
        self.send("\n");
        self.wait_for("\n");
        let mut seen = self.seen.borrow_mut();
        let echo = seen.iter().position(|byte| *byte == b'\n');
        seen.drain(..=echo.expect("an echo"));
    }

    /// Types a line and returns what is shown up to the next prompt.
    #[track_caller]
    pub fn run_line(&self, line: &str) -> String {
        self.line(line);
        self.wait_for("prompt$ ");
        self.shown()
    }

    /// Closes the terminal, as its window would, and gives the leader back.
    pub fn hang_up(self) -> Started {
        self.leader
    }
}
