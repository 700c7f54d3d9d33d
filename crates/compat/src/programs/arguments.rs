//! Translates the typed arguments into goodput's own, by a program's table.

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::files::Files;
use super::option::{Means, Mode, Opt, Refusal, Value};
use super::parsed::ParsedArguments;
use super::program::Program;

/// Key of the operands among clap's arguments; no option has it.
const OPERANDS: &str = "operands";

/// The result of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// Goodput's own arguments, without its name.
    Run {
        /// The verb and its options.
        arguments: Vec<String>,
        /// Whether it detaches from the terminal.
        background: bool,
        /// The arguments of a second run, once the first has succeeded.
        again: Option<Vec<String>>,
        /// The files that it also writes.
        files: Files,
    },
    /// Print this and exit.
    Print(String),
}

/// Translates `arguments`, without the program's name, for goodput.
pub fn translate(program: &'static Program, arguments: &[String]) -> Result<Invocation, Refusal> {
    let typed = parse(program, arguments)?;
    let mode = (program.mode)(&typed)?;
    let (verb, finish) = match mode {
        Mode::Help => return Ok(Invocation::Print(help(program))),
        Mode::Version => return Ok(Invocation::Print(version(program))),
        Mode::Client => ("test", program.client),
        Mode::Server => ("serve", program.server),
    };
    let mut own = vec![verb.to_string()];
    for (at, (option, value)) in typed.given.iter().enumerate() {
        // These programs use the last of several.
        let comes_again = typed.given[at + 1..].iter().any(|(o, _)| o.name() == option.name());
        if !comes_again {
            carry_over(option, mode, value, &mut own)?;
        }
    }
    let arguments = finish(&typed, own)?;
    let again = (program.again)(&typed).filter(|_| mode == Mode::Client);
    let again = again.map(|also| [&arguments[..], &[also.into()]].concat());
    let background = mode == Mode::Server && (program.background)(&typed);
    Ok(Invocation::Run { arguments, background, again, files: (program.files)(&typed) })
}

fn carry_over(option: &Opt, mode: Mode, value: &str, own: &mut Vec<String>) -> Result<(), Refusal> {
    let name = option.name();
    match option.means(mode) {
        Means::Flag(arguments) => own.extend(arguments.iter().map(ToString::to_string)),
        Means::With(options, convert) => {
            let value = convert(value).map_err(|why| Refusal(format!("option {name}: {why}")))?;
            // As one word, because values may begin with a dash.
            own.extend(options.iter().map(|option| format!("{option}={value}")));
        }
        Means::Joined(_) | Means::Ignored(_) => {}
        Means::Refused(why) => return Err(Refusal(format!("option {name} is refused: {why}"))),
        Means::Elsewhere => {
            let only = if mode == Mode::Server { "client" } else { "server" };
            return Err(Refusal(format!("option {name} is for the {only} only")));
        }
    }
    Ok(())
}

fn parse(program: &'static Program, arguments: &[String]) -> Result<ParsedArguments, Refusal> {
    let matches = command(program)
        .try_get_matches_from(arguments.iter().map(|word| attached(program, word)))
        .map_err(|error| Refusal(as_getopt(&error)))?;
    let mut given: Vec<(usize, &'static Opt, String)> = Vec::new();
    for option in program.options {
        given.extend(occurrences(&matches, option));
    }
    given.sort_by_key(|(at, ..)| *at);
    let operands = match program.takes_host {
        true => matches.get_many::<String>(OPERANDS).into_iter().flatten().cloned().collect(),
        false => Vec::new(),
    };
    Ok(ParsedArguments {
        given: given.into_iter().map(|(_, option, value)| (option, value)).collect(),
        operands,
    })
}

/// An optional value is attached in the same word, `-bx` (getopt(3)); clap expects `-b=x`.
fn attached(program: &Program, word: &str) -> String {
    let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
    let letter = letters.next();
    let maybe = |option: &Opt| option.short == letter && matches!(option.value, Value::Maybe(_));
    let value = letters.as_str();
    match letter {
        Some(letter) if !value.is_empty() && program.options.iter().any(maybe) => {
            format!("-{letter}={}", value.trim_start_matches('='))
        }
        _ => word.into(),
    }
}

fn occurrences(matches: &ArgMatches, option: &'static Opt) -> Vec<(usize, &'static Opt, String)> {
    let name = id(option);
    let at: Vec<usize> = matches.indices_of(name).into_iter().flatten().collect();
    match option.value {
        // A flag that was not given still has an index: its default's.
        Value::None if matches.get_count(name) == 0 => Vec::new(),
        Value::None => at.first().map(|at| (*at, option, String::new())).into_iter().collect(),
        Value::One(_) | Value::Maybe(_) => {
            let values = matches.get_many::<String>(name).into_iter().flatten().cloned();
            at.into_iter().zip(values).map(|(at, value)| (at, option, value)).collect()
        }
    }
}

/// The program's command line, as clap reads it.
pub fn command(program: &'static Program) -> Command {
    let command = Command::new(program.name)
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .override_usage(program.usage.join("\n       "))
        .args(program.options.iter().map(argument));
    match program.takes_host {
        true => command.arg(Arg::new(OPERANDS).num_args(0..).value_name("host")),
        false => command,
    }
}

/// The id of an option in clap.
fn id(option: &Opt) -> &'static str {
    const LETTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let letter = option.short.and_then(|short| LETTERS.find(short));
    letter.map(|at| &LETTERS[at..=at]).or(option.long).unwrap_or_default()
}

fn argument(option: &'static Opt) -> Arg {
    let mut argument = Arg::new(id(option)).help(option.client.text());
    if let Some(short) = option.short {
        argument = argument.short(short);
    }
    if let Some(long) = option.long {
        argument = argument.long(long);
    }
    match option.value {
        Value::None => argument.action(ArgAction::Count),
        Value::One(name) => {
            argument.action(ArgAction::Append).value_name(name).allow_hyphen_values(true)
        }
        Value::Maybe(name) => argument
            .action(ArgAction::Append)
            .value_name(name)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(""),
    }
}

/// clap's errors in the wording of getopt(3), which these programs use.
fn as_getopt(error: &clap::Error) -> String {
    let argument = || match error.get(ContextKind::InvalidArg) {
        Some(argument) => argument.to_string(),
        None => String::new(),
    };
    let bare = |text: &str| text.split([' ', '=']).next().unwrap_or(text).to_string();
    match error.kind() {
        ErrorKind::UnknownArgument => match argument() {
            long if long.starts_with("--") => format!("unrecognized option '{long}'"),
            short if short.starts_with('-') => {
                format!("invalid option -- '{}'", short.trim_start_matches('-'))
            }
            operand => format!("unrecognized argument '{operand}'"),
        },
        ErrorKind::InvalidValue | ErrorKind::TooFewValues | ErrorKind::NoEquals => {
            format!("option '{}' requires an argument", bare(&argument()))
        }
        ErrorKind::TooManyValues => {
            format!("option '{}' doesn't allow an argument", bare(&argument()))
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").into()
        }
    }
}

fn help(program: &'static Program) -> String {
    format!("{}\n{}", version(program), command(program).render_long_help())
}

fn version(program: &Program) -> String {
    format!("goodput {} in place of {}\n", env!("CARGO_PKG_VERSION"), program.version)
}
