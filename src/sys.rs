//! What the operating system offers only through unsafe calls. The only file
//! with unsafe code; each block says why it is sound.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Hands a file descriptor to the runtime, to be told when it can be read.
///
/// # Errors
/// The descriptor is of a kind that cannot be watched, or none is left.
///
/// # Panics
/// Outside a runtime with IO.
pub fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, always names the same descriptor, and
    // stays so while the `AsyncFd` owns it.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(Into::into)
}
