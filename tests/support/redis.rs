//! A redis-server of its own for each test.

use super::proc;
use super::resp::{Resp, Value};
use super::wait::{eventually, secs, wait_until};
use rustix::process::Signal;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Options {
    program: PathBuf,
    args: Vec<String>,
    append_only: bool,
    password: Option<String>,
    tls: bool,
}

impl Options {
    /// Keeps everything written over a crash (append-only file, written through each time).
    #[must_use]
    pub fn persistent(mut self) -> Self {
        self.append_only = true;
        self
    }

    /// Requires this password of the default user.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Speaks TLS on the port (plain text only on the unix socket), with the certificate of [`RedisServer::ca`].
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Further command-line arguments.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&a| a.to_owned()));
        self
    }

    /// Another server program, as from [`optional_servers`].
    #[must_use]
    pub fn program(mut self, program: &Path) -> Self {
        self.program = program.into();
        self
    }

    /// Starts the server and waits until it answers.
    #[must_use]
    pub fn start(self) -> RedisServer {
        let dir = tempfile::tempdir().expect("temporary directory");
        if self.tls {
            certificates(dir.path());
        }
        let mut server = RedisServer {
            options: self,
            dir,
            port: 0,
            child: None,
        };
        // The free port can be taken by another process between the look and the start.
        for _ in 0..20 {
            server.port = free_port();
            if server.try_start() {
                return server;
            }
        }
        panic!("redis-server did not start: {}", server.log());
    }
}

/// A running server, killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    options: Options,
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts a plain server without persistence.
    #[must_use]
    pub fn start() -> Self {
        Self::options().start()
    }

    /// A server to be adapted before the start.
    #[must_use]
    pub fn options() -> Options {
        Options {
            program: "redis-server".into(),
            args: Vec::new(),
            append_only: false,
            password: None,
            tls: false,
        }
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id.
    ///
    /// # Panics
    /// When the server is stopped.
    #[must_use]
    pub fn pid(&self) -> i32 {
        let child = self.child.as_ref().expect("the server runs");
        i32::try_from(child.id()).expect("a pid")
    }

    /// URL of the port, without credentials.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.options.tls { "rediss" } else { "redis" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// URL of the port with credentials; the user may be empty.
    #[must_use]
    pub fn url_as(&self, user: &str, password: &str) -> String {
        self.url().replace("://", &format!("://{user}:{password}@"))
    }

    /// URL of the unix socket.
    #[must_use]
    pub fn unix_url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Path of the unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    /// The authority that signed the certificate of a TLS server.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// What the server wrote.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Ends the server cleanly.
    pub fn stop(&mut self) {
        self.end(Signal::TERM);
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    /// Freezes the server: the kernel still takes connections and bytes, nobody answers.
    pub fn pause(&self) {
        proc::signal(self.pid(), Signal::STOP);
        wait_until(secs(2), "server stopped", || {
            proc::Proc::read(self.pid()).is_some_and(|p| p.state == 'T')
        });
    }

    /// Undoes [`Self::pause`].
    pub fn resume(&self) {
        proc::signal(self.pid(), Signal::CONT);
    }

    /// Starts a stopped or killed server again on the same port with the same files.
    ///
    /// # Panics
    /// When it does not start within 5 s.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "the server runs");
        wait_until(secs(5), "the server starts on its old port", || {
            self.try_start()
        });
    }

    /// A connection, authenticated as the default user.
    ///
    /// # Panics
    /// When the server does not answer.
    #[must_use]
    pub fn connect(&self) -> Resp {
        self.try_connect().expect("connection to the test server")
    }

    /// Sends one command; an error reply fails the test.
    ///
    /// # Panics
    /// When the server does not answer or answers with an error.
    pub fn cli(&self, args: &[&str]) -> Value {
        match self.try_cli(args) {
            Value::Error(e) => panic!("{args:?}: {e}"),
            value => value,
        }
    }

    /// Sends one command; error replies are returned.
    ///
    /// # Panics
    /// When the server does not answer.
    pub fn try_cli(&self, args: &[&str]) -> Value {
        self.connect().call(args).expect("reply of the test server")
    }

    fn try_connect(&self) -> Option<Resp> {
        let mut resp = Resp::unix(&self.socket()).ok()?;
        if let Some(password) = &self.options.password {
            let reply = resp.call(&["AUTH", password]).ok()?;
            assert_eq!(
                reply,
                Value::Status("OK".into()),
                "password of the test server"
            );
        }
        Some(resp)
    }

    fn try_start(&mut self) -> bool {
        let log = fs::File::create(self.dir.path().join("log")).expect("log file");
        let child = Command::new(&self.options.program)
            .args(self.arguments())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("log file"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| {
                panic!(
                    "{}: {e}; run tests/run, it installs what the tests need",
                    self.options.program.display()
                )
            });
        self.child = Some(child);
        let ready = eventually(secs(10), || {
            let child = self.child.as_mut().expect("just started");
            child.try_wait().expect("state of the server").is_some() || self.answers()
        });
        let up = ready && self.answers();
        if !up {
            self.kill();
        }
        up
    }

    /// Whether this very process answers and is done loading.
    fn answers(&self) -> bool {
        let Some(mut resp) = self.try_connect() else {
            return false;
        };
        resp.call(&["PING"])
            .is_ok_and(|v| v == Value::Status("PONG".into()))
    }

    fn arguments(&self) -> Vec<String> {
        let dir = self.dir.path().display().to_string();
        let port = self.port.to_string();
        let append = if self.options.append_only {
            "yes"
        } else {
            "no"
        };
        let socket = self.socket().display().to_string();
        let mut args: Vec<String> = [
            "--bind",
            "127.0.0.1",
            "--unixsocket",
            &socket,
            "--dir",
            &dir,
            "--save",
            "",
            "--appendonly",
            append,
            "--appendfsync",
            "always",
        ]
        .map(str::to_owned)
        .to_vec();
        let mut add = |pairs: &[&str]| args.extend(pairs.iter().map(|&s| s.to_owned()));
        if self.options.tls {
            let file = |name: &str| format!("{dir}/{name}");
            add(&[
                "--port",
                "0",
                "--tls-port",
                &port,
                "--tls-auth-clients",
                "no",
            ]);
            add(&[
                "--tls-cert-file",
                &file("server.crt"),
                "--tls-key-file",
                &file("server.key"),
            ]);
            add(&["--tls-ca-cert-file", &file("ca.crt")]);
        } else {
            add(&["--port", &port]);
        }
        if let Some(password) = &self.options.password {
            add(&["--requirepass", password]);
        }
        args.extend(self.options.args.iter().cloned());
        args
    }

    fn end(&mut self, signal: Signal) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        let pid = i32::try_from(child.id()).expect("a pid");
        proc::signal(pid, signal);
        proc::signal(pid, Signal::CONT);
        if !eventually(secs(5), || child.try_wait().is_ok_and(|s| s.is_some())) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_file(self.socket());
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that was free a moment ago.
///
/// # Panics
/// When the machine has none.
#[must_use]
pub fn free_port() -> u16 {
    // Each port once in a process, and none that the kernel gives to outgoing
    // connections: between this look and the server's bind nobody takes it. A
    // cluster node has another one 10,000 above.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = std::process::id().wrapping_mul(131);
    for _ in 0..PORTS {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST_PORT + (base.wrapping_add(step) % PORTS) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}

const FIRST_PORT: u16 = 10_000;
const PORTS: u32 = 10_000;

/// Servers of other versions that `tests/run` could fetch: label and program. May be empty.
#[must_use]
pub fn optional_servers() -> Vec<(String, PathBuf)> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("servers");
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .filter_map(|e| {
            let path = e.ok()?.path();
            Some((path.file_name()?.to_str()?.to_owned(), path))
        })
        .filter(|(label, _)| label.starts_with("redis-") || label.starts_with("valkey-"))
        .collect();
    found.sort();
    found
}

/// Makes an authority and a certificate for loopback in `dir`.
fn certificates(dir: &Path) {
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test-ca \
            -keyout ca.key -out ca.crt && \
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost \
            -keyout server.key -out server.csr && \
        printf 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\\nbasicConstraints=CA:FALSE\\n' >ext && \
        openssl x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile ext -out server.crt";
    let out = Command::new("sh")
        .args(["-ec", script])
        .current_dir(dir)
        .output()
        .expect("sh");
    assert!(
        out.status.success(),
        "openssl: {}",
        String::from_utf8_lossy(&out.stderr)
    );
}
