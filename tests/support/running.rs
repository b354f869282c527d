//! A run of the binary: one process with everything it starts, gone when dropped.

use super::proc;
use super::wait::{eventually, secs};
use rustix::process::Signal;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Every process of one run carries this variable, so that all of them are found again.
pub(super) const MARK: &str = "TEST_RUN_MARK";

/// A running process and all it started.
#[derive(Debug)]
pub struct Running {
    pub(super) child: Child,
    pub(super) files: TempDir,
    pub(super) mark: String,
    pub(super) started: Instant,
    pub(super) namespace: bool,
    pub(super) ended: Option<(ExitStatus, Duration)>,
}

impl Running {
    /// The pid of solocron, also when it is process 1 of a namespace.
    ///
    /// # Panics
    /// When the namespace has no process yet for 5 s.
    #[must_use]
    pub fn pid(&self) -> i32 {
        let outer = i32::try_from(self.child.id()).expect("a pid");
        if !self.namespace {
            return outer;
        }
        super::wait::wait_for(secs(5), "process 1", || {
            proc::children(outer).first().map(|p| p.pid)
        })
    }

    /// Sends a signal to solocron alone.
    pub fn signal(&self, signal: Signal) {
        proc::signal(self.pid(), signal);
    }

    /// Kills solocron and everything it started, and waits for its end.
    pub fn kill_all(&mut self) {
        if !self.has_ended() {
            proc::signal(i32::try_from(self.child.id()).expect("a pid"), Signal::KILL);
        }
        let _ = eventually(secs(5), || {
            let left = self.tree();
            for p in &left {
                proc::signal(p.pid, Signal::KILL);
            }
            left.is_empty() && self.has_ended()
        });
    }

    /// The direct children of solocron.
    #[must_use]
    pub fn children(&self) -> Vec<proc::Proc> {
        proc::children(self.pid())
    }

    /// Every living process of this run, solocron included, wherever it hangs.
    #[must_use]
    pub fn tree(&self) -> Vec<proc::Proc> {
        proc::with_env(MARK, &self.mark)
    }

    /// The living processes of this run besides solocron.
    #[must_use]
    pub fn started(&self) -> Vec<proc::Proc> {
        let own = i32::try_from(self.child.id()).expect("a pid");
        let mut tree = self.tree();
        tree.retain(|p| p.pid != own);
        tree
    }

    /// Whether solocron has ended.
    ///
    /// # Panics
    /// When its state cannot be read.
    pub fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            let status = self.child.try_wait().expect("state of the process");
            self.ended = status.map(|s| (s, self.started.elapsed()));
        }
        self.ended.is_some()
    }

    /// What came on stdout so far.
    #[must_use]
    pub fn stdout(&self) -> Vec<u8> {
        fs::read(self.files.path().join("stdout")).unwrap_or_default()
    }

    /// What came on stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        let bytes = fs::read(self.files.path().join("stderr")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for solocron's end; fails the test when it does not come within `bound`.
    ///
    /// # Panics
    /// When it does not end in time.
    #[must_use]
    pub fn wait(&mut self, bound: Duration) -> Outcome {
        let ended = eventually(bound, || self.has_ended());
        assert!(
            ended,
            "no end within {bound:?}; tree {:?}; stderr:\n{}",
            self.tree(),
            self.stderr()
        );
        let (status, took) = self.ended.expect("has ended");
        Outcome {
            status,
            took,
            stdout: self.stdout(),
            stderr: self.stderr(),
            left: self.tree(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_all();
        for kind in ["shm", "sem"] {
            let prefix = if kind == "sem" { "sem." } else { "" };
            let _ = fs::remove_file(format!(
                "/dev/shm/{prefix}faketime_{kind}_{}",
                self.child.id()
            ));
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// exit status as the kernel gave it
    pub status: ExitStatus,
    /// from start to end
    pub took: Duration,
    /// bytes of stdout
    pub stdout: Vec<u8>,
    /// text of stderr
    pub stderr: String,
    /// processes of the run that lived at its end
    pub left: Vec<proc::Proc>,
}

impl Outcome {
    /// The exit status as a shell shows it: 128+n for signal n.
    #[must_use]
    pub fn code(&self) -> i32 {
        let signalled = || 128 + self.status.signal().expect("ended by a signal");
        self.status.code().unwrap_or_else(signalled)
    }

    /// stdout as text.
    #[must_use]
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Fails the test when the status is not `code`, showing stderr.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code(), code, "status; stderr:\n{}", self.stderr);
        self
    }

    /// Fails the test when a process of the run was left over.
    #[track_caller]
    pub fn assert_clean(&self) -> &Self {
        assert!(
            self.left.is_empty(),
            "left over: {:?}; stderr:\n{}",
            self.left,
            self.stderr
        );
        self
    }

    /// Fails the test when stderr lacks one of the words (case ignored).
    #[track_caller]
    pub fn assert_says(&self, words: &[&str]) -> &Self {
        let text = self.stderr.to_lowercase();
        for word in words {
            assert!(
                text.contains(&word.to_lowercase()),
                "no {word:?} in stderr:\n{}",
                self.stderr
            );
        }
        self
    }

    /// Fails the test when anything came on stderr.
    #[track_caller]
    pub fn assert_silent(&self) -> &Self {
        assert_eq!(self.stderr, "", "stderr");
        self
    }
}
