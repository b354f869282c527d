//! Standard error as a place that never makes us wait.
//!
//! The reader of our standard error may be slow or gone. Messages are for
//! people; a heartbeat must not wait for them. A pipe or terminal is opened
//! anew without blocking, which leaves the description that the command shares
//! as it is; what does not fit is dropped.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};

static DROPPED: AtomicU64 = AtomicU64::new(0);

enum Way {
    /// A description of our own that does not block.
    Own(File),
    /// The shared one: a file, which never makes us wait for a reader.
    Shared,
    /// The shared one, asked first whether it takes anything.
    Asked,
}

fn way() -> &'static Way {
    static WAY: OnceLock<Way> = OnceLock::new();
    WAY.get_or_init(|| {
        let stderr = io::stderr();
        let kind = rustix::fs::fstat(&stderr).map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Ok(FileType::RegularFile) => Way::Shared,
            Ok(FileType::Fifo | FileType::CharacterDevice) => {
                reopened().map_or(Way::Asked, |fd| Way::Own(File::from(fd)))
            }
            _ => Way::Asked,
        }
    })
}

fn reopened() -> Option<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open("/proc/self/fd/2", flags, Mode::empty()).ok()
}

/// A writer for one line.
#[derive(Default)]
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(note) = dropped_note()
            && put(note.as_bytes()).is_ok()
        {
            DROPPED.store(0, Ordering::Relaxed);
        }
        if put(line).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        // Whatever became of it, nobody can do anything about it.
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn dropped_note() -> Option<String> {
    match DROPPED.load(Ordering::Relaxed) {
        0 => None,
        n => Some(format!(
            "solocron warning: {n} lines were dropped because standard error took no more\n"
        )),
    }
}

fn put(line: &[u8]) -> io::Result<()> {
    match way() {
        Way::Own(file) => {
            let mut file = file;
            file.write_all(line)
        }
        Way::Shared => io::stderr().write_all(line),
        Way::Asked => {
            let stderr = io::stderr();
            let mut ask = [PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::OUT)];
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            match poll(&mut ask, Some(&at_once)) {
                Ok(ready) if ready > 0 => stderr.lock().write_all(line),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }
}
