//! The embedded store: a file for each lock in a directory of this machine.
//!
//! Every operation runs on a thread of its own, because a disk can keep a call
//! waiting for longer than a lease may go without attention.

mod dir;
mod format;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use self::dir::Dir;
pub use self::dir::default_dir;
use super::{Answer, Class, Store, StoreError};
use crate::clock::{Clock, SystemClock};
use crate::lock::rules::{self, Applied};
use crate::lock::{Beat, BeatReply, Claim, ClaimReply, Free, FreeReply, Record, StoreTime};

/// How often a lock that another has is tried.
const RETRY: Duration = Duration::from_millis(2);

/// What tells the time of this machine.
pub type Time = Arc<dyn Fn() -> StoreTime + Send + Sync>;

/// The record of one lock name in a directory.
pub struct FileStore {
    place: String,
    shared: Arc<Shared>,
}

struct Shared {
    dir: PathBuf,
    stem: String,
    boot: String,
    time: Time,
    looked: AtomicBool,
    warnings: Mutex<Vec<String>>,
}

/// The clocks of this host: leases count the time since boot, suspend included.
#[must_use]
pub fn host_time() -> StoreTime {
    let boot = SystemClock.boot().as_millis();
    StoreTime {
        wall_us: SystemClock.wall().timestamp_micros(),
        lease_ms: i64::try_from(boot).unwrap_or(i64::MAX),
    }
}

/// The id of this boot, random and the same for all processes on the machine.
fn boot_id() -> String {
    // Without it leases from before a reboot hold for up to one ttl after it.
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

impl FileStore {
    /// A store in this directory, which is made when it is first needed.
    #[must_use]
    pub fn open(dir: &Path, lock_name: &str) -> Self {
        Self::open_with(dir, lock_name, &boot_id(), Arc::new(host_time))
    }

    /// As [`Self::open`], on a boot and a clock of the caller's choice.
    #[must_use]
    pub fn open_with(dir: &Path, lock_name: &str, boot: &str, time: Time) -> Self {
        Self {
            place: format!("directory {}", dir.display()),
            shared: Arc::new(Shared {
                dir: dir.to_owned(),
                stem: dir::stem(lock_name),
                boot: boot.to_owned(),
                time,
                looked: AtomicBool::new(false),
                warnings: Mutex::default(),
            }),
        }
    }

    /// Carries out a rule under the lock, and answers once the disk has it.
    fn apply<R: Send + 'static>(
        &self,
        within: Duration,
        rule: impl FnOnce(Option<&Record>, StoreTime) -> Applied<R> + Send + 'static,
    ) -> Answer<'_, R> {
        self.on_thread(within, |shared, leave| shared.apply(leave, rule))
    }

    fn on_thread<R: Send + 'static>(
        &self,
        within: Duration,
        work: impl FnOnce(&Shared, &Leave) -> Result<R, StoreError> + Send + 'static,
    ) -> Answer<'_, R> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let leave = Arc::new(Leave::default());
            let caller = GiveUp(Arc::clone(&leave));
            let shared = Arc::clone(&self.shared);
            thread::Builder::new()
                .name("store".to_owned())
                .spawn(move || {
                    // Nobody listens any more if the caller has gone.
                    let _ = tell.send(work(&shared, &leave));
                })
                .map_err(|err| dir::failed("start a thread for", &self.shared.dir, &err))?;
            if let Ok(Ok(result)) = timeout(within, told).await {
                return result;
            }
            // Late, or the thread is gone without a word.
            let unsettled = !caller.0.take_back();
            Err(self.shared.no_answer(within, unsettled))
        })
    }
}

/// Whether a change may still be made: the caller withdraws it or the thread
/// begins it, whichever comes first.
#[derive(Default)]
struct Leave(AtomicU8);

impl Leave {
    const OPEN: u8 = 0;
    const TAKEN: u8 = 1;
    const WITHDRAWN: u8 = 2;

    fn settle(&self, to: u8) -> bool {
        let before = self
            .0
            .compare_exchange(Self::OPEN, to, Ordering::SeqCst, Ordering::SeqCst);
        before.is_ok() || before == Err(to)
    }

    /// Begins the change; false if it was withdrawn.
    fn take(&self) -> bool {
        self.settle(Self::TAKEN)
    }

    /// Withdraws the change; false if it was begun.
    fn take_back(&self) -> bool {
        self.settle(Self::WITHDRAWN)
    }

    fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::SeqCst) == Self::WITHDRAWN
    }
}

/// Withdraws what has not begun when its caller goes away.
struct GiveUp(Arc<Leave>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.take_back();
    }
}

impl Shared {
    fn name(&self, ending: &str) -> String {
        format!("{}.{ending}", self.stem)
    }

    fn record_path(&self) -> PathBuf {
        self.dir.join(self.name("json"))
    }

    fn error(&self, class: Class, text: &str) -> StoreError {
        StoreError {
            class,
            message: format!("{} {text}", self.record_path().display()),
            unsettled: false,
        }
    }

    fn no_answer(&self, within: Duration, unsettled: bool) -> StoreError {
        let within = within.as_millis();
        let why = if unsettled {
            "the disk does not answer"
        } else {
            "another process keeps its .lock file locked"
        };
        StoreError {
            unsettled,
            ..self.error(
                Class::Unreachable,
                &format!("could not be changed within {within} ms: {why}"),
            )
        }
    }

    fn apply<R>(
        &self,
        leave: &Leave,
        rule: impl FnOnce(Option<&Record>, StoreTime) -> Applied<R>,
    ) -> Result<R, StoreError> {
        let dir = self.dir()?;
        let lock = dir.lock_file(&self.name("lock"))?;
        while !lock.try_lock()? {
            if leave.is_withdrawn() {
                return Err(self.no_answer(Duration::ZERO, false));
            }
            thread::sleep(RETRY);
        }
        let before = self.load(&dir)?;
        let applied = rule(before.as_ref(), (self.time)());
        if let Some(record) = &applied.write {
            let text = format::write(record, &self.boot)
                .map_err(|err| self.error(Class::Other, &format!("cannot be made: {err}")))?;
            if !leave.take() {
                return Err(self.no_answer(Duration::ZERO, false));
            }
            dir.replace(&self.name("json"), &self.name("tmp"), &text)?;
        }
        Ok(applied.reply)
    }

    fn dir(&self) -> Result<Dir, StoreError> {
        let dir = Dir::open_or_make(&self.dir)?;
        if !self.looked.swap(true, Ordering::Relaxed) && is_shared_with_hosts(&dir) {
            let warning = format!(
                "{} is on a network file system: the lock holds on this machine only",
                self.dir.display()
            );
            self.warnings
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(warning);
        }
        Ok(dir)
    }

    fn load(&self, dir: &Dir) -> Result<Option<Record>, StoreError> {
        let Some(text) = dir.read(&self.name("json"))? else {
            return Ok(None);
        };
        format::read(&text, &self.boot).map(Some).map_err(|what| {
            let remedy = "nothing is started under this name until it is removed; make sure first that the job does not run and need not be kept from running again";
            self.error(Class::KeyMisuse, &format!("{what}: {remedy}"))
        })
    }

    fn read(&self) -> Result<(Option<Record>, StoreTime), StoreError> {
        // A replaced file is seen old or new, never in between: no lock is needed.
        let record = match Dir::open(&self.dir)? {
            Some(dir) => self.load(&dir)?,
            None => None,
        };
        Ok((record, (self.time)()))
    }
}

/// Whether other hosts see the directory too, on their own boot clocks.
#[cfg(target_os = "linux")]
fn is_shared_with_hosts(dir: &Dir) -> bool {
    // From statfs(2): NFS, SMB, CIFS, SMB2.
    const KINDS: [u32; 4] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42];
    rustix::fs::fstatfs(dir.fd()).is_ok_and(|stat| {
        // The type is signed or not, wide or not, as the platform likes.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let kind = stat.f_type as u32;
        KINDS.contains(&kind)
    })
}

#[cfg(not(target_os = "linux"))]
fn is_shared_with_hosts(_dir: &Dir) -> bool {
    false
}

impl Store for FileStore {
    fn prepare(&self, within: Duration) -> Answer<'_, ()> {
        self.on_thread(within, |shared, _| {
            let dir = shared.dir()?;
            dir.lock_file(&shared.name("lock"))?;
            shared.load(&dir).map(drop)
        })
    }

    fn claim<'a>(&'a self, claim: &'a Claim, within: Duration) -> Answer<'a, ClaimReply> {
        let claim = claim.clone();
        self.apply(within, move |before, now| rules::claim(before, &claim, now))
    }

    fn beat<'a>(&'a self, beat: &'a Beat, within: Duration) -> Answer<'a, BeatReply> {
        let beat = beat.clone();
        self.apply(within, move |before, now| rules::beat(before, &beat, now))
    }

    fn free<'a>(&'a self, free: &'a Free, within: Duration) -> Answer<'a, FreeReply> {
        let free = free.clone();
        self.apply(within, move |before, now| rules::free(before, &free, now))
    }

    fn read(&self, within: Duration) -> Answer<'_, (Option<Record>, StoreTime)> {
        self.on_thread(within, |shared, _| shared.read())
    }

    fn grant_stands(&self, _within: Duration) -> Answer<'_, bool> {
        Box::pin(std::future::ready(Ok(true)))
    }

    fn rest(&self) {}

    fn place(&self) -> &str {
        &self.place
    }

    fn take_warnings(&self) -> Vec<String> {
        let mut warnings = self
            .shared
            .warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *warnings)
    }
}
