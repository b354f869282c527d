//! Single runs around `true`: wall time of the whole process, and round trips.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use crate::place::{Place, installed, quiet, rounds, time};
use crate::report::{Report, Sample};
use crate::support::RedisServer;

/// As `true`, but a file: nobody's built-in.
const TRUE: &str = "/bin/true";

pub fn measure(place: &Place, report: &mut Report) {
    let plain = RedisServer::start();
    let tls = RedisServer::options().tls().start();
    wall(place, report, &plain, &tls);
    round_trips(place, report, &plain);
}

fn wall(place: &Place, report: &mut Report, plain: &RedisServer, tls: &RedisServer) {
    let mut cases: Vec<(&str, Command)> = vec![("bare", quiet(TRUE))];
    let mut add = |name, program: &str, args: &[&str]| {
        if installed(program) {
            let mut command = quiet(program);
            command.args(args);
            cases.push((name, command));
        }
    };
    let lock = place.path("flock");
    let port = plain.port().to_string();
    let script =
        format!("redis-cli -p {port} SET k v NX PX 30000 && {TRUE} && redis-cli -p {port} DEL k");
    add("flock", "flock", &[&lock.to_string_lossy(), TRUE]);
    add("tini", "tini", &["-s", "--", TRUE]);
    add("timeout", "timeout", &["60", TRUE]);
    add("redis-cli", "redis-cli", &["-p", &port, "PING"]);
    if installed("redis-cli") {
        add("sh+redis-cli", "sh", &["-c", &script]);
    }
    let mut own = |name, store: &str, options: &[&str]| {
        let mut command = place.solocron(store, name);
        command.args(options).args(["--", TRUE]);
        cases.push((name, command));
    };
    let ca = tls.ca();
    let dir = place.path("store");
    own("tcp", &plain.url(), &[]);
    own("unix", &plain.unix_url(), &[]);
    own("tls", &tls.url(), &["--tls-ca", &ca.to_string_lossy()]);
    own("local", &format!("file://{}", dir.display()), &[]);

    let mut samples = vec![Sample::default(); cases.len()];
    let mut syncs = Sample::default();
    for _ in 0..rounds(300) {
        for ((_, command), sample) in cases.iter_mut().zip(&mut samples) {
            sample.add(time(command));
        }
        syncs.add(write_through(&place.path("synced")));
    }
    let of = |name: &str| {
        let at = cases.iter().position(|(case, _)| *case == name)?;
        Some(samples[at].clone())
    };
    tell(report, of, &syncs);
}

fn tell(report: &mut Report, of: impl Fn(&str) -> Option<Sample>, syncs: &Sample) {
    let bare = of("bare").expect("always measured");
    let tcp = of("tcp").expect("always measured");
    report.note(format!("bare {TRUE}"), "ms", bare.clone());
    for name in ["flock", "tini", "timeout", "redis-cli", "sh+redis-cli"] {
        if let Some(sample) = of(name) {
            report.against(
                format!("{name} {TRUE}"),
                "ms",
                sample,
                &[("bare", &bare, None)],
            );
        }
    }
    report.note("write of 1 kB and fsync", "ms", syncs.clone());
    let flock = of("flock");
    let cli = of("sh+redis-cli");
    let mut others = vec![("bare", &bare, Some(3.0))];
    others.extend(flock.as_ref().map(|flock| ("flock", flock, Some(1.0))));
    others.extend(cli.as_ref().map(|cli| ("sh+redis-cli", cli, None)));
    report.against("once, TCP", "ms", tcp.clone(), &others);
    if let Some(unix) = of("unix") {
        report.against("once, unix socket", "ms", unix, &[("bare", &bare, None)]);
    }
    if let Some(tls) = of("tls") {
        report.against("once, TLS", "ms", tls.clone(), &[("plain", &tcp, None)]);
        let above = Sample::from(tls.median() - tcp.median());
        report.at_most("once, TLS, above plain", "ms", above, 7.0);
    }
    if let Some(local) = of("local") {
        let peer = flock.map(|flock| flock.plus(syncs));
        let mut others = vec![("bare", &bare, None)];
        others.extend(
            peer.as_ref()
                .map(|peer| ("flock and fsync", peer, Some(1.0))),
        );
        report.against("once, embedded store", "ms", local, &others);
    }
}

/// Milliseconds for what an embedded store has to do at least.
fn write_through(path: &Path) -> f64 {
    let mut file = File::create(path).expect("a file");
    let start = Instant::now();
    file.write_all(&[b'x'; 1000]).expect("written");
    file.sync_all().expect("on the disk");
    start.elapsed().as_secs_f64() * 1e3
}

fn round_trips(place: &Place, report: &mut Report, server: &RedisServer) {
    let relay = Relay::start(server.port());
    let run = || place.solocron(&relay.url(), "trips");
    time(run().args(["--", TRUE]));
    report.at_most("round trips to run", "", relay.taken(), 2.0);
    let holder = run().args(["--", "sleep", "60"]).spawn();
    let mut holder = holder.expect("the holder starts");
    let held = || server.cli(&["HGET", "solocron:{trips}", "state"]);
    while held() != crate::support::Value::Bulk("run".to_owned()) {
        thread::yield_now();
    }
    relay.taken();
    time(run().args(["--skip-exit-code", "0", "--", TRUE]));
    report.at_most("round trips to be refused", "", relay.taken(), 1.0);
    crate::support::proc::signal(
        i32::try_from(holder.id()).expect("a pid"),
        crate::support::Signal::TERM,
    );
    let _ = holder.wait();
}

/// Passes connections on and counts how often the client speaks after the
/// server.
struct Relay {
    port: u16,
    trips: Arc<AtomicU32>,
}

impl Relay {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let trips = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&trips);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                pass(&client, server, &counter);
            }
        });
        Self { port, trips }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn taken(&self) -> Sample {
        f64::from(self.trips.swap(0, Ordering::SeqCst)).into()
    }
}

fn pass(client: &TcpStream, server: u16, trips: &Arc<AtomicU32>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
        return;
    };
    let client_speaks = Arc::new(AtomicBool::new(false));
    let copy = |from: &TcpStream, to: &TcpStream, from_client: bool| {
        let (from, to) = (from.try_clone(), to.try_clone());
        let (mut from, mut to) = (from.expect("a descriptor"), to.expect("a descriptor"));
        let (speaks, trips) = (Arc::clone(&client_speaks), Arc::clone(trips));
        thread::spawn(move || {
            let mut bytes = [0; 16384];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                if speaks.swap(from_client, Ordering::SeqCst) != from_client && from_client {
                    trips.fetch_add(1, Ordering::SeqCst);
                }
                if to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
    };
    copy(client, &server, true);
    copy(&server, client, false);
}
