//! The directory of the embedded store, and files in it: nobody else's, and no
//! link followed.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::DirBuilder;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, fsync, openat,
    renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use crate::store::{Class, StoreError};

/// The longest record that is read; ours have about a kilobyte.
const SIZE_MAX: u64 = 1 << 20;
/// The longest file name without its ending; file systems allow 255 bytes.
const STEM_MAX: usize = 200;
/// What stands in a file name as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Where the embedded store is unless the user says otherwise: for root in
/// `/var/lib`, for others where the XDG Base Directory Specification puts state.
///
/// # Errors
///
/// There is no home directory to put it in.
pub fn default_dir(
    is_root: bool,
    xdg_state_home: Option<&OsStr>,
    home: Option<&OsStr>,
) -> Result<PathBuf, String> {
    if is_root {
        return Ok(PathBuf::from("/var/lib/solocron"));
    }
    // The specification wants relative paths there to be ignored.
    let state = xdg_state_home
        .map(Path::new)
        .filter(|dir| dir.is_absolute());
    if let Some(state) = state {
        return Ok(state.join("solocron"));
    }
    match home.map(Path::new).filter(|dir| dir.is_absolute()) {
        Some(home) => Ok(home.join(".local/state/solocron")),
        None => Err(
            "the embedded store has no place: HOME is not set; write --store file:///DIR"
                .to_owned(),
        ),
    }
}

/// The name of a lock's files without their endings: one for each lock name.
#[must_use]
pub fn stem(lock_name: &str) -> String {
    let plain = utf8_percent_encode(lock_name, PLAIN).to_string();
    if plain.len() <= STEM_MAX {
        return plain;
    }
    // No plain name has a percent sign in front of these letters.
    let mut stem = "%sha256-".to_owned();
    for byte in Sha256::digest(lock_name.as_bytes()) {
        // Writing to a text cannot fail.
        let _ = write!(stem, "{byte:02x}");
    }
    stem
}

/// What went wrong with a path, in our words; nothing was carried out.
pub fn failed(doing: &str, path: &Path, err: &io::Error) -> StoreError {
    let raw = err.raw_os_error().map(Errno::from_raw_os_error);
    let (class, hint) = match raw {
        Some(Errno::NOSPC | Errno::DQUOT) => (Class::CannotStore, ": free some space there"),
        Some(Errno::ROFS) => (
            Class::CannotStore,
            ": name another place with --store file:///DIR",
        ),
        Some(Errno::IO | Errno::FBIG | Errno::NFILE | Errno::MFILE) => (Class::CannotStore, ""),
        Some(Errno::ACCESS | Errno::PERM) if doing == "make" => (
            Class::Permission,
            ": name a place that this user can write to with --store file:///DIR",
        ),
        Some(Errno::ACCESS | Errno::PERM) => (
            Class::Permission,
            ": run as its owner, or name another place with --store file:///DIR",
        ),
        Some(Errno::LOOP) => (Class::Permission, ": links are not followed there"),
        _ => (Class::Other, ""),
    };
    let text = err.to_string();
    let text = text
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned();
    StoreError {
        class,
        message: format!("cannot {doing} {}: {text}{hint}", path.display()),
        unsettled: false,
    }
}

fn refused(message: String) -> StoreError {
    StoreError {
        class: Class::Permission,
        message,
        unsettled: false,
    }
}

/// An open directory that nobody else can write to.
pub struct Dir {
    path: PathBuf,
    fd: OwnedFd,
}

impl Dir {
    /// Opens it; none if there is none.
    pub fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let fd = match openat(CWD, path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(refused(format!(
                    "{} is a link or no directory: name a directory of its own with --store file:///DIR",
                    path.display()
                )));
            }
            Err(err) => return Err(failed("open", path, &err.into())),
        };
        let stat = fstat(&fd).map_err(|err| failed("open", path, &err.into()))?;
        owned(path, &stat)?;
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
            return Err(refused(format!(
                "{} can be written to by others: chmod 700 it, or name a directory of its own with --store file:///DIR",
                path.display()
            )));
        }
        Ok(Some(Self {
            path: path.to_owned(),
            fd,
        }))
    }

    /// Opens it, and makes it if there is none.
    pub fn open_or_make(path: &Path) -> Result<Self, StoreError> {
        if let Some(dir) = Self::open(path)? {
            return Ok(dir);
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|err| failed("make", path, &err))?;
        Self::open(path)?.ok_or_else(|| failed("open", path, &Errno::NOENT.into()))
    }

    /// Opens the file that is locked around each change. It is never replaced,
    /// so that all lock the same one.
    pub fn lock_file(&self, name: &str) -> Result<LockFile, StoreError> {
        let flags = OFlags::RDWR | OFlags::CREATE;
        match self.open_file(name, flags)? {
            Some(fd) => Ok(LockFile {
                path: self.path.join(name),
                fd,
            }),
            None => Err(self.failed("open", name, Errno::NOENT)),
        }
    }

    /// Reads a file; none if there is none.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(fd) = self.open_file(name, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let mut text = Vec::new();
        std::fs::File::from(fd)
            .take(SIZE_MAX)
            .read_to_end(&mut text)
            .map_err(|err| failed("read", &self.path.join(name), &err))?;
        Ok(Some(text))
    }

    /// Puts a file in place of another, whole or not at all, and returns once it
    /// is on the disk. `spare` is the name it has until then.
    pub fn replace(&self, name: &str, spare: &str, text: &[u8]) -> Result<(), StoreError> {
        let fail = |err: io::Error| failed("write", &self.path.join(name), &err);
        match unlinkat(&self.fd, spare, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(err) => return Err(fail(err.into())),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let Some(fd) = self.open_file(spare, flags)? else {
            return Err(fail(Errno::NOENT.into()));
        };
        let mut file = std::fs::File::from(fd);
        let written = file.write_all(text).and_then(|()| file.sync_all());
        let moved = written.and_then(|()| Ok(renameat(&self.fd, spare, &self.fd, name)?));
        if let Err(err) = moved {
            // Only to leave nothing behind; the error that counts is known.
            let _ = unlinkat(&self.fd, spare, AtFlags::empty());
            return Err(fail(err));
        }
        fsync(&self.fd).map_err(|err| StoreError {
            unsettled: true,
            ..failed("write", &self.path, &err.into())
        })
    }

    /// The directory's descriptor.
    pub fn fd(&self) -> impl AsFd {
        &self.fd
    }

    fn open_file(&self, name: &str, flags: OFlags) -> Result<Option<OwnedFd>, StoreError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = match openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if !flags.contains(OFlags::CREATE) => return Ok(None),
            Err(err) => return Err(self.failed("open", name, err)),
        };
        let stat = fstat(&fd).map_err(|err| self.failed("open", name, err))?;
        let path = self.path.join(name);
        owned(&path, &stat)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink > 1 {
            return Err(refused(format!(
                "{} is no plain file, or has a second name: remove it",
                path.display()
            )));
        }
        Ok(Some(fd))
    }

    fn failed(&self, doing: &str, name: &str, err: Errno) -> StoreError {
        failed(doing, &self.path.join(name), &err.into())
    }
}

fn owned(path: &Path, stat: &Stat) -> Result<(), StoreError> {
    let (owner, us) = (stat.st_uid, geteuid().as_raw());
    if owner == us {
        return Ok(());
    }
    Err(refused(format!(
        "{} belongs to user {owner}, but this is user {us}: run as its owner, or name another place with --store file:///DIR",
        path.display()
    )))
}

/// A file that stands for the right to change a record.
pub struct LockFile {
    path: PathBuf,
    fd: OwnedFd,
}

impl LockFile {
    /// Locks it until it is closed; false while another has it.
    pub fn try_lock(&self) -> Result<bool, StoreError> {
        match flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(err) => Err(failed("lock", &self.path, &err.into())),
        }
    }
}
