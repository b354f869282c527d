//! What solocron's surroundings do to it: it is killed, no process is to be had,
//! limits are low, systemd listens.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use support::fleet::{EACH_SECOND, at, soon};
use support::witness::f64_of;
use support::{Place, Pty, RedisServer, Signal, Solocron, Witness, proc};
use support::{eventually, ms, now_ms, secs, wait_until};

fn local() -> Place {
    let [_, place] = Place::each();
    place
}

#[test]
fn kill_9_takes_the_command_along_and_its_lease_ends_by_itself() {
    Place::for_each(|place| {
        let witness = Witness::default();
        let run = place.run("x").args(["--ttl", "2s"]);
        let mut run = run.command(witness.job("exec sleep 40")).spawn();
        let command = witness.wait_starts(1, secs(10))[0].pid;
        std::thread::sleep(ms(300));
        run.signal(Signal::KILL);
        wait_until(secs(1), "the command is gone", || !proc::alive(command));
        let killed = now_ms();
        run.wait(secs(1)).assert_code(137).assert_clean();
        assert!(place.held("x"), "nobody has freed the lock");
        let next = place.run("x").args(["--wait", "10s"]);
        next.command(witness.job("exit 5")).run().assert_code(5);
        let after = witness.starts()[1].at - f64_of(killed);
        assert!(after < 3000.0, "{after} ms after the kill");
        place.assert_free("x");
    });
}

#[test]
fn term_to_solocron_and_to_the_commands_group_at_once_ends_both() {
    let place = local();
    for number in 0..8 {
        let lock = format!("x{number}");
        let witness = Witness::default();
        let body = "trap 'w got; exit 7' TERM; w ready; while :; do sleep 0.02; done";
        let mut run = place.run(&lock).command(witness.job(body)).spawn();
        wait_until(secs(10), "ready", || !witness.of("ready").is_empty());
        let group = witness.starts()[0].pid;
        if number % 2 == 0 {
            run.signal(Signal::TERM);
            proc::signal_group(group, Signal::TERM);
        } else {
            proc::signal_group(group, Signal::TERM);
            run.signal(Signal::TERM);
        }
        run.wait(secs(3)).assert_code(7).assert_clean();
        place.assert_free(&lock);
    }
}

#[test]
fn kill_of_a_job_in_the_foreground_of_a_terminal_is_one_stop() {
    let place = local();
    let witness = Witness::default();
    let body =
        "trap 'w got; sleep 0.5; w done; exit 7' TERM; w ready; while :; do sleep 0.02; done";
    let run = place.run("x").command(witness.job(body));
    let pty = Pty::bash();
    pty.send(&format!("{}; echo \"code=$?\"\n", run.shell_line()));
    wait_until(secs(10), "ready", || !witness.of("ready").is_empty());
    // To the whole job, as `kill %1` of a shell; from a user, so that nobody
    // can tell that it has reached the command as well.
    let group = proc::Proc::read(witness.starts()[0].pid)
        .expect("it lives")
        .group;
    proc::signal_group(group, Signal::TERM);
    pty.wait_text("code=7", secs(5));
    assert_eq!(witness.of("done").len(), 1, "it is not killed");
    place.assert_free("x");
}

/// What a process is born with.
fn signal_sets(text: &str) -> [u64; 2] {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let mask = line.unwrap_or_else(|| panic!("no {name} in {text:?}"));
        u64::from_str_radix(mask.trim(), 16).expect("a mask")
    };
    [of("SigBlk:"), of("SigIgn:")]
}

#[test]
fn inherited_signals_are_the_commands_in_both_modes_and_pipe_is_not_ignored() {
    let bit = |signal: Signal| 1_u64 << (signal.as_raw() - 1);
    let outer = ["HUP", "PIPE", "USR2"].map(|name| format!("--ignore-signal={name}"));
    let outer = [
        &["env".to_owned(), "--block-signal=USR1".to_owned()][..],
        &outer,
    ]
    .concat();
    let shows = ["grep", "^Sig", "/proc/self/status"];
    for scheduled in [false, true] {
        let place = local();
        let run = place.run("x").under(&outer).command(shows);
        let run = if scheduled {
            run.args(EACH_SECOND)
        } else {
            run
        };
        let mut run = run.spawn();
        wait_until(secs(5), "it shows them", || {
            String::from_utf8_lossy(&run.stdout()).contains("SigCgt")
        });
        let [blocked, ignored] = signal_sets(&String::from_utf8_lossy(&run.stdout()));
        assert_eq!(blocked, bit(Signal::USR1));
        // Without the two that the C library keeps for itself.
        let ignored = ignored & !(0b11 << 31);
        assert_eq!(ignored, bit(Signal::HUP) | bit(Signal::USR2), "{scheduled}");
        run.signal(Signal::TERM);
        run.wait(secs(2)).assert_code(0);
    }
    let yes = local().run("x").under(&outer).command(["yes"]).shell_line();
    let line = format!("{yes} | head -n 1; echo ${{PIPESTATUS[0]}}");
    let out = Solocron::program("bash".as_ref()).args(["-c", &line]).run();
    assert_eq!(out.out(), "y\n141\n");
}

#[test]
fn a_time_out_in_a_schedule_takes_all_of_the_command_and_not_the_schedule() {
    let (place, witness) = (local(), Witness::default());
    let run = place.run("x").args(EACH_SECOND);
    let run = run.args(["--timeout", "300ms", "--kill-after", "200ms"]);
    // A worker behind a shell, one that does not listen, one in another session.
    let body = "(trap '' TERM; exec sleep 7791) & setsid sleep 7792 & sleep 7793; true";
    let mut run = run.command(witness.job(body)).spawn();
    let starts = witness.wait_starts(4, secs(10));
    // The first may have been due before the start.
    let firings: Vec<i64> = starts[1..]
        .iter()
        .map(|s| s.firing.expect("scheduled"))
        .collect();
    assert!(
        firings.windows(2).all(|two| two[1] - two[0] == 1000),
        "{firings:?}"
    );
    let of = |seconds: &str| proc::with_args(&["sleep", seconds]).len();
    for seconds in ["7791", "7792", "7793"] {
        assert!(of(seconds) <= 1, "one run's at most");
    }
    run.signal(Signal::TERM);
    run.signal(Signal::TERM);
    let out = run.wait(secs(3));
    out.assert_code(0).assert_clean().assert_says(&["timeout"]);
    place.assert_free("x");
}

#[test]
fn systemd_is_told_readiness_the_next_firing_and_the_end() {
    let place = local();
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(secs(10))).expect("a bound");
    let hear = || {
        let mut buffer = [0; 500];
        let length = manager.recv(&mut buffer).expect("a message");
        String::from_utf8(buffer[..length].to_vec()).expect("text")
    };
    let due = soon(secs(2));
    let show = dir.path().join("env");
    let run = place.run("x").args(at(&[due, due + 86_400_000]));
    let run = run.env("NOTIFY_SOCKET", path.to_str().expect("text"));
    let run = run.env("WATCHDOG_USEC", "1000000").env("OTHER", "stays");
    let line = format!("env >'{}.new'; mv '{0}.new' '{0}'", show.display());
    let mut run = run.sh(&line).spawn();
    let first = hear();
    assert!(first.starts_with("READY=1\n"), "{first}");
    assert!(first.contains("\nSTATUS="), "{first}");
    let next = |at: i64| format!("STATUS=next firing {}", support::fleet::text_of(at));
    assert_eq!(hear(), next(due));
    assert_eq!(hear(), next(due + 86_400_000));
    wait_until(secs(5), "the command ran", || show.exists());
    let env = fs::read_to_string(&show).expect("its environment");
    assert!(env.contains("OTHER=stays"), "{env}");
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC"] {
        assert!(!env.contains(name), "{env}");
    }
    run.signal(Signal::TERM);
    assert_eq!(hear(), "STOPPING=1");
    run.wait(secs(2)).assert_code(0);
    // A service manager that is gone or deaf is no reason to stop.
    drop(manager);
    let again = place
        .run("x")
        .args(at(&[due + 86_400_000]))
        .command(["true"]);
    let again = again.env("NOTIFY_SOCKET", path.to_str().expect("text"));
    let mut again = again.spawn();
    wait_until(secs(5), "it is up", || again.stderr().contains("schedule"));
    again.signal(Signal::TERM);
    again.wait(secs(2)).assert_code(0);
}

/// The binary where any user can run it, and a prefix that makes it one who may
/// have so many processes.
fn limited(dir: &Path, processes: u32) -> (PathBuf, Vec<String>) {
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(dir, mode.clone()).expect("mode");
    let binary = dir.join("solocron");
    fs::copy(env!("CARGO_BIN_EXE_solocron"), &binary).expect("copy");
    fs::set_permissions(&binary, mode).expect("mode");
    let user = (60_000 + std::process::id() % 5_000).to_string();
    let limit = format!("--nproc={processes}");
    let words = [
        "prlimit",
        &limit,
        "setpriv",
        "--reuid",
        &user,
        "--regid",
        &user,
        "--clear-groups",
    ];
    (binary, words.map(str::to_owned).to_vec())
}

#[test]
fn where_no_process_is_to_be_had_the_firing_fails_and_the_schedule_goes_on() {
    let redis = RedisServer::start();
    let dir = tempfile::tempdir().expect("temporary directory");
    // By its name, which takes a thread to look up.
    let url = redis.url().replace("127.0.0.1", "localhost");
    let run = |processes: u32| {
        let (binary, user) = limited(dir.path(), processes);
        let run = Solocron::program(&binary).args(["--store", &url]).lock("x");
        run.args(["--ttl", "30s"]).under(&user)
    };
    let out = run(1).command(["true"]).run();
    out.assert_code(125).assert_says(&["no thread"]);
    assert!(!out.stderr.contains("panicked"), "{}", out.stderr);
    let out = run(2).command(["true"]).run();
    out.assert_code(126).assert_says(&["no process"]);
    redis.assert_free("x", secs(0));
    let scheduled = run(2).args(EACH_SECOND);
    let mut scheduled = scheduled.command(["true"]).spawn();
    wait_until(secs(10), "a second firing", || {
        scheduled.stderr().matches("no process").count() >= 2
    });
    redis.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    wait_until(secs(10), "one more, on another connection", || {
        scheduled.stderr().matches("no process").count() >= 4
    });
    assert!(!eventually(ms(100), || scheduled.has_ended()));
    scheduled.signal(Signal::TERM);
    let out = scheduled.wait(secs(2));
    out.assert_code(0);
    assert!(!out.stderr.contains("panicked"), "{}", out.stderr);
    redis.assert_free("x", secs(0));
}

#[test]
fn limits_mask_and_directory_are_as_without_the_prefix() {
    let place = local();
    let shows = "ulimit -a; umask; pwd; cat /proc/self/oom_score_adj; nice; id";
    let outer = |words: &str| {
        format!("cd /usr; umask 027; ulimit -n 77 -s 4096 -c 0; exec nice -n 3 {words}")
    };
    let bare = Solocron::program("env".as_ref()).args(["bash", "-c", shows]);
    let ours = place.run("x").command(["bash", "-c", shows]);
    let [bare, ours] = [bare, ours].map(|run| {
        let line = outer(&run.shell_line());
        Solocron::program("bash".as_ref()).args(["-c", &line]).run()
    });
    ours.assert_code(0);
    assert!(bare.out().contains("0027"), "{}", bare.out());
    assert_eq!(ours.out(), bare.out());
}

#[test]
fn a_forced_stop_without_proc_takes_the_whole_group() {
    let place = local();
    let line = "(trap '' TERM; exec sleep 7797) & exec sleep 7798";
    let run = place
        .run("x")
        .args(["--timeout", "300ms", "--kill-after", "300ms"]);
    let line = run.sh(line).shell_line();
    let script = format!("umount -l /proc; exec {line}");
    let out = Solocron::program("sh".as_ref())
        .args(["-c", &script])
        .under(["unshare", "--mount"])
        .run();
    out.assert_code(137);
    for seconds in ["7797", "7798"] {
        assert!(proc::with_args(&["sleep", seconds]).is_empty(), "{seconds}");
    }
    place.assert_free("x");
}

#[test]
fn few_descriptors_are_enough_or_said_to_be_too_few() {
    let place = local();
    for descriptors in [4, 6, 8, 12, 13, 14, 24] {
        let line = place
            .run("x")
            .args(["--ttl", "1s", "--wait", "300ms"])
            .sh("sleep 1.2; exit 3")
            .shell_line();
        let script = format!("ulimit -n {descriptors}; exec {line}");
        let out = Solocron::program("bash".as_ref())
            .args(["-c", &script])
            .run();
        let code = out.code();
        assert!(code == 3 || !out.stderr.is_empty(), "{descriptors}: {code}");
        assert!(
            !out.stderr.contains("panicked"),
            "{descriptors}: {}",
            out.stderr
        );
        assert!(
            code == 3 || descriptors < 24,
            "{descriptors}: {}",
            out.stderr
        );
        place.assert_free("x");
    }
}
