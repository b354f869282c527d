//! Messages to systemd, see `sd_notify(3)`: readiness and a status line.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Variables that speak of our place in the service manager; a command that
/// took them for its own would answer in our name.
pub const VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// The service manager, if there is one that listens.
#[derive(Debug)]
pub struct Notifier {
    socket: UnixDatagram,
    manager: SocketAddr,
}

impl Notifier {
    /// The socket named by `NOTIFY_SOCKET`: a path, or `@` and a name in the
    /// abstract namespace. `None` when the variable is unset or names neither.
    #[must_use]
    pub fn from_env() -> Option<Self> {
        Self::open(&env::var_os("NOTIFY_SOCKET")?).ok()
    }

    fn open(name: &OsStr) -> io::Result<Self> {
        let manager = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let socket = UnixDatagram::unbound()?;
        // A service manager that is not reading must not stop a schedule.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, manager })
    }

    /// The service is up. `status` as in [`status`](Self::status).
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// The line that `systemctl status` shows.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={}", one_line(status)));
    }

    /// The service is on its way down.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Failure is no matter: the service manager is not why we run.
    fn send(&self, message: &str) {
        let _ = self.socket.send_to_addr(message.as_bytes(), &self.manager);
    }
}

/// A line end would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(listener: &UnixDatagram) -> String {
        let mut buffer = [0; 200];
        let length = listener.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn both_kinds_of_socket_are_spoken_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("solocron-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        let abstract_name = format!("@{name}");
        for (listener, name) in [
            (by_path, path.as_os_str()),
            (by_name, OsStr::new(&abstract_name)),
        ] {
            let notifier = Notifier::open(name).unwrap();
            notifier.ready("next at\n12:00");
            assert_eq!(hears(&listener), "READY=1\nSTATUS=next at 12:00");
            notifier.status("x");
            assert_eq!(hears(&listener), "STATUS=x");
            notifier.stopping();
            assert_eq!(hears(&listener), "STOPPING=1");
        }
    }

    #[test]
    fn a_name_that_is_no_socket_is_refused() {
        assert!(Notifier::open(OsStr::new("relative")).is_err());
        assert!(Notifier::open(OsStr::new("")).is_err());
    }

    #[test]
    fn a_deaf_manager_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let _deaf = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::open(path.as_os_str()).unwrap();
        for _ in 0..2000 {
            notifier.status("again");
        }
    }
}
