//! The one way to make a connection.

use std::future::Future;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, Value,
};
use tokio::time::timeout;

use super::error::Scene;
use super::url::{Login, Node};
use crate::store::StoreError;

/// How long a connection may take to be made, TLS and login included.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// How long a request may take to be answered.
pub const REPLY_LIMIT: Duration = Duration::from_millis(500);

/// Data sent and not confirmed for this long ends a connection.
const USER_TIMEOUT: Duration = Duration::from_secs(3);

/// How our sockets behave; the library's default is none of it.
#[must_use]
pub fn tcp_settings() -> TcpSettings {
    // Below the 350 s after which the usual gateways forget a quiet connection.
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(30))
        .with_interval(Duration::from_secs(10));
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
    let keepalive = keepalive.with_retries(3);
    let settings = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(USER_TIMEOUT);
    settings
}

/// The address of a node, with certificates where TLS is spoken.
///
/// # Errors
///
/// The certificates cannot be used.
pub fn address(node: &Node, tls: Option<&TlsCertificates>) -> RedisResult<ConnectionAddr> {
    let Some(certificates) = tls else {
        return Ok(ConnectionAddr::Tcp(node.host.clone(), node.port));
    };
    let plain = ConnectionAddr::TcpTls {
        host: node.host.clone(),
        port: node.port,
        insecure: false,
        tls_params: None,
    };
    let client = Client::build_with_tls(plain.into_connection_info()?, certificates.clone())?;
    Ok(client.get_connection_info().addr().clone())
}

/// What the library needs to know to connect to an address, without a login.
///
/// # Errors
///
/// The address is of a kind that this build does not know.
pub fn connection_info(addr: ConnectionAddr) -> RedisResult<ConnectionInfo> {
    // The library's greeting costs a round trip and needs a permission.
    let settings = RedisConnectionInfo::default().set_skip_set_lib_name();
    Ok(addr
        .into_connection_info()?
        .set_redis_settings(settings)
        .set_tcp_settings(tcp_settings()))
}

/// One server that can be connected to.
#[derive(Clone)]
pub struct Endpoint {
    /// Its address.
    pub addr: ConnectionAddr,
    /// Who to be there.
    pub login: Option<Login>,
    /// The database to use.
    pub db: i64,
    /// How messages speak of it.
    pub scene: Scene,
}

impl Endpoint {
    /// Connects, logs in and selects the database, within [`CONNECT_LIMIT`].
    ///
    /// # Errors
    ///
    /// In our words; nothing was carried out.
    pub async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        match timeout(CONNECT_LIMIT, self.open()).await {
            Ok(result) => result,
            Err(_) => Err(self.scene.no_connection(CONNECT_LIMIT.as_millis())),
        }
    }

    async fn open(&self) -> Result<MultiplexedConnection, StoreError> {
        let explain = |err: RedisError| self.scene.explain(&err, None);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let info = connection_info(self.addr.clone()).map_err(explain)?;
        let client = Client::open(info).map_err(explain)?;
        let mut conn = client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(explain)?;
        self.enter(&mut conn).await?;
        Ok(conn)
    }

    /// Logs in ourselves: the library drops what the server says about it, so
    /// that a server at its limit of clients would look like a wrong password.
    async fn enter(&self, conn: &mut MultiplexedConnection) -> Result<(), StoreError> {
        let mut pipe = redis::pipe();
        if let Some(login) = &self.login {
            pipe.add_command(login_command(login));
        }
        if self.db != 0 {
            pipe.cmd("SELECT").arg(self.db);
        }
        if pipe.is_empty() {
            return Ok(());
        }
        let replies: Vec<Value> = pipe
            .ignore_errors()
            .query_async(conn)
            .await
            .map_err(|err| self.scene.explain(&err, None))?;
        for reply in replies {
            reply
                .extract_error()
                .map_err(|err| self.scene.explain(&err, None))?;
        }
        Ok(())
    }
}

/// The command that logs in.
#[must_use]
pub fn login_command(login: &Login) -> redis::Cmd {
    let mut cmd = redis::cmd("AUTH");
    if let Some(user) = &login.user {
        cmd.arg(user);
    }
    cmd.arg(&login.password);
    cmd
}

/// Waits for a reply, but not longer than [`REPLY_LIMIT`].
///
/// # Errors
///
/// In our words.
pub async fn reply<T>(
    scene: &Scene,
    script: Option<&str>,
    answer: impl Future<Output = RedisResult<T>>,
) -> Result<T, StoreError> {
    match timeout(REPLY_LIMIT, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(err)) => Err(scene.explain(&err, script)),
        Err(_) => Err(scene.no_answer(REPLY_LIMIT.as_millis())),
    }
}
