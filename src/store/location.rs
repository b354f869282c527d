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
            scheme => url::parse(scheme, rest).map(Self::Redis),
        }
    }
}

pub(super) fn bad<T>(text: impl Into<String>) -> Result<T, BadLocation> {
    Err(BadLocation(text.into()))
}

fn without_scheme(text: &str) -> String {
    let harmless =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    if text.starts_with('/') {
        let path = text.trim_end_matches('/');
        return if text.contains('@') {
            "the store address has no scheme: write unix:///PATH for a socket, file:///PATH for a directory".to_owned()
        } else {
            format!(
                "the store address {text} has no scheme: write unix://{path} for a socket, file://{path} for a directory"
            )
        };
    }
    if text.chars().all(harmless) {
        return format!("the store address {text} has no scheme: write redis://{text}");
    }
    "the store address has no scheme: write redis://HOST:6379, local, or file:///DIR".to_owned()
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
