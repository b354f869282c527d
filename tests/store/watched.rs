//! A master, a replica, and three sentinels that watch them.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use crate::support::redis::free_port;
use crate::support::resp::Resp;
use crate::support::wait::secs;
use crate::support::{RedisServer, Value, eventually, wait_until};
use std::fmt::Write;
use std::fs;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A sentinel, killed when dropped.
pub struct Sentinel {
    child: Child,
    dir: TempDir,
    pub port: u16,
}

impl Sentinel {
    fn start(
        master: u16,
        replica: u16,
        peers: &[(u16, String)],
        own: &(u16, String),
        lines: &str,
    ) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let (port, id) = own;
        let mut conf = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel myid {id}\n\
             sentinel monitor mymaster 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds mymaster 400\n\
             sentinel failover-timeout mymaster 1500\n\
             sentinel known-replica mymaster 127.0.0.1 {replica}\n{lines}\n",
            dir.path().display()
        );
        for (peer, id) in peers.iter().filter(|peer| peer != &own) {
            let _ = writeln!(
                conf,
                "sentinel known-sentinel mymaster 127.0.0.1 {peer} {id}"
            );
        }
        let file = dir.path().join("sentinel.conf");
        fs::write(&file, conf).expect("write");
        let log = fs::File::create(dir.path().join("log")).expect("log");
        let child = Command::new("redis-sentinel")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log)
            .spawn()
            .expect("redis-sentinel; run tests/run, it installs what the tests need");
        Self {
            child,
            dir,
            port: *port,
        }
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Freezes it: connections are taken by the kernel, nobody answers.
    pub fn pause(&self) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        crate::support::proc::signal(pid, rustix::process::Signal::STOP);
    }

    pub fn call(&self, args: &[&str]) -> Option<Value> {
        Resp::tcp(self.port).ok()?.call(args).ok()
    }

    /// The port of the master, as this sentinel tells it.
    pub fn master(&self) -> Option<u16> {
        let reply = self.call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"])?;
        reply.items().get(1)?.text().parse().ok()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.kill();
    }
}

/// All of them. The first server is the master at first.
pub struct Watched {
    pub servers: [RedisServer; 2],
    pub sentinels: Vec<Sentinel>,
}

impl Watched {
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// With further lines for each sentinel's configuration.
    pub fn start_with(lines: &str) -> Self {
        let quick = ["--repl-diskless-sync-delay", "0"];
        let master = RedisServer::options().args(&quick).start();
        let of = ["--replicaof", &format!("127.0.0.1 {}", master.port())];
        let replica = RedisServer::options().args(&quick).args(&of).start();
        wait_until(secs(5), "the replica follows", || {
            replica
                .cli(&["INFO", "replication"])
                .text()
                .contains("master_link_status:up")
        });
        // A free port can be taken by another process before its sentinel starts.
        let sentinels = (0..5)
            .find_map(|_| start_sentinels(&master, &replica, lines))
            .expect("sentinels that listen");
        Self {
            servers: [master, replica],
            sentinels,
        }
    }

    /// Waits until every sentinel is ready to fail over.
    pub fn wait_until_ready(&self) {
        wait_until(secs(10), "the sentinels know each other", || {
            self.sentinels.iter().all(|sentinel| {
                sentinel
                    .call(&["SENTINEL", "CKQUORUM", "mymaster"])
                    .is_some_and(
                        |reply| matches!(reply, Value::Status(text) if text.starts_with("OK 3")),
                    )
            })
        });
    }

    pub fn url(&self) -> String {
        let nodes: Vec<_> = self
            .sentinels
            .iter()
            .map(|one| format!("127.0.0.1:{}", one.port))
            .collect();
        format!("redis-sentinel://{}/mymaster", nodes.join(","))
    }

    /// Waits until all sentinels name this server.
    pub fn wait_for_master(&self, server: &RedisServer) {
        let all = || {
            self.sentinels
                .iter()
                .all(|one| one.master() == Some(server.port()))
        };
        assert!(eventually(secs(20), all), "no failover");
    }
}

fn start_sentinels(
    master: &RedisServer,
    replica: &RedisServer,
    lines: &str,
) -> Option<Vec<Sentinel>> {
    let peers: Vec<(u16, String)> = (1..=3)
        .map(|n| (free_port(), format!("{n:040x}")))
        .collect();
    let sentinels: Vec<_> = peers
        .iter()
        .map(|own| Sentinel::start(master.port(), replica.port(), &peers, own, lines))
        .collect();
    let listen = || sentinels.iter().all(|one| Resp::tcp(one.port).is_ok());
    eventually(secs(5), listen).then_some(sentinels)
}
