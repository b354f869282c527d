//! A pseudo-terminal: what a person types, what appears.

use super::proc;
use super::solocron::clear_environment;
use super::wait::{eventually, secs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A command with a terminal of its own; killed with its session when dropped.
#[derive(Debug)]
pub struct Pty {
    master: Option<File>,
    child: Child,
    screen: Arc<Mutex<Vec<u8>>>,
    closing: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Pty {
    /// Runs a command as leader of a session with a new terminal, all three streams on it.
    ///
    /// # Panics
    /// When there is no terminal to be had.
    #[must_use]
    pub fn run<S: AsRef<OsStr>>(words: &[S]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a pseudo-terminal");
        grantpt(&master).expect("grantpt");
        unlockpt(&master).expect("unlockpt");
        let name = ptsname(&master, Vec::new()).expect("name of the terminal");
        let path = std::path::Path::new(OsStr::new(name.to_str().expect("an ASCII name")));
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .expect("the terminal");
        let copy = || slave.try_clone().expect("a descriptor");
        // setsid -c makes stdin the controlling terminal.
        let mut command = Command::new("setsid");
        command
            .arg("-c")
            .args(words)
            .stdin(copy())
            .stdout(copy())
            .stderr(copy());
        clear_environment(&mut command);
        command
            .env("TERM", "dumb")
            .env("PS1", "ready$ ")
            .env_remove("PROMPT_COMMAND");
        let child = command.spawn().expect("setsid, of util-linux");
        drop(slave);
        drop(command);
        let master = File::from(master);
        let screen = Arc::new(Mutex::new(Vec::new()));
        let closing = Arc::new(AtomicBool::new(false));
        let reader = master.try_clone().expect("a descriptor");
        let (sink, end) = (Arc::clone(&screen), Arc::clone(&closing));
        let thread = std::thread::spawn(move || watch(reader, &sink, &end));
        Self {
            master: Some(master),
            child,
            screen,
            closing,
            reader: Some(thread),
        }
    }

    /// Runs an interactive shell with job control; its prompt is `ready$ `.
    #[must_use]
    pub fn bash() -> Self {
        let pty = Self::run(&["bash", "--norc", "--noprofile", "-i"]);
        pty.wait_text("ready$ ", secs(10));
        pty
    }

    /// The pid of the session's leader.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Types bytes: `"text\n"`, `"\x03"` for Ctrl-C, `"\x1a"` for Ctrl-Z.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn send(&self, bytes: &str) {
        let mut master = self.master.as_ref().expect("not closed");
        master.write_all(bytes.as_bytes()).expect("terminal");
    }

    /// Closes the other side, as the end of a window or of ssh does: the kernel hangs up the terminal.
    pub fn close(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reading thread");
        }
        self.master = None;
    }

    /// Sends HUP to the session's leader; the terminal stays.
    pub fn hang_up(&self) {
        rustix::process::kill_process_group(
            rustix::process::Pid::from_raw(self.pid()).expect("a pid"),
            Signal::HUP,
        )
        .expect("the session's leader");
    }

    /// All that appeared so far, what was typed included.
    ///
    /// # Panics
    /// When the reading thread panicked.
    #[must_use]
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("screen")).into_owned()
    }

    /// Waits until `text` appears; yields the screen.
    #[track_caller]
    pub fn wait_text(&self, text: &str, bound: Duration) -> String {
        let seen = eventually(bound, || self.screen().contains(text));
        assert!(
            seen,
            "no {text:?} within {bound:?} on the screen:\n{}",
            self.screen()
        );
        self.screen()
    }

    /// Waits until `text` has appeared `n` times; yields the screen.
    #[track_caller]
    pub fn wait_count(&self, text: &str, n: usize, bound: Duration) -> String {
        let seen = eventually(bound, || self.screen().matches(text).count() >= n);
        assert!(
            seen,
            "not {n} times {text:?} within {bound:?} on the screen:\n{}",
            self.screen()
        );
        self.screen()
    }

    /// Waits for the end of the command that [`Self::run`] started; its status as a shell shows it.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn wait(&mut self, bound: Duration) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let mut status = None;
        let ended = eventually(bound, || {
            status = self.child.try_wait().expect("state of the process");
            status.is_some()
        });
        assert!(ended, "no end within {bound:?}; screen:\n{}", self.screen());
        // The reading thread may be behind; it ends with the terminal's last user.
        let _ = eventually(secs(1), || {
            self.reader.as_ref().is_none_or(JoinHandle::is_finished)
        });
        let status = status.expect("ended");
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().expect("ended by a signal"))
    }
}

/// Collects what appears until the terminal's last user is gone or the test closes it.
fn watch(mut master: File, screen: &Mutex<Vec<u8>>, closing: &AtomicBool) {
    let mut buffer = [0; 4096];
    let step = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    while !closing.load(Ordering::Relaxed) {
        let ready = poll(
            &mut [PollFd::from_borrowed_fd(master.as_fd(), PollFlags::IN)],
            Some(&step),
        );
        match ready {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => match master.read(&mut buffer) {
                Ok(n @ 1..) => screen.lock().expect("screen").extend(&buffer[..n]),
                _ => return,
            },
            Err(_) => return,
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let session = self.pid();
        let _ = eventually(secs(5), || {
            let mut left = proc::all();
            left.retain(|p| p.session == session && p.lives());
            for p in &left {
                proc::signal(p.pid, Signal::KILL);
            }
            left.is_empty()
        });
        let _ = self.child.wait();
    }
}
