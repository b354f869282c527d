//! The words on the command line.

use std::path::PathBuf;

/// Where the lock lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// one server
    Redis,
    /// a master and a replica that sentinels watch
    Sentinel,
    /// a directory
    Local,
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    pub seconds: u64,
    pub seed: u64,
    /// of each job
    pub instances: usize,
    pub store: Kind,
    /// where the logs go
    pub keep: Option<PathBuf>,
}

pub const HELP: &str = "\
Runs instances of solocron while everything around them fails, and checks what it promises.

  cargo test --test chaos -- [--seconds N] [--seed N] [--instances N] [--store KIND] [--keep DIR]

  --seconds N     how long faults are injected (20)
  --seed N        decides on the faults (1)
  --instances N   of each of the four jobs (3)
  --store KIND    redis, sentinel or local (redis)
  --keep DIR      write all logs and the list of faults there

The status is 1 if a promise was broken or a firing was missed that no rule explains.";

/// What the words ask for.
pub enum Asked {
    Run(Options),
    Help,
    /// by the standard harness: only the names of the tests
    List,
    /// by the standard harness: tests of another name
    Nothing,
}

/// Words of the standard harness that mean nothing here.
const OF_HARNESS: [&str; 8] = [
    "--nocapture",
    "--no-capture",
    "--show-output",
    "--quiet",
    "-q",
    "--exact",
    "--include-ignored",
    "--ignored",
];

/// Reads the words.
pub fn read(words: impl IntoIterator<Item = String>) -> Result<Asked, String> {
    let mut options = Options {
        seconds: 20,
        seed: 1,
        instances: 3,
        store: Kind::Redis,
        keep: None,
    };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word}: no value"));
        match word.as_str() {
            "--seconds" => options.seconds = number(&value()?)?,
            "--seed" => options.seed = number(&value()?)?,
            "--instances" => {
                options.instances = usize::try_from(number(&value()?)?)
                    .ok()
                    .filter(|count| (1..=26).contains(count))
                    .ok_or("--instances: 1 to 26")?;
            }
            "--store" => options.store = kind(&value()?)?,
            "--keep" => options.keep = Some(value()?.into()),
            "--help" | "-h" => return Ok(Asked::Help),
            "--list" => return Ok(Asked::List),
            "--test-threads" | "--format" | "--color" | "--skip" => {
                value()?;
            }
            word if OF_HARNESS.contains(&word) || word.starts_with("--test-threads=") => {}
            word if word.starts_with('-') => return Err(format!("{word}: unknown; see --help")),
            name if "chaos".contains(name) => {}
            _ => return Ok(Asked::Nothing),
        }
    }
    Ok(Asked::Run(options))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text}: no number"))
}

fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "redis" => Ok(Kind::Redis),
        "sentinel" => Ok(Kind::Sentinel),
        "local" => Ok(Kind::Local),
        _ => Err(format!("{text}: redis, sentinel or local")),
    }
}
