//! What Redis says when it does not serve, in words that say what to do.

use redis::{ErrorKind, RedisError};

use crate::store::{Class, StoreError};

/// What the user of the store is to be allowed to run, in the words of ACL
/// SETUSER. Nothing needs HGET; it is granted so that reading one field is no
/// matter of a new grant.
pub const COMMANDS: &str = "+eval +hset +hget +hmget +hgetall +pexpire +persist +time";

/// Where an error happened.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The server, as messages name it: `redis HOST:PORT`.
    pub at: String,
    /// Host and port, or the socket.
    pub address: String,
    /// Whether TLS is spoken.
    pub tls: bool,
    /// Whether the nodes of a cluster are meant.
    pub cluster: bool,
    /// The user that is logged in.
    pub user: String,
    /// The key of the record.
    pub key: String,
    /// What the user must be allowed to use, in the words of ACL SETUSER.
    pub rights: String,
}

impl Scene {
    /// A failure of this class here; nothing was carried out.
    #[must_use]
    pub fn error(&self, class: Class, message: impl Into<String>) -> StoreError {
        StoreError {
            class,
            message: message.into(),
            unsettled: false,
        }
    }

    /// No connection within this many milliseconds.
    #[must_use]
    pub fn no_connection(&self, limit_ms: u128) -> StoreError {
        let hint = if self.tls { " (is it a TLS port?)" } else { "" };
        self.error(
            Class::Unreachable,
            format!(
                "cannot reach {}: no connection within {limit_ms} ms{hint}",
                self.at
            ),
        )
    }

    /// No answer within this many milliseconds.
    #[must_use]
    pub fn no_answer(&self, limit_ms: u128) -> StoreError {
        self.error(
            Class::Unreachable,
            format!("cannot reach {}: no answer within {limit_ms} ms", self.at),
        )
    }

    /// Puts an error of the client library into our words. `script` is the text
    /// that ran, to find the command that it was not allowed to call.
    #[must_use]
    pub fn explain(&self, err: &RedisError, script: Option<&str>) -> StoreError {
        match err.kind() {
            ErrorKind::Io => self.explain_io(err),
            ErrorKind::AuthenticationFailed => self.wrong_login(),
            ErrorKind::ClusterConnectionNotFound => self.error(
                Class::Unreachable,
                format!(
                    "cannot reach {}: no node of the cluster answers for this lock",
                    self.at
                ),
            ),
            ErrorKind::Client if err.to_string().contains("certificate") => {
                self.explain_tls(&err.to_string())
            }
            ErrorKind::Server(_) | ErrorKind::Extension => {
                let detail = err.detail().unwrap_or_default();
                self.explain_reply(err.code().unwrap_or("ERR"), detail, script)
            }
            ErrorKind::Parse => self.error(
                Class::Unreachable,
                format!(
                    "{} does not answer as Redis does: is there something else on this port?",
                    self.at
                ),
            ),
            _ => {
                let text = err.to_string();
                let first = text.lines().next().unwrap_or_default();
                self.error(Class::Other, format!("{}: {first}", self.at))
            }
        }
    }

    fn explain_io(&self, err: &RedisError) -> StoreError {
        let text = err.to_string();
        if let Some(first) = text.strip_prefix("Failed to create initial connections")
            && let Some(explained) = self.explain_first(first)
        {
            return explained;
        }
        let lower = text.to_ascii_lowercase();
        if [
            "certificate",
            "fatal alert",
            "corrupt message",
            "unparseable",
            "handshake",
            "tls",
        ]
        .iter()
        .any(|word| lower.contains(word))
        {
            return self.explain_tls(&text);
        }
        if lower.contains("lookup") || lower.contains("resolve") {
            return self.error(
                Class::Name,
                format!("cannot resolve the host name of {}: {text}", self.at),
            );
        }
        let reason = if err.is_timeout() {
            "no answer in time".to_owned()
        } else if lower.contains("connection refused") {
            "connection refused, is it running?".to_owned()
        } else if lower.contains("no such file") {
            "there is no such socket, is it running?".to_owned()
        } else if lower.contains("permission denied") {
            return self.error(
                Class::Permission,
                format!(
                    "cannot open {}: permission denied for this user of the system",
                    self.at
                ),
            );
        } else if !self.tls
            && (lower.contains("reset")
                || lower.contains("unexpected end")
                || lower.contains("broken pipe")
                || lower.contains("closed"))
        {
            format!(
                "{} (if the port speaks TLS, use rediss://)",
                without_code(&text)
            )
        } else {
            without_code(&text).to_owned()
        };
        self.error(
            Class::Unreachable,
            format!("cannot reach {}: {reason}", self.at),
        )
    }

    /// What kept the cluster client from its first connection. The library
    /// tells it as text only.
    fn explain_first(&self, text: &str) -> Option<StoreError> {
        if text.contains("AuthenticationFailed") {
            return Some(self.wrong_login());
        }
        let code = ["NOAUTH", "NOPERM", "LOADING", "CLUSTERDOWN"]
            .into_iter()
            .find(|code| text.contains(code))?;
        Some(self.explain_reply(code, text, None))
    }

    fn explain_tls(&self, text: &str) -> StoreError {
        let at = &self.at;
        let lower = text.to_ascii_lowercase();
        let message = if lower.contains("unknownissuer") {
            format!(
                "the certificate of {at} is signed by nobody that is trusted here: name its CA with --tls-ca FILE, or --tls-ca system"
            )
        } else if lower.contains("expired") {
            format!("the certificate of {at} has expired: renew it on the server")
        } else if lower.contains("notvalidyet") || lower.contains("not valid yet") {
            format!("the certificate of {at} is not valid yet: check the clocks of both hosts")
        } else if lower.contains("not valid for name") || lower.contains("notvalidforname") {
            format!(
                "the certificate of {at} is for another name: use a name that it lists ({text})"
            )
        } else if lower.contains("certificaterequired") || lower.contains("certificate required") {
            format!("{at} wants a certificate from its clients: give --tls-cert and --tls-key")
        } else if lower.contains("fatal alert") {
            format!("{at} refused the TLS connection, perhaps because of --tls-cert: {text}")
        } else if lower.contains("corrupt message") || lower.contains("invalidcontenttype") {
            format!("{at} does not speak TLS on this port: use redis:// or its TLS port ({text})")
        } else {
            format!("TLS with {at} failed: {text}")
        };
        self.error(Class::Tls, message)
    }

    pub(super) fn wrong_login(&self) -> StoreError {
        self.error(
            Class::Auth,
            format!(
                "{} rejected the user name or password: check those in the store address",
                self.at
            ),
        )
    }
}

fn without_code(text: &str) -> &str {
    text.split(" (os error").next().unwrap_or(text)
}
