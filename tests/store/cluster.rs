//! A Redis Cluster of three masters, the first with a replica.

use crate::support::proc;
use crate::support::redis::free_port;
use crate::support::resp::Resp;
use crate::support::wait::secs;
use crate::support::{Value, eventually};
use rustix::process::Signal;
use std::fs;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A node, killed when dropped.
pub struct Node {
    child: Child,
    _dir: TempDir,
    pub port: u16,
    pub id: String,
}

impl Node {
    pub fn call(&self, args: &[&str]) -> Value {
        Resp::tcp(self.port)
            .and_then(|mut conn| conn.call(args))
            .expect("answer of a node")
    }

    pub fn signal(&self, signal: Signal) {
        proc::signal(i32::try_from(self.child.id()).expect("a pid"), signal);
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    fn says(&self, part: &str) -> bool {
        let info = Resp::tcp(self.port).and_then(|mut conn| conn.call(&["INFO", "replication"]));
        info.is_ok_and(|info| info.text().contains(part))
    }

    fn is_up(&self) -> bool {
        Resp::tcp(self.port)
            .and_then(|mut conn| conn.call(&["CLUSTER", "INFO"]))
            .is_ok_and(|info| {
                info.text().contains("cluster_state:ok")
                    && info.text().contains("cluster_known_nodes:4")
            })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first three nodes are masters, the last is the replica of the first.
pub struct Cluster {
    pub nodes: Vec<Node>,
}

const SLOTS: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];

impl Cluster {
    pub fn start() -> Self {
        // A free port can be taken by another process before its node starts.
        (0..5)
            .find_map(|_| Self::try_start())
            .expect("a cluster that comes up")
    }

    fn try_start() -> Option<Self> {
        let members: Vec<(String, u16, u16)> = (1..=4)
            .map(|n| (format!("{n:040x}"), free_port(), free_port()))
            .collect();
        let nodes = (0..4).map(|own| start_node(&members, own)).collect();
        let mut cluster = Self { nodes };
        let settled = eventually(secs(10), || {
            cluster.is_up() || cluster.nodes.iter_mut().any(Node::has_ended)
        });
        (settled && cluster.is_up()).then_some(cluster)
    }

    fn is_up(&self) -> bool {
        self.nodes.iter().all(Node::is_up) && self.nodes[3].says("master_link_status:up")
    }

    pub fn url(&self) -> String {
        format!(
            "redis-cluster://127.0.0.1:{},127.0.0.1:{}",
            self.nodes[1].port, self.nodes[2].port
        )
    }

    /// A lock name whose record is on this master.
    pub fn name_on(&self, master: usize) -> String {
        let (from, to) = SLOTS[master].split_once('-').expect("a range");
        let range: std::ops::RangeInclusive<i64> =
            from.parse().expect("a slot")..=to.parse().expect("a slot");
        (0..1_000)
            .map(|n| format!("job{n}"))
            .find(|name| range.contains(&self.slot(name)))
            .expect("some name")
    }

    pub fn slot(&self, name: &str) -> i64 {
        match self.nodes[1].call(&["CLUSTER", "KEYSLOT", &format!("solocron:{{{name}}}")]) {
            Value::Int(slot) => slot,
            other => panic!("{other:?}"),
        }
    }
}

/// Starts a node that knows all the others from its configuration.
fn start_node(members: &[(String, u16, u16)], own: usize) -> Node {
    let dir = tempfile::tempdir().expect("directory");
    let lines = members.iter().enumerate().map(|(n, (id, port, bus))| {
        let me = if n == own { "myself," } else { "" };
        match SLOTS.get(n) {
            Some(slots) => format!(
                "{id} 127.0.0.1:{port}@{bus} {me}master - 0 0 {} connected {slots}\n",
                n + 1
            ),
            None => format!(
                "{id} 127.0.0.1:{port}@{bus} {me}slave {} 0 0 1 connected\n",
                members[0].0
            ),
        }
    });
    let conf = lines.collect::<String>() + "vars currentEpoch 4 lastVoteEpoch 0\n";
    fs::write(dir.path().join("nodes.conf"), conf).expect("write");
    let (id, port, bus) = &members[own];
    let log = fs::File::create(dir.path().join("log")).expect("log");
    let child = Command::new("redis-server")
        .args([
            "--port",
            &port.to_string(),
            "--cluster-port",
            &bus.to_string(),
        ])
        .args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--cluster-enabled",
            "yes",
        ])
        .args([
            "--cluster-node-timeout",
            "1000",
            "--cluster-replica-validity-factor",
            "0",
        ])
        .args([
            "--repl-diskless-sync-delay",
            "0",
            "--enable-debug-command",
            "yes",
        ])
        .arg("--dir")
        .arg(dir.path())
        .stdin(Stdio::null())
        .stdout(log)
        .spawn()
        .expect("redis-server; run tests/run, it installs what the tests need");
    Node {
        child,
        _dir: dir,
        port: *port,
        id: id.clone(),
    }
}
