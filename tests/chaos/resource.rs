//! What the commands write to: it refuses every write whose token is smaller
//! than the highest it has seen for the job, and notes who wrote when.

use crate::facts::{Run, Us};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// How long a look at the connections waits for news.
const STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// The true time.
pub fn now_us() -> Us {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Us::try_from(now.expect("after 1970").as_micros()).expect("a near time")
}

/// The resource; its runs are those of all commands that wrote to it.
pub struct Resource {
    runs: Arc<Mutex<Vec<Run>>>,
    stopped: Arc<AtomicBool>,
}

/// A command that writes.
struct Client {
    stream: UnixStream,
    unread: Vec<u8>,
    /// which of the runs, once it has said so
    run: Option<usize>,
}

impl Resource {
    /// Listens at `path`.
    pub fn at(path: &Path) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        listener.set_nonblocking(true).expect("a socket");
        let runs = Arc::new(Mutex::new(Vec::new()));
        let stopped = Arc::new(AtomicBool::new(false));
        let (theirs, ended) = (Arc::clone(&runs), Arc::clone(&stopped));
        std::thread::spawn(move || serve(&listener, &theirs, &ended));
        Self { runs, stopped }
    }

    /// All runs so far; those that go on end now.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs = self.lock().clone();
        let now = now_us();
        for run in &mut runs {
            if run.end == Us::MAX {
                run.end = now;
            }
        }
        runs
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

fn serve(listener: &UnixListener, runs: &Mutex<Vec<Run>>, stopped: &AtomicBool) {
    let mut clients: Vec<Client> = Vec::new();
    let mut highest = HashMap::new();
    while !stopped.load(Ordering::Relaxed) {
        let streams = clients.iter().map(|client| &client.stream);
        let mut fds: Vec<PollFd> = streams.map(|one| PollFd::new(one, PollFlags::IN)).collect();
        fds.push(PollFd::new(listener, PollFlags::IN));
        let _ = poll(&mut fds, Some(&STEP));
        // Ends before beginnings: a command is reaped before its lock is freed,
        // so that whoever comes after it cannot be seen before it is gone.
        let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain_mut(|client| client.serve(&mut runs, &mut highest));
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).expect("a socket");
            let mut client = Client {
                stream,
                unread: Vec::new(),
                run: None,
            };
            if client.serve(&mut runs, &mut highest) {
                clients.push(client);
            }
        }
    }
}

impl Client {
    /// Takes what has come; false once the command is gone.
    fn serve(&mut self, runs: &mut Vec<Run>, highest: &mut HashMap<String, u64>) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(n @ 1..) => self.unread.extend(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => {
                    self.take_lines(runs, highest);
                    if let Some(run) = self.run {
                        runs[run].end = now_us();
                    }
                    return false;
                }
            }
        }
        self.take_lines(runs, highest);
        true
    }

    fn take_lines(&mut self, runs: &mut Vec<Run>, highest: &mut HashMap<String, u64>) {
        while let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=at).collect();
            let line = String::from_utf8_lossy(&line[..at]).into_owned();
            let run = *self.run.get_or_insert_with(|| {
                runs.push(hello(&line).unwrap_or_else(|| panic!("no greeting: {line:?}")));
                runs.len() - 1
            });
            write(&mut runs[run], &line, highest);
        }
    }
}

/// A write: the greeting is the first one, `e` the last.
fn write(run: &mut Run, line: &str, highest: &mut HashMap<String, u64>) {
    let highest = highest.entry(run.job.clone()).or_insert(0);
    run.writes += 1;
    if run.token < *highest {
        run.refused += 1;
        run.refused_at_start |= run.writes == 1;
    }
    *highest = run.token.max(*highest);
    run.finished |= line == "e";
}

fn hello(line: &str) -> Option<Run> {
    let words: Vec<&str> = line.split(' ').collect();
    let [job, label, firing, token, attempt] = words[..] else {
        return None;
    };
    Some(Run {
        job: job.to_owned(),
        label: label.to_owned(),
        firing: firing.parse::<jiff::Timestamp>().ok()?.as_microsecond(),
        token: token.parse().ok()?,
        attempt: attempt.parse().ok()?,
        start: now_us(),
        end: Us::MAX,
        finished: false,
        writes: 0,
        refused: 0,
        refused_at_start: false,
    })
}
