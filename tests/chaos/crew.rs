//! The instances: started, killed, frozen and started again, each behind a
//! network of its own.

use crate::facts::{Freeze, Job, Life, MILLI, SECOND, Span, Us};
use crate::logs;
use crate::resource::now_us;
use crate::support::proc;
use crate::support::{Proxy, Running, Signal, Solocron};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How far clocks are wrong, as the library that makes them so takes it.
const SKEWS: [(&str, Us); 8] = [
    ("0", 0),
    ("0", 0),
    ("-0.3s", -300 * MILLI),
    ("+0.5s", 500 * MILLI),
    ("-1s", -SECOND),
    ("-2s", -2 * SECOND),
    ("-5s", -5 * SECOND),
    ("+2s", 2 * SECOND),
];

/// How an instance stands.
pub enum State {
    Runs(Running),
    Frozen(Running),
    /// told to stop; it must have stopped at this instant
    Leaving(Running, Us),
    /// to be started again
    Down,
}

/// One instance of a job.
pub struct Instance {
    pub job: Job,
    pub label: String,
    pub proxy: Option<Proxy>,
    pub state: State,
    url: String,
    ahead: Us,
    since: Us,
    frozen: Us,
    starts: usize,
}

/// What the instances share.
pub struct Yard {
    pub dir: PathBuf,
    pub socket: PathBuf,
}

impl Instance {
    /// An instance that talks to its store at `url`, through `proxy` if there is one.
    pub fn new(job: Job, label: String, url: String, proxy: Option<Proxy>) -> Self {
        Self {
            job,
            label,
            proxy,
            state: State::Down,
            url,
            ahead: 0,
            since: 0,
            frozen: 0,
            starts: 0,
        }
    }

    /// Starts it, with one of the wrong clocks where hosts have their own.
    pub fn start(&mut self, yard: &Yard, luck: u64) {
        let count = if self.url.starts_with("file:") {
            1
        } else {
            SKEWS.len() as u64
        };
        let (skew, ahead) = SKEWS[usize::try_from(luck % count).expect("a small number")];
        self.ahead = ahead;
        self.since = now_us();
        self.starts += 1;
        self.state = State::Runs(self.call(yard).skew(skew).label(&self.label).spawn());
    }

    fn call(&self, yard: &Yard) -> Solocron {
        let job = &self.job;
        let seconds = |span: Us| format!("{}ms", span / MILLI);
        let mut run = Solocron::at(&self.url, job.name)
            .args(["--tz", "UTC", "--log-format", "json", "-vv"])
            .arg("--cron")
            .arg(format!("*/{} * * * * *", job.period / SECOND))
            .args(["--ttl", &seconds(job.ttl)])
            .args(["--start-deadline", &seconds(job.start_deadline)])
            .args(["--kill-after", "500ms"]);
        if job.queue {
            run = run.args(["--overlap", "queue"]);
        }
        if job.rerun {
            run = run.args(["--on-runner-lost", "rerun"]);
        }
        let own = std::env::current_exe().expect("this program");
        run.command([
            own.display().to_string(),
            "job".to_owned(),
            yard.socket.display().to_string(),
            job.name.to_owned(),
            (job.takes.0 / MILLI).to_string(),
            (job.takes.1 / MILLI).to_string(),
        ])
    }

    /// The process, if it runs and is not frozen.
    pub fn running(&mut self) -> Option<&mut Running> {
        match &mut self.state {
            State::Runs(run) => Some(run),
            _ => None,
        }
    }

    /// Kills solocron, or all of it at once.
    pub fn kill(&mut self, yard: &Yard, whole: bool) -> (Life, Option<Freeze>) {
        let thawed = self.note_thaw();
        let state = std::mem::replace(&mut self.state, State::Down);
        let (State::Runs(mut run) | State::Frozen(mut run)) = state else {
            panic!("{} does not run", self.label);
        };
        if whole {
            for one in run.started() {
                proc::signal(one.pid, Signal::KILL);
            }
        }
        run.signal(Signal::KILL);
        (self.life(yard, &mut run), thawed)
    }

    /// Tells it to stop.
    pub fn tell_to_stop(&mut self) {
        let state = std::mem::replace(&mut self.state, State::Down);
        self.state = match state {
            State::Runs(run) => {
                run.signal(Signal::TERM);
                State::Leaving(run, now_us() + self.job.takes.1 + 3 * SECOND)
            }
            other => other,
        };
    }

    /// The life of one that was told to stop, once it has; an error when it does
    /// not in time, or not well.
    pub fn has_left(&mut self, yard: &Yard) -> Option<Result<Life, String>> {
        let State::Leaving(run, by) = &mut self.state else {
            return None;
        };
        let (ended, late) = (run.has_ended(), now_us() > *by);
        if !ended && !late {
            return None;
        }
        let State::Leaving(mut run, _) = std::mem::replace(&mut self.state, State::Down) else {
            return None;
        };
        let life = self.life(yard, &mut run);
        let label = &self.label;
        Some(if ended {
            match run.wait(Duration::ZERO).code() {
                0 => Ok(life),
                code => Err(format!("{label} ended with {code}")),
            }
        } else {
            Err(format!("{label} did not stop: {:?}", life.lines.last()))
        })
    }

    fn life(&self, yard: &Yard, run: &mut Running) -> Life {
        let to = now_us();
        let _ = crate::support::eventually(Duration::from_secs(1), || run.has_ended());
        let text = run.stderr();
        let file = format!("{}-{}.log", self.label, self.starts);
        let _ = std::fs::write(yard.dir.join(file), &text);
        Life {
            job: self.job.name.to_owned(),
            label: self.label.clone(),
            from: self.since,
            to,
            lines: logs::read(&text, self.ahead),
        }
    }

    /// Stops solocron, or all of it.
    pub fn freeze(&mut self, whole: bool) {
        let state = std::mem::replace(&mut self.state, State::Down);
        let State::Runs(run) = state else {
            panic!("{} does not run", self.label);
        };
        self.frozen = now_us();
        run.signal(Signal::STOP);
        if whole {
            for one in run.started() {
                proc::signal(one.pid, Signal::STOP);
            }
        }
        self.state = State::Frozen(run);
    }

    /// Undoes [`Self::freeze`]; nothing where it was killed meanwhile.
    pub fn thaw(&mut self) -> Option<Freeze> {
        let freeze = self.note_thaw()?;
        let state = std::mem::replace(&mut self.state, State::Down);
        let State::Frozen(run) = state else {
            return None;
        };
        run.signal(Signal::CONT);
        for one in run.started() {
            proc::signal(one.pid, Signal::CONT);
        }
        self.state = State::Runs(run);
        Some(freeze)
    }

    fn note_thaw(&self) -> Option<Freeze> {
        matches!(self.state, State::Frozen(_)).then(|| Freeze {
            label: Some(self.label.clone()),
            span: Span {
                from: self.frozen,
                to: now_us(),
            },
        })
    }

    /// Kills the command and leaves solocron alone.
    pub fn kill_command(&mut self) {
        if let State::Runs(run) = &self.state {
            for one in run.started() {
                proc::signal(one.pid, Signal::KILL);
            }
        }
    }

    /// Its process has ended without being told to.
    pub fn has_failed(&mut self) -> bool {
        self.running().is_some_and(Running::has_ended)
    }

    /// The life of one that ended without being told to.
    pub fn bury(&mut self, yard: &Yard) -> Life {
        let state = std::mem::replace(&mut self.state, State::Down);
        let (State::Runs(mut run) | State::Frozen(mut run)) = state else {
            panic!("{} is down", self.label);
        };
        self.life(yard, &mut run)
    }
}

/// Where the logs go.
pub fn yard(dir: &Path) -> Yard {
    Yard {
        dir: dir.to_owned(),
        socket: dir.join("resource"),
    }
}
