//! Which store is meant, and the files for TLS.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::{Surroundings, values};
use crate::cli::UsageError;
use crate::cli::env::REDIS_URL;
use crate::cli::options::Opt;
use crate::cli::words::{Given, Origin, Words};

/// How many bytes of a file are read for a URL.
pub const FILE_MAX: u64 = 64 * 1024;

/// Reads a file, up to [`FILE_MAX`] bytes.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// The address of a store as it was written. It may hold a password, so
/// `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreAddress {
    /// The address: a URL, or `local`.
    pub text: String,
    /// Who says so.
    pub source: StoreSource,
}

/// Who names the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreSource {
    /// An option, on the command line or in the environment, by this name.
    Option(String),
    /// A file.
    File(PathBuf),
    /// `REDIS_URL`.
    RedisUrl,
    /// Nobody; at a terminal the embedded store serves.
    Default,
}

impl fmt::Display for StoreSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(name) => f.write_str(name),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::RedisUrl => f.write_str(REDIS_URL),
            Self::Default => f.write_str("the default"),
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "address from {}", self.source)
    }
}

impl StoreAddress {
    /// Whether the store is spoken to with TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        let scheme = self.text.split("://").next().unwrap_or_default();
        let scheme = scheme.trim().to_ascii_lowercase();
        scheme.starts_with("rediss") || scheme == "valkeys"
    }
}

/// The certificates to trust.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TlsCa {
    /// Those that are part of the program.
    Bundled,
    /// Those of the system.
    System,
    /// Those of a PEM file.
    File(PathBuf),
}

/// Files for TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificates to trust.
    pub ca: TlsCa,
    /// Client certificate and private key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// Reads a file, for [`Surroundings::read_file`].
///
/// # Errors
///
/// Whatever the system says, and a file larger than [`FILE_MAX`].
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?
        .take(FILE_MAX + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > FILE_MAX {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the file is too large to hold only a URL",
        ));
    }
    Ok(content)
}

/// Which store is meant. Whoever is nearer goes first: command line,
/// environment, `REDIS_URL`; at a terminal the embedded store.
///
/// # Errors
///
/// Both `--store` and `--store-file` at the same distance, a file that cannot
/// be read or is empty, no store at all.
pub(super) fn address(
    words: &Words,
    around: &Surroundings<'_>,
    warnings: &mut Vec<String>,
) -> Result<StoreAddress, UsageError> {
    for origin in [Origin::Flag, Origin::Environment] {
        let given = |opt| words.one(opt).filter(|given| given.origin == origin);
        match (given(Opt::Store), given(Opt::StoreFile)) {
            (Some(store), Some(file)) => {
                return Err(UsageError::new(format!(
                    "{} and {} both name the store; give one",
                    store.name(),
                    file.name()
                )));
            }
            (Some(store), None) => return from_option(store),
            (None, Some(file)) => return from_file(file, around),
            (None, None) => {}
        }
    }
    if let Some(url) = &words.redis_url {
        return Ok(StoreAddress {
            text: utf8(url, REDIS_URL)?,
            source: StoreSource::RedisUrl,
        });
    }
    let misplaced = [Opt::Store, Opt::StoreFile]
        .into_iter()
        .find(|opt| words.command_has(*opt))
        .map_or_else(String::new, |opt| {
            let flag = opt.flag();
            format!(
                "; {flag} stands after the command and so belongs to the command, write it before"
            )
        });
    if !around.at_terminal {
        return Err(UsageError::new(format!(
            "no store is named, and a lock that only this machine knows protects nothing from \
             other hosts; set REDIS_URL or --store redis://HOST, or --store local if there is \
             only this machine{misplaced}"
        )));
    }
    warnings.push(format!(
        "no store is named, so the lock holds on this machine only; \
         set REDIS_URL or --store for other hosts, or --store local to have it so{misplaced}"
    ));
    Ok(StoreAddress {
        text: "local".to_owned(),
        source: StoreSource::Default,
    })
}

fn from_option(given: &Given) -> Result<StoreAddress, UsageError> {
    let name = given.name();
    let text = utf8(&given.value, &name)?;
    if text.is_empty() {
        return Err(UsageError::new(format!(
            "{name} is empty; write redis://HOST, or local for this machine only"
        )));
    }
    Ok(StoreAddress {
        text,
        source: StoreSource::Option(name),
    })
}

fn from_file(given: &Given, around: &Surroundings<'_>) -> Result<StoreAddress, UsageError> {
    let path = PathBuf::from(&given.value);
    let refused = |why: &str| {
        UsageError::new(format!(
            "{} {}: {why}; its first line is to be the store's URL",
            given.name(),
            path.display()
        ))
    };
    let content = (around.read_file)(&path).map_err(|error| refused(&error.to_string()))?;
    let content = String::from_utf8(content).map_err(|_| refused("it is not text"))?;
    // Editors of some systems put this mark before the text.
    let content = content.trim_start_matches('\u{feff}').trim();
    let text = content.lines().next().unwrap_or_default().trim_end();
    if text.is_empty() {
        return Err(refused("it is empty"));
    }
    Ok(StoreAddress {
        text: text.to_owned(),
        source: StoreSource::File(path),
    })
}

fn utf8(value: &OsStr, name: &str) -> Result<String, UsageError> {
    // The value may hold a password, so the message does not show it.
    let text = value.to_str().ok_or_else(|| {
        UsageError::new(format!("{name} is not UTF-8; percent-encode other bytes"))
    })?;
    Ok(text.trim().to_owned())
}

/// The files for TLS.
///
/// # Errors
///
/// A file that is given for a store without TLS, or a certificate without its
/// key.
pub(super) fn tls(words: &Words, store: &StoreAddress) -> Result<TlsFiles, UsageError> {
    let none = TlsFiles {
        ca: TlsCa::Bundled,
        client: None,
    };
    if !store.is_tls() {
        let flag = [Opt::TlsCa, Opt::TlsCert, Opt::TlsKey]
            .into_iter()
            .find(|opt| words.has_flag(*opt));
        return flag.map_or(Ok(none), |opt| {
            Err(UsageError::new(format!(
                "{} is for TLS, which the store's URL (from {}) does not ask for; \
                 begin it with rediss://",
                opt.flag(),
                store.source
            )))
        });
    }
    let path = |opt| words.one(opt).map(values::path).transpose();
    let ca = match path(Opt::TlsCa)? {
        None => TlsCa::Bundled,
        Some(word) if word == Path::new("system") => TlsCa::System,
        Some(file) => TlsCa::File(file),
    };
    let client = match (path(Opt::TlsCert)?, path(Opt::TlsKey)?) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        (Some(_), None) => {
            return Err(UsageError::new(
                "--tls-cert needs --tls-key: the private key of the certificate",
            ));
        }
        (None, Some(_)) => {
            return Err(UsageError::new(
                "--tls-key needs --tls-cert: the certificate that the key is for",
            ));
        }
    };
    Ok(TlsFiles { ca, client })
}
