//! The kinds of Redis behind one face: a server, a master that moves, a cluster.

use std::cell::RefCell;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, RedisResult, TlsCertificates, Value};
use tokio::time::timeout;

use super::connect::{CONNECT_LIMIT, Endpoint, address};
use super::error::Scene;
use super::sentinel::Sentinels;
use super::url::{Login, Node};
use crate::store::{Class, StoreError};

/// How to get a connection.
pub enum Dialer {
    /// Always to the same server.
    Single(Endpoint),
    /// To whichever server the sentinels call master.
    Sentinel(MasterDialer),
    /// To the nodes of a cluster.
    Cluster(ClusterClient, Scene),
}

/// A connection to what serves the record.
pub enum Conn {
    /// To one server.
    Single {
        /// The connection.
        conn: MultiplexedConnection,
        /// How messages speak of the server.
        scene: Scene,
    },
    /// To all nodes of a cluster.
    Cluster(ClusterConnection),
}

/// What makes connections to a master that moves.
pub struct MasterDialer {
    /// Whom to ask.
    pub sentinels: Sentinels,
    /// How messages speak of the master while it is not known.
    pub scene: Scene,
    /// Who to be at the master.
    pub login: Option<Login>,
    /// The database to use there.
    pub db: i64,
    /// Certificates, where TLS is spoken.
    pub tls: Option<TlsCertificates>,
    /// The master as last told.
    pub last: RefCell<Option<Node>>,
}

impl MasterDialer {
    /// Asks who is master, and whether it is the one that was told last.
    ///
    /// # Errors
    ///
    /// As [`Sentinels::master`].
    pub async fn same_master(&self, within: Duration) -> Result<bool, StoreError> {
        let node = self.sentinels.master(within).await?;
        let same = self.last.borrow().as_ref() == Some(&node);
        self.last.replace(Some(node));
        Ok(same)
    }

    fn endpoint(&self, node: &Node) -> Result<Endpoint, StoreError> {
        let mut scene = self.scene.clone();
        scene.at = format!("redis {node}");
        scene.address = node.to_string();
        let addr = address(node, self.tls.as_ref()).map_err(|err| scene.explain(&err, None))?;
        Ok(Endpoint {
            addr,
            login: self.login.clone(),
            db: self.db,
            scene,
        })
    }

    /// Connects to the master that was told last.
    async fn connect(&self) -> Result<Conn, StoreError> {
        let Some(node) = self.last.borrow().clone() else {
            let message = format!("the master of {} is not known", self.scene.at);
            return Err(self.scene.error(Class::NotReady, message));
        };
        let endpoint = self.endpoint(&node)?;
        let conn = endpoint.connect().await?;
        Ok(Conn::Single {
            conn,
            scene: endpoint.scene,
        })
    }
}

impl Dialer {
    /// Makes a connection. To a master, the one that was told last.
    ///
    /// # Errors
    ///
    /// In our words; nothing was carried out.
    pub async fn connect(&self) -> Result<Conn, StoreError> {
        match self {
            Self::Single(endpoint) => Ok(Conn::Single {
                conn: endpoint.connect().await?,
                scene: endpoint.scene.clone(),
            }),
            Self::Sentinel(dialer) => dialer.connect().await,
            Self::Cluster(client, scene) => {
                match timeout(CONNECT_LIMIT, client.get_async_connection()).await {
                    Ok(Ok(conn)) => Ok(Conn::Cluster(conn)),
                    Ok(Err(err)) => Err(scene.explain(&err, None)),
                    Err(_) => Err(scene.no_connection(CONNECT_LIMIT.as_millis())),
                }
            }
        }
    }

    /// How messages speak of the store as a whole.
    #[must_use]
    pub fn scene(&self) -> &Scene {
        match self {
            Self::Single(endpoint) => &endpoint.scene,
            Self::Sentinel(dialer) => &dialer.scene,
            Self::Cluster(_, scene) => scene,
        }
    }
}

impl Conn {
    /// Sends one command and waits for its answer.
    ///
    /// # Errors
    ///
    /// Those of the library.
    pub async fn query(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Single { conn, .. } => cmd.query_async(conn).await,
            Self::Cluster(conn) => cmd.query_async(conn).await,
        }
    }
}
