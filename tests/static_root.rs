//! The static build in an empty root directory, as in an image `FROM scratch`.
//!
//! It is a whole build of its own, so it is made and tested only in the long
//! run (`SOLOCRON_LONG=1`, as root): names are resolved by a name server on
//! port 53, and a root directory is changed.

mod support;

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use support::RedisServer;
use tempfile::TempDir;

/// Where the tests' name server listens: the port cannot be chosen.
const NAME_SERVER: &str = "127.0.0.153";
const TARGET: &str = "x86_64-unknown-linux-gnu";
const JOB: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) { return puts(getenv("SOLOCRON_TOKEN") ? "ran" : "no token") < 0; }
"#;

/// `SOLOCRON_STATIC` names a binary that is built already.
fn binary() -> PathBuf {
    if let Some(built) = std::env::var_os("SOLOCRON_STATIC") {
        return built.into();
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("static");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--release", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .status()
        .expect("cargo");
    assert!(built.success(), "the static build");
    target.join(TARGET).join("release/solocron")
}

/// A root directory with solocron, a static job, and nothing else.
struct Root(TempDir);

impl Root {
    fn new(binary: &Path) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let source = dir.path().join("job.c");
        fs::write(&source, JOB).expect("written");
        let built = Command::new("cc")
            .args(["-O2", "-static", "-o"])
            .args([&dir.path().join("job"), &source])
            .status()
            .expect("cc");
        assert!(built.success(), "cc");
        fs::remove_file(&source).expect("removed");
        fs::copy(binary, dir.path().join("solocron")).expect("copied");
        Self(dir)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new("chroot")
            .arg(self.0.path())
            .arg("/solocron")
            .args(args)
            .env_remove("SOLOCRON_LONG")
            .env_remove("SOLOCRON_STATIC")
            .output()
            .expect("chroot")
    }

    /// Runs the job under a lock in this store.
    fn job(&self, store: &str, options: &[&str]) -> (Option<i32>, String) {
        let args = [
            &["--store", store, "--lock-name", "l"],
            options,
            &["--", "/job"],
        ];
        let out = self.run(&args.concat());
        let text = [out.stdout, out.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (out.status.code(), text)
    }

    fn runs(&self, store: &str, options: &[&str]) {
        assert_eq!(
            self.job(store, options),
            (Some(0), "ran\n".to_owned()),
            "{store}"
        );
    }
}

/// Answers every question for an IPv4 address with 127.0.0.1 (RFC 1035).
fn name_server() {
    let socket = UdpSocket::bind((NAME_SERVER, 53)).expect("port 53: run this test as root");
    thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            let name = packet[12..length].iter().position(|byte| *byte == 0);
            let end = 12 + name.expect("a name") + 5;
            let is_a = packet[end - 4..end] == [0, 1, 0, 1];
            let mut answer = packet[..end].to_vec();
            // An answer, recursion available, no error; one question.
            answer[2..4].copy_from_slice(&[0x81, 0x80]);
            answer[6..12].copy_from_slice(&[0, u8::from(is_a), 0, 0, 0, 0]);
            if is_a {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 127, 0, 0, 1]);
            }
            let _ = socket.send_to(&answer, from);
        }
    });
}

#[test]
fn the_static_build_needs_no_file_beside_it() {
    if !support::long() {
        return;
    }
    let binary = binary();
    let size = fs::metadata(&binary).expect("built").len();
    assert!(size <= 5 << 20, "{size} bytes, 5 MiB allowed");
    let mode = fs::metadata(&binary).expect("built").permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let root = Root::new(&binary);
    let redis = RedisServer::start();

    root.runs(&redis.url(), &[]);
    root.runs("file:///store", &[]);
    let next = root.run(&[
        "--next",
        "1",
        "--cron",
        "0 3 1 1 *",
        "--tz",
        "europe/berlin",
    ]);
    let next = String::from_utf8_lossy(&next.stdout).into_owned();
    assert!(next.ends_with("-01-01T03:00:00+01:00\n"), "{next:?}");

    // Names: what a container engine puts into every container.
    let port = redis.port();
    root.write("etc/hosts", "127.0.0.1 cache.internal\n");
    root.runs(&format!("redis://cache.internal:{port}"), &[]);
    name_server();
    root.write(
        "etc/resolv.conf",
        &format!("search shop.svc.cluster.local\noptions ndots:5\nnameserver {NAME_SERVER}\n"),
    );
    root.runs(&format!("redis://redis:{port}"), &[]);

    // TLS: an authority from a file, and the roots that are built in.
    let tls = RedisServer::options().tls().start();
    let ca = fs::read_to_string(tls.ca()).expect("the authority");
    root.write("ca.crt", &ca);
    root.runs(&tls.url(), &["--tls-ca", "/ca.crt"]);
    let (status, text) = root.job(&tls.url(), &[]);
    assert_eq!(status, Some(77), "{text}");
    assert!(text.contains("certificate"), "{text}");
}
