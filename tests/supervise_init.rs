//! As process 1 of a PID namespace, as in a container.

mod support;

use std::fs;
use support::fleet::{EACH_SECOND, at, soon};
use support::{Place, Pty, RedisServer, Running, Signal, Solocron, Witness, proc};
use support::{eventually, long, ms, now_ms, secs, wait_for, wait_until};

/// A shell loop that never ends by itself.
const LOOP: &str = "while :; do sleep 0.05; done";

/// Starts five detached processes that end soon after it, and ends with 3.
const ORPHANS: &str = "for i in 1 2 3 4 5; do (setsid sleep 0.2 &); done; exit 3";

fn local() -> Place {
    let [_, place] = Place::each();
    place
}

/// Process 1, once it runs the binary.
fn init(run: &Running) -> i32 {
    wait_for(secs(10), "process 1 runs the binary", || {
        let pid = run.pid();
        let exe = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        (exe.as_os_str() == env!("CARGO_BIN_EXE_solocron")).then_some(pid)
    })
}

/// Zombies below process 1 and the process that it started first.
fn zombies(init: i32) -> usize {
    let all = proc::all();
    let children: Vec<i32> = all
        .iter()
        .filter(|p| p.parent == init)
        .map(|p| p.pid)
        .collect();
    let below = |p: &&proc::Proc| p.parent == init || children.contains(&p.parent);
    all.iter().filter(below).filter(|p| p.state == 'Z').count()
}

#[test]
fn orphans_of_a_schedule_do_not_pile_up() {
    std::thread::scope(|scope| {
        scope.spawn(|| orphans_of_a_schedule(true));
        scope.spawn(|| orphans_of_a_schedule(false));
    });
}

fn orphans_of_a_schedule(pid_1: bool) {
    let place = local();
    let run = place.run("x").args(EACH_SECOND).sh(ORPHANS);
    let mut run = if pid_1 {
        run.in_pid_namespace().spawn()
    } else {
        run.spawn()
    };
    let top = init(&run);
    let end = now_ms() + if long() { 20_000 } else { 5_000 };
    let mut most = 0;
    while now_ms() < end {
        most = most.max(zombies(top));
        std::thread::sleep(ms(5));
    }
    assert!(most <= 5, "{most} zombies");
    wait_until(secs(1), "no zombie between firings", || zombies(top) == 0);
    run.signal(Signal::TERM);
    let out = run.wait(secs(5));
    out.assert_code(0);
    // Without the end of a namespace the last ones end by themselves.
    wait_until(secs(2), "all are gone", || run.tree().is_empty());
    assert!(!out.stderr.contains("No child"), "{}", out.stderr);
    let ended = out.stderr.matches(" ended ").count();
    let with_3 = out.stderr.matches(" ended with status 3").count();
    assert!(with_3 >= 4, "{}", out.stderr);
    assert!(
        ended - with_3 <= 1,
        "only the last is stopped: {}",
        out.stderr
    );
}

#[test]
fn a_stop_reaches_the_job_once_and_nothing_new_starts() {
    let redis = RedisServer::start();
    let signals = [
        ("TERM", Signal::TERM),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
    ];
    std::thread::scope(|scope| {
        for (name, signal) in signals {
            for scheduled in [true, false] {
                let redis = &redis;
                scope.spawn(move || stopped(redis, name, signal, scheduled));
            }
        }
    });
}

fn stopped(redis: &RedisServer, name: &str, signal: Signal, scheduled: bool) {
    let lock = format!("{name}-{scheduled}");
    let witness = Witness::default();
    let body = format!("trap 'w got; sleep 1; exit 7' {name}; w ready; {LOOP}");
    let run = Solocron::on(redis, &lock).args(["--ttl", "5s"]);
    let run = if scheduled {
        run.args(EACH_SECOND)
    } else {
        run
    };
    let run = run.command(witness.job(&body)).in_pid_namespace();
    let mut run = run.spawn();
    wait_until(secs(10), "ready", || !witness.of("ready").is_empty());
    run.signal(signal);
    let sent = now_ms();
    let out = run.wait(secs(10));
    let took = now_ms() - sent;
    redis.assert_free(&lock, secs(0));
    out.assert_clean();
    out.assert_code(if scheduled { 0 } else { 7 });
    assert!((1000..2500).contains(&took), "{lock}: {took} ms");
    assert_eq!(witness.of("got").len(), 1, "{lock}: told once");
    assert_eq!(witness.starts().len(), 1, "{lock}: nothing new");
    if scheduled {
        let last = out.stderr.lines().last().unwrap_or_default().to_owned();
        assert!(
            last.contains(name),
            "the reason is told last: {}",
            out.stderr
        );
    }
}

/// Pseudo-random numbers from a fixed seed (`xorshift64`).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Process 1 gets no signal that it does not handle, and nobody sends a second
/// one. Counted from the first instruction of the program itself: what arrives
/// while the system still loads it is dropped by the kernel, whatever it is.
#[test]
fn a_term_in_the_first_50_ms_is_not_lost() {
    let place = local();
    let mut dice = Dice(4711);
    for round in 0..if long() { 200 } else { 16 } {
        let run = place.run("x");
        let scheduled = round % 2 == 0;
        let run = if scheduled {
            run.args(EACH_SECOND)
        } else {
            run
        };
        let mut run = run.sh("sleep 30; true").in_pid_namespace().spawn();
        let init = init(&run);
        let blocks = |mask: String| u64::from_str_radix(&mask, 16) != Ok(0);
        let runs = || {
            proc::status_line(init, "SigBlk").is_some_and(blocks)
                || !proc::children(init).is_empty()
        };
        let begin = std::time::Instant::now();
        while !runs() {
            assert!(begin.elapsed() < secs(5), "the program does not start");
        }
        std::thread::sleep(std::time::Duration::from_micros(dice.below(50_000)));
        proc::signal(init, Signal::TERM);
        let out = run.wait(secs(4));
        out.assert_code(if scheduled { 0 } else { 143 })
            .assert_clean();
        place.assert_free("x");
    }
}

#[test]
fn a_base_images_stop_signal_stops_an_idle_schedule_and_winch_does_not() {
    let place = local();
    let run = place.run("x").args(at(&[soon(secs(86_400))]));
    let mut run = run.command(["true"]).in_pid_namespace().spawn();
    wait_until(secs(10), "it is up", || run.stderr().contains("schedule"));
    run.signal(Signal::WINCH);
    assert!(!eventually(ms(300), || run.has_ended()));
    run.signal(Signal::QUIT);
    run.wait(secs(1)).assert_code(0).assert_clean();
}

#[test]
fn what_the_job_leaves_behind_gets_term_and_time_at_the_end() {
    let place = local();
    let witness = Witness::default();
    let daemon = "trap 'w bye; exit' TERM; w up; while :; do sleep 0.02; done";
    let daemon = witness.job(daemon)[2].replace('\'', r"'\''");
    let up = format!(
        "while ! grep -q up '{}' 2>/dev/null; do sleep 0.02; done",
        witness.file().display()
    );
    let line = format!("setsid sh -c '{daemon}' & {up}; exit 4");
    let out = place.run("x").sh(&line).in_pid_namespace().run();
    out.assert_code(4).assert_clean();
    assert_eq!(witness.of("bye").len(), 1);
    place.assert_free("x");
}

#[test]
fn ctrl_c_in_a_container_with_a_terminal_arrives_once() {
    let place = local();
    let witness = Witness::default();
    let body = format!("trap 'w int; sleep 0.3; exit 7' INT; w ready; {LOOP}");
    let run = place
        .run("x")
        .command(witness.job(&body))
        .in_pid_namespace();
    let mut pty = Pty::run(&["sh", "-c", &format!("exec {}", run.shell_line())]);
    wait_until(secs(10), "ready", || !witness.of("ready").is_empty());
    pty.send("\x03");
    assert_eq!(pty.wait(secs(5)), 7);
    assert_eq!(witness.of("int").len(), 1);
    place.assert_free("x");
}

/// A container's process 1 leads the session of its terminal, and at a hang-up
/// the kernel tells the leader alone.
#[test]
fn the_end_of_a_containers_terminal_reaches_the_job() {
    let place = local();
    let witness = Witness::default();
    let body = format!("trap 'w hup; exit 4' HUP; w ready; {LOOP}");
    let run = place.run("x").command(witness.job(&body));
    let run = run.under(["setsid", "-c"]).shell_line();
    let words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut pty = Pty::run(&[&words[..], &["sh", "-c", &format!("exec {run}")]].concat());
    wait_until(secs(10), "ready", || !witness.of("ready").is_empty());
    pty.close();
    wait_until(secs(5), "the job is told", || witness.of("hup").len() == 1);
    assert_eq!(pty.wait(secs(5)), 4);
    place.assert_free("x");
}

#[test]
fn without_a_terminal_the_end_of_the_program_ends_the_container() {
    let place = local();
    let mut run = place
        .run("x")
        .sh("sleep 30; true")
        .in_pid_namespace()
        .spawn();
    let init = init(&run);
    wait_until(secs(5), "the job runs", || {
        run.tree().iter().any(|p| p.name == "sleep")
    });
    // As the kernel kills it when memory is short.
    proc::signal(proc::children(init)[0].pid, Signal::KILL);
    run.wait(secs(3)).assert_code(137).assert_clean();
}
