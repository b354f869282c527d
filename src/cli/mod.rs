//! The command line: options, their help, and the environment that stands in for them.
//!
//! Here words are only told apart; [`crate::config`] understands them.
//!
//! - [`options`]: the table of all options
//! - [`mod@env`]: the variables that stand in for them
//! - [`help`]: the texts around the table
//! - [`words`]: what was said

pub mod env;
pub mod help;
pub mod options;
pub mod similar;
pub mod words;

use std::ffi::{OsStr, OsString};
use std::fmt;

use clap::builder::{OsStringValueParser, PossibleValue, TypedValueParser, ValueHint};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use options::{OPTIONS, Spec, Takes};
use words::{Origin, Words};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a command line cannot be followed: what was given, what is allowed,
/// what to write instead. Its status is [`crate::exit::Exit::Usage`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageError(String);

impl UsageError {
    /// An error with this text, without full stop.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// What the command line asks for.
#[derive(Clone, PartialEq, Eq)]
pub enum Request {
    /// Print this on stdout and exit with 0: help or version.
    Print(String),
    /// Everything else.
    Go(Box<Words>),
}

/// Reads a command line, program name first, and the environment.
///
/// `tz_data` names the time zone data in use; it is asked only for
/// `--version`.
///
/// # Errors
///
/// An unknown option, an option without its value, an option given twice, a
/// switch in the environment that is neither on nor off.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    tz_data: impl FnOnce() -> String,
) -> Result<Request, UsageError> {
    let args: Vec<OsString> = args.into_iter().collect();
    let in_full = args.iter().any(|arg| arg == "--version");
    let mut result = definition(Texts::None).try_get_matches_from(&args);
    if let Err(error) = &result
        && error.kind() == ErrorKind::DisplayHelp
    {
        result = command().try_get_matches_from(&args);
    }
    match result {
        Ok(matches) => {
            let mut words = from_matches(matches);
            let before = args.len().saturating_sub(words.command.len() + 1);
            words.command_is_marked = !words.command.is_empty() && args[before] == "--";
            no_value_is_an_option(&words)?;
            env::merge(&mut words, environment)?;
            Ok(Request::Go(Box::new(words)))
        }
        Err(error) => match error.kind() {
            ErrorKind::DisplayVersion if in_full => Ok(Request::Print(format!(
                "{error}time zone data: {}\n",
                tz_data()
            ))),
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                Ok(Request::Print(error.to_string()))
            }
            _ => Err(explain(&error)),
        },
    }
}

/// The definition that help, manual page and completions are made from.
#[must_use]
pub fn command() -> Command {
    definition(Texts::All)
        .after_help(help::AFTER_SHORT)
        .after_long_help(help::after_long())
}

/// Which of the texts for people a definition has. To make them takes longer
/// than to parse, and a run does not need them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    None,
    All,
}

/// The definition that clap parses by.
fn definition(texts: Texts) -> Command {
    let positional = Arg::new(COMMAND)
        .value_name("COMMAND")
        .help("Command to run, and its arguments")
        .num_args(1..)
        .trailing_var_arg(true)
        .value_parser(OsStringValueParser::new())
        .value_hint(ValueHint::CommandWithArguments);
    Command::new("solocron")
        .version(VERSION)
        .about(help::ABOUT)
        .override_usage(help::USAGE)
        .max_term_width(100)
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(OPTIONS.iter().map(|spec| option(spec, texts)))
        .args(standard())
        .arg(positional)
}

const COMMAND: &str = "command";

fn standard() -> [Arg; 2] {
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .help("Print help: -h in short, --help in full");
    let version = Arg::new("version")
        .short('V')
        .long("version")
        .action(ArgAction::Version)
        .help("Print the version; --version names the time zone data too");
    [help, version].map(|arg| arg.help_heading(options::LOOK))
}

fn option(spec: &Spec, texts: Texts) -> Arg {
    let mut arg = Arg::new(spec.name)
        .long(spec.name)
        .help_heading(spec.heading)
        .value_parser(OsStringValueParser::new());
    if texts == Texts::All {
        arg = arg.help(help::short(spec)).long_help(help::long(spec));
    }
    match spec.takes {
        // A value that begins with a hyphen is told to be wrong as a value.
        Takes::One(name) => arg.value_name(name).allow_hyphen_values(true),
        Takes::Many(name) => arg
            .value_name(name)
            .action(ArgAction::Append)
            .allow_hyphen_values(true),
        Takes::File(name) => arg.value_name(name).value_hint(ValueHint::FilePath),
        Takes::Choice(_, words) => arg
            .value_name(spec.value_name())
            .value_parser(AnyOf(words))
            .hide_possible_values(true),
        Takes::Switch => arg
            .action(ArgAction::SetTrue)
            .value_parser(clap::value_parser!(bool)),
        Takes::Count(letter) => arg
            .short(letter)
            .action(ArgAction::Count)
            .value_parser(clap::value_parser!(u8)),
    }
}

/// Lets any value pass, which [`crate::config`] then judges as it judges the
/// environment's; the words are for the completions.
#[derive(Clone)]
struct AnyOf(&'static [&'static str]);

impl TypedValueParser for AnyOf {
    type Value = OsString;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().copied().map(PossibleValue::new)))
    }
}

fn from_matches(mut matches: ArgMatches) -> Words {
    let mut words = Words::default();
    for spec in OPTIONS {
        let times = match spec.takes {
            Takes::Switch => usize::from(matches.get_flag(spec.name)),
            Takes::Count(_) => usize::from(matches.get_count(spec.name)),
            _ => 0,
        };
        for _ in 0..times {
            words.add(spec.opt, OsString::new(), Origin::Flag);
        }
        if !matches!(spec.takes, Takes::Switch | Takes::Count(_)) {
            let values = matches.remove_many::<OsString>(spec.name);
            for value in values.into_iter().flatten() {
                let lines = match spec.takes {
                    Takes::Many(_) => env::lines(&value),
                    _ => Vec::new(),
                };
                if lines.is_empty() {
                    words.add(spec.opt, value, Origin::Flag);
                }
                for line in lines {
                    words.add(spec.opt, line, Origin::Flag);
                }
            }
        }
    }
    words.command = matches
        .remove_many::<OsString>(COMMAND)
        .into_iter()
        .flatten()
        .collect();
    words
}

/// An option that lacks its value takes the next word for it, and if that is
/// an option, what follows is read quite differently than it was meant.
fn no_value_is_an_option(words: &Words) -> Result<(), UsageError> {
    let is_option = |value: &OsStr| {
        let Some(text) = value.to_str() else {
            return false;
        };
        let name = text.split('=').next().unwrap_or(text);
        matches!(text, "--" | "-h" | "-V" | "-v" | "-q") || own_flags().any(|flag| flag == name)
    };
    for given in words.given() {
        if !is_option(&given.value) {
            continue;
        }
        let (flag, value) = (given.opt.flag(), given.value.to_string_lossy());
        let spec = given.opt.spec();
        let example = if given.opt == options::Opt::Next {
            "5".to_owned()
        } else {
            format!("<{}>", spec.value_name())
        };
        return Err(UsageError::new(format!(
            "{flag} needs a value, and `{value}` stands there: write {flag} {example} {value}"
        )));
    }
    Ok(())
}

fn own_flags() -> impl Iterator<Item = String> {
    let own = ["--help".to_owned(), "--version".to_owned()];
    OPTIONS.iter().map(|spec| spec.opt.flag()).chain(own)
}

/// Says in one line what clap found wrong.
fn explain(error: &clap::Error) -> UsageError {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let arg = context(ContextKind::InvalidArg).unwrap_or_default();
    let flag = arg.split_whitespace().next().unwrap_or_default();
    let text = match error.kind() {
        ErrorKind::UnknownArgument => unknown(&arg),
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues => {
            format!("{flag} needs a value: write {arg}")
        }
        ErrorKind::TooManyValues => format!("{flag} takes no value: write {flag} alone"),
        ErrorKind::ArgumentConflict => format!("{flag} is given twice; give it once"),
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        }
    };
    UsageError::new(text)
}

fn unknown(arg: &str) -> String {
    let name = arg.split('=').next().unwrap_or(arg);
    if !name.starts_with("--") {
        return format!(
            "unknown option {name}; the only short options are -h, -V, -v and -q, and \
             options of the command stand after the command"
        );
    }
    let word = name[2..].to_ascii_lowercase();
    let near = if let Some((_, opt)) = OTHER_WORDS.iter().find(|(other, _)| *other == word) {
        vec![opt.flag()]
    } else if let Some(near) = similar::nearest(name, own_flags()) {
        vec![near]
    } else {
        with_part(&word)
    };
    match near.as_slice() {
        [] => format!("unknown option {name}; `solocron -h` lists all"),
        [rest @ .., last] if !rest.is_empty() => {
            format!(
                "unknown option {name}; did you mean {} or {last}?",
                rest.join(", ")
            )
        }
        [one, ..] => format!("unknown option {name}; did you mean {one}?"),
    }
}

/// Words that other programs have for an option.
const OTHER_WORDS: [(&str, options::Opt); 9] = [
    ("schedule", options::Opt::Cron),
    ("timezone", options::Opt::Tz),
    ("zone", options::Opt::Tz),
    ("redis", options::Opt::Store),
    ("redis-url", options::Opt::Store),
    ("url", options::Opt::Store),
    ("lease", options::Opt::Ttl),
    ("expire", options::Opt::Ttl),
    ("period", options::Opt::OncePer),
];

/// The options whose names begin with a word, else those that have it in them.
fn with_part(word: &str) -> Vec<String> {
    if word.len() < 2 {
        return Vec::new();
    }
    let flags = |fits: &dyn Fn(&str) -> bool| -> Vec<String> {
        let specs = OPTIONS.iter().filter(|spec| fits(spec.name));
        specs.map(|spec| spec.opt.flag()).collect()
    };
    let begun = flags(&|name| name.starts_with(word));
    if begun.is_empty() {
        return flags(&|name| name.split('-').any(|part| part == word));
    }
    begun
}

#[cfg(test)]
mod tests {
    use super::options::Opt;
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn the_table_is_in_the_order_of_its_options() {
        for (place, spec) in OPTIONS.iter().enumerate() {
            assert_eq!(spec.opt as usize, place, "{}", spec.name);
            assert!(std::ptr::eq(spec.opt.spec(), spec));
        }
        assert_eq!(OPTIONS.len(), Opt::Status as usize + 1);
    }
}
