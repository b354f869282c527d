//! Starting: statuses, failures, and what the command inherits.

use std::process::Stdio;

use crate::Case;
use crate::kit::{bare, fixture, output, prefixed, probe, status, text};

pub const CASES: &[Case] = &[
    ("start::status_is_kept", status_is_kept),
    ("start::failures", failures),
    ("start::found_as_execvp_finds", found_as_execvp_finds),
    ("start::no_process", no_process),
    ("start::signal_state", signal_state),
    ("start::ignored_child_signal", ignored_child_signal),
    ("start::descriptors", descriptors),
    ("start::surroundings", surroundings),
    ("start::streams", streams),
    ("start::shell", shell),
];

fn run(words: &[&str]) -> (i32, String, String) {
    let output = output(&mut probe(words));
    (
        status(output.status),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn status_is_kept() {
    for (script, want) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("kill -SEGV $$", 139),
        ("yes | head -1 >/dev/null", 0),
    ] {
        let (status, _, stderr) = run(&["sh", "-c", script]);
        assert_eq!((status, &*stderr), (want, ""), "{script}");
    }
}

fn failures() {
    for (name, want, message) in [
        ("missing", 127, "no such file"),
        ("missing/missing", 127, "no such file"),
        ("plain/missing", 127, "no such file"),
        ("mode0644", 126, "not executable"),
        ("asdir", 126, "is a directory"),
        ("nointerp", 127, "\"/no/such/interp\" does not exist"),
        ("crlf", 127, "\"/bin/sh\\r\" does not exist"),
        ("garbage", 126, "neither a program nor a script"),
        ("elf", 126, "another kind of machine"),
    ] {
        let path = fixture(name);
        let (status, stdout, stderr) = run(&[&path]);
        assert_eq!((status, &*stdout), (want, ""), "{name}: {stderr}");
        assert!(stderr.contains(message), "{name}: {stderr}");
        assert!(stderr.contains(&path), "{name}: {stderr}");
        assert!(!stderr.contains("os error"), "{name}: {stderr}");
    }
    for (words, message) in [
        (&["no-such-command"][..], "not found in PATH"),
        (&["echo a"], "--shell"),
        (&["/bin/echo a | wc"], "--shell"),
        (&[""], "the command is empty"),
    ] {
        let (status, _, stderr) = run(words);
        assert_eq!(status, 127, "{words:?}: {stderr}");
        assert!(stderr.contains(message), "{words:?}: {stderr}");
    }
    let long = "x ".repeat(200);
    let (status, _, stderr) = run(&[&long]);
    assert_eq!(status, 127, "{stderr}");
    assert!(stderr.contains("--shell"), "{stderr}");
}

fn found_as_execvp_finds() {
    let (status, stdout, _) = run(&[&fixture("plain"), "one"]);
    assert_eq!((status, &*stdout), (5, "plain one\n"), "text without #!");
    assert_eq!(run(&[&fixture("empty")]).0, 0, "an empty script");
    let in_path = |dirs: &[&str], name: &str| {
        let dirs: Vec<String> = dirs.iter().map(|dir| fixture(dir)).collect();
        let mut command = probe(&[name]);
        let path = format!("{}:/bin:/usr/bin", dirs.join(":"));
        let output = output(command.env("PATH", path));
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(in_path(&["denied", "good"], "tool").0, Some(42));
    assert_eq!(in_path(&["asdir", "good"], "tool").0, Some(42));
    assert_eq!(in_path(&["missing", "plain", "good"], "tool").0, Some(42));
    assert_eq!(in_path(&["."], "plain").0, Some(5), "a script by its name");
    let (status, stderr) = in_path(&["missing", "denied"], "tool");
    assert_eq!(status, Some(126), "{stderr}");
    assert!(stderr.contains("denied/tool"), "{stderr}");
}

fn no_process() {
    let prefix = [
        "prlimit",
        "--nproc=1:1",
        "setpriv",
        "--reuid=54321",
        "--clear-groups",
    ];
    let output = output(&mut prefixed(&prefix, &["true"]));
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(126), "{stderr}");
    assert!(stderr.contains("no process for the command"), "{stderr}");
}

/// Mask and ignored signals as the job sees them.
fn signal_lines(output: &str) -> Vec<String> {
    output
        .lines()
        .filter(|line| line.starts_with("SigBlk") || line.starts_with("SigIgn"))
        .map(str::to_owned)
        .collect()
}

fn signal_state() {
    let job = ["cat", "/proc/self/status"];
    for signals in [
        &["--default-signal"][..],
        &["--ignore-signal=HUP", "--block-signal=USR1"],
        &["--ignore-signal=INT,QUIT"],
        &["--ignore-signal=TERM,USR1,USR2,WINCH,CONT,CHLD,TSTP,TTOU,TTIN"],
        &["--block-signal=TERM,INT,CHLD,CONT"],
        &["--block-signal"],
    ] {
        let mut prefix = vec!["env", "--default-signal"];
        prefix.extend(signals);
        let direct = output(&mut bare(&[&prefix[..], &job].concat()));
        let probed = output(&mut prefixed(&prefix, &job));
        let want = signal_lines(&text(&direct.stdout));
        assert_eq!(want.len(), 2);
        assert_eq!(signal_lines(&text(&probed.stdout)), want, "{signals:?}");
    }
    // PIPE alone is not passed on as ignored.
    let prefix = ["env", "--default-signal", "--ignore-signal=PIPE"];
    let plain = output(&mut bare(&[&prefix[..2], &job].concat()));
    let probed = output(&mut prefixed(&prefix, &job));
    let lines = signal_lines(&text(&probed.stdout));
    assert_eq!(lines, signal_lines(&text(&plain.stdout)));
}

/// With CHLD ignored the kernel would throw the status away.
fn ignored_child_signal() {
    let prefix = ["env", "--ignore-signal=CHLD"];
    let output = output(&mut prefixed(&prefix, &["sh", "-c", "exit 9"]));
    assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
}

/// Descriptors that were inherited stay, none of ours is added.
fn descriptors() {
    let open = [
        "sh",
        "-c",
        "exec 9</dev/null 7</dev/null; exec \"$@\"",
        "sh",
    ];
    let job = ["ls", "/proc/self/fd"];
    let direct = output(&mut bare(&[&open[..], &job].concat()));
    let probed = output(&mut prefixed(&open, &job));
    assert!(text(&direct.stdout).contains("\n7\n9\n"));
    assert_eq!(text(&probed.stdout), text(&direct.stdout));
}

fn surroundings() {
    let set = [
        "sh",
        "-c",
        "umask 027; cd /usr; ulimit -n 77; exec \"$@\"",
        "sh",
    ];
    let job = ["sh", "-c", "umask; pwd; ulimit -n; ulimit -c; env | sort"];
    let clean = ["env", "PROBE_REMOVE=1", "A=b", "A_PLAIN=1"];
    let prefix = [&clean[..], &set].concat();
    let direct = text(&output(&mut bare(&[&prefix[..], &job].concat())).stdout);
    let probed = text(&output(&mut prefixed(&prefix, &job)).stdout);
    let without = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| !line.starts_with("PROBE_") && !line.starts_with("_="))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(without(&probed), without(&direct));
    assert!(probed.contains("PROBE_SET=yes"), "{probed}");
    assert!(!probed.contains("PROBE_REMOVE"), "{probed}");
    assert!(direct.contains("PROBE_REMOVE=1"), "{direct}");
}

fn streams() {
    let job = ["readlink", "/proc/self/fd/0"];
    let mut command = probe(&[&["--null"][..], &job].concat());
    let output = output(command.stdin(Stdio::piped()));
    assert_eq!(text(&output.stdout), "/dev/null\n");
    let mut command = probe(&job);
    let output = self::output(command.stdin(Stdio::piped()));
    assert!(text(&output.stdout).starts_with("pipe:"));
    // A background process that holds standard output delays nobody.
    let (status, stdout, _) = run(&["sh", "-c", "printf 'a\\377b'; printf e >&2; exit 4"]);
    assert_eq!((status, &*stdout), (4, "a\u{fffd}b"));
}

fn shell() {
    let (status, stdout, _) = run(&["--shell", "echo a b | wc -w; exit 6"]);
    assert_eq!((status, stdout.trim()), (6, "2"));
    let (_, stdout, _) = run(&["--shell", "echo $0 $1", "x"]);
    assert_eq!(stdout, "sh x\n");
}
