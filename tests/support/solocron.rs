//! Starting the binary: its words, variables, clock and surroundings.

use super::redis::RedisServer;
use super::running::{MARK, Outcome, Running};
use super::wait::secs;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Variables of the library that makes clocks wrong.
const FAKE: [&str; 4] = [
    "LD_PRELOAD",
    "FAKETIME",
    "FAKETIME_DONT_FAKE_MONOTONIC",
    "FAKETIME_SHARED",
];

/// A run to be. Without a terminal, in a session of its own, stdin `/dev/null`.
#[derive(Debug)]
pub struct Solocron {
    program: PathBuf,
    args: Vec<OsString>,
    command: Vec<OsString>,
    env: Vec<(String, String)>,
    skew: Option<String>,
    /// Whether the command is freed from the library, so that it looks the same on every host.
    right_clock: bool,
    stdin: Option<PathBuf>,
    outer: Vec<OsString>,
    dir: Option<PathBuf>,
}

impl Default for Solocron {
    fn default() -> Self {
        Self::program(Path::new(env!("CARGO_BIN_EXE_solocron")))
    }
}

impl Solocron {
    /// The binary on the embedded store in `dir`, under this lock name.
    #[must_use]
    pub fn local(dir: &Path, lock: &str) -> Self {
        Self::default()
            .arg("--store")
            .arg(format!("file://{}", dir.display()))
            .lock(lock)
    }

    /// The binary on this server, under this lock name.
    #[must_use]
    pub fn on(redis: &RedisServer, lock: &str) -> Self {
        Self::at(&redis.url(), lock)
    }

    /// The binary with this store URL, under this lock name.
    #[must_use]
    pub fn at(url: &str, lock: &str) -> Self {
        Self::default().arg("--store").arg(url).lock(lock)
    }

    /// Another program in the place of the binary.
    #[must_use]
    pub fn program(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            args: Vec::new(),
            command: Vec::new(),
            env: Vec::new(),
            skew: None,
            right_clock: false,
            stdin: None,
            outer: Vec::new(),
            dir: None,
        }
    }

    /// `--lock-name`
    #[must_use]
    pub fn lock(self, name: &str) -> Self {
        self.arg("--lock-name").arg(name)
    }

    /// One more option of solocron.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// More options of solocron.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// The command, put after `--`.
    #[must_use]
    pub fn command<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.command = words.into_iter().map(|w| w.as_ref().to_owned()).collect();
        self
    }

    /// The command is a line for `sh -c`.
    #[must_use]
    pub fn sh(self, line: &str) -> Self {
        self.command(["sh", "-c", line])
    }

    /// One variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The name under which a [`super::Witness`] knows this instance.
    #[must_use]
    pub fn label(self, label: &str) -> Self {
        self.env("TEST_LABEL", label)
    }

    /// A wall clock that is wrong by this much, for example `+2s` or `-0.3s`; the command's is right.
    #[must_use]
    pub fn skew(mut self, by: &str) -> Self {
        self.right_clock = true;
        self.skew = (by != "0").then(|| by.to_owned());
        self
    }

    /// Standard input from a file.
    #[must_use]
    pub fn stdin(mut self, file: &Path) -> Self {
        self.stdin = Some(file.to_owned());
        self
    }

    /// Working directory.
    #[must_use]
    pub fn current_dir(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    /// Words in front of the binary, for example `nohup`.
    #[must_use]
    pub fn under<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.outer
            .extend(words.into_iter().map(|w| w.as_ref().to_owned()));
        self
    }

    /// As process 1 of a PID namespace. The tests' signals then go to that process.
    #[must_use]
    pub fn in_pid_namespace(self) -> Self {
        self.under(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
    }

    /// The words to type into a shell to run this, with its variables in front.
    #[must_use]
    pub fn shell_line(&self) -> String {
        let quote = |w: &OsStr| format!("'{}'", w.to_string_lossy().replace('\'', r"'\''"));
        let vars = self
            .env
            .iter()
            .map(|(n, v)| format!("{n}={}", quote(v.as_ref())));
        let words = self.words();
        let all = std::iter::once("env".to_owned()).chain(vars);
        all.chain(words.iter().map(|w| quote(w)))
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn words(&self) -> Vec<OsString> {
        let mut words = self.outer.clone();
        words.push(self.program.clone().into());
        words.extend(self.args.iter().cloned());
        if !self.command.is_empty() {
            words.push("--".into());
            if self.right_clock {
                words.push("env".into());
                for name in FAKE {
                    words.extend(["-u".into(), name.into()]);
                }
            }
            words.extend(self.command.iter().cloned());
        }
        words
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(self) -> Running {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let files = tempfile::tempdir().expect("temporary directory");
        let file = |name: &str| File::create(files.path().join(name)).expect("output file");
        let mark = format!(
            "{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        // setsid(1) does not fork here (it is no group leader), so that the pid stays.
        let mut command = Command::new("setsid");
        command
            .args(self.words())
            .stdout(file("stdout"))
            .stderr(file("stderr"));
        match &self.stdin {
            Some(path) => command.stdin(File::open(path).expect("input file")),
            None => command.stdin(Stdio::null()),
        };
        clear_environment(&mut command);
        if let Some(by) = &self.skew {
            command.env("LD_PRELOAD", faketime()).env("FAKETIME", by);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command
            .envs(self.env.iter().map(|(n, v)| (n, v)))
            .env(MARK, &mark);
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        let started = Instant::now();
        let child = command.spawn().expect("setsid, of util-linux");
        Running {
            child,
            files,
            mark,
            started,
            namespace: self.outer.iter().any(|w| w == "--pid"),
            ended: None,
        }
    }

    /// Runs it to its end, for at most 60 s.
    #[must_use]
    pub fn run(self) -> Outcome {
        self.spawn().wait(secs(60))
    }
}

/// Takes out of the environment what would change how solocron behaves.
pub fn clear_environment(command: &mut Command) {
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|n| n.to_string_lossy().starts_with("SOLOCRON")) {
        command.env_remove(name);
    }
    for name in ["REDIS_URL", "NO_COLOR", "TZ"].iter().chain(&FAKE) {
        command.env_remove(name);
    }
}

/// The library that makes clocks wrong.
#[must_use]
pub fn faketime() -> PathBuf {
    let roots = ["/usr/lib", "/usr/lib64"].map(|r| fs::read_dir(r).ok());
    let dirs = roots
        .into_iter()
        .flatten()
        .flatten()
        .flatten()
        .map(|e| e.path());
    let mut all = dirs.chain(["/usr/lib".into(), "/usr/lib64".into()]);
    all.find_map(|d| Some(d.join("faketime/libfaketime.so.1")).filter(|f| f.exists()))
        .expect("libfaketime; run tests/run, it installs what the tests need")
}
