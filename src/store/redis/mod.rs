//! Records in Redis: one hash for each lock, changed by scripts only.

pub mod conn;
pub mod connect;
pub mod error;
pub mod policy;
pub mod script;
pub mod sentinel;
pub mod tls;
pub mod url;

mod open;
mod server_error;

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::{sleep, timeout};

use self::conn::{Conn, Dialer};
use self::connect::reply;
use self::error::Scene;
use self::policy::Eviction;
use self::script::{BadReply, Script};
use super::{Answer, Class, Store, StoreError};
use crate::lock::record::{KEEP_FOREVER, Ms};
use crate::lock::rules::Verdict;
use crate::lock::{Beat, BeatReply, Claim, ClaimReply, Free, FreeReply, Record, StoreTime};

/// What is said where certificates are given for an address without TLS.
pub(super) const TLS_NEEDS_REDISS: &str =
    "--tls-ca, --tls-cert and --tls-key need a store address that begins with rediss";

/// The record of one lock name in Redis.
pub struct RedisStore {
    dialer: Dialer,
    place: String,
    key: String,
    /// The connection for the next operation. It is taken out while one is
    /// under way, so that one that is given up leaves none behind whose next
    /// answer would belong to an earlier question.
    conn: RefCell<Option<Conn>>,
    /// Whether the master was asked for since the last claim.
    prepared: Cell<bool>,
    eviction: Cell<Option<Eviction>>,
    /// Whether the server was asked what it throws away, answer or not.
    asked: Cell<bool>,
    warnings: RefCell<Vec<String>>,
}

/// The key of the record of a lock.
///
/// Braces and percent signs in the name are percent-encoded: the part in braces
/// is what a cluster finds the slot by, and two locks never share a key.
#[must_use]
pub fn key_of(prefix: &str, lock_name: &str) -> String {
    let mut key = format!("{prefix}:{{");
    for c in lock_name.chars() {
        match c {
            '%' => key.push_str("%25"),
            '{' => key.push_str("%7B"),
            '}' => key.push_str("%7D"),
            c => key.push(c),
        }
    }
    key.push('}');
    key
}

/// What an attempt did before it failed or was cut off.
#[derive(Default)]
struct Progress {
    sent: Cell<bool>,
}

impl RedisStore {
    /// Runs a script within the time given.
    async fn run(
        &self,
        script: Script,
        args: &[String],
        within: Duration,
    ) -> Result<Value, StoreError> {
        let text = script.text();
        let cmd = script::command(text, &self.key, args);
        let progress = Progress::default();
        let attempt = self.attempt(script, &cmd, text, &progress, within);
        let result = match timeout(within, attempt).await {
            Ok(result) => result,
            Err(_) => Err(self.dialer.scene().no_answer(within.as_millis())),
        };
        result.map_err(|mut err| {
            // A server that answers with an error has not carried it out.
            err.unsettled =
                progress.sent.get() && matches!(err.class, Class::Unreachable | Class::Name);
            err
        })
    }

    async fn attempt(
        &self,
        script: Script,
        cmd: &Cmd,
        text: &str,
        progress: &Progress,
        within: Duration,
    ) -> Result<Value, StoreError> {
        let kept = self.kept(script, within).await?;
        if let Some(conn) = kept {
            match self.ask(conn, cmd, text, progress).await {
                // It broke while it lay idle. All operations can be repeated.
                Err(Failure {
                    error,
                    broken: true,
                }) if error.class == Class::Unreachable => {}
                other => return other.map_err(|failure| failure.error),
            }
        }
        let conn = self.dialer.connect().await?;
        self.ask(conn, cmd, text, progress)
            .await
            .map_err(|failure| failure.error)
    }

    /// The connection of the last operation, if it still leads to the master.
    async fn kept(&self, script: Script, within: Duration) -> Result<Option<Conn>, StoreError> {
        let prepared = self.prepared.take() && script == Script::Claim;
        let kept = self.conn.take();
        if let Dialer::Sentinel(dialer) = &self.dialer
            && !(prepared && kept.is_some())
            && !dialer.same_master(within).await?
        {
            return Ok(None);
        }
        Ok(kept)
    }

    /// Sends a command; the connection is kept if it was answered well.
    async fn ask(
        &self,
        mut conn: Conn,
        cmd: &Cmd,
        text: &str,
        progress: &Progress,
    ) -> Result<Value, Failure> {
        progress.sent.set(true);
        let scene = match &conn {
            Conn::Single { scene, .. } => scene.clone(),
            Conn::Cluster(_) => self.dialer.scene().clone(),
        };
        let broken = Cell::new(false);
        let answer = async {
            let result = conn.query(cmd).await;
            broken.set(
                result
                    .as_ref()
                    .is_err_and(|err| err.is_io_error() && !err.is_timeout()),
            );
            result
        };
        match reply(&scene, Some(text), answer).await {
            Ok(value) => {
                self.conn.replace(Some(conn));
                Ok(value)
            }
            Err(error) => Err(Failure {
                error,
                broken: broken.get(),
            }),
        }
    }

    /// How long to keep the record, given what the server throws away.
    fn keep(&self, asked: Ms) -> Ms {
        match self.eviction.get() {
            Some(Eviction::Expiring) => KEEP_FOREVER,
            _ => asked,
        }
    }

    async fn claim_once(&self, claim: &Claim, within: Duration) -> Result<ClaimReply, StoreError> {
        let ask = !self.asked.get();
        let args = script::claim_args(claim, self.keep(claim.keep), ask);
        let value = self.run(Script::Claim, &args, within).await?;
        let (reply, memory) = self.read_reply(script::claim_reply(value))?;
        if ask {
            self.learn(memory.as_deref());
        }
        Ok(reply)
    }

    /// Notes what the server throws away when its memory is full.
    fn learn(&self, memory: Option<&str>) {
        self.asked.set(true);
        let Some((eviction, name)) = memory.and_then(policy::eviction) else {
            return;
        };
        self.eviction.set(Some(eviction));
        if eviction == Eviction::Any {
            self.warnings.borrow_mut().push(format!(
                "{} throws away any key when its memory is full (maxmemory-policy {name}): the lock may vanish; set noeviction or use another server",
                self.place
            ));
        }
    }

    fn read_reply<T>(&self, reply: Result<T, BadReply>) -> Result<T, StoreError> {
        reply.map_err(|BadReply(what)| {
            let scene = self.dialer.scene();
            let message = format!(
                "the record {} on {} is damaged: it has {what}",
                self.key, scene.at
            );
            StoreError {
                unsettled: true,
                ..scene.error(Class::Other, message)
            }
        })
    }

    async fn make_ready(&self, within: Duration) -> Result<(), StoreError> {
        let kept = match &self.dialer {
            Dialer::Sentinel(dialer) => {
                let kept = self.conn.take();
                if dialer.same_master(within).await? {
                    kept
                } else {
                    None
                }
            }
            _ => self.conn.take(),
        };
        // Whether a kept one still works shows with the first operation, which
        // makes a new one if need be.
        let conn = match kept {
            Some(conn) => conn,
            None => self.dialer.connect().await?,
        };
        self.conn.replace(Some(conn));
        Ok(())
    }

    fn scene(&self) -> &Scene {
        self.dialer.scene()
    }
}

struct Failure {
    error: StoreError,
    /// Whether the connection turned out to be broken.
    broken: bool,
}

impl Store for RedisStore {
    fn prepare(&self, within: Duration) -> Answer<'_, ()> {
        Box::pin(async move {
            let result = match timeout(within, self.make_ready(within)).await {
                Ok(result) => result,
                Err(_) => Err(self.scene().no_answer(within.as_millis())),
            };
            self.prepared.set(result.is_ok());
            result
        })
    }

    fn claim<'a>(&'a self, claim: &'a Claim, within: Duration) -> Answer<'a, ClaimReply> {
        Box::pin(async move {
            let known = self.eviction.get();
            let too_late = sleep(within);
            tokio::pin!(too_late);
            let reply = self.claim_once(claim, within).await?;
            let granted = matches!(reply.verdict, Verdict::Granted(_));
            if !granted || known.is_some() || self.eviction.get() != Some(Eviction::Expiring) {
                return Ok(reply);
            }
            // Once more, so that the record loses its expiry; the grant stays the
            // same. Heartbeats do so too, should this fail.
            tokio::select! {
                again = self.claim_once(claim, within) => Ok(match again {
                    Ok(again) => ClaimReply { before: reply.before, ..again },
                    Err(_) => reply,
                }),
                () = &mut too_late => Ok(reply),
            }
        })
    }

    fn beat<'a>(&'a self, beat: &'a Beat, within: Duration) -> Answer<'a, BeatReply> {
        Box::pin(async move {
            let args = script::beat_args(beat, self.keep(beat.keep));
            let value = self.run(Script::Beat, &args, within).await?;
            self.read_reply(script::beat_reply(value))
        })
    }

    fn free<'a>(&'a self, free: &'a Free, within: Duration) -> Answer<'a, FreeReply> {
        Box::pin(async move {
            let args = script::free_args(free, self.keep(free.keep));
            let value = self.run(Script::Free, &args, within).await?;
            self.read_reply(script::free_reply(value))
        })
    }

    fn read(&self, within: Duration) -> Answer<'_, (Option<Record>, StoreTime)> {
        Box::pin(async move {
            let value = self.run(Script::Read, &[], within).await?;
            self.read_reply(script::read_reply(value))
        })
    }

    fn grant_stands(&self, within: Duration) -> Answer<'_, bool> {
        let Dialer::Sentinel(dialer) = &self.dialer else {
            return Box::pin(ready(Ok(true)));
        };
        Box::pin(async move {
            match timeout(within, dialer.same_master(within)).await {
                Ok(Ok(true)) => Ok(true),
                Ok(Ok(false)) => {
                    self.conn.take();
                    Ok(false)
                }
                Ok(Err(err)) => Err(err),
                Err(_) => Err(self.scene().no_answer(within.as_millis())),
            }
        })
    }

    fn rest(&self) {
        self.conn.take();
        self.prepared.set(false);
        if let Dialer::Sentinel(dialer) = &self.dialer {
            dialer.sentinels.rest();
        }
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }
}
