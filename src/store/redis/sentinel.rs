//! Which server is the master, as the sentinels tell it.
//!
//! All sentinels are asked at once. After a failover they learn of the new
//! master one after the other, so the answer of the latest epoch counts, as in
//! the Redis Sentinel documentation; among equals, one that is promoting.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};
use tokio::time::sleep;

use super::connect::{CONNECT_LIMIT, Endpoint, REPLY_LIMIT, login_command, reply};
use super::url::{Login, Node};
use crate::store::{Class, StoreError};

/// How long the others may take to answer once one sentinel has.
const AFTER_ONE: Duration = Duration::from_millis(250);
/// How long the rest may take once most have: the one that leads a failover may
/// be among them.
const AFTER_MOST: Duration = Duration::from_millis(30);

/// A sentinel and the connection to it.
struct Sentinel {
    endpoint: Endpoint,
    conn: RefCell<Option<MultiplexedConnection>>,
}

/// The sentinels that watch one master.
pub struct Sentinels {
    all: Vec<Sentinel>,
    master: String,
    /// Tried where a sentinel wants a login and none of its own was given.
    spare_login: Option<Login>,
}

/// What one sentinel knows.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Opinion {
    node: Node,
    epoch: u64,
    promoting: bool,
}

impl Sentinels {
    /// Sentinels at these endpoints that know a master of this name.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, master: String, spare_login: Option<Login>) -> Self {
        let all = endpoints
            .into_iter()
            .map(|endpoint| Sentinel {
                endpoint,
                conn: RefCell::default(),
            })
            .collect();
        Self {
            all,
            master,
            spare_login,
        }
    }

    /// Lets go of all connections.
    pub fn rest(&self) {
        for sentinel in &self.all {
            sentinel.conn.take();
        }
    }

    /// Asks for the master. Of the time given for all that is to be done,
    /// waiting for stragglers takes a quarter at most.
    ///
    /// # Errors
    ///
    /// No sentinel answers, or none knows the name.
    pub async fn master(&self, within: Duration) -> Result<Node, StoreError> {
        let mut asked: FuturesUnordered<_> = self.all.iter().map(|one| self.ask(one)).collect();
        let most = self.all.len() / 2 + 1;
        let mut opinions = Vec::new();
        let mut errors = Vec::new();
        let too_late = sleep(CONNECT_LIMIT + REPLY_LIMIT);
        tokio::pin!(too_late);
        loop {
            let answer = tokio::select! {
                answer = asked.next() => answer,
                () = &mut too_late => None,
            };
            match answer {
                Some(Ok(opinion)) => {
                    opinions.push(opinion);
                    if opinions.len() == most {
                        too_late.set(sleep(AFTER_MOST.min(within / 8)));
                    } else if opinions.len() == 1 {
                        too_late.set(sleep(AFTER_ONE.min(within / 4)));
                    }
                }
                Some(Err(err)) => errors.push(err),
                None => break,
            }
        }
        latest(opinions).ok_or_else(|| worst(errors))
    }

    async fn ask(&self, sentinel: &Sentinel) -> Result<Opinion, StoreError> {
        // Taken out, so that one that is given up in mid-question is not used again.
        let kept = sentinel.conn.take();
        if let Some(mut conn) = kept
            && let Ok(replies) = self.question(sentinel, &mut conn).await
            && let Ok(opinion) = self.opinion(sentinel, replies)
        {
            sentinel.conn.replace(Some(conn));
            return Ok(opinion);
        }
        let mut conn = sentinel.endpoint.connect().await?;
        let mut replies = self.question(sentinel, &mut conn).await?;
        if let (true, Some(login)) = (wants_login(&replies), &self.spare_login)
            && sentinel.endpoint.login.is_none()
        {
            let login = login_command(login);
            let answer = login.query_async::<()>(&mut conn);
            reply(&sentinel.endpoint.scene, None, answer).await?;
            replies = self.question(sentinel, &mut conn).await?;
        }
        let opinion = self.opinion(sentinel, replies)?;
        sentinel.conn.replace(Some(conn));
        Ok(opinion)
    }

    async fn question(
        &self,
        sentinel: &Sentinel,
        conn: &mut MultiplexedConnection,
    ) -> Result<[Value; 2], StoreError> {
        let mut pipe = redis::pipe();
        pipe.cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&self.master);
        pipe.cmd("SENTINEL").arg("MASTER").arg(&self.master);
        let scene = &sentinel.endpoint.scene;
        let answer = async {
            let values: RedisResult<Vec<Value>> = pipe.ignore_errors().query_async(conn).await;
            values
        };
        let replies = reply(scene, None, answer).await?;
        <[Value; 2]>::try_from(replies)
            .map_err(|_| scene.error(Class::Other, format!("{} answered oddly", scene.at)))
    }

    fn opinion(
        &self,
        sentinel: &Sentinel,
        [address, master]: [Value; 2],
    ) -> Result<Opinion, StoreError> {
        let scene = &sentinel.endpoint.scene;
        let address = address
            .extract_error()
            .map_err(|err| scene.explain(&err, None))?;
        let address: Option<(String, u16)> = redis::from_redis_value(address)
            .map_err(|_| scene.error(Class::Other, format!("{} answered oddly", scene.at)))?;
        let Some((host, port)) = address else {
            return Err(scene.error(
                Class::Topology,
                format!(
                    "{} knows no master {:?}: check the name in the store address",
                    scene.at, self.master
                ),
            ));
        };
        let node = Node { host, port };
        // Without permission for it the answer stands without an epoch.
        let details: HashMap<String, String> = master
            .extract_error()
            .ok()
            .and_then(|value| redis::from_redis_value(value).ok())
            .unwrap_or_default();
        let epoch = details
            .get("config-epoch")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let promoting = details.get("ip").is_some_and(|ip| *ip != node.host)
            || details
                .get("port")
                .is_some_and(|port| *port != node.port.to_string());
        Ok(Opinion {
            node,
            epoch,
            promoting,
        })
    }
}

fn wants_login(replies: &[Value; 2]) -> bool {
    matches!(&replies[0], Value::ServerError(err) if err.code() == "NOAUTH")
}

fn latest(opinions: Vec<Opinion>) -> Option<Node> {
    opinions
        .into_iter()
        .max_by_key(|opinion| (opinion.epoch, opinion.promoting))
        .map(|opinion| opinion.node)
}

/// The error to tell: one that waiting may mend before one that needs a hand,
/// as a single sentinel that is set up badly must not stop the rest.
fn worst(errors: Vec<StoreError>) -> StoreError {
    errors
        .into_iter()
        .min_by_key(|err| err.class.is_final())
        .unwrap_or_else(|| StoreError {
            class: Class::Unreachable,
            message: "no sentinel answers".to_owned(),
            unsettled: false,
        })
}

#[cfg(test)]
mod tests {
    use super::{Node, Opinion, latest};

    fn opinion(port: u16, epoch: u64, promoting: bool) -> Opinion {
        let host = "h".to_owned();
        Opinion {
            node: Node { host, port },
            epoch,
            promoting,
        }
    }

    #[test]
    fn the_latest_epoch_counts_then_who_promotes() {
        let best = |opinions: &[Opinion]| latest(opinions.to_vec()).map(|node| node.port);
        assert_eq!(best(&[]), None);
        assert_eq!(best(&[opinion(1, 3, false), opinion(2, 2, true)]), Some(1));
        assert_eq!(
            best(&[
                opinion(1, 2, false),
                opinion(2, 3, false),
                opinion(3, 2, true)
            ]),
            Some(2)
        );
        assert_eq!(
            best(&[
                opinion(1, 2, false),
                opinion(2, 2, true),
                opinion(3, 2, false)
            ]),
            Some(2)
        );
    }
}
