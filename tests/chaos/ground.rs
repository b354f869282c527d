//! The store under the instances, and what can be done to it.

use crate::facts::{Forgot, Loss, SECOND, Span};
use crate::options::Kind;
use crate::resource::now_us;
use crate::support::inspect::key;
use crate::support::{Proxy, RedisServer, Value};
use crate::watched::{Sentinel, Watched};
use tempfile::TempDir;

/// A store.
pub enum Ground {
    Single(Box<RedisServer>),
    Watched(Box<Failing>),
    Local(TempDir),
}

/// A master and its replica, which change places.
pub struct Failing {
    pub watched: Watched,
    /// a failover, or a restart that may lose the last writes, goes on since
    since: Option<i64>,
    /// which server is down
    down: Option<usize>,
    /// which server is frozen
    frozen: Option<usize>,
}

impl Ground {
    pub fn start(kind: Kind) -> Self {
        match kind {
            Kind::Redis => Self::Single(Box::new(RedisServer::options().persistent().start())),
            Kind::Local => Self::Local(tempfile::tempdir().expect("temporary directory")),
            Kind::Sentinel => {
                let watched = Watched::start();
                watched.wait_until_ready();
                Self::Watched(Box::new(Failing {
                    watched,
                    since: None,
                    down: None,
                    frozen: None,
                }))
            }
        }
    }

    /// A way to it for one instance: the address, and what is between.
    pub fn way(&self) -> (String, Option<Proxy>) {
        match self {
            Self::Single(server) => {
                let proxy = Proxy::to(server.port());
                (proxy.url(), Some(proxy))
            }
            Self::Watched(failing) => (failing.watched.url(), None),
            Self::Local(dir) => (format!("file://{}", dir.path().display()), None),
        }
    }

    /// Forgets everything, or one job.
    pub fn wipe(&self, job: Option<&'static str>) -> Option<Loss> {
        let from = now_us();
        let command: Vec<String> = match job {
            Some(job) => vec!["DEL".to_owned(), key(job)],
            None => vec!["FLUSHALL".to_owned()],
        };
        self.call(&command.iter().map(String::as_str).collect::<Vec<_>>())?;
        let span = Span { from, to: now_us() };
        Some(Loss {
            job,
            forgot: Forgot::All,
            span,
        })
    }

    /// No memory for anything new, or enough again.
    pub fn fill(&self, full: bool) -> Option<Value> {
        let most = if full { "1" } else { "0" };
        self.call(&["CONFIG", "SET", "maxmemory", most])
    }

    /// Asks the server that counts.
    fn call(&self, args: &[&str]) -> Option<Value> {
        let server = match self {
            Self::Single(server) => server,
            Self::Watched(failing) => failing.master()?,
            Self::Local(_) => return None,
        };
        let reply = server.try_cli(args);
        (!matches!(reply, Value::Error(_))).then_some(reply)
    }
}

impl Failing {
    /// Which server is master, as all sentinels agree.
    fn master_index(&self) -> Option<usize> {
        let told: Vec<_> = self
            .watched
            .sentinels
            .iter()
            .map(Sentinel::master)
            .collect();
        let port = told.first().copied().flatten()?;
        if told.iter().any(|one| *one != Some(port)) {
            return None;
        }
        let servers = &self.watched.servers;
        servers.iter().position(|server| server.port() == port)
    }

    fn master(&self) -> Option<&RedisServer> {
        if self.since.is_some() {
            return None;
        }
        self.watched.servers.get(self.master_index()?)
    }

    /// Whether nothing goes on and a failover can begin.
    pub fn is_calm(&self) -> bool {
        self.since.is_none() && self.down.is_none() && self.frozen.is_none() && self.is_settled()
    }

    /// Whether all agree on a master that is one, and the other follows it.
    fn is_settled(&self) -> bool {
        let Some(master) = self.master_index() else {
            return false;
        };
        let replica = &self.watched.servers[1 - master];
        let info = |server: &RedisServer| {
            let reply = server.connect().call(&["INFO", "replication"]);
            reply.map(|value| value.text()).unwrap_or_default()
        };
        let follows = format!("master_port:{}\r\n", self.watched.servers[master].port());
        let (of_master, of_replica) = (info(&self.watched.servers[master]), info(replica));
        of_master.contains("role:master")
            && of_replica.contains("role:slave")
            && of_replica.contains(&follows)
            && of_replica.contains("master_link_status:up")
    }

    /// Kills the master; [`Self::revive`] starts it again.
    pub fn kill_master(&mut self) {
        let master = self.master_index().expect("calm");
        self.since = Some(now_us());
        self.watched.servers[master].kill();
        self.down = Some(master);
    }

    /// Freezes the master; [`Self::revive`] lets it go on.
    pub fn freeze_master(&mut self) {
        let master = self.master_index().expect("calm");
        self.since = Some(now_us());
        self.watched.servers[master].pause();
        self.frozen = Some(master);
    }

    /// Undoes what was done to a master.
    pub fn revive(&mut self) {
        if let Some(server) = self.down.take() {
            self.watched.servers[server].start_again();
        }
        if let Some(server) = self.frozen.take() {
            self.watched.servers[server].resume();
        }
    }

    /// A failover that the sentinels are asked for.
    pub fn fail_over(&mut self) -> bool {
        let from = now_us();
        let reply = self.watched.sentinels[0].call(&["SENTINEL", "FAILOVER", "mymaster"]);
        let begun = reply == Some(Value::Status("OK".into()));
        if begun {
            self.since = Some(from);
        }
        begun
    }

    /// The loss that is over, once it is.
    pub fn look(&mut self) -> Option<Loss> {
        let from = self.since?;
        let may_be_over =
            now_us() > from + 3 * SECOND && self.down.is_none() && self.frozen.is_none();
        if !may_be_over || !self.is_settled() {
            return None;
        }
        self.since = None;
        let span = Span {
            // The replica may lag behind.
            from: from - SECOND,
            to: now_us(),
        };
        Some(Loss {
            job: None,
            forgot: Forgot::Last,
            span,
        })
    }

    /// A loss that is not over yet.
    pub fn unsettled(&self) -> Option<Loss> {
        let span = Span {
            from: self.since? - SECOND,
            to: now_us(),
        };
        Some(Loss {
            job: None,
            forgot: Forgot::Last,
            span,
        })
    }
}
