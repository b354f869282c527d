//! From an address to a store.

use std::cell::{Cell, RefCell};

use redis::cluster::ClusterClientBuilder;
use redis::{ConnectionAddr, TlsCertificates};

use super::conn::{Dialer, MasterDialer};
use super::connect::{
    CONNECT_LIMIT, Endpoint, REPLY_LIMIT, address, connection_info, tcp_settings,
};
use super::error::{COMMANDS, Scene};
use super::sentinel::Sentinels;
use super::tls::{TlsOptions, install_provider};
use super::url::{Kind, Login, Node, RedisUrl};
use super::{RedisStore, TLS_NEEDS_REDISS, key_of};

/// How often the cluster client tries within one operation.
const CLUSTER_RETRIES: u32 = 4;

impl RedisStore {
    /// A store at this address, for one lock. Nothing is connected to yet.
    ///
    /// # Errors
    ///
    /// The TLS options do not fit the address or each other, or a file cannot
    /// be used.
    pub fn open(
        url: &RedisUrl,
        tls: &TlsOptions,
        key_prefix: &str,
        lock_name: &str,
    ) -> Result<Self, String> {
        if !url.tls && !tls.is_default() {
            return Err(TLS_NEEDS_REDISS.to_owned());
        }
        let certificates = if url.tls {
            install_provider();
            Some(tls.load()?)
        } else {
            None
        };
        let user = url.login.as_ref().and_then(|login| login.user.clone());
        let scene = Scene {
            at: url.to_string(),
            address: String::new(),
            tls: url.tls,
            cluster: matches!(url.kind, Kind::Cluster(_)),
            user: user.unwrap_or_else(|| "default".to_owned()),
            key: key_of(key_prefix, lock_name),
            rights: rights(key_prefix, url.db),
        };
        let dialer = dialer(url, certificates.as_ref(), &scene)
            .map_err(|err| format!("{}: {err}", scene.at))?;
        Ok(Self {
            dialer,
            place: scene.at,
            key: scene.key,
            conn: RefCell::default(),
            prepared: Cell::default(),
            eviction: Cell::default(),
            asked: Cell::default(),
            warnings: RefCell::default(),
        })
    }
}

/// What the user of the store must be allowed to use.
fn rights(key_prefix: &str, db: i64) -> String {
    let select = if db == 0 { "" } else { " +select" };
    format!("~{key_prefix}:* {COMMANDS}{select}")
}

fn dialer(
    url: &RedisUrl,
    certificates: Option<&TlsCertificates>,
    scene: &Scene,
) -> redis::RedisResult<Dialer> {
    let login = url.login.clone();
    Ok(match &url.kind {
        Kind::Unix(path) => Dialer::Single(Endpoint {
            addr: ConnectionAddr::Unix(path.clone()),
            login,
            db: url.db,
            scene: Scene {
                address: path.display().to_string(),
                ..scene.clone()
            },
        }),
        Kind::Tcp(node) => Dialer::Single(Endpoint {
            addr: address(node, certificates)?,
            login,
            db: url.db,
            scene: Scene {
                address: node.to_string(),
                ..scene.clone()
            },
        }),
        Kind::Sentinel {
            nodes,
            master,
            login: own,
        } => Dialer::Sentinel(MasterDialer {
            sentinels: sentinels(nodes, master, own.as_ref(), url, certificates, scene)?,
            scene: scene.clone(),
            login,
            db: url.db,
            tls: certificates.cloned(),
            last: RefCell::default(),
        }),
        Kind::Cluster(nodes) => cluster(nodes, url, certificates, scene)?,
    })
}

fn sentinels(
    nodes: &[Node],
    master: &str,
    own: Option<&Login>,
    url: &RedisUrl,
    certificates: Option<&TlsCertificates>,
    scene: &Scene,
) -> redis::RedisResult<Sentinels> {
    let endpoints = nodes
        .iter()
        .map(|node| {
            let user = own.and_then(|login| login.user.clone());
            Ok(Endpoint {
                addr: address(node, certificates)?,
                login: own.cloned(),
                db: 0,
                scene: Scene {
                    at: format!("sentinel {node}"),
                    address: node.to_string(),
                    user: user.unwrap_or_else(|| "default".to_owned()),
                    rights: "+sentinel|get-master-addr-by-name +sentinel|master".to_owned(),
                    ..scene.clone()
                },
            })
        })
        .collect::<redis::RedisResult<_>>()?;
    let spare = url.login.clone();
    Ok(Sentinels::new(endpoints, master.to_owned(), spare))
}

fn cluster(
    nodes: &[Node],
    url: &RedisUrl,
    certificates: Option<&TlsCertificates>,
    scene: &Scene,
) -> redis::RedisResult<Dialer> {
    let infos = nodes
        .iter()
        .map(|node| connection_info(address(node, certificates)?))
        .collect::<redis::RedisResult<Vec<_>>>()?;
    let mut builder = ClusterClientBuilder::new(infos)
        .connection_timeout(CONNECT_LIMIT)
        .response_timeout(REPLY_LIMIT)
        .overall_response_timeout(Some(REPLY_LIMIT))
        .retries(CLUSTER_RETRIES)
        .min_retry_wait(20)
        .max_retry_wait(100)
        .tcp_settings(tcp_settings());
    if let Some(login) = &url.login {
        builder = builder.password(&login.password);
        if let Some(user) = &login.user {
            builder = builder.username(user);
        }
    }
    if let Some(certificates) = certificates {
        builder = builder.certs(certificates.clone());
    }
    let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    let scene = Scene {
        address: names.join(","),
        rights: format!("{} +cluster|slots", scene.rights),
        ..scene.clone()
    };
    Ok(Dialer::Cluster(builder.build()?, scene))
}
