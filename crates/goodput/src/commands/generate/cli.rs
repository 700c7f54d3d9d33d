//! docs/cli.md: every verb and option, generated from the command line's definition.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use crate::args::{Cli, GLOBAL};

/// The verb whose options others share.
const MEASURING: &str = "test";

/// The page, below its first line.
pub fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = String::from(
        "# The command line\n\nSizes take K, M and G (powers of 1024), rates kbit, mbit, gbit or KB/s, MB/s (powers of 1000), \
         and times\nus, ms, s, m and h. A time without a unit is in seconds; --busy-poll, --rtt and --drain-gap need a unit.\n",
    );
    // Writing to a String can't fail, here and below.
    let _ = write!(text, "\n## Global options\n\nEvery command takes these.\n\n");
    root.get_arguments()
        .filter(|arg| heading(arg) == GLOBAL)
        .for_each(|arg| option(&mut text, arg));
    if let Some(after) = root.get_after_help() {
        let _ = write!(text, "\n{}\n", after.to_string().trim());
    }
    if let Some(measuring) = root.find_subcommand(MEASURING) {
        visible(&root).for_each(|verb| command(&mut text, verb, "##", measuring));
    }
    text
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

/// One command. Groups of options that it shares with `measuring` are described there.
fn command(text: &mut String, command_: &Command, level: &str, measuring: &Command) {
    let name = command_.get_bin_name().unwrap_or("goodput");
    let about = command_.get_long_about().or_else(|| command_.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let (first, rest) = about.split_once('\n').unwrap_or((&about, ""));
    let rest = if rest.is_empty() { String::new() } else { format!("\n{rest}") };
    let usage = command_.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(text, "\n{level} `{name}`\n\n{first}.{rest}\n\n    {usage}\n");
    for heading in headings(command_) {
        let group = group(command_, heading);
        let _ = match command_.get_name() != MEASURING && group == self::group(measuring, heading) {
            true => write!(text, "\n**{heading}**: as for `goodput {MEASURING}`\n"),
            false => write!(text, "\n**{heading}**\n\n{group}"),
        };
    }
    if let Some(after) = command_.get_after_long_help() {
        let _ = write!(text, "\n{}\n", after.to_string().trim());
    }
    visible(command_).for_each(|sub| command(text, sub, "###", measuring));
}

/// The options of a command under one heading.
fn group(command: &Command, heading: &str) -> String {
    let mut text = String::new();
    let group = options(command).filter(|arg| self::heading(arg) == heading);
    group.for_each(|arg| option(&mut text, arg));
    text
}

/// The options and arguments of this command alone.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set() && heading(arg) != GLOBAL)
}

/// Each heading once, in the order of the options.
fn headings(command: &Command) -> Vec<&str> {
    let mut headings = Vec::new();
    for heading in options(command).map(heading) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings
}

fn heading(arg: &Arg) -> &str {
    match arg.get_help_heading() {
        Some(heading) => heading,
        None if arg.is_positional() => "Arguments",
        None => "Options",
    }
}

/// ``- `-t, --time <TIME>`: what it does``
fn option(text: &mut String, arg: &Arg) {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string);
    let help = help.unwrap_or_default().replace('\n', "\n  ").replace("\n  \n", "\n\n");
    let _ = writeln!(text, "- `{}`: {}{}", spelled(arg), escaped(&help), values(arg));
}

/// The option as typed.
fn spelled(arg: &Arg) -> String {
    // As clap writes it in a usage line, with the short form before it.
    let long = arg.to_string();
    match arg.get_short().filter(|_| arg.get_long().is_some()) {
        Some(short) => format!("-{short}, {long}"),
        None => long,
    }
}

/// Markdown reads text in angle brackets as HTML.
fn escaped(help: &str) -> String {
    help.replace('<', "\\<").replace('*', "\\*")
}

/// The possible values, the default, and the environment variable.
fn values(arg: &Arg) -> String {
    let mut notes = Vec::new();
    let possible = arg.get_possible_values();
    if arg.get_action().takes_values() && !possible.is_empty() && !arg.is_hide_possible_values_set()
    {
        let names: Vec<_> =
            possible.iter().map(|value| format!("`{}`", value.get_name())).collect();
        notes.push(format!("one of {}", names.join(", ")));
    }
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let defaults = defaults.collect::<Vec<_>>().join(",");
    if arg.get_action().takes_values() && !defaults.is_empty() {
        notes.push(format!("default: {defaults}"));
    }
    if let Some(variable) = arg.get_env() {
        notes.push(format!("environment: `{}`", variable.to_string_lossy()));
    }
    if notes.is_empty() { String::new() } else { format!(" [{}]", notes.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_option_is_described_once_under_its_verb() {
        let page = page();
        assert_eq!(page.matches("- `--state-dir").count(), 1, "global options stand once");
        let test = page.split("\n## `goodput ").find(|part| part.starts_with("test`")).unwrap();
        let mut root = Cli::command();
        root.build();
        let verb = root.find_subcommand("test").unwrap();
        for arg in options(verb) {
            let line = format!("- `{}`: ", spelled(arg));
            assert_eq!(test.matches(&line).count(), 1, "{line}");
        }
        assert!(!page.contains("--no-observe"), "hidden options stay hidden");
    }
}
