//! What solocron costs while it does nothing: memory, wake-ups, connections;
//! and how soon a schedule without a store answers.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::{Place, rounds};
use crate::report::{Report, Sample};
use crate::support::{RedisServer, Signal, eventually, proc, secs};

/// A firing in a month at least.
const FAR: &str = "0 0 1 */2 *";
/// How long an idle schedule is watched.
const WATCHED: Duration = Duration::from_secs(20);

pub fn measure(place: &Place, report: &mut Report) {
    let size = fs::metadata(place.binary()).expect("the binary").len();
    report.at_most("size of the binary", "MiB", mib(size), 5.0);
    let plain = RedisServer::start();
    let tls = RedisServer::options().tls().start();
    let ca = tls.ca();
    let tls_ca = ["--tls-ca", &ca.to_string_lossy()];
    let local = format!("file://{}", place.path("store").display());
    memory_once(place, report, "TCP", &plain.url(), &[]);
    memory_once(place, report, "TLS", &tls.url(), &tls_ca);
    memory_once(place, report, "embedded store", &local, &[]);
    idle(place, report, "TCP", &plain, &[]);
    idle(place, report, "TLS", &tls, &tls_ca);
    store_down(place, report);
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn mib(bytes: u64) -> Sample {
    (bytes as f64 / f64::from(1 << 20)).into()
}

/// A line of `/proc/PID/status` that is a number, in kB where it is a size.
fn number(status: &str, name: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or_default()
}

fn tell_memory(report: &mut Report, what: &str, status: &str, most: f64) {
    let kb = |name| mib(number(status, name) << 10);
    report.at_most(format!("{what}: peak RSS"), "MiB", kb("VmHWM"), most);
    report.note(
        format!("{what}: RSS of its own (anonymous)"),
        "MiB",
        kb("RssAnon"),
    );
    #[expect(clippy::cast_precision_loss, reason = "few")]
    let threads = Sample::from(number(status, "Threads") as f64);
    report.at_most(format!("{what}: threads"), "", threads, 1.0);
}

fn memory_once(place: &Place, report: &mut Report, name: &str, store: &str, options: &[&str]) {
    let mut command = place.solocron(store, "memory");
    command.args(options).stdout(Stdio::piped());
    command.args(["--", "sh", "-c", "cat /proc/$PPID/status"]);
    let out = command.output().expect("it runs");
    let status = String::from_utf8_lossy(&out.stdout).into_owned();
    tell_memory(report, &format!("once, {name}"), &status, 5.0);
}

fn schedule(place: &Place, store: &str, options: &[&str]) -> (Child, i32) {
    let mut command = place.solocron(store, "rest");
    command.args(options);
    command.args(["--cron", FAR, "--", "true"]);
    start(&mut command)
}

fn start(command: &mut Command) -> (Child, i32) {
    let child = command.spawn().expect("it starts");
    let pid = i32::try_from(child.id()).expect("a pid");
    (child, pid)
}

/// Ends it, and says how long that took.
fn end(child: &mut Child, pid: i32) -> Duration {
    let start = Instant::now();
    proc::signal(pid, Signal::TERM);
    let status = child.wait().expect("it ends");
    assert!(
        status.success(),
        "{:?} {:?}",
        status.code(),
        status.signal()
    );
    start.elapsed()
}

/// Wake-ups and ticks of CPU of a process so far.
fn spent(pid: i32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let woken = number(&status, "voluntary_ctxt_switches");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    // utime and stime, fields 14 and 15 of proc(5).
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks = ticks.filter_map(|tick| tick.parse::<u64>().ok()).sum();
    (woken, ticks)
}

fn field(server: &RedisServer, section: &str, name: &str) -> u64 {
    let info = server.cli(&["INFO", section]).text();
    number(&info, name)
}

fn idle(place: &Place, report: &mut Report, name: &str, server: &RedisServer, options: &[&str]) {
    let (mut child, pid) = schedule(place, &server.url(), options);
    let gone = || field(server, "stats", "total_connections_received") > 0 && clients(server) == 0;
    thread::sleep(Duration::from_millis(500));
    assert!(eventually(secs(10), gone), "the first look ends");
    let commands = field(server, "stats", "total_commands_processed");
    let before = spent(pid);
    thread::sleep(WATCHED);
    let after = spent(pid);
    // Two looks at the server and no more.
    let commands = field(server, "stats", "total_commands_processed") - commands;
    let what = format!("idle schedule, {name}, {} s", WATCHED.as_secs());
    let mut zero = |name: &str, count: u64| {
        #[expect(clippy::cast_precision_loss, reason = "few")]
        let count = Sample::from(count as f64);
        report.at_most(format!("{what}: {name}"), "", count, 0.0);
    };
    zero("wake-ups", after.0 - before.0);
    zero("ticks of CPU", after.1 - before.1);
    zero("store commands", commands.saturating_sub(1));
    zero("connections", clients(server));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    tell_memory(report, &format!("waiting schedule, {name}"), &status, 4.0);
    end(&mut child, pid);
}

/// Connections to the server other than the one that asks.
fn clients(server: &RedisServer) -> u64 {
    let list = server.cli(&["CLIENT", "LIST"]).text();
    list.lines().count() as u64 - 1
}

fn store_down(place: &Place, report: &mut Report) {
    let dead = crate::support::redis::free_port();
    let mute = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let mute = mute.local_addr().expect("an address").port();
    for (what, port) in [("refuses", dead), ("is mute", mute)] {
        let (mut up, mut down) = (Sample::default(), Sample::default());
        for _ in 0..rounds(20).min(50) {
            let began = Instant::now();
            let (mut child, pid) = schedule(place, &format!("redis://127.0.0.1:{port}"), &[]);
            while !catches_term(pid) {
                thread::yield_now();
            }
            up.add(began.elapsed().as_secs_f64() * 1e3);
            // In the midst of its attempts.
            thread::sleep(Duration::from_millis(50));
            down.add(end(&mut child, pid).as_secs_f64() * 1e3);
        }
        report.at_most(
            format!("store {what}: start to catching signals"),
            "ms",
            up,
            50.0,
        );
        report.at_most(format!("store {what}: TERM to end"), "ms", down, 50.0);
    }
}

fn catches_term(pid: i32) -> bool {
    let caught = proc::status_line(pid, "SigCgt").unwrap_or_default();
    let caught = u64::from_str_radix(&caught, 16).unwrap_or_default();
    caught & (1 << (Signal::TERM.as_raw() - 1)) != 0
}
