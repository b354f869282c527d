//! Where a store is, as the user says it.

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::redis::url::{self, RedisUrl};

/// What a store address is made of; see [`Location::parse`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// The embedded store in its usual directory.
    Local,
    /// The embedded store in this directory.
    Dir(PathBuf),
    /// A Redis server, or several that act as one.
    Redis(RedisUrl),
}

/// A store address that cannot be used: what is wrong and what to write
/// instead, in one line, never with a password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadLocation(pub String);

impl fmt::Display for BadLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadLocation {}

impl Location {
    /// Reads `local`, `file:///dir`, or one of the Redis URLs.
    ///
    /// # Errors
    ///
    /// Anything that is not entirely understood is refused; nothing is ignored.
    pub fn parse(text: &str) -> Result<Self, BadLocation> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("local") {
            return Ok(Self::Local);
        }
        if text.is_empty() {
            return bad(
                "the store address is empty: write redis://HOST:6379, local, or file:///DIR",
            );
        }
        if text.chars().any(char::is_control) {
            return bad("the store address contains a control character, perhaps a line break");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return bad(without_scheme(text));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "file" => file(rest).map(Self::Dir),
            "local" if rest.trim_matches('/').is_empty() => {
                bad("local is a word and no URL: write local")
            }
            "local" => {
                bad("local is a word and no URL: write local, or file:///DIR for a directory")
            }
            scheme => url::parse(scheme, rest).map(Self::Redis),
        }
    }
}

pub(super) fn bad<T>(text: impl Into<String>) -> Result<T, BadLocation> {
    Err(BadLocation(text.into()))
}

/// What is said to an address without `://`. It may be a password in the wrong
/// place, so only what looks like a path or a host is shown.
fn without_scheme(text: &str) -> String {
    const FORMS: &str = "write redis://HOST:6379, local, or file:///DIR";
    if text.contains('@') {
        return if text.starts_with('/') {
            "the store address has no scheme: write unix:///PATH for a socket, file:///PATH for a directory".to_owned()
        } else {
            format!("the store address has no scheme: {FORMS}")
        };
    }
    if text.starts_with('/') {
        let path = text.trim_end_matches('/');
        return format!(
            "the store address {text} has no scheme: write unix://{path} for a socket, file://{path} for a directory"
        );
    }
    if let Some((scheme, rest)) = text.split_once(':')
        && let Some(instead) = with_slashes(&scheme.to_ascii_lowercase(), rest)
    {
        return format!("the store address lacks slashes: write {instead}");
    }
    if text.contains(['/', ',']) || !text.chars().all(is_harmless) {
        return format!("the store address has no scheme: {FORMS}");
    }
    if text.contains(['.', ':']) || text.eq_ignore_ascii_case("localhost") {
        format!("the store address {text} has no scheme: write redis://{text}")
    } else {
        format!(
            "the store address {text} has no scheme: write redis://{text} if that is a host, local, or file:///DIR"
        )
    }
}

/// An address whose scheme is known but is not followed by two slashes, as it
/// is to be written.
fn with_slashes(scheme: &str, rest: &str) -> Option<String> {
    let rest = rest.trim_start_matches('/');
    match scheme {
        "file" => Some(if rest.is_empty() || rest.starts_with('.') {
            "file:///DIR, the whole path from the root".to_owned()
        } else {
            format!("file:///{rest}, the whole path from the root")
        }),
        "unix" | "redis+unix" | "valkey+unix" => {
            // A password may stand behind the path.
            let path = rest.split('?').next().unwrap_or_default();
            Some(format!("{scheme}:///{path}"))
        }
        scheme if url::is_known(scheme) => Some(if !rest.chars().all(is_harmless) {
            format!("{scheme}://HOST:PORT/DATABASE")
        } else if rest.is_empty() {
            format!("{scheme}://HOST")
        } else if is_port(rest) {
            // A port alone: the scheme was taken for a host.
            format!("redis://{scheme}:{rest}, or {scheme}://HOST:{rest}")
        } else {
            format!("{scheme}://{rest}")
        }),
        _ => None,
    }
}

/// Stands in hosts, ports and databases.
fn is_harmless(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']' | '/' | ',')
}

fn is_port(text: &str) -> bool {
    text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn file(rest: &str) -> Result<PathBuf, BadLocation> {
    if rest.contains(['?', '#']) {
        return bad("a file: address takes no parameters; write ? as %3F and # as %23 in a path");
    }
    let Ok(path) = percent_decode_str(rest).decode_utf8() else {
        return bad("the path of the file: address is not valid UTF-8");
    };
    if path.contains('\0') {
        return bad("the path of the file: address contains a zero byte");
    }
    if !path.starts_with('/') {
        return bad(format!(
            "file://{path} is not an absolute path: write file:///DIR with three slashes"
        ));
    }
    let dir = Path::new(path.as_ref());
    if dir.parent().is_none() {
        return bad("file:/// names the root directory: write file:///DIR");
    }
    // Comparing by components drops a trailing slash.
    Ok(dir.components().collect())
}
