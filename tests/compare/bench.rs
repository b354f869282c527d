//! The tools, and what the cases need to run something behind one of them.

use crate::support::wait::{eventually, secs};
use crate::support::{Pty, Running, Signal, Solocron, proc};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// A program that is put in front of a command.
pub struct Tool {
    /// its name
    pub name: &'static str,
    /// head of its column
    pub title: fn() -> String,
    /// its words in front of the command
    prefix: fn(&Path) -> Vec<String>,
}

/// The columns.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "solocron",
        title: || "solocron".to_owned(),
        prefix: |dir| {
            let store = format!("file://{}", dir.join("store").display());
            let binary = env!("CARGO_BIN_EXE_solocron");
            words(&[binary, "--store", &store, "--lock-name", "x", "--"])
        },
    },
    Tool {
        name: "tini",
        title: || version("tini", 2),
        prefix: |_| words(&["tini", "-s", "--"]),
    },
    Tool {
        name: "dumb-init",
        title: || version("dumb-init", 1),
        prefix: |_| words(&["dumb-init", "--"]),
    },
    Tool {
        name: "timeout",
        title: || version("timeout", 3),
        prefix: |_| words(&["timeout", "60"]),
    },
    Tool {
        name: "flock",
        title: || version("flock", 3),
        prefix: |dir| words(&["flock", &dir.join("lock").display().to_string()]),
    },
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Name and version; the version is this word of what the tool says, which all
/// say in a line of their own.
fn version(tool: &str, word: usize) -> String {
    let out = Command::new(tool).arg("--version").output();
    let out = out.unwrap_or_else(|error| {
        panic!("{tool}: {error}; run tests/run, it installs what the tests need")
    });
    let said = [out.stdout, out.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let line = said.lines().next().unwrap_or_default();
    let version = line.split_whitespace().nth(word).unwrap_or("?");
    format!("{tool} {}", version.trim_start_matches('v'))
}

/// One tool with a directory for one case.
pub struct Bench {
    tool: &'static Tool,
    dir: TempDir,
    word: String,
}

impl Bench {
    pub fn new(tool: &'static Tool) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            tool,
            dir: tempfile::tempdir().expect("a directory"),
            word: format!("300.{:05}{number:03}", std::process::id() % 100_000),
        }
    }

    /// The same tool with a directory and a word of its own.
    pub fn another(&self) -> Self {
        Self::new(self.tool)
    }

    pub fn is(&self, tool: &str) -> bool {
        self.tool.name == tool
    }

    /// A number that no other process sleeps for.
    pub fn word(&self) -> &str {
        &self.word
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What the case's command has written there.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A file to execute.
    pub fn file(&self, name: &str, content: &[u8], mode: u32) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("mode");
        path.display().to_string()
    }

    /// The words of `command` behind the tool.
    pub fn behind<S: AsRef<str>>(&self, command: &[S]) -> Vec<String> {
        let mut all = (self.tool.prefix)(self.dir.path());
        all.extend(command.iter().map(|word| word.as_ref().to_owned()));
        all
    }

    /// The tool with a command, to be started without a terminal.
    pub fn run<S: AsRef<str>>(&self, command: &[S]) -> Solocron {
        let all = self.behind(command);
        Solocron::program(all[0].as_ref())
            .args(&all[1..])
            .current_dir(self.dir.path())
    }

    pub fn start<S: AsRef<str>>(&self, command: &[S]) -> Running {
        self.run(command).spawn()
    }

    /// The status of a command behind the tool.
    pub fn status<S: AsRef<str>>(&self, command: &[S]) -> String {
        self.run(command).run().code().to_string()
    }

    /// An interactive shell, and the line that runs the command behind the tool.
    pub fn shell(&self, command: &[&str]) -> (Pty, String) {
        let quote = |word: String| format!("'{}'", word.replace('\'', r"'\''"));
        let line: Vec<String> = self.behind(command).into_iter().map(quote).collect();
        (Pty::bash(), line.join(" "))
    }

    /// The pid of the sleep with this case's word, if it lives.
    pub fn sleeper(&self) -> Option<i32> {
        let all = proc::with_args(&["sleep", &self.word]);
        all.first().map(|p| p.pid)
    }

    /// Waits for that sleep.
    #[track_caller]
    pub fn wait_sleeper(&self) -> i32 {
        assert!(
            eventually(secs(10), || self.sleeper().is_some()),
            "it sleeps"
        );
        self.sleeper().expect("it sleeps")
    }

    /// Waits until the command has written `line` there.
    #[track_caller]
    pub fn wait_line(&self, name: &str, line: &str) {
        let there = || self.lines(name).iter().any(|l| l == line);
        assert!(eventually(secs(10), there), "no {line:?} in {name}");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for left in proc::with_args(&["sleep", &self.word]) {
            proc::signal(left.pid, Signal::KILL);
        }
    }
}
