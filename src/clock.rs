//! The seam to time: wall clock, boot time, and sleeping until an instant.
//!
//! Nobody else reads a clock. Three clocks are told apart: the *wall* clock
//! that schedules are written in, which can be set; *boot* time, which counts
//! suspend, for leases; and *running* time, which does not, for how long a
//! command may run.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::lock::Boot;
use crate::sys;

/// Why a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The instant has come.
    Due,
    /// The wall clock was set: it must be read again.
    ClockSet,
}

/// A sleep that is under way. Dropping it ends it.
pub type Sleep<'a> = Pin<Box<dyn Future<Output = Woken> + 'a>>;

/// A source of time.
pub trait Clock {
    /// The wall clock.
    fn wall(&self) -> DateTime<Utc>;

    /// The span since boot, suspend included.
    fn boot(&self) -> Boot;

    /// The span since boot without suspend.
    fn running(&self) -> Duration;

    /// Sleeps until the wall clock shows `at`, or until it is set.
    fn until_wall(&self, at: DateTime<Utc>) -> Sleep<'_>;

    /// Sleeps until `at` after boot, suspend included.
    fn until_boot(&self, at: Boot) -> Sleep<'_>;

    /// Sleeps until `at` after boot, suspend not counted.
    fn until_running(&self, at: Duration) -> Sleep<'_>;
}

/// The clocks of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall(&self) -> DateTime<Utc> {
        let now = clock_gettime(ClockId::Realtime);
        u32::try_from(now.tv_nsec)
            .ok()
            .and_then(|nanos| DateTime::from_timestamp(now.tv_sec, nanos))
            .unwrap_or_default()
    }

    fn boot(&self) -> Boot {
        span(clock_gettime(ClockId::Boottime))
    }

    fn running(&self) -> Duration {
        span(clock_gettime(ClockId::Monotonic))
    }

    fn until_wall(&self, at: DateTime<Utc>) -> Sleep<'_> {
        Box::pin(sleep(move || wall_timer(at)))
    }

    fn until_boot(&self, at: Boot) -> Sleep<'_> {
        let now = || SystemClock.boot();
        Box::pin(sleep(move || timer(TimerfdClockId::Boottime, at, now)))
    }

    fn until_running(&self, at: Duration) -> Sleep<'_> {
        let now = || SystemClock.running();
        Box::pin(sleep(move || timer(TimerfdClockId::Monotonic, at, now)))
    }
}

fn span(time: Timespec) -> Duration {
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    }
}

/// Sleeps on a timer of the kernel; where none can be had (no file descriptor
/// left), for a second at most, which its callers take as a reason to look at
/// the clock again.
async fn sleep(make: impl FnOnce() -> io::Result<OwnedFd>) -> Woken {
    let Ok(timer) = make().and_then(sys::readable) else {
        tokio::time::sleep(Duration::from_secs(1)).await;
        return Woken::ClockSet;
    };
    wait(&timer).await
}

/// A timer for the instant itself, however the wall clock gets there.
fn wall_timer(at: DateTime<Utc>) -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Realtime, FLAGS)?;
    let at = Timespec {
        tv_sec: at.timestamp(),
        tv_nsec: at.timestamp_subsec_nanos().into(),
    };
    let absolute = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    set(&timer, absolute, at)?;
    Ok(timer)
}

/// A timer for what is left until `at`. A span and not the instant, since what
/// moves the wall clock of a process in tests moves all instants of timers.
fn timer(clock: TimerfdClockId, at: Duration, now: impl Fn() -> Duration) -> io::Result<OwnedFd> {
    let timer = timerfd_create(clock, FLAGS)?;
    loop {
        let before = now();
        let left = timespec(at.saturating_sub(before));
        set(&timer, TimerfdTimerFlags::empty(), left)?;
        // This process may have been stopped in between.
        if now() < before + PROMPT {
            return Ok(timer);
        }
    }
}

const FLAGS: TimerfdFlags = TimerfdFlags::NONBLOCK.union(TimerfdFlags::CLOEXEC);
/// Reading a clock and setting a timer takes less.
const PROMPT: Duration = Duration::from_millis(1);

fn set(timer: &OwnedFd, flags: TimerfdTimerFlags, mut to: Timespec) -> io::Result<()> {
    if to.tv_sec == 0 && to.tv_nsec == 0 {
        // Zero would disarm the timer.
        to.tv_nsec = 1;
    }
    let once = Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value: to,
    };
    timerfd_settime(timer, flags, &once)?;
    Ok(())
}

async fn wait(timer: &AsyncFd<OwnedFd>) -> Woken {
    loop {
        let Ok(mut ready) = timer.readable().await else {
            return Woken::ClockSet;
        };
        let mut expirations = [0; 8];
        match rustix::io::read(timer.get_ref(), &mut expirations) {
            Ok(_) => return Woken::Due,
            Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
            // ECANCELED: the wall clock was set, timerfd_create(2).
            Err(_) => return Woken::ClockSet,
        }
    }
}
