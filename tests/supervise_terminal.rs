//! At a terminal with an interactive shell: prompts, stopping and going on,
//! pipelines, and what a stop does to the lease.

mod support;

use std::path::Path;
use std::time::Duration;
use support::fleet::{EACH_SECOND, at, soon};
use support::{Pty, RedisServer, Signal, Solocron, Witness, proc};
use support::{eventually, ms, secs, wait_for, wait_until};

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

/// The binary on an embedded store of the test's own.
fn local(dir: &Path) -> Solocron {
    Solocron::local(dir, "x")
}

/// A command in one process that shows by a line every 20 ms that it runs, and
/// says so when it is told to stop. (A shell cannot be stopped by Ctrl-Z while
/// it starts something.)
struct Busy(tempfile::TempDir);

impl Busy {
    fn new() -> Self {
        Self(directory())
    }

    fn file(&self) -> std::path::PathBuf {
        self.0.path().join("lines")
    }

    fn words(&self) -> [String; 4] {
        let script = r#"open F, '>>', $ARGV[0]; sub out { syswrite F, "$_[0]\n" }
            $SIG{TERM} = sub { out('term'); exit 7 };
            while (1) { out("tick $$"); select undef, undef, undef, 0.02 }"#;
        let file = self.file().display().to_string();
        ["perl", "-e", script, &file].map(str::to_owned)
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The pid, once it runs.
    fn pid(&self) -> i32 {
        let first = || self.lines().first()?.strip_prefix("tick ")?.parse().ok();
        wait_for(secs(10), "the command runs", first)
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary directory")
}

fn held(dir: &Path) -> bool {
    let out = local(dir).arg("--status").run();
    out.code() == 75
}

fn assert_free(dir: &Path) {
    assert!(eventually(secs(1), || !held(dir)), "the lock is held");
}

/// The pid of the job's shell, once it waits for a sleep.
fn job(witness: &Witness) -> i32 {
    let pid = witness.wait_starts(1, secs(10)).last().expect("one").pid;
    wait_until(secs(5), "the job sleeps", || {
        let mut children = proc::children(pid).into_iter();
        children.any(|p| p.name == "sleep" && p.state == 'S')
    });
    pid
}

/// The solocron that started `job`.
fn supervisor(job: i32) -> i32 {
    proc::Proc::read(job).expect("the job lives").parent
}

fn state(pid: i32) -> Option<char> {
    proc::Proc::read(pid).map(|p| p.state)
}

/// Presses Ctrl-Z and waits for the shell's prompt.
#[track_caller]
fn stop(pty: &Pty) {
    let prompts = pty.screen().matches("ready$ ").count();
    pty.send(CTRL_Z);
    pty.wait_count("ready$ ", prompts + 1, secs(2));
    assert!(pty.screen().contains("Stopped"), "{}", pty.screen());
}

#[test]
fn a_line_is_read_from_the_terminal() {
    let dir = directory();
    let pty = Pty::bash();
    let run = local(dir.path()).sh("read -r line; echo \"got=$line\"");
    pty.send(&format!("{}; echo \"code=$?\"\n", run.shell_line()));
    wait_until(secs(10), "it reads", || held(dir.path()));
    pty.send("words for the job\n");
    pty.wait_text("got=words for the job", secs(5));
    pty.wait_text("code=0", secs(5));
    // As ssh and psql ask for a password: from the terminal itself, without echo.
    let ask = "p=Pass; read -rsp \"${p}word: \" word </dev/tty; echo; echo \"length=${#word}\"";
    let run = local(dir.path()).command(["bash", "-c", ask]);
    pty.send(&format!("{} </dev/null\n", run.shell_line()));
    pty.wait_text("Password: ", secs(5));
    pty.send("geheim\n");
    let screen = pty.wait_text("length=6", secs(5));
    assert!(!screen.contains("geheim"), "{screen}");
}

#[test]
fn terminal_modes_are_set_and_kept() {
    let dir = directory();
    let pty = Pty::bash();
    for (words, code) in [
        ("stty sane", 0),
        ("stty -echo; stty echo; exit 3", 3),
        ("stty raw; kill -9 $$", 137),
    ] {
        let line = local(dir.path()).sh(words).shell_line();
        pty.send(&format!(
            "{line}; echo \"code=$?\" \"$(stty -a | tr ' ;' '\\n' | grep -x -e '-\\?icanon')\"\n"
        ));
        pty.wait_text(&format!("code={code} icanon"), secs(5));
    }
}

#[test]
fn ctrl_z_gives_the_prompt_and_fg_goes_on() {
    let dir = directory();
    let witness = Witness::default();
    let run = local(dir.path()).args(["--ttl", "30s"]);
    let run = run.command(witness.job("sleep 30; true"));
    let pty = Pty::bash();
    pty.send(&format!("{}\n", run.shell_line()));
    let command = job(&witness);
    let own = supervisor(command);
    for _ in 0..2 {
        stop(&pty);
        assert_eq!((state(command), state(own)), (Some('T'), Some('T')));
        pty.send("fg\n");
        wait_until(secs(2), "both go on", || {
            state(command) == Some('S') && state(own) == Some('S')
        });
    }
    pty.send(CTRL_C);
    pty.send("echo \"code=$?\"\n");
    let screen = pty.wait_text("code=130", secs(5));
    assert!(!screen.contains("lock lost"), "{screen}");
    assert!(!proc::alive(command));
    assert_free(dir.path());
}

#[test]
fn within_its_lease_a_stopped_job_goes_on_to_its_end() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", "3s", "-q"]);
    let run = run.command(witness.job("sleep 0.5; sleep 1; w worked; exit 4"));
    let pty = Pty::bash();
    pty.send(&format!("{}\n", run.shell_line()));
    job(&witness);
    stop(&pty);
    std::thread::sleep(ms(1500));
    pty.send("fg; echo \"code=$?\"\n");
    let screen = pty.wait_text("code=4", secs(6));
    assert!(!screen.contains("lock lost"), "{screen}");
    assert_eq!(witness.of("worked").len(), 1);
    redis.assert_free("x", secs(0));
}

#[test]
fn past_its_lease_and_with_nobody_else_a_stopped_job_goes_on() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", "1s", "-q"]);
    let run = run.command(witness.job("sleep 0.5; w worked; exit 4"));
    let pty = Pty::bash();
    pty.send(&format!("{}\n", run.shell_line()));
    job(&witness);
    stop(&pty);
    redis.assert_free("x", secs(3));
    pty.send("fg; echo \"code=$?\"\n");
    pty.wait_text("code=4", secs(6));
    assert_eq!(witness.of("worked").len(), 1);
    redis.assert_free("x", secs(0));
}

#[test]
fn past_its_lease_a_stopped_job_whose_lock_was_taken_is_ended() {
    let redis = RedisServer::start();
    let busy = Busy::new();
    let run = Solocron::on(&redis, "x").args(["--ttl", "2s"]);
    let run = run.command(busy.words());
    let pty = Pty::bash();
    pty.send(&format!("{}\n", run.shell_line()));
    let command = busy.pid();
    stop(&pty);
    redis.assert_free("x", secs(5));
    let mut second = Solocron::on(&redis, "x").sh("sleep 20; true").spawn();
    wait_until(secs(5), "another host has it", || redis.held("x"));
    let owner = redis.record("x")["owner"].clone();
    let before = busy.lines().len();
    pty.send("fg; echo \"code=$?\"\n");
    let screen = pty.wait_text("code=76", secs(5));
    assert!(screen.contains("lock lost"), "{screen}");
    assert!(!proc::alive(command));
    let lines = busy.lines().split_off(before);
    assert!(lines.len() <= 1, "it worked without the lock: {lines:?}");
    assert!(!lines.contains(&"term".to_owned()), "{lines:?}");
    assert!(!second.has_ended());
    assert_eq!(redis.record("x")["owner"], owner);
    second.signal(Signal::TERM);
    let _ = second.wait(secs(3));
    redis.assert_free("x", secs(0));
}

/// Stops a run past the end of its lease, has the store fall silent and lets the
/// run go on; yields how many lines the command had written before.
fn go_on_in_silence(redis: &RedisServer, pty: &Pty, busy: &Busy, meanwhile: impl Fn(i32)) -> usize {
    // A heartbeat may take half a second.
    let run = Solocron::on(redis, "x").args(["--ttl", "5s"]);
    pty.send(&format!("{}\n", run.command(busy.words()).shell_line()));
    let own = supervisor(busy.pid());
    stop(pty);
    redis.assert_free("x", secs(10));
    redis.pause();
    meanwhile(own);
    let before = busy.lines().len();
    pty.send("fg; echo \"code=$?\"\n");
    wait_until(secs(2), "solocron goes on", || state(own) != Some('T'));
    std::thread::sleep(ms(300));
    let lines = busy.lines().split_off(before);
    let told = lines.contains(&"term".to_owned());
    assert!(lines.len() <= 1 && !told, "it works meanwhile: {lines:?}");
    before
}

#[test]
fn past_its_lease_a_stopped_job_does_nothing_until_the_store_has_answered() {
    let (redis, pty, busy) = (RedisServer::start(), Pty::bash(), Busy::new());
    let before = go_on_in_silence(&redis, &pty, &busy, |_| {});
    pty.wait_text("code=76", secs(5));
    let lines = busy.lines().split_off(before);
    assert!(lines.len() <= 1, "it worked at its end: {lines:?}");
    assert!(!proc::alive(busy.pid()));
}

#[test]
fn a_stop_signal_meets_a_stopped_job_after_its_lease_is_renewed() {
    let (redis, pty, busy) = (RedisServer::start(), Pty::bash(), Busy::new());
    // To solocron alone, and the shell lets the whole group go on.
    let _ = go_on_in_silence(&redis, &pty, &busy, |own| proc::signal(own, Signal::TERM));
    redis.resume();
    pty.wait_text("code=7", secs(5));
    let lines = busy.lines();
    assert_eq!(lines.iter().filter(|line| *line == "term").count(), 1);
    redis.assert_free("x", secs(0));
}

#[test]
fn bg_goes_on_in_the_background_with_the_lock_held() {
    let dir = directory();
    let witness = Witness::default();
    let run = local(dir.path()).args(["--ttl", "2s"]);
    let run = run.command(witness.job("sleep 0.3; sleep 2.5; w worked"));
    let pty = Pty::bash();
    pty.send(&format!("{}\n", run.shell_line()));
    job(&witness);
    stop(&pty);
    pty.send("bg\n");
    pty.send("echo \"still $((40 + 2))\"\n");
    pty.wait_text("still 42", secs(2));
    std::thread::sleep(ms(2000));
    assert!(held(dir.path()), "the lease is renewed");
    pty.send("wait; echo \"code=$?\"\n");
    pty.wait_text("code=0", secs(5));
    assert_eq!(witness.of("worked").len(), 1);
    assert_free(dir.path());
}

#[test]
fn ctrl_z_between_two_tries_gives_the_prompt() {
    let dir = directory();
    let run = local(dir.path()).args(["--retries", "1", "--retry-delay", "1s"]);
    let witness = Witness::default();
    let run = run.command(witness.job("exit $((6 + SOLOCRON_ATTEMPT))"));
    let pty = Pty::bash();
    pty.send(&format!("{}; echo \"code=$?\"\n", run.shell_line()));
    wait_until(secs(5), "the first try ended", || {
        witness.of("end").len() == 1
    });
    std::thread::sleep(ms(200));
    stop(&pty);
    pty.send("fg; echo \"code=$?\"\n");
    pty.wait_text("code=8", secs(5));
    assert_free(dir.path());
}

#[test]
fn ctrl_z_stops_a_schedule_and_fg_goes_on() {
    let dir = directory();
    let pty = Pty::bash();
    let run = local(dir.path()).args(at(&[soon(secs(86_400))]));
    pty.send(&format!(
        "{}; echo \"code=$?\"\n",
        run.command(["true"]).shell_line()
    ));
    pty.wait_text("six fields", secs(5));
    let own = proc::children(pty.pid())[0].pid;
    stop(&pty);
    assert_eq!(state(own), Some('T'));
    pty.send("fg; echo \"again=$?\"\n");
    // The shell names what it lets go on.
    pty.wait_count("'true'", 3, secs(2));
    wait_until(secs(2), "it goes on", || state(own) == Some('S'));
    pty.send(CTRL_C);
    pty.wait_text("again=0", secs(2));

    let witness = Witness::default();
    let run = local(dir.path()).args(EACH_SECOND).args(["--ttl", "10s"]);
    let run = run.command(witness.job("sleep 0.4"));
    pty.send(&format!("{}\n", run.shell_line()));
    job(&witness);
    stop(&pty);
    std::thread::sleep(ms(1500));
    let before = witness.starts().len();
    pty.send("fg; echo \"last=$?\"\n");
    witness.wait_starts(before + 2, secs(5));
    pty.send(CTRL_C);
    pty.wait_text("last=0", secs(2));
    assert_free(dir.path());
    assert_eq!(witness.by_firing().len(), witness.starts().len());
}

#[test]
fn a_pager_at_the_end_of_the_pipeline_has_the_terminal() {
    let dir = directory();
    let line = local(dir.path())
        .command(["seq", "1", "100000"])
        .shell_line();
    let pty = Pty::bash();
    pty.send(&format!(
        "TERM=xterm LESS= {line} | TERM=xterm less; echo \"codes=${{PIPESTATUS[*]}}\"\n"
    ));
    pty.wait_text("\n:", secs(5));
    pty.send(" ");
    pty.wait_text("40", secs(5));
    pty.send("q");
    pty.wait_text("codes=141 0", secs(5));
    pty.send("jobs; echo \"still $((40 + 2))\"\n");
    let screen = pty.wait_text("still 42", secs(5));
    assert!(!screen.contains("Stopped"), "{screen}");
    assert_free(dir.path());
}

#[test]
fn the_end_of_the_terminal_ends_the_run() {
    let dir = directory();
    let witness = Witness::default();
    let run = local(dir.path()).command(witness.job("sleep 7781; true"));
    let mut pty = Pty::bash();
    pty.send(&format!("{}\n", run.shell_line()));
    let command = job(&witness);
    let own = supervisor(command);
    pty.close();
    wait_until(secs(3), "both are gone", || {
        !proc::alive(command) && !proc::alive(own)
    });
    assert!(proc::with_args(&["sleep", "7781"]).is_empty());
    assert_free(dir.path());
}

#[test]
fn nohup_keeps_a_run_in_the_foreground_past_the_end_of_the_terminal() {
    let redis = RedisServer::start();
    let witness = Witness::default();
    let run = Solocron::on(&redis, "x").args(["--ttl", "1s"]);
    let run = run.command(witness.job("sleep 2.5; w worked"));
    let mut pty = Pty::bash();
    pty.send(&format!("nohup {} >/dev/null 2>&1\n", run.shell_line()));
    job(&witness);
    pty.close();
    std::thread::sleep(Duration::from_millis(1700));
    assert!(redis.held("x"), "the lease is renewed");
    wait_until(secs(5), "the end of the work", || {
        !witness.of("worked").is_empty()
    });
    redis.assert_free("x", secs(1));
}

#[test]
fn the_end_of_the_terminal_reaches_the_command_of_a_session_leader() {
    let dir = directory();
    let told = dir.path().join("told");
    let script = format!(
        "trap 'echo hup >{}; exit 4' HUP; echo up; while :; do sleep 0.05; done",
        told.display()
    );
    let store = format!("file://{}/store", dir.path().display());
    let binary = env!("CARGO_BIN_EXE_solocron");
    let words = [
        "--store",
        &store,
        "--lock-name",
        "x",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let mut pty = Pty::run(&[&[binary][..], &words[..]].concat());
    pty.wait_text("up", secs(5));
    pty.close();
    wait_until(secs(5), "the command is told", || told.exists());
    assert_eq!(pty.wait(secs(5)), 4);
}

#[test]
fn a_job_that_stops_itself_gives_the_prompt_and_fg_goes_on() {
    let dir = directory();
    let mut pty = Pty::bash();
    let line = local(dir.path())
        .command(["sh", "-c", "kill -STOP $$; echo again; exit 5"])
        .shell_line();
    pty.send(&format!("{line}\n"));
    pty.wait_text("Stopped", secs(5));
    pty.send("fg\n");
    pty.wait_text("again", secs(5));
    pty.send("echo code=$?\n");
    pty.wait_text("code=5", secs(5));
    pty.close();
}
