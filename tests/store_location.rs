//! Store addresses: what is understood, and what is said about the rest.

use solocron::store::Location;
use solocron::store::redis::url::{Kind, Login, Node, RedisUrl};
use std::path::PathBuf;

fn node(host: &str, port: u16) -> Node {
    let host = host.to_owned();
    Node { host, port }
}

fn redis(text: &str) -> RedisUrl {
    match Location::parse(text) {
        Ok(Location::Redis(url)) => url,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn the_embedded_store_is_a_word_or_a_directory() {
    assert_eq!(Location::parse("local"), Ok(Location::Local));
    assert_eq!(Location::parse(" LOCAL\n"), Ok(Location::Local));
    for text in [
        "file:///var/lib/x",
        "file:///var/lib/x/",
        "FILE:///var//lib/x",
    ] {
        assert_eq!(
            Location::parse(text),
            Ok(Location::Dir(PathBuf::from("/var/lib/x")))
        );
    }
    assert_eq!(
        Location::parse("file:///a%20b%3Fc"),
        Ok(Location::Dir(PathBuf::from("/a b?c")))
    );
}

#[test]
fn a_server_is_named_by_url() {
    let cases = [
        ("redis://h", "h", 6379, false, 0),
        ("redis://h/", "h", 6379, false, 0),
        ("REDIS://H:7000/3", "H", 7000, false, 3),
        ("redis://127.0.0.1:1/15/", "127.0.0.1", 1, false, 15),
        ("redis://[::1]:7001/2", "::1", 7001, false, 2),
        ("redis://[::1]", "::1", 6379, false, 0),
        ("rediss://h:6380", "h", 6380, true, 0),
        ("valkey://h", "h", 6379, false, 0),
        ("valkeys://h", "h", 6379, true, 0),
    ];
    for (text, host, port, tls, db) in cases {
        let url = redis(text);
        assert_eq!(url.kind, Kind::Tcp(node(host, port)), "{text}");
        assert_eq!((url.tls, url.db, url.login), (tls, db, None), "{text}");
    }
}

#[test]
fn a_login_is_decoded() {
    let login = |user: Option<&str>, password: &str| {
        let user = user.map(str::to_owned);
        let password = password.to_owned();
        Some(Login { user, password })
    };
    let cases = [
        ("redis://:p@h", login(None, "p")),
        ("redis://u:p@h", login(Some("u"), "p")),
        ("redis://u:p%2F%23%3F%40%3A@h", login(Some("u"), "p/#?@:")),
        ("redis://u:a@b:c@h", login(Some("u"), "a@b:c")),
        ("redis://u:a+b@h", login(Some("u"), "a+b")),
        ("redis://:@h", None),
        ("redis://@h", None),
        ("unix:///s?user=u&pass=p%26q", login(Some("u"), "p&q")),
        ("redis+unix:///s?pass=a@b", login(None, "a@b")),
        ("redis-cluster://u:p@a,b", login(Some("u"), "p")),
        ("redis-sentinel://u:p@a/m", login(Some("u"), "p")),
    ];
    for (text, expected) in cases {
        assert_eq!(redis(text).login, expected, "{text}");
        assert!(!format!("{:?}", redis("redis://u:geheim@h")).contains("geheim"));
        assert!(!redis("redis://u:geheim@h").to_string().contains("geheim"));
    }
}

#[test]
fn sockets_sentinels_and_clusters() {
    let url = redis("unix:///run/redis%20x.sock?db=2");
    assert_eq!(
        (url.kind, url.db),
        (Kind::Unix("/run/redis x.sock".into()), 2)
    );
    let url =
        redis("rediss-sentinel://h1:1,h2,[::1]:3/my%20master/4?sentinel_user=s&sentinel_pass=t@");
    let login = Login {
        user: Some("s".to_owned()),
        password: "t@".to_owned(),
    };
    let expected = Kind::Sentinel {
        nodes: vec![node("h1", 1), node("h2", 26379), node("::1", 3)],
        master: "my master".to_owned(),
        login: Some(login),
    };
    assert_eq!((url.kind, url.tls, url.db), (expected, true, 4));
    let url = redis("redis-cluster://h1:7000,h2");
    assert_eq!(
        url.kind,
        Kind::Cluster(vec![node("h1", 7000), node("h2", 6379)])
    );
    assert_eq!(url.to_string(), "redis cluster h1:7000,h2:6379");
    assert_eq!(redis("redis://[::1]").to_string(), "redis [::1]:6379");
    assert_eq!(redis("redis://h/0").to_string(), "redis h:6379");
    assert_eq!(redis("redis://h/2").to_string(), "redis h:6379 database 2");
    assert_eq!(redis("unix:///s?db=2").to_string(), "redis /s database 2");
    assert_eq!(
        redis("redis-sentinel://h/m").to_string(),
        "redis master m of sentinel h:26379"
    );
}

/// Asserts that each address is refused in one line that has this part.
fn assert_refused(cases: &[(&str, &str)]) {
    for (text, part) in cases {
        let message = match Location::parse(text) {
            Err(bad) => bad.to_string(),
            Ok(location) => panic!("{text} was taken as {location:?}"),
        };
        assert!(message.contains(part), "{text}: {message}");
        assert!(!message.contains('\n'), "{text}: {message}");
    }
}

#[test]
fn an_address_that_begins_otherwise_is_refused_with_the_remedy() {
    assert_refused(&[
        ("", "is empty: write redis://HOST:6379"),
        ("localhost:6379", "no scheme: write redis://localhost:6379"),
        ("127.0.0.1", "write redis://127.0.0.1"),
        ("localhost", "no scheme: write redis://localhost"),
        (
            "memory",
            "write redis://memory if that is a host, local, or file:///DIR",
        ),
        (
            "redis",
            "write redis://redis if that is a host, local, or file:///DIR",
        ),
        (
            "redis:6379",
            "write redis://redis:6379, or redis://HOST:6379",
        ),
        ("redis:127.0.0.1", "lacks slashes: write redis://127.0.0.1"),
        (
            "redis:/127.0.0.1/2",
            "lacks slashes: write redis://127.0.0.1/2",
        ),
        ("REDIS:h", "write redis://h"),
        ("redis:", "write redis://HOST"),
        ("rediss:h:1", "write rediss://h:1"),
        ("redis-sentinel:h1,h2/m", "write redis-sentinel://h1,h2/m"),
        ("valkeys-cluster:/h", "write valkeys-cluster://h"),
        (
            "redis:h?password=geheim",
            "write redis://HOST:PORT/DATABASE",
        ),
        (
            "unix:/tmp/x.sock",
            "lacks slashes: write unix:///tmp/x.sock",
        ),
        ("unix:tmp/x.sock", "lacks slashes: write unix:///tmp/x.sock"),
        ("file:/var/x", "lacks slashes: write file:///var/x"),
        (
            "file:relative",
            "write file:///relative, the whole path from the root",
        ),
        (
            "file:./x",
            "write file:///DIR, the whole path from the root",
        ),
        ("local://", "write local"),
        ("local:///", "write local"),
        ("local:///var/x", "write local, or file:///DIR"),
        ("h1,h2", "no scheme: write redis://HOST:6379"),
        (
            "/run/redis.sock",
            "write unix:///run/redis.sock for a socket, file:///run/redis.sock for a directory",
        ),
        ("secret@h:1", "no scheme: write redis://HOST:6379"),
        ("http://h", "begins with http://; known are redis, rediss"),
        ("se@ret://h", "begins with no known scheme"),
    ]);
}

#[test]
fn a_server_that_cannot_be_is_refused_with_the_remedy() {
    assert_refused(&[
        ("redis://", "names no host"),
        ("redis:///3", "names no host"),
        ("redis://:6379", "names no host"),
        (
            "redis://h:0",
            "the host h the port 0, which is no number from 1 to 65535",
        ),
        (
            "redis://h:65536",
            "the host h the port 65536, which is no number",
        ),
        (
            "redis://h:x",
            "the host h a port that is no number from 1 to 65535: write HOST:6379",
        ),
        ("redis://h:123456", "the host h a port that is no number"),
        ("redis://h:", "the host h no port after its colon"),
        (
            "redis://a:pass",
            "behind USER:PASSWORD@ if there is a password",
        ),
        ("redis://::1", "as [::1]:6379"),
        ("redis://[::1", "[ without ]"),
        (
            "redis://[::1]x",
            "text between [::1] and the port: write [::1]:6379",
        ),
        ("redis://0.0.0.0", "no host to connect to"),
        ("redis://a b", "blank"),
        (
            "redis://h/x",
            "the database x, which is no number from 0 on: write redis://HOST:6379/0",
        ),
        ("redis://h/-1", "the database -1, which is no number"),
        ("redis://h/+1", "the database +1, which is no number"),
        ("redis://h/1/2", "the database 1/2, which is no number"),
        ("redis://h/a b", "a database that is no number"),
        (
            "unix:///s?db=x",
            "the database x, which is no number from 0 on: write unix:///PATH?db=0",
        ),
        (
            "redis-sentinel://h/m/x",
            "write redis-sentinel://HOST:26379/MASTER/0",
        ),
        ("redis-cluster://h/x", "only database 0"),
        ("redis-cluster://h?db=2", "only database 0"),
        (
            "redis://h?db=3",
            "?db= is not understood here: write the database as redis://HOST:6379/3",
        ),
        ("redis://h?db=2", "redis://HOST:6379/2"),
        ("redis://h?db=x", "redis://HOST:6379/0"),
        (
            "redis://h?database=2",
            "?database= is not understood here: write the database as redis://HOST:6379/2",
        ),
        (
            "redis-sentinel://h/m?db=2",
            "write the database as redis-sentinel://HOST:26379/MASTER/2",
        ),
        (
            "redis://h?protocol=3",
            "has parameter protocol, which is not understood",
        ),
        ("redis://h/?x", "has parameter x, which is not understood"),
        ("rediss://h#insecure", "#insecure is not supported"),
        ("redis://h#x", "ends in #..."),
        ("redis://user@h", "a user without a password"),
        ("redis://user:@h", "a user without a password"),
        ("redis://:pa/ss@h", "in a password write / as %2F"),
        ("redis://:pa#ss@h", "in a password write / as %2F"),
        ("redis://:pa?ss@h", "in a password write / as %2F"),
        ("redis://:%ff@h", "not valid UTF-8"),
        (
            "redis://a:1,b:2",
            "write redis-sentinel://HOST,HOST/MASTER or redis-cluster",
        ),
        ("redis://h\n:1", "control character"),
    ]);
}

#[test]
fn other_stores_that_cannot_be_are_refused_with_the_remedy() {
    assert_refused(&[
        ("unix://run/x.sock", "three slashes"),
        ("unix:///", "names no socket"),
        ("unix:///s?database=1", "it takes db, user, pass"),
        ("unix:///s?db=1&db=2", "gives db twice"),
        ("unix:///s?user=u", "a user without a password"),
        ("redis-sentinel://h", "names no master"),
        ("redis-sentinel://h/m/0/x", "too many parts"),
        (
            "redis-sentinel://h/m?password=x",
            "it takes sentinel_user, sentinel_pass",
        ),
        ("redis-cluster://h/1", "only database 0"),
        ("redis-cluster://a,,b", "names no host"),
        ("file://dir", "three slashes"),
        ("file:///", "the root directory"),
        ("file:///a?b", "takes no parameters"),
    ]);
}

#[test]
fn no_message_shows_a_password() {
    let texts = [
        "geheim@h",
        "redis://geheim@h",
        "redis://u:geheim@h:x",
        "redis://u:geheim@",
        "redis://:geh/geheim@h",
        "redis://geheim/@h",
        "redis://u:geheim@h/x",
        "redis://u:geheim@h?x=geheim",
        "redis://u:geheim@a,b",
        "redis-sentinel://u:geheim@h",
        "unix:///s?password=geheim",
        "unix:///s?pass=geheim&pass=geheim",
        "redis://u:%ffgeheim@h",
        "redis://[geheim@h",
        "redis://u:geheim@h#geheim",
        "geheim://h@x",
        "/geheim@x",
        "redis://u:geheim#x",
        "redis://u:geheim@[::1]x",
        "rediss-cluster://u:geheim@h/7",
        "redis:u:geheim@h",
        "redis:/u:geheim@h",
        "redis://u:geheim",
        "redis:h?password=geheim",
        "unix:/s?pass=geheim",
        "unix:s?user=u&pass=geheim@h",
        "redis://h?db=geheim",
    ];
    for text in texts {
        let message = match Location::parse(text) {
            Err(bad) => bad.to_string(),
            Ok(location) => format!("{location:?}"),
        };
        assert!(!message.contains("geheim"), "{text}: {message}");
    }
}

#[test]
fn what_may_need_a_name_looked_up_is_known_before() {
    for (url, may) in [
        ("redis://10.0.0.1", false),
        ("redis://[::1]:6390", false),
        ("redis://localhost", true),
        ("unix:///run/redis.sock", false),
        ("redis-sentinel://10.0.0.1/main", true),
        ("redis-cluster://10.0.0.1", true),
    ] {
        assert_eq!(redis(url).kind.has_names(), may, "{url}");
    }
}
