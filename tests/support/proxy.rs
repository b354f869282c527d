//! A TCP proxy on loopback that can misbehave.

use super::wait::ms;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to bytes and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// everything goes through
    Pass,
    /// nothing goes through in either direction, connections stay
    Stall,
    /// requests go through, replies wait
    StallReplies,
    /// new connections are closed at once, old ones stay
    Refuse,
}

#[derive(Debug)]
struct Shared {
    target: u16,
    mode: AtomicU8,
    delay_ms: AtomicU64,
    /// Requests that lose their reply: text they hold, how many to let pass, how many to hit.
    losing: Mutex<Option<(String, usize, usize)>>,
    lost: AtomicUsize,
    accepted: AtomicUsize,
    trips: AtomicUsize,
    stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// A proxy in front of one port; everything is cut when dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts passing connections on to `target`.
    ///
    /// # Panics
    /// When no port is free.
    #[must_use]
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("own address").port();
        let shared = Arc::new(Shared {
            target,
            mode: AtomicU8::new(Mode::Pass as u8),
            delay_ms: AtomicU64::new(0),
            losing: Mutex::new(None),
            lost: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            trips: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            open: Mutex::new(Vec::new()),
        });
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if theirs.stopped.load(SeqCst) {
                    return;
                }
                if let Ok(client) = client {
                    theirs.accept(client);
                }
            }
        });
        Self { port, shared }
    }

    /// URL of the proxy.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Port of the proxy on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes what happens from here on.
    pub fn set(&self, mode: Mode) {
        self.shared.mode.store(mode as u8, SeqCst);
    }

    /// Holds every chunk back for this long, in each direction.
    pub fn delay(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).expect("a short delay");
        self.shared.delay_ms.store(by, SeqCst);
    }

    /// Closes all connections.
    ///
    /// # Panics
    /// When a thread of the proxy panicked.
    pub fn cut(&self) {
        for stream in self.shared.open.lock().expect("connections").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets the requests that hold `text` (case ignored) reach the server, swallows the reply and closes the connection:
    /// leaves the first `skip` alone and does it to the next `count`.
    ///
    /// # Panics
    /// When a thread of the proxy panicked.
    pub fn lose_replies(&self, text: &str, skip: usize, count: usize) {
        *self.shared.losing.lock().expect("losing") = Some((text.to_lowercase(), skip, count));
    }

    /// How many replies were swallowed.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.shared.lost.load(SeqCst)
    }

    /// How many connections came.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(SeqCst)
    }

    /// Round trips: how often a client spoke for the first time or again after a reply.
    #[must_use]
    pub fn trips(&self) -> usize {
        self.shared.trips.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, SeqCst);
        self.cut();
        // Wakes the accepting thread, which then sees that it is to stop.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// What the two directions of one connection know of each other.
#[derive(Default)]
struct Link {
    answered: AtomicBool,
    swallow: AtomicBool,
}

impl Shared {
    fn mode_is(&self, modes: &[Mode]) -> bool {
        let mode = self.mode.load(SeqCst);
        modes.iter().any(|m| *m as u8 == mode)
    }

    fn accept(self: &Arc<Self>, client: TcpStream) {
        self.accepted.fetch_add(1, SeqCst);
        if self.mode_is(&[Mode::Refuse]) {
            return;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.target)) else {
            return;
        };
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
            let copy = stream.try_clone().expect("a descriptor");
            self.open.lock().expect("connections").push(copy);
        }
        let link = Arc::new(Link {
            answered: AtomicBool::new(true),
            ..Link::default()
        });
        let copy = |s: &TcpStream| s.try_clone().expect("a descriptor");
        let (up, down) = ((copy(&client), copy(&server)), (server, client));
        for (forth, (from, to)) in [(true, up), (false, down)] {
            let (shared, link) = (Arc::clone(self), Arc::clone(&link));
            thread::spawn(move || {
                shared.pump(&link, forth, from, to);
            });
        }
    }

    /// Copies one direction until either end closes.
    fn pump(&self, link: &Link, forth: bool, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            if forth {
                self.note_request(link, &buffer[..n]);
            }
            thread::sleep(ms(self.delay_ms.load(SeqCst)));
            self.wait_while_stalled(forth);
            if !forth && link.swallow.load(SeqCst) {
                self.lost.fetch_add(1, SeqCst);
                break;
            }
            if !forth {
                link.answered.store(true, SeqCst);
            }
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    fn note_request(&self, link: &Link, bytes: &[u8]) {
        if link.answered.swap(false, SeqCst) {
            self.trips.fetch_add(1, SeqCst);
        }
        let mut losing = self.losing.lock().expect("losing");
        let Some((text, skip, count)) = losing.as_mut() else {
            return;
        };
        if !String::from_utf8_lossy(bytes)
            .to_lowercase()
            .contains(text.as_str())
        {
            return;
        }
        if *skip > 0 {
            *skip -= 1;
        } else if *count > 0 {
            *count -= 1;
            link.swallow.store(true, SeqCst);
        }
    }

    fn wait_while_stalled(&self, forth: bool) {
        let modes: &[Mode] = if forth {
            &[Mode::Stall]
        } else {
            &[Mode::Stall, Mode::StallReplies]
        };
        while self.mode_is(modes) && !self.stopped.load(SeqCst) {
            thread::sleep(ms(2));
        }
    }
}
