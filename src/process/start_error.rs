//! Why a command could not be started, and the status that says so.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A command that was not started. The statuses are those of POSIX shells:
/// 127 not found, 126 found but not to be executed.
#[derive(Debug)]
pub enum StartError {
    /// No such file; in no directory of `PATH`, when the name has no slash.
    NotFound(OsString),
    /// One argument with blanks that names no file: meant for a shell.
    ShellLine(OsString),
    /// The script's `#!` line names an interpreter that does not exist.
    NoInterpreter {
        /// The script.
        path: PathBuf,
        /// As written after `#!`.
        interpreter: OsString,
    },
    /// A binary whose loader does not exist here.
    NoLoader(PathBuf),
    /// A directory.
    Directory(PathBuf),
    /// Nobody may execute the file.
    NotExecutable(PathBuf),
    /// A binary for another machine or system.
    OtherMachine(PathBuf),
    /// Neither a program nor text.
    Garbage(PathBuf),
    /// Arguments and environment exceed the system's limit.
    TooLong,
    /// The system gave no process.
    NoProcess(io::Error),
    /// Anything else.
    Other(PathBuf, io::Error),
}

impl StartError {
    /// The exit status: 127 where something does not exist, else 126.
    #[must_use]
    pub fn status(&self) -> i32 {
        match self {
            Self::NotFound(_)
            | Self::ShellLine(_)
            | Self::NoInterpreter { .. }
            | Self::NoLoader(_) => 127,
            _ => 126,
        }
    }

    /// Finds out what stands behind the `error` of `execve` on `path`.
    pub(super) fn diagnose(path: &Path, error: io::Error) -> Self {
        let path = path.to_path_buf();
        match error.raw_os_error() {
            Some(libc::E2BIG) => Self::TooLong,
            Some(libc::ENOENT) => match interpreter(&path) {
                Some(interpreter) => Self::NoInterpreter { path, interpreter },
                None => Self::NoLoader(path),
            },
            Some(libc::ENOEXEC) if is_elf(&path) => Self::OtherMachine(path),
            Some(libc::ENOEXEC) => Self::Garbage(path),
            Some(libc::EACCES) => match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() => Self::Directory(path),
                Ok(meta) if meta.permissions().mode() & 0o111 == 0 => Self::NotExecutable(path),
                _ => Self::Other(path, error),
            },
            _ => Self::Other(path, error),
        }
    }

    /// Nothing was found under this name.
    pub(super) fn missing(argv: &[OsString]) -> Self {
        let name = argv.first().cloned().unwrap_or_default();
        let blanks = name.as_bytes().iter().any(u8::is_ascii_whitespace);
        if argv.len() == 1 && blanks {
            Self::ShellLine(name)
        } else {
            Self::NotFound(name)
        }
    }
}

#[allow(
    clippy::unnecessary_debug_formatting,
    reason = "a file name may hold anything: quoted and escaped"
)]
impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(name) if name.is_empty() => out.write_str("the command is empty"),
            Self::NotFound(name) if name.as_bytes().contains(&b'/') => {
                write!(out, "{name:?}: no such file")
            }
            Self::NotFound(name) => write!(out, "{name:?}: not found in PATH"),
            Self::ShellLine(name) => write!(
                out,
                "{name:?}: no such file; give command and arguments as separate words, \
                 or use --shell for a shell line"
            ),
            Self::NoInterpreter { path, interpreter } => {
                write!(
                    out,
                    "{path:?}: its interpreter {interpreter:?} does not exist"
                )?;
                if interpreter.as_bytes().ends_with(b"\r") {
                    out.write_str(" (the file has Windows line ends)")?;
                }
                Ok(())
            }
            Self::NoLoader(path) => write!(
                out,
                "{path:?}: the program's loader does not exist here (built for another C library?)"
            ),
            Self::Directory(path) => write!(out, "{path:?}: is a directory"),
            Self::NotExecutable(path) => {
                write!(
                    out,
                    "{path:?}: not executable (chmod +x, or put its interpreter in front)"
                )
            }
            Self::OtherMachine(path) => {
                write!(out, "{path:?}: a program for another kind of machine")
            }
            Self::Garbage(path) => write!(out, "{path:?}: neither a program nor a script"),
            Self::TooLong => out.write_str("argument list too long"),
            Self::NoProcess(error) => write!(out, "no process for the command: {}", plain(error)),
            Self::Other(path, error) => write!(out, "{path:?}: {}", plain(error)),
        }
    }
}

impl std::error::Error for StartError {}

/// The system's text without Rust's `(os error N)`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// As much of a file as the kernel looks at for `#!` (256 bytes, see execve(2)).
fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(256).read_to_end(&mut head);
    }
    head
}

fn interpreter(path: &Path) -> Option<OsString> {
    let head = head(path);
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii_start();
    let end = word.iter().position(|byte| matches!(byte, b' ' | b'\t'));
    let word = &word[..end.unwrap_or(word.len())];
    (!word.is_empty()).then(|| OsStr::from_bytes(word).to_os_string())
}

fn is_elf(path: &Path) -> bool {
    head(path).starts_with(b"\x7fELF")
}

/// Whether a file that the kernel does not know how to execute is a script for
/// `/bin/sh`: its first line is text, and no NUL follows. `execvp` runs
/// anything; binary garbage in a shell only makes noise.
pub(super) fn is_script(path: &Path) -> bool {
    is_text(&head(path))
}

fn is_text(head: &[u8]) -> bool {
    let cut = head.len() == 256 && !head.contains(&b'\n');
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
    let utf8 = match std::str::from_utf8(line) {
        Ok(_) => true,
        // A character cut in two at the end of what was read.
        Err(error) => cut && error.error_len().is_none(),
    };
    let control = |byte: &u8| matches!(byte, 0..=6 | 14..=26 | 28..=31 | 127);
    utf8 && !line.iter().any(control) && !head.contains(&0)
}

/// An argument or variable with a NUL byte, which no program can be given.
pub(super) fn with_nul(text: Vec<u8>) -> StartError {
    let error = io::Error::new(io::ErrorKind::InvalidInput, "contains a NUL byte");
    StartError::Other(PathBuf::from(OsString::from_vec(text)), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_garbage() {
        for text in [
            &b""[..],
            b"exit 5\n",
            b"echo hello\nexit 5",
            b"\techo \x1b[1m\n",
            "echo gr\u{fc}n\n".as_bytes(),
            b"echo ok\n# latin-1: \xfc\n",
        ] {
            assert!(is_text(text), "{text:?}");
        }
        for garbage in [
            &b"\x7fELF\x02"[..],
            b"echo\0",
            b"echo\n\0",
            b"\x01\x02\x03",
            b"\xff\xfe\x83\xc1\x9e\xd2\x88\xf1\xaa\xbc",
        ] {
            assert!(!is_text(garbage), "{garbage:?}");
        }
        let mut long = vec![b'#'; 255];
        long.push(0xc3);
        assert!(is_text(&long), "a character cut in two is text");
    }

    #[test]
    fn blanks_in_a_single_argument_suggest_a_shell() {
        let line = StartError::missing(&["echo a | wc".into()]);
        assert!(line.to_string().contains("--shell"), "{line}");
        assert_eq!(line.status(), 127);
        let words = StartError::missing(&["my prog".into(), "x".into()]);
        assert!(matches!(words, StartError::NotFound(_)), "{words}");
    }
}
