//! What is wrong with a command line, in goodput's own words: what was typed, why it is refused, what to type instead.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Error};

use super::Cli;

/// The error in one sentence, and where the help has more.
pub fn in_words(error: &Error) -> String {
    let parts = Parts(error);
    match error.kind() {
        ErrorKind::ValueValidation => parts.value(),
        ErrorKind::InvalidValue => parts.choice(),
        ErrorKind::NoEquals => parts.missing_value(),
        _ => {
            let (words, command) = (parts.words(), parts.command());
            let stop = if words.ends_with('?') { "" } else { ";" };
            format!("{words}{stop} `{command} --help` has the options")
        }
    }
}

/// What clap knows of an error.
struct Parts<'a>(&'a Error);

impl Parts<'_> {
    fn value(&self) -> String {
        let why = self.0.source().map(ToString::to_string).unwrap_or_default();
        format!("{}: {why}", self.option())
    }

    fn choice(&self) -> String {
        let typed = self.texts(ContextKind::InvalidValue).concat();
        let choices = self.texts(ContextKind::ValidValue);
        match (typed.as_str(), &choices[..]) {
            ("", []) => self.missing_value(),
            ("", _) => format!("{} needs a value; write {}", self.option(), one_of(&choices)),
            _ => {
                format!("{}: {typed:?} is unknown; write {}", self.option(), one_of(&choices))
            }
        }
    }

    fn missing_value(&self) -> String {
        let argument = self.texts(ContextKind::InvalidArg).concat();
        format!("{} needs a value; write {argument}", self.option())
    }

    /// What is wrong, if it is not a value.
    fn words(&self) -> String {
        let argument = self.texts(ContextKind::InvalidArg);
        let shown = argument.join(" ");
        match self.0.kind() {
            ErrorKind::UnknownArgument => {
                let what = if shown.starts_with('-') { "option" } else { "argument" };
                let unknown = format!("`{}` takes no {what} {shown:?}", self.command());
                let options = self.definition(Cli::whole());
                let longs = options.iter().flat_map(clap::Command::get_arguments).filter_map(long);
                with_meant(unknown, &shown, longs)
            }
            ErrorKind::InvalidSubcommand => {
                let typed = self.texts(ContextKind::InvalidSubcommand).concat();
                let unknown = format!("`{}` has no command {typed:?}", self.command());
                let parent = self.definition(Cli::whole());
                let known = parent.iter().flat_map(clap::Command::get_subcommands);
                with_meant(unknown, &typed, known.map(|verb| verb.get_name().to_string()))
            }
            ErrorKind::MissingRequiredArgument => match self.needing(&argument) {
                Some(option) => format!("{option} needs {}", needed(&argument)),
                None => {
                    format!("{shown} is missing; write `{}`{}", self.usage(), self.choices(&shown))
                }
            },
            ErrorKind::ArgumentConflict => {
                let other = self.texts(ContextKind::PriorArg);
                match other.is_empty() || other == argument {
                    true => format!("{shown} may be given only once"),
                    false => format!("{shown} can't be used with {}", other.join(", ")),
                }
            }
            ErrorKind::TooManyValues => {
                let extra = self.texts(ContextKind::InvalidValue).concat();
                format!("{extra:?} is one value too many for {shown}")
            }
            ErrorKind::InvalidUtf8 => "an argument is not UTF-8 text".into(),
            _ => format!("{shown} has too few values; write `{}`", self.usage()),
        }
    }

    /// `: a, b or c`, all that an argument without a name may be; nothing if that is not a choice.
    fn choices(&self, shown: &str) -> String {
        let verb = self.definition(Cli::whole());
        let argument = verb.iter().flat_map(clap::Command::get_positionals);
        let argument = argument.filter(|argument| argument.to_string() == shown);
        let values = argument.flat_map(Arg::get_possible_values);
        let names: Vec<_> = values.map(|value| value.get_name().to_string()).collect();
        if names.is_empty() { String::new() } else { format!(": {}", one_of(&names)) }
    }

    /// The typed option that needs what is missing: alone, it misses the same options.
    fn needing(&self, missing: &[String]) -> Option<String> {
        let missing: Vec<_> = missing.iter().filter(|name| is_option(name)).collect();
        let misses_them = |option: &&Arg| {
            let command = self.command();
            let words = command.split(' ').map(String::from).chain([alone(option)]);
            let outcome = with_any_values(Cli::whole()).try_get_matches_from(words);
            let misses = outcome.err().map(|why| Parts(&why).texts(ContextKind::InvalidArg));
            misses.is_some_and(|misses| missing.iter().all(|name| misses.contains(name)))
        };
        let usage = self.usage();
        let is_typed = |option: &&Arg| {
            long(option).is_some_and(|long| usage.split([' ', '[']).any(|word| word == long))
        };
        let verb = self.definition(Cli::whole()).filter(|_| !missing.is_empty())?;
        verb.get_arguments().filter(is_typed).find(misses_them).and_then(long)
    }

    /// The verb, as `whole` defines it.
    fn definition(&self, whole: clap::Command) -> Option<clap::Command> {
        let path = self.command();
        let step = |command: clap::Command, name| command.find_subcommand(name).cloned();
        path.split(' ').skip(1).try_fold(whole, step)
    }

    /// The name of the option, or of what stands in its place on the command line.
    fn option(&self) -> String {
        let argument = self.texts(ContextKind::InvalidArg).concat();
        let name = argument.split([' ', '[', '=']).next().unwrap_or_default();
        if name.starts_with('-') { name.into() } else { argument }
    }

    fn usage(&self) -> String {
        let usage = self.texts(ContextKind::Usage).concat();
        let first = usage.lines().next().unwrap_or_default();
        first.trim_start_matches("Usage: ").into()
    }

    /// The verb, as far as the usage names it.
    fn command(&self) -> String {
        let usage = self.usage();
        let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
        let names: Vec<_> = usage.split(' ').take_while(is_name).collect();
        if names.is_empty() { "goodput".into() } else { names.join(" ") }
    }

    fn texts(&self, kind: ContextKind) -> Vec<String> {
        match self.0.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
            _ => Vec::new(),
        }
    }
}

/// `--NAME`
fn long(option: &Arg) -> Option<String> {
    option.get_long().map(|name| format!("--{name}"))
}

/// An option as it is typed, with some value if it takes one.
fn alone(option: &Arg) -> String {
    let name = long(option).unwrap_or_default();
    if option.get_action().takes_values() { name + "=x" } else { name }
}

/// Lets every option take any value.
fn with_any_values(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_action().takes_values() {
        true => arg.value_parser(clap::builder::OsStringValueParser::new()),
        false => arg,
    });
    command.mut_subcommands(with_any_values)
}

/// With what the user probably meant.
fn with_meant(said: String, typed: &str, known: impl Iterator<Item = String>) -> String {
    let known: Vec<_> = known.collect();
    match goodput_model::meant(typed, known.iter().map(String::as_str)) {
        Some(meant) => format!("{said}; {meant}"),
        None => said,
    }
}

/// The options among all that is missing. One of several is written `<--a|--b>`.
fn needed(missing: &[String]) -> String {
    let options = missing.iter().filter(|name| is_option(name));
    let options =
        options.map(|name| match name.strip_prefix('<').and_then(|n| n.strip_suffix('>')) {
            Some(several) => several.replace('|', " or "),
            None => name.clone(),
        });
    options.collect::<Vec<_>>().join(" and ")
}

fn is_option(name: &str) -> bool {
    name.trim_start_matches('<').starts_with('-')
}

/// `a, b or c`
fn one_of(choices: &[String]) -> String {
    match choices {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => choices.concat(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::args::documented::all_commands;
    use crate::args::{Cli, takes_any_text};

    /// Words of the standard library and of clap, which say nothing of what is allowed.
    const FOREIGN: [&str; 8] = [
        "invalid digit",
        "number too",
        "out of range integral",
        "invalid float",
        "cannot parse",
        "invalid value",
        "is not in ",
        "os error",
    ];

    fn refused(line: &[&str]) -> Option<Error> {
        Cli::from_words(line.iter().map(OsString::from)).err()
    }

    fn why(line: &str) -> String {
        in_words(&refused(&line.split(' ').collect::<Vec<_>>()).expect("it is refused"))
    }

    /// The options of every command that take only some values, each behind the words of its command.
    fn choosy_options() -> Vec<(Vec<String>, String)> {
        let mut found = Vec::new();
        for command in all_commands() {
            let path = command.get_bin_name().unwrap_or("goodput").split(' ');
            let path: Vec<_> = path.map(String::from).collect();
            let takes_values = command.get_arguments().filter(|a| a.get_action().takes_values());
            let choosy = takes_values.filter(|option| !takes_any_text(option));
            found.extend(
                choosy.filter_map(|o| Some((path.clone(), format!("--{}", o.get_long()?)))),
            );
        }
        found
    }

    #[test]
    fn every_option_answers_nonsense_with_its_name_and_with_what_is_allowed() {
        let options = choosy_options();
        assert!(options.len() > 100, "only {} options were found", options.len());
        let mut problems = Vec::new();
        for (path, option) in &options {
            for nonsense in ["\u{1}nonsense", "-1.5e-7x", "99999999999999999999999"] {
                let typed = format!("{option}={nonsense}");
                let words = path.iter().map(String::as_str).chain([typed.as_str()]);
                let Some(error) = refused(&words.collect::<Vec<_>>()) else { continue };
                let is_of_value =
                    matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
                let said = in_words(&error);
                let is_complete = said.starts_with(option.as_str()) && said.contains("write ");
                let is_foreign = FOREIGN.iter().any(|foreign| said.contains(foreign));
                // A long number may be a value.
                let is_nonsense = !nonsense.starts_with('9');
                if is_of_value && (!is_complete || is_foreign) || is_nonsense && !is_of_value {
                    problems.push(format!("{} {typed:?}: {said}", path.join(" ")));
                }
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn what_is_typed_wrong_is_named_with_what_to_type() {
        for (line, words) in [
            ("goodput shaping nas --rate -5mbit", "--rate: \"-5mbit\" is not a rate above 0"),
            ("goodput test nas --rate -5mbit", "--rate: \"-5mbit\" is not a rate of at least 0"),
            (
                "goodput shaping nas --rate 1gbit --tolerance 200%",
                "is not a tolerance above 0 and below 100 percent",
            ),
            (
                "goodput test nas --flows x",
                "--flows: \"x\" is not a number of flows; write a whole number, 1 to 65535",
            ),
            (
                "goodput test nas --interval 0.05",
                "--interval: \"0.05\" is not 0 or a time of at least 100ms and at most a year; write it like",
            ),
            ("goodput test nas --flows", "--flows needs a value; write --flows <N>"),
            (
                "goodput test nas --revers",
                "takes no option \"--revers\"; did you mean \"--reverse\"?",
            ),
            ("goodput test nas -R --both", "can't be used with"),
            ("goodput test nas -R -R", "may be given only once"),
            (
                "goodput settings lst",
                "`goodput settings` has no command \"lst\"; did you mean \"list\"?",
            ),
            (
                "goodput settings get",
                "<SETTING> is missing; write `goodput settings get <SETTING>`",
            ),
            (
                "goodput list",
                "<WHAT> is missing; write `goodput list <WHAT> [TEXT]`: rules, checks, ",
            ),
            ("goodput tset nas", "`goodput` has no command \"tset\"; did you mean \"test\"?"),
            (
                "goodput explain --probe x",
                "`goodput explain` takes no option \"--probe\"; `goodput explain --help`",
            ),
            (
                "goodput test nas -P 4 --max-loss 1",
                "--max-loss needs --udp and --find-rate; `goodput test --help`",
            ),
            ("goodput test --burst 8K", "--burst needs --rate <RATE[/flow]> and --udp; "),
            (
                "goodput serve --allow-settings=sysctl.net.ipv4.tcp_rmem",
                "--allow-settings needs --",
            ),
            (
                "goodput serve --token-file t --allow-settings --port 5000",
                "--allow-settings needs a value; write --allow-settings <PATTERN>",
            ),
            (
                "goodput serve --token-file t --allow-settings=--port",
                "--allow-settings: \"--port\" is an option and no pattern; '*' is the pattern of all",
            ),
            ("goodput key x", "`goodput key` takes no argument \"x\"; `goodput key --help`"),
            ("goodput list x", "<WHAT>: \"x\" is unknown; write rules, checks,"),
        ] {
            let said = why(line);
            assert!(said.contains(words), "{line}: {said}");
            assert!(!said.contains("error:") && !said.contains('\n'), "{said}");
        }
    }
}
