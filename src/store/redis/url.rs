//! Redis addresses: one server, a master behind sentinels, or a cluster.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::store::location::{BadLocation, bad};

const SCHEMES: &str =
    "redis, rediss, unix, redis-sentinel, rediss-sentinel, redis-cluster, rediss-cluster, file";
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// A host and a port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// A name or an address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// What a server wants to know before it serves.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user; none for the server's default user.
    pub user: Option<String>,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// How the server is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One server over TCP.
    Tcp(Node),
    /// One server over a socket in the file system.
    Unix(PathBuf),
    /// The master of this name, as sentinels tell it.
    Sentinel {
        /// The sentinels.
        nodes: Vec<Node>,
        /// The name of the master.
        master: String,
        /// The login at the sentinels, where it is not the servers' own.
        login: Option<Login>,
    },
    /// A Redis Cluster, entered through any of these.
    Cluster(Vec<Node>),
}

impl Kind {
    /// Whether a host may be given by a name, which has to be looked up:
    /// sentinels and clusters announce others, as addresses or by name.
    #[must_use]
    pub fn has_names(&self) -> bool {
        match self {
            Self::Tcp(node) => node.host.parse::<IpAddr>().is_err(),
            Self::Unix(_) => false,
            Self::Sentinel { .. } | Self::Cluster(_) => true,
        }
    }
}

/// A parsed Redis address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedisUrl {
    /// How the server is found.
    pub kind: Kind,
    /// Whether TLS is spoken, with servers and sentinels alike.
    pub tls: bool,
    /// The login at the servers.
    pub login: Option<Login>,
    /// The number of the database.
    pub db: i64,
}

impl fmt::Display for RedisUrl {
    /// Where it is, for messages: without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |nodes: &[Node]| {
            let texts: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            texts.join(",")
        };
        match &self.kind {
            Kind::Tcp(node) => write!(f, "redis {node}")?,
            Kind::Unix(path) => write!(f, "redis {}", path.display())?,
            Kind::Sentinel { nodes, master, .. } => {
                write!(f, "redis master {master} of sentinel {}", list(nodes))?;
            }
            Kind::Cluster(nodes) => write!(f, "redis cluster {}", list(nodes))?,
        }
        match self.db {
            0 => Ok(()),
            db => write!(f, " database {db}"),
        }
    }
}

/// The parts of an address behind its scheme, still encoded.
struct Parts<'a> {
    userinfo: Option<&'a str>,
    hosts: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

/// Takes an address apart. `private` says that the query may hold a password,
/// so that an @ there says nothing about a badly written one in front of it.
fn split(rest: &str, private: bool) -> Result<Parts<'_>, BadLocation> {
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (rest, None),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let behind = if private {
        [None; 3]
    } else {
        [Some(path), query, fragment]
    };
    if !authority.contains('@') && behind.into_iter().flatten().any(|part| part.contains('@')) {
        return bad(
            "the store address does not parse: in a password write / as %2F, # as %23, ? as %3F, @ as %40",
        );
    }
    if let Some(fragment) = fragment {
        return bad(if fragment.eq_ignore_ascii_case("insecure") {
            "#insecure is not supported, it would let anyone pose as the store: use --tls-ca FILE"
        } else {
            "the store address ends in #...: leave it out, or write # as %23 in a password"
        });
    }
    let (userinfo, hosts) = match authority.rsplit_once('@') {
        Some((userinfo, hosts)) => (Some(userinfo), hosts),
        None => (None, authority),
    };
    Ok(Parts {
        userinfo,
        hosts,
        path,
        query,
    })
}

/// Reads what stands behind `SCHEME://`; the scheme is in small letters.
///
/// # Errors
///
/// What is wrong and what to write instead, never with user or password.
pub fn parse(scheme: &str, rest: &str) -> Result<RedisUrl, BadLocation> {
    match scheme {
        "redis" | "valkey" => single(&split(rest, false)?, false),
        "rediss" | "valkeys" => single(&split(rest, false)?, true),
        "unix" | "redis+unix" | "valkey+unix" => unix(&split(rest, true)?),
        "redis-sentinel" | "valkey-sentinel" => sentinel(&split(rest, true)?, false),
        "rediss-sentinel" | "valkeys-sentinel" => sentinel(&split(rest, true)?, true),
        "redis-cluster" | "valkey-cluster" => cluster(&split(rest, false)?, false),
        "rediss-cluster" | "valkeys-cluster" => cluster(&split(rest, false)?, true),
        other if other.len() <= 20 && other.chars().all(is_word) && !rest.contains('@') => {
            bad(format!(
                "the store address begins with {other}://; known are {SCHEMES}, and the word local"
            ))
        }
        _ => bad(format!(
            "the store address begins with no known scheme; known are {SCHEMES}, and the word local"
        )),
    }
}

/// Whether an address can begin with this scheme, in small letters, and a host.
pub(in crate::store) fn is_known(scheme: &str) -> bool {
    let kind = scheme
        .strip_prefix("rediss")
        .or_else(|| scheme.strip_prefix("redis"))
        .or_else(|| scheme.strip_prefix("valkeys"))
        .or_else(|| scheme.strip_prefix("valkey"));
    matches!(kind, Some("" | "-sentinel" | "-cluster"))
}

/// How an address with another database is written, up to its number.
const SERVER: &str = "redis://HOST:6379/";
const SENTINELS: &str = "redis-sentinel://HOST:26379/MASTER/";
const SOCKET: &str = "unix:///PATH?db=";

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')
}

fn single(parts: &Parts<'_>, tls: bool) -> Result<RedisUrl, BadLocation> {
    let [] = parameters(parts.query, [], SERVER)?;
    let mut nodes = nodes(parts, PORT)?;
    if nodes.len() > 1 {
        return bad(
            "several hosts: write redis-sentinel://HOST,HOST/MASTER or redis-cluster://HOST,HOST",
        );
    }
    let node = nodes.remove(0);
    Ok(RedisUrl {
        kind: Kind::Tcp(node),
        tls,
        login: login(parts.userinfo)?,
        db: database(parts.path.trim_matches('/'), SERVER)?,
    })
}

fn unix(parts: &Parts<'_>) -> Result<RedisUrl, BadLocation> {
    if !parts.hosts.is_empty() || parts.userinfo.is_some() {
        return bad("a socket address has three slashes: unix:///PATH?user=USER&pass=PASSWORD");
    }
    let path = decoded(parts.path, "socket path")?;
    if path.len() < 2 || path.contains('\0') {
        return bad("the store address names no socket: write unix:///PATH");
    }
    let [db, user, pass] = parameters(parts.query, ["db", "user", "pass"], SOCKET)?;
    Ok(RedisUrl {
        kind: Kind::Unix(PathBuf::from(path)),
        tls: false,
        login: login_of(user, pass, "unix:///PATH?user=USER&pass=PASSWORD")?,
        db: database(db.as_deref().unwrap_or(""), SOCKET)?,
    })
}

fn sentinel(parts: &Parts<'_>, tls: bool) -> Result<RedisUrl, BadLocation> {
    let [user, pass] = parameters(parts.query, ["sentinel_user", "sentinel_pass"], SENTINELS)?;
    let usage = "write redis-sentinel://HOST:26379,HOST:26379/MASTER";
    let nodes = nodes(parts, SENTINEL_PORT)?;
    let mut path = parts.path.trim_matches('/').split('/');
    let master = decoded(path.next().unwrap_or_default(), "master's name")?;
    if master.is_empty() {
        return bad(format!("the store address names no master: {usage}"));
    }
    let db = database(path.next().unwrap_or_default(), SENTINELS)?;
    if path.next().is_some() {
        return bad(format!(
            "the store address has too many parts: {usage}/DATABASE"
        ));
    }
    Ok(RedisUrl {
        kind: Kind::Sentinel {
            nodes,
            master,
            login: login_of(user, pass, "?sentinel_user=USER&sentinel_pass=PASSWORD")?,
        },
        tls,
        login: login(parts.userinfo)?,
        db,
    })
}

const ONLY_0: &str = "a Redis Cluster has only database 0: leave the number out of the address";

fn cluster(parts: &Parts<'_>, tls: bool) -> Result<RedisUrl, BadLocation> {
    let [] = parameters(parts.query, [], "")?;
    if !parts.path.trim_matches('/').trim_matches('0').is_empty() {
        return bad(ONLY_0);
    }
    Ok(RedisUrl {
        kind: Kind::Cluster(nodes(parts, PORT)?),
        tls,
        login: login(parts.userinfo)?,
        db: 0,
    })
}

fn nodes(parts: &Parts<'_>, port: u16) -> Result<Vec<Node>, BadLocation> {
    parts
        .hosts
        .split(',')
        .map(|text| node(text.trim(), port))
        .collect()
}

fn node(text: &str, default_port: u16) -> Result<Node, BadLocation> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let Some((host, port)) = rest.split_once(']') else {
            return bad("the store address has [ without ]: write an IPv6 host as [::1]:6379");
        };
        (host, port)
    } else {
        match text.find(':') {
            Some(at) if text[at + 1..].contains(':') => {
                return bad(
                    "the store address has several colons: write an IPv6 host as [::1]:6379",
                );
            }
            Some(at) => text.split_at(at),
            None => (text, ""),
        }
    };
    let host = decoded(host, "host")?;
    if host.is_empty() {
        return bad("the store address names no host: write redis://HOST:6379");
    }
    if host.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '\\' | '@')) {
        return bad(
            "the store address has a host with a blank, slash or @ in it: write redis://HOST:6379",
        );
    }
    if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
        return bad(format!(
            "{host} is no host to connect to: name one, such as 127.0.0.1"
        ));
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        Some(digits) => match digits.parse() {
            Ok(0) | Err(_) => return bad(bad_port(&host, digits)),
            Ok(port) => port,
        },
        None => {
            return bad(format!(
                "the store address has text between [{host}] and the port: write [{host}]:6379"
            ));
        }
    };
    Ok(Node { host, port })
}

/// The text after the colon is a password if the host was forgotten, so it is
/// not shown unless it looks like a mistyped port.
fn bad_port(host: &str, port: &str) -> String {
    let shown = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = match port {
        "" => "no port after its colon".to_owned(),
        port if shown => format!("the port {port}, which is no number from 1 to 65535"),
        _ => "a port that is no number from 1 to 65535".to_owned(),
    };
    format!(
        "the store address gives the host {host} {port}: write HOST:6379, behind USER:PASSWORD@ if there is a password"
    )
}

fn login(userinfo: Option<&str>) -> Result<Option<Login>, BadLocation> {
    let Some(userinfo) = userinfo else {
        return Ok(None);
    };
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let part = |text: &str| -> Result<Option<String>, BadLocation> {
        let text = decoded(text, "user or password")?;
        Ok((!text.is_empty()).then_some(text))
    };
    login_of(part(user)?, part(password)?, "redis://USER:PASSWORD@HOST")
}

fn login_of(
    user: Option<String>,
    password: Option<String>,
    example: &str,
) -> Result<Option<Login>, BadLocation> {
    match (user, password) {
        (user, Some(password)) => Ok(Some(Login { user, password })),
        (None, None) => Ok(None),
        // The word may be a password in the wrong place: it is not shown.
        (Some(_), None) => bad(format!(
            "the store address has a user without a password: write {example}, or redis://:PASSWORD@HOST"
        )),
    }
}

fn database(text: &str, form: &str) -> Result<i64, BadLocation> {
    if text.is_empty() {
        return Ok(0);
    }
    match text.parse::<u32>() {
        Ok(db) if text.bytes().all(|b| b.is_ascii_digit()) => Ok(db.into()),
        _ if text.len() <= 20 && text.chars().all(|c| is_word(c) || c == '/') => bad(format!(
            "the store address has the database {text}, which is no number from 0 on: write {form}0"
        )),
        _ => bad(format!(
            "the store address has a database that is no number: write {form}0"
        )),
    }
}

fn parameters<const N: usize>(
    query: Option<&str>,
    known: [&str; N],
    form: &str,
) -> Result<[Option<String>; N], BadLocation> {
    let mut found = [const { None }; N];
    for pair in query
        .unwrap_or_default()
        .split('&')
        .filter(|p| !p.is_empty())
    {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(index) = known.iter().position(|known| *known == key) else {
            return bad(unknown_parameter(key, value, &known, form));
        };
        let value = decoded(value, "parameter")?;
        if found[index].replace(value).is_some() {
            return bad(format!("the store address gives {key} twice"));
        }
    }
    Ok(found.map(|value: Option<String>| value.filter(|text| !text.is_empty())))
}

fn unknown_parameter(key: &str, value: &str, known: &[&str], form: &str) -> String {
    if matches!(key, "db" | "database") && !known.contains(&"db") {
        if form.is_empty() {
            return ONLY_0.to_owned();
        }
        let is_number = value.len() <= 5 && value.parse::<u32>().is_ok();
        let db = if is_number { value } else { "0" };
        return format!("?{key}= is not understood here: write the database as {form}{db}");
    }
    let key = if key.len() <= 30 && key.chars().all(is_word) {
        format!("parameter {key}")
    } else {
        "a parameter".to_owned()
    };
    if known.is_empty() {
        format!("the store address has {key}, which is not understood: leave it out, it takes none")
    } else {
        format!(
            "the store address has {key}, which is not understood; it takes {}",
            known.join(", ")
        )
    }
}

fn decoded(text: &str, what: &str) -> Result<String, BadLocation> {
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => bad(format!(
            "the {what} in the store address is not valid UTF-8 after %-decoding"
        )),
    }
}
