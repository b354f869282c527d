//! Starting the command.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::child::{Before, Child};
use super::inherited::Inherited;
use super::orphans;
use super::start_error::{self, StartError};
use super::tty::Placement;
use crate::sys::{self, Failure, Plan};

/// What the command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// What we were given.
    Inherit,
    /// `/dev/null`.
    Null,
}

/// How to start a command.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The command and its arguments, not empty.
    pub argv: Vec<OsString>,
    /// The first of `argv` is a line for `/bin/sh -c`, the others are its `$1`...
    pub shell: bool,
    /// Variables to set, over what is inherited.
    pub env_set: Vec<(OsString, OsString)>,
    /// Variables to leave out of what is inherited.
    pub env_remove: Vec<OsString>,
    /// Standard input; the other two streams are inherited always.
    pub stdin: Stdin,
    /// Which group, see [`Placement::detect`].
    pub placement: Placement,
    /// What the command gets back.
    pub inherited: Inherited,
}

/// Where a program is looked for without `PATH`, as in execvp(3).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Starts the command, found by the rules of execvp(3), with the signal mask
/// and ignored signals that we inherited. It is killed when the calling
/// *thread* ends, so this belongs on the main thread. Returns once the new
/// program is in place.
///
/// # Errors
/// When there is no such program or it cannot be executed; nothing is left
/// running then.
pub fn spawn(spec: &Spec) -> Result<Child, StartError> {
    let argv = words(spec);
    let env = environment(spec);
    let candidates = candidates(&argv, &env);
    match start(spec, &candidates, &argv, &env) {
        Err(Failed::Exec(path, error))
            if error.raw_os_error() == Some(libc::ENOEXEC) && start_error::is_script(&path) =>
        {
            let mut script = vec![OsString::from("/bin/sh"), path.into_os_string()];
            script.extend(argv.into_iter().skip(1));
            let shell = [script[0].clone()];
            start(spec, &shell, &script, &env)
        }
        other => other,
    }
    .map_err(|failed| failed.explain(&spec.argv))
}

/// Why the command could not be started at this moment, as far as a look can
/// tell: there is no such file. Something may still put it there.
#[must_use]
pub fn missing(spec: &Spec) -> Option<StartError> {
    let argv = words(spec);
    let there = candidates(&argv, &environment(spec))
        .iter()
        .any(|path| fs::metadata(path).is_ok());
    (!there).then(|| StartError::missing(&spec.argv))
}

enum Failed {
    Start(StartError),
    Exec(std::path::PathBuf, std::io::Error),
    Missing,
}

impl Failed {
    fn explain(self, argv: &[OsString]) -> StartError {
        match self {
            Self::Start(error) => error,
            Self::Exec(path, error) => StartError::diagnose(&path, error),
            Self::Missing => StartError::missing(argv),
        }
    }
}

fn start(
    spec: &Spec,
    candidates: &[OsString],
    argv: &[OsString],
    env: &[(OsString, OsString)],
) -> Result<Child, Failed> {
    if candidates.is_empty() {
        return Err(Failed::Missing);
    }
    let paths = c_strings(candidates.iter().map(|path| path.as_bytes().to_vec()))?;
    let argv = c_strings(argv.iter().map(|word| word.as_bytes().to_vec()))?;
    let env = c_strings(env.iter().map(|(name, value)| {
        let mut entry = name.clone();
        entry.push("=");
        entry.push(value);
        entry.into_vec()
    }))?;
    let null = match spec.stdin {
        Stdin::Inherit => None,
        Stdin::Null => {
            let open = File::open("/dev/null");
            let explain = |error| Failed::Start(StartError::Other("/dev/null".into(), error));
            Some(open.map_err(explain)?)
        }
    };
    let plan = Plan {
        candidates: &paths,
        argv: &argv,
        env: &env,
        stdin: null.as_ref().map(AsFd::as_fd),
        own_group: spec.placement == Placement::OwnGroup,
        mask: *spec.inherited.mask(),
        dispositions: &spec.inherited.dispositions(),
    };
    let before = Before::look(spec.placement);
    match orphans::guarded(|| sys::spawn(&plan)) {
        Ok(pid) => Ok(Child::new(pid, spec.placement, before)),
        Err(Failure::Fork(error)) => Err(Failed::Start(StartError::NoProcess(error))),
        Err(Failure::Setup(error)) => {
            let name = argv.first().map(|name| OsStr::from_bytes(name.to_bytes()));
            let name = name.unwrap_or_default().into();
            Err(Failed::Start(StartError::Other(name, error)))
        }
        Err(Failure::Exec(index, error)) => Err(failed_exec(candidates, index, error)),
    }
}

/// A missing file is told from a file whose interpreter is missing.
fn failed_exec(candidates: &[OsString], index: usize, error: std::io::Error) -> Failed {
    match error.raw_os_error() {
        Some(libc::ENOENT) => match candidates.iter().find(|path| fs::metadata(path).is_ok()) {
            Some(path) => Failed::Exec(path.into(), error),
            None => Failed::Missing,
        },
        Some(libc::ENOTDIR | libc::ENAMETOOLONG | libc::ESTALE | libc::ENODEV) => Failed::Missing,
        _ => Failed::Exec(candidates[index].clone().into(), error),
    }
}

fn c_strings(texts: impl Iterator<Item = Vec<u8>>) -> Result<Vec<CString>, Failed> {
    texts
        .map(CString::new)
        .collect::<Result<_, _>>()
        .map_err(|error| Failed::Start(start_error::with_nul(error.into_vec())))
}

fn words(spec: &Spec) -> Vec<OsString> {
    if !spec.shell {
        return spec.argv.clone();
    }
    let mut words: Vec<OsString> = vec!["/bin/sh".into(), "-c".into()];
    let mut line = spec.argv.iter().cloned();
    words.extend(line.next());
    let mut rest = line.peekable();
    if rest.peek().is_some() {
        words.push("sh".into());
        words.extend(rest);
    }
    words
}

fn environment(spec: &Spec) -> Vec<(OsString, OsString)> {
    let set_later = |name: &OsString| spec.env_set.iter().any(|(set, _)| set == name);
    let mut env: Vec<_> = env::vars_os()
        .filter(|(name, _)| !set_later(name) && !spec.env_remove.contains(name))
        .collect();
    env.extend(spec.env_set.iter().cloned());
    env
}

/// The paths that a name may stand for, in the order they are tried.
fn candidates(argv: &[OsString], env: &[(OsString, OsString)]) -> Vec<OsString> {
    let Some(name) = argv.first().filter(|name| !name.is_empty()) else {
        return Vec::new();
    };
    if name.as_bytes().contains(&b'/') {
        return vec![name.clone()];
    }
    let path = env.iter().find(|(variable, _)| variable == "PATH");
    let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, path)| path.as_os_str());
    path.as_bytes()
        .split(|byte| *byte == b':')
        .map(|dir| {
            // An empty part is the working directory.
            let dir = if dir.is_empty() { b"." } else { dir };
            Path::new(OsStr::from_bytes(dir))
                .join(name)
                .into_os_string()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, path: Option<&str>) -> Vec<OsString> {
        let env: Vec<_> = path
            .map(|path| (OsString::from("PATH"), OsString::from(path)))
            .into_iter()
            .collect();
        candidates(&[name.into()], &env)
    }

    #[test]
    fn names_are_looked_up_as_execvp_does() {
        assert_eq!(found("a", Some("/x:/y")), ["/x/a", "/y/a"]);
        assert_eq!(found("a", Some("")), ["./a"]);
        assert_eq!(found("a", Some("/x::")), ["/x/a", "./a", "./a"]);
        assert_eq!(found("a", None), ["/bin/a", "/usr/bin/a"]);
        assert_eq!(found("./a", Some("/x")), ["./a"]);
        assert_eq!(found("d/a", Some("/x")), ["d/a"]);
        assert_eq!(found("", Some("/x")), [""; 0]);
    }
}
