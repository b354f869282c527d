//! The texts around the table of options.

use std::fmt::Write as _;

use super::env;
use super::options::Spec;
use crate::exit;

/// What solocron is, in a line.
pub const ABOUT: &str = "Run a command on one of many identical hosts: on a crontab schedule or once, \
     under a lock they all share";

/// How it is called.
pub const USAGE: &str = "solocron [OPTIONS] --lock-name NAME [--cron EXPR]... [--] COMMAND [ARG]...
       solocron --status --lock-name NAME
       solocron --next N --cron EXPR";

/// What follows the short help.
pub const AFTER_SHORT: &str = "DUR is a time with its unit: 90s, 5m, 1h 30m.
--help says more: examples, exit status, environment.";

/// An example, and what it is for.
pub struct Example {
    /// What it is for.
    pub what: &'static str,
    /// The command line.
    pub line: &'static str,
}

/// One example for each of the three uses, and two to look only.
pub const EXAMPLES: [Example; 5] = [
    Example {
        what: "The command of a container with any number of replicas: every five minutes one of them publishes",
        line: "solocron --cron '*/5 * * * *' --lock-name publish --ttl 1m -- ./manage.py publish",
    },
    Example {
        what: "The same crontab on many hosts: one of them runs the report",
        line: "*/5 * * * *  solocron --lock-name report --once-per 5m -- /opt/report.sh",
    },
    Example {
        what: "By hand or in a deploy script: wait for whoever migrates at the moment",
        line: "solocron --lock-name migrate --wait 10m -- ./migrate.sh",
    },
    Example {
        what: "When a schedule fires next, and who holds a lock",
        line: "solocron --next 5 --cron '0 3 * * mon-fri' --tz Europe/Berlin",
    },
    Example {
        what: "",
        line: "solocron --status --lock-name publish",
    },
];

/// What the environment does, and what the command finds in its own: name
/// and meaning.
pub const ENVIRONMENT: [(&str, &str); 8] = [
    (
        "SOLOCRON_...",
        "every option but those under \"Look only\", in capitals and with underscores, such as SOLOCRON_START_DEADLINE; the command line goes before, and an empty variable counts as unset. Those for a schedule are ignored in a single run, and those for a single run are ignored in a schedule, with a warning",
    ),
    ("REDIS_URL", "the store, where nothing else names one"),
    ("TZ", "the time zone, where nothing else names one"),
    (env::LOCK, "told to the command: the lock name"),
    (
        env::FIRING,
        "told to the command: the scheduled instant, in UTC; not set in a single run",
    ),
    (
        env::TOKEN,
        "told to the command: the fencing token, a number that rises with every start",
    ),
    (
        env::ATTEMPT,
        "told to the command: how many times it was started for this firing",
    ),
    (
        env::HELD,
        "told to the command: the locks held around it, so that a solocron inside it does not wait for itself",
    ),
];

/// The line about an option.
#[must_use]
pub fn short(spec: &Spec) -> String {
    let default = if spec.default.is_empty() {
        String::new()
    } else {
        format!(" [default: {}]", spec.default)
    };
    format!("{}{default}", spec.help)
}

/// All there is to say about an option.
#[must_use]
pub fn long(spec: &Spec) -> String {
    let line = short(spec);
    if spec.more.is_empty() {
        return line;
    }
    format!("{line}\n\n{}", spec.more)
}

/// What follows the long help.
#[must_use]
pub fn after_long() -> String {
    let mut text = String::from(
        "A DUR is a time with its unit, as in 90s, 5m, 1h 30m. Options end at the first word that \
         is none; what follows is the command and its arguments.\n\nExamples:\n",
    );
    for Example { what, line } in &EXAMPLES {
        if !what.is_empty() {
            let _ = writeln!(text, "  {what}:");
        }
        let _ = writeln!(text, "      {line}");
    }
    text.push_str("\nExit status:\n");
    table(&mut text, &exit::TABLE);
    text.push_str("\nEnvironment:\n");
    table(&mut text, &ENVIRONMENT);
    text
}

fn table(text: &mut String, rows: &[(&str, &str)]) {
    let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, meaning) in rows {
        let mut head = format!("  {key:width$}  ");
        for line in wrapped(meaning, 96 - width) {
            let _ = writeln!(text, "{head}{line}");
            head = " ".repeat(width + 4);
        }
    }
}

/// A text in lines of at most this width.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_loses_no_word() {
        assert_eq!(wrapped("a bb ccc d", 4), ["a bb", "ccc", "d"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("abcdefgh", 4), ["abcdefgh"]);
    }
}
