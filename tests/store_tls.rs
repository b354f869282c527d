//! TLS with real certificates: what is trusted, and what is said otherwise.

#[path = "store/ops.rs"]
mod ops;
mod support;

use ops::{WITHIN, once, run, whole_run};
use solocron::store::redis::RedisStore;
use solocron::store::redis::tls::{Roots, TlsOptions};
use solocron::store::{Class, Location, Store};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::redis::free_port;
use support::wait::secs;
use support::{RedisServer, eventually, wait_until};
use tempfile::TempDir;

/// An authority and what it signed.
struct Authority {
    dir: TempDir,
}

impl Authority {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let authority = Self { dir };
        authority.openssl(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.crt",
        );
        authority
    }

    /// Signs a certificate for these names, valid for this many days from now.
    fn sign(&self, stem: &str, names: &str, days: i32) {
        self.openssl(&format!(
            "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={stem} -keyout {stem}.key -out {stem}.csr
            printf 'subjectAltName={names}\\nbasicConstraints=CA:FALSE\\n' >ext
            openssl x509 -req -days {days} -in {stem}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile ext -out {stem}.crt"
        ));
    }

    fn openssl(&self, script: &str) {
        let out = Command::new("sh")
            .args(["-ec", script])
            .current_dir(self.dir.path())
            .output()
            .expect("sh");
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A server with this certificate.
    fn server(&self, stem: &str, args: &[&str]) -> RedisServer {
        let file = |ending: &str| self.file(&format!("{stem}.{ending}")).display().to_string();
        let ca = self.file("ca.crt").display().to_string();
        let certificate = [
            "--tls-cert-file",
            &file("crt"),
            "--tls-key-file",
            &file("key"),
            "--tls-ca-cert-file",
            &ca,
        ];
        RedisServer::options()
            .tls()
            .args(&certificate)
            .args(args)
            .start()
    }
}

fn trusting(ca: &Path) -> TlsOptions {
    TlsOptions {
        roots: Roots::File(ca.to_owned()),
        ..TlsOptions::default()
    }
}

fn open(url: &str, tls: &TlsOptions) -> RedisStore {
    match Location::parse(url) {
        Ok(Location::Redis(url)) => RedisStore::open(&url, tls, "solocron", "job").expect("store"),
        other => panic!("{url}: {other:?}"),
    }
}

#[track_caller]
fn expect(url: &str, tls: &TlsOptions, class: Class, parts: &[&str]) {
    let store = open(url, tls);
    let err = run(store.claim(&once(1), WITHIN)).expect_err("refused");
    assert_eq!((err.class, err.unsettled), (class, false), "{err}");
    for part in parts {
        assert!(err.message.contains(part), "no {part:?} in: {err}");
    }
}

#[test]
fn an_authority_of_our_own_is_trusted_and_no_other() {
    let server = RedisServer::options().tls().password("pw").start();
    let url = server.url_as("", "pw");
    let own = trusting(&server.ca());
    run(whole_run(&open(&url, &own), 1));
    run(whole_run(
        &open(&url.replace("127.0.0.1", "localhost"), &own),
        2,
    ));
    run(whole_run(&open(&format!("{url}/3"), &own), 3));
    let other = Authority::new();
    let at = format!("the certificate of redis 127.0.0.1:{}", server.port());
    for tls in [TlsOptions::default(), trusting(&other.file("ca.crt"))] {
        expect(
            &url,
            &tls,
            Class::Tls,
            &[
                &at,
                "signed by nobody that is trusted here",
                "--tls-ca FILE",
            ],
        );
    }
}

#[test]
fn a_certificate_has_to_be_valid_and_for_the_name() {
    let authority = Authority::new();
    let tls = trusting(&authority.file("ca.crt"));
    authority.sign("expired", "IP:127.0.0.1", -1);
    let server = authority.server("expired", &[]);
    expect(
        &server.url(),
        &tls,
        Class::Tls,
        &["has expired: renew it on the server"],
    );
    authority.sign("other", "DNS:other.example", 2);
    let server = authority.server("other", &[]);
    expect(
        &server.url(),
        &tls,
        Class::Tls,
        &["is for another name", "other.example"],
    );
}

#[test]
fn a_server_may_want_to_know_its_clients() {
    let authority = Authority::new();
    authority.sign("server", "IP:127.0.0.1", 2);
    authority.sign("client", "DNS:client", 2);
    let server = authority.server("server", &["--tls-auth-clients", "yes"]);
    let anonymous = trusting(&authority.file("ca.crt"));
    expect(
        &server.url(),
        &anonymous,
        Class::Tls,
        &["wants a certificate from its clients: give --tls-cert and --tls-key"],
    );
    let known = TlsOptions {
        cert: Some(authority.file("client.crt")),
        key: Some(authority.file("client.key")),
        ..anonymous.clone()
    };
    run(whole_run(&open(&server.url(), &known), 1));
    let stranger = Authority::new();
    stranger.sign("client", "DNS:client", 2);
    let unknown = TlsOptions {
        cert: Some(stranger.file("client.crt")),
        key: Some(stranger.file("client.key")),
        ..anonymous
    };
    expect(
        &server.url(),
        &unknown,
        Class::Tls,
        &["refused the TLS connection, perhaps because of --tls-cert"],
    );
}

#[test]
fn the_wrong_kind_of_port() {
    let tls_server = RedisServer::options().tls().start();
    let plain_server = RedisServer::start();
    let plain_url = tls_server.url().replace("rediss", "redis");
    let store = open(&plain_url, &TlsOptions::default());
    let err = run(store.claim(&once(1), WITHIN)).expect_err("a TLS port");
    assert_eq!(err.class, Class::Unreachable, "{err}");
    assert!(
        err.message
            .contains("if the port speaks TLS, use rediss://"),
        "{err}"
    );
    let tls_url = plain_server.url().replace("redis", "rediss");
    let store = open(&tls_url, &trusting(&tls_server.ca()));
    let err = run(store.claim(&once(1), WITHIN)).expect_err("a plain port");
    assert!(err.message.contains("TLS"), "{err}");
    assert!(
        matches!(err.class, Class::Tls | Class::Unreachable),
        "{err:?}"
    );
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    authority.sign("client", "DNS:client", 2);
    fs::write(authority.file("empty"), "").expect("write");
    fs::write(
        authority.file("bad"),
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .expect("write");
    let file = |name: &str| Some(authority.file(name));
    let roots = |name: &str| TlsOptions {
        roots: Roots::File(authority.file(name)),
        ..TlsOptions::default()
    };
    let pair = |cert, key| TlsOptions {
        cert,
        key,
        ..TlsOptions::default()
    };
    let cases = [
        (roots("none"), "/none for --tls-ca: No such file"),
        (
            roots("empty"),
            "/empty for --tls-ca has no certificate in PEM form",
        ),
        (roots("bad"), "/bad for --tls-ca has a damaged certificate"),
        (
            pair(file("client.crt"), None),
            "--tls-cert needs --tls-key too",
        ),
        (
            pair(None, file("client.key")),
            "--tls-key needs --tls-cert too",
        ),
        (
            pair(file("client.key"), file("client.key")),
            "client.key for --tls-cert is no PEM file with a certificate",
        ),
        (
            pair(file("client.crt"), file("client.crt")),
            "client.crt for --tls-key is no PEM file with a private key",
        ),
    ];
    let Ok(Location::Redis(url)) = Location::parse("rediss://h") else {
        panic!("an address");
    };
    for (tls, part) in cases {
        let err = RedisStore::open(&url, &tls, "solocron", "job")
            .err()
            .expect("refused");
        assert!(err.contains(part), "{err}");
    }
    let Ok(Location::Redis(plain)) = Location::parse("redis://h") else {
        panic!("an address");
    };
    let err = RedisStore::open(&plain, &roots("ca.crt"), "solocron", "job")
        .err()
        .expect("refused");
    assert!(
        err.contains("need a store address that begins with rediss"),
        "{err}"
    );
}

#[test]
fn the_system_s_authorities_count_where_asked_for() {
    let system = TlsOptions {
        roots: Roots::System,
        ..TlsOptions::default()
    };
    if let Some(url) = std::env::var_os("TLS_URL") {
        return run(whole_run(&open(url.to_str().expect("text"), &system), 1));
    }
    let server = RedisServer::options().tls().start();
    let bundle = server.ca().with_file_name("bundle.crt");
    // One certificate that cannot be read must not spoil the rest.
    let good = fs::read_to_string(server.ca()).expect("read");
    let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(&bundle, format!("# ours\n{bad}{good}")).expect("write");
    let out = Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", "the_system_s_authorities_count_where_asked_for"])
        .env("SSL_CERT_FILE", &bundle)
        .env("TLS_URL", server.url())
        .output()
        .expect("run");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_cluster_speaks_tls() {
    let bus = free_port().to_string();
    let args = [
        "--cluster-enabled",
        "yes",
        "--tls-cluster",
        "yes",
        "--cluster-port",
        &bus,
    ];
    let server = RedisServer::options().tls().args(&args).start();
    server.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    wait_until(secs(10), "the cluster is up", || {
        server
            .cli(&["CLUSTER", "INFO"])
            .text()
            .contains("cluster_state:ok")
    });
    let url = server.url().replace("rediss", "rediss-cluster");
    run(whole_run(&open(&url, &trusting(&server.ca())), 1));
    expect(
        &url,
        &TlsOptions::default(),
        Class::Tls,
        &["signed by nobody that is trusted here"],
    );
}

#[test]
fn sentinels_and_their_master_speak_tls() {
    let master = RedisServer::options().tls().start();
    let dir = tempfile::tempdir().expect("directory");
    let file = |name: &str| master.ca().with_file_name(name).display().to_string();
    let port = free_port();
    let conf = format!(
        "port 0\ntls-port {port}\nbind 127.0.0.1\ntls-auth-clients no\ntls-replication yes\ndir {}\n\
         tls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\nsentinel monitor m 127.0.0.1 {} 1\n",
        dir.path().display(),
        file("server.crt"),
        file("server.key"),
        file("ca.crt"),
        master.port(),
    );
    let path = dir.path().join("sentinel.conf");
    fs::write(&path, conf).expect("write");
    let mut sentinel = Command::new("redis-sentinel")
        .arg(&path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("redis-sentinel");
    let up = eventually(secs(5), || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let url = format!("rediss-sentinel://127.0.0.1:{port}/m");
    let tls = trusting(&master.ca());
    let result = std::panic::catch_unwind(|| {
        assert!(up);
        run(whole_run(&open(&url, &tls), 1));
        expect(
            &url,
            &TlsOptions::default(),
            Class::Tls,
            &["the certificate of sentinel 127.0.0.1"],
        );
    });
    let _ = sentinel.kill();
    let _ = sentinel.wait();
    result.expect("the run");
}
