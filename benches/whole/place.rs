//! Where the measuring takes place: the binary, a directory, the job, and how a
//! process is timed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

/// The place, gone when dropped.
pub struct Place {
    dir: TempDir,
    binary: PathBuf,
    job: PathBuf,
}

impl Place {
    /// Makes a directory and builds the job in it.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let job = dir.path().join("job");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/whole/job.c");
        let built = Command::new("cc")
            .args(["-O2", "-static", "-o"])
            .args([&job, &source])
            .status()
            .expect("a C compiler, cc");
        assert!(built.success(), "cc could not build the job");
        let binary = std::env::var_os("SOLOCRON_BIN")
            .map_or_else(|| env!("CARGO_BIN_EXE_solocron").into(), PathBuf::from);
        Self { dir, binary, job }
    }

    /// The binary that is measured.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where the figures go unless somebody says otherwise.
    pub fn json() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("whole.json")
    }

    /// The job, writing to this file.
    pub fn job(&self, file: &Path) -> [OsString; 2] {
        [self.job.clone().into(), file.into()]
    }

    /// The binary with these options, silent.
    pub fn solocron(&self, store: &str, lock: &str) -> Command {
        let mut command = quiet(self.binary.as_os_str().to_owned());
        command.args(["--store", store, "--lock-name", lock]);
        command
    }

    /// What the job wrote: firing and nanoseconds since 1970.
    pub fn written(file: &Path) -> Vec<(String, i64)> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let (firing, nanos) = line.split_once(' ')?;
            Some((firing.to_owned(), nanos.parse().ok()?))
        });
        lines.collect()
    }
}

/// A program without input and output, and without the variables that would
/// stand in for options.
pub fn quiet(program: impl Into<OsString>) -> Command {
    let mut command = Command::new(program.into());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SOLOCRON_") {
            command.env_remove(name);
        }
    }
    command
}

/// Whether a program is installed.
pub fn installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Milliseconds from the start of a process to its end, which must be good.
pub fn time(command: &mut Command) -> f64 {
    let start = Instant::now();
    let status = command.status();
    let took = start.elapsed();
    let good = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(good, "{command:?}: {status:?}");
    took.as_secs_f64() * 1e3
}

/// How often each case is run, `default` unless `ROUNDS` says otherwise.
pub fn rounds(default: usize) -> usize {
    std::env::var("ROUNDS").map_or(default, |text| text.parse().expect("ROUNDS is a number"))
}
