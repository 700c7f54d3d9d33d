//! What can be typed. Parsing reads nothing but the command line: it never touches the machine.

#[cfg(test)]
mod documented;
mod options;
pub mod refused;
#[cfg(test)]
mod repeated;
mod values;
mod verbs;

use std::any::TypeId;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, CommandFactory, FromArgMatches, Parser};
use goodput_settings::allowlist::Pattern;

use values::path::path;

pub use options::{
    CredentialArgs, FileServerArgs, MeasureArgs, OutputArgs, PeerArgs, ProxyArgs, Words,
    asks_for_something, with_defaults,
};
pub use values::local::LocalAddress;
pub use values::router::RouterAddress;
pub use values::setting::spelled;
pub use values::{frequency, rate, steps, unfit};
pub use verbs::*;

/// The heading of the options that every verb takes.
pub const GLOBAL: &str = "Global options";

/// How fast a network path really is, what holds it back, and which change fixes it, proven by
/// measurement.
#[derive(Debug, Parser)]
#[command(name = "goodput", version, max_term_width = 100)]
#[command(disable_help_flag = true, disable_version_flag = true)]
#[command(after_help = "Exit codes: 0 fine, 1 a problem found or an expectation missed, 2 could \
                        not do it, 3 not permitted, 4 inconclusive.")]
pub struct Cli {
    /// Report more: details, and progress on standard error; -vv everything
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = GLOBAL)]
    pub verbose: u8,

    /// Directory of the settings journal [default: where the system keeps state]
    #[arg(long, value_name = "DIR", env = "GOODPUT_STATE_DIR", value_parser = path("GOODPUT_STATE_DIR"),
          global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub state_dir: Option<PathBuf>,

    /// Keep the history here: a file, or postgres://USER@HOST/DATABASE
    ///
    /// The password is best left to ~/.pgpass or PGPASSWORD, where no other user sees it. docs/history.md says more.
    #[arg(long, value_name = "FILE|URL", env = "GOODPUT_STORE", hide_env_values = true,
          value_parser = path("GOODPUT_STORE"), global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub store: Option<PathBuf>,

    /// Print help: -h the most used options, --help all of them
    #[arg(short, long, action = ArgAction::Help, global = true, help_heading = GLOBAL)]
    help: Option<bool>,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = GLOBAL)]
    version: Option<bool>,

    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What these words ask for, the program's own name first.
    pub fn from_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().collect();
        let read = |command: clap::Command| command.try_get_matches_from(&words);
        // The usage in an error names what was given. Without the environment, that is only what was typed.
        let typed = |error| read(without_environment(Self::whole())).err().unwrap_or(error);
        Self::from_arg_matches(&read(Self::whole()).map_err(typed)?)
    }

    /// The command line with all that is said of every command alike.
    pub fn whole() -> clap::Command {
        let command = with_usage_of_own_options(Self::command(), "goodput");
        with_long_help_named(with_values_that_begin_with_a_minus(command), "goodput")
    }
}

/// Lets every option with one value take what begins with a minus, so that the value's own parser says what is wrong
/// with it. If every text is a value, only a negative number is one. Options whose value may be missing take neither:
/// what follows them may be `-4` or `-6`.
fn with_values_that_begin_with_a_minus(command: clap::Command) -> clap::Command {
    let takes_one = |arg: &Arg| {
        !arg.is_positional()
            && arg.get_action().takes_values()
            && arg.get_num_args().is_none_or(|range| range == 1.into())
    };
    let command = command.mut_args(|arg| match takes_one(&arg) {
        true if takes_any_text(&arg) => arg.allow_negative_numbers(true),
        true => arg.allow_hyphen_values(true),
        false => arg,
    });
    command.mut_subcommands(with_values_that_begin_with_a_minus)
}

/// Whether an option takes any text as its value.
fn takes_any_text(option: &Arg) -> bool {
    let any = [TypeId::of::<String>(), TypeId::of::<PathBuf>(), TypeId::of::<OsString>()];
    let nearly = [TypeId::of::<values::capture_file::CaptureFile>(), TypeId::of::<Pattern>()];
    let mut any = any.iter().chain(&nearly);
    any.any(|any| option.get_value_parser().type_id() == *any)
}

/// Ends each command's short help with the name of the long one. Each command has both, because some global options are
/// only in the long help.
fn with_long_help_named(command: clap::Command, path: &str) -> clap::Command {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let long = command.get_after_long_help().map_or(after.clone(), ToString::to_string);
    let named = format!("This is the short help; `{path} --help` describes every option.");
    let short = if after.is_empty() { named } else { format!("{after}\n\n{named}") };
    command.after_help(short).after_long_help(long).mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        with_long_help_named(sub, &path)
    })
}

/// Leaves `[OPTIONS]` out of the usage of each command below `path` that takes only the global ones.
fn with_usage_of_own_options(command: clap::Command, path: &str) -> clap::Command {
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        let sub = with_usage_of_own_options(sub, &path);
        if !sub.get_arguments().all(Arg::is_positional) {
            return sub;
        }
        let usage = sub.clone().bin_name(path).disable_help_flag(true).render_usage().to_string();
        sub.override_usage(usage.trim_start_matches("Usage: ").to_string())
    })
}

fn without_environment(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| arg.env(clap::builder::Resettable::Reset));
    command.mut_subcommands(without_environment)
}

#[cfg(test)]
mod tests {
    use goodput_model::{Bytes, Length};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::whole().debug_assert();
    }

    #[test]
    fn iperf_s_letter_for_the_length_of_a_write_or_datagram_is_the_chunk() {
        for (line, chunk_bytes) in [("-l 8K", 8192), ("-u -l 64", 64), ("", 128 << 10)] {
            let words = format!("goodput test localhost {line}");
            let cli = Cli::from_words(words.split_whitespace().map(OsString::from)).unwrap();
            let Command::Test(test) = cli.command else { panic!("{words}") };
            assert_eq!(
                test.measure.plan(Length::Source).chunk_bytes,
                Bytes(chunk_bytes),
                "{words}"
            );
        }
    }

    #[test]
    fn a_negative_value_is_answered_by_the_options_own_parser() {
        let parse = |line: &str| Cli::from_words(line.split(' ').map(OsString::from));
        let why = parse("goodput test localhost -t -1").unwrap_err().to_string();
        assert!(!why.contains("unexpected argument") && why.contains("-1"), "{why}");
        assert!(parse("goodput test -4 localhost").is_ok(), "it is an option");
    }
}
