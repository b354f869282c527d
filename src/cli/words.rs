//! What was said on the command line and in the environment, not yet
//! understood.

use std::ffi::OsString;
use std::fmt;

use super::options::Opt;

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The environment.
    Environment,
}

/// A value as it was given. It may be secret, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// The option that it is for.
    pub opt: Opt,
    /// The value; empty for a switch.
    pub value: OsString,
    /// Where it comes from.
    pub origin: Origin,
}

impl Given {
    /// What the user wrote it to, for messages: the flag or the variable.
    #[must_use]
    pub fn name(&self) -> String {
        match self.origin {
            Origin::Flag => self.opt.flag(),
            Origin::Environment => self.opt.variable(),
        }
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ...", self.name())
    }
}

/// All that was said.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Words {
    given: Vec<Given>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Whether `--` stands in front of the command.
    pub command_is_marked: bool,
    /// `REDIS_URL`.
    pub redis_url: Option<OsString>,
    /// `TZ`.
    pub tz: Option<OsString>,
    /// `SOLOCRON_HELD`.
    pub held: Option<OsString>,
    /// What about the environment is odd and does no harm.
    pub warnings: Vec<String>,
}

impl Words {
    pub(super) fn add(&mut self, opt: Opt, value: OsString, origin: Origin) {
        self.given.push(Given { opt, value, origin });
    }

    /// Everything that was given, in no order that means anything.
    #[must_use]
    pub fn given(&self) -> &[Given] {
        &self.given
    }

    /// The values of an option, in the order in which they were given.
    pub fn all(&self, opt: Opt) -> impl Iterator<Item = &Given> {
        self.given.iter().filter(move |given| given.opt == opt)
    }

    /// The value of an option, the first if there are several.
    #[must_use]
    pub fn one(&self, opt: Opt) -> Option<&Given> {
        self.all(opt).next()
    }

    /// Whether an option was given.
    #[must_use]
    pub fn has(&self, opt: Opt) -> bool {
        self.all(opt).next().is_some()
    }

    /// Whether an option was given on the command line.
    #[must_use]
    pub fn has_flag(&self, opt: Opt) -> bool {
        self.all(opt).any(|given| given.origin == Origin::Flag)
    }

    /// Whether an option of solocron's stands among the words of the command,
    /// and so is none.
    #[must_use]
    pub fn command_has(&self, opt: Opt) -> bool {
        let flag = opt.flag();
        self.command
            .iter()
            .filter_map(|word| word.to_str())
            .any(|word| word.split('=').next() == Some(flag.as_str()))
    }

    /// The value that an option of solocron's would have if it did not stand
    /// among the words of the command.
    #[must_use]
    pub fn value_in_command(&self, opt: Opt) -> Option<&str> {
        let flag = opt.flag();
        let mut words = self.command.iter().map(|word| word.to_str().unwrap_or(""));
        while let Some(word) = words.next() {
            match word.strip_prefix(flag.as_str()) {
                Some("") => return words.next(),
                Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
                _ => {}
            }
        }
        None
    }
}
