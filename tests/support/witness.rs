//! The only witness of what ran: a file to which jobs add lines with the true time.

use super::wait::wait_until;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// One line: something a job did.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// `start`, `end` or a word of the job's own
    pub what: String,
    /// label of the instance, or `-`
    pub label: String,
    /// the scheduled instant in milliseconds since the epoch; none in once mode
    pub firing: Option<i64>,
    /// fencing token
    pub token: u64,
    /// number of the start for this firing
    pub attempt: u32,
    /// pid of the job's shell
    pub pid: i32,
    /// true time in milliseconds since the epoch
    pub at: f64,
}

/// The file and what is read from it.
#[derive(Debug)]
pub struct Witness {
    dir: TempDir,
}

impl Default for Witness {
    fn default() -> Self {
        Self {
            dir: tempfile::tempdir().expect("temporary directory"),
        }
    }
}

impl Witness {
    /// Where the lines go.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.dir.path().join("witness")
    }

    /// A file of the test beside the witness.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command that writes `start`, runs the shell lines `body`, and writes `end` unless it is killed. In the body
    /// `w WORD` writes a line of its own. Every line is one write, so that lines never mix.
    #[must_use]
    pub fn job(&self, body: &str) -> Vec<String> {
        let script = format!(
            r#"w() {{ date "+$1 ${{TEST_LABEL:--}} ${{SOLOCRON_FIRING:--}} ${{SOLOCRON_TOKEN:-0}} ${{SOLOCRON_ATTEMPT:-0}} $$ %s%N" >>'{}'; }}
trap 'w end' EXIT
w start
{body}"#,
            self.file().display()
        );
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    }

    /// All lines so far.
    ///
    /// # Panics
    /// When a line is not as [`Self::job`] writes it.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        text.lines()
            .map(|line| parse(line).unwrap_or_else(|| panic!("witness line {line:?}")))
            .collect()
    }

    /// The lines of one kind.
    #[must_use]
    pub fn of(&self, what: &str) -> Vec<Entry> {
        let mut all = self.entries();
        all.retain(|e| e.what == what);
        all
    }

    /// All starts.
    #[must_use]
    pub fn starts(&self) -> Vec<Entry> {
        self.of("start")
    }

    /// Waits for at least `n` starts.
    pub fn wait_starts(&self, n: usize, bound: Duration) -> Vec<Entry> {
        wait_until(bound, &format!("{n} starts"), || self.starts().len() >= n);
        self.starts()
    }

    /// The starts of each firing, in order.
    #[must_use]
    pub fn by_firing(&self) -> BTreeMap<i64, Vec<Entry>> {
        let mut map = BTreeMap::<i64, Vec<Entry>>::new();
        for start in self.starts() {
            map.entry(start.firing.unwrap_or(0))
                .or_default()
                .push(start);
        }
        map
    }

    /// Fails the test unless each firing started exactly once.
    #[track_caller]
    pub fn assert_once_each(&self) {
        for (firing, starts) in self.by_firing() {
            assert_eq!(
                starts.len(),
                1,
                "firing {firing} started more than once: {starts:#?}"
            );
        }
    }

    /// Fails the test unless the firings are exactly those every `step` ms from `first` to `last`, both included.
    #[track_caller]
    pub fn assert_every(&self, step: i64, first: i64, last: i64) {
        let seen: Vec<i64> = self.by_firing().into_keys().collect();
        let wanted: Vec<i64> = (0..=(last - first) / step)
            .map(|i| first + i * step)
            .collect();
        let inner: Vec<i64> = seen
            .into_iter()
            .filter(|f| (first..=last).contains(f))
            .collect();
        assert_eq!(inner, wanted, "firings");
    }

    /// Fails the test when a start came more than 50 ms before its instant.
    #[track_caller]
    pub fn assert_none_early(&self) {
        for start in self.starts() {
            let firing = f64_of(start.firing.expect("a scheduled start"));
            assert!(start.at >= firing - 50.0, "early: {start:?}");
        }
    }

    /// Fails the test when a run started before the last sign of life of an earlier one. A run that was killed wrote no
    /// end, so that its other lines tell how long it lived.
    #[track_caller]
    pub fn assert_no_overlap(&self) {
        let all = self.entries();
        let mut starts = self.starts();
        starts.sort_by(|a, b| a.at.total_cmp(&b.at));
        let mut busy: Option<&Entry> = None;
        for start in &starts {
            if let Some(last) = busy {
                assert!(
                    start.at >= last.at,
                    "overlap: {last:?} comes after {start:?}"
                );
            }
            let same = all
                .iter()
                .filter(|e| e.pid == start.pid && e.token == start.token);
            busy = same.max_by(|a, b| a.at.total_cmp(&b.at)).or(busy);
        }
    }

    /// Fails the test unless tokens rise with time.
    #[track_caller]
    pub fn assert_tokens_rise(&self) {
        let mut starts = self.starts();
        starts.sort_by(|a, b| a.at.total_cmp(&b.at));
        for pair in starts.windows(2) {
            assert!(pair[0].token < pair[1].token, "tokens: {pair:#?}");
        }
    }
}

fn parse(line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    Some(Entry {
        what: next()?.to_owned(),
        label: next()?.to_owned(),
        firing: match next()? {
            "-" => None,
            text => Some(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()),
        },
        token: next()?.parse().ok()?,
        attempt: next()?.parse().ok()?,
        pid: next()?.parse().ok()?,
        at: next()?.parse::<f64>().ok()? / 1e6,
    })
}

/// The true time in milliseconds since the epoch.
///
/// # Panics
/// When the clock stands before 1970.
#[must_use]
pub fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(now.expect("after 1970").as_millis()).expect("a near time")
}

/// Milliseconds as the witness counts them.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "milliseconds of this age fit")]
pub fn f64_of(ms: i64) -> f64 {
    ms as f64
}
