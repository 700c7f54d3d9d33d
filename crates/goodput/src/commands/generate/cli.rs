//! docs/cli.md: a manual of every command, generated from the command line's definition.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::{Arg, Command};

use crate::args::{Cli, GLOBAL};

/// What holds for every command.
const VALUES: &str = "\
Sizes take K, M and G (powers of 1024), rates kbit, mbit, gbit or KB/s, MB/s (powers of 1000), and times us, ms, s, m and h.
A time without a unit is in seconds; --busy-poll, --rtt and --drain-gap need a unit.
";

/// The page, below its first line.
pub fn page() -> String {
    let mut root = Cli::whole();
    root.build();
    let mut manual = Manual::default();
    manual.text += "# The command line\n\n`-h` after a command prints its most used options, `--help` all of them.\n";
    manual.contents(&root);
    manual.text +=
        &format!("\n## Values\n\n{VALUES}\n## Global options\n\nEvery command takes these.\n\n");
    let global = root.get_arguments().filter(|arg| heading(arg) == GLOBAL);
    manual.text.extend(global.map(option));
    if let Some(codes) = root.get_after_long_help() {
        manual.text += &format!("\n{}\n", codes.to_string().trim());
    }
    visible(&root).for_each(|verb| manual.command(verb, "##"));
    manual.text
}

/// The page so far.
#[derive(Default)]
struct Manual {
    text: String,
    /// Each described option, and the command under which its description stands.
    described: BTreeMap<String, String>,
    /// How many options each command has under each heading.
    sizes: BTreeMap<(String, String), usize>,
}

impl Manual {
    /// A table of the commands.
    fn contents(&mut self, root: &Command) {
        self.text += "\n| command | what it does |\n|---|---|\n";
        for verb in visible(root) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            self.text += &format!("| {} | {about} |\n", link(name(verb)));
        }
    }

    fn command(&mut self, command: &Command, level: &str) {
        let about = command.get_long_about().or_else(|| command.get_about());
        let about = about.map(ToString::to_string).unwrap_or_default();
        let (first, rest) = about.split_once('\n').unwrap_or((&about, ""));
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        // Writing to a String can't fail, here and below.
        let _ = write!(self.text, "\n{level} `{}`\n\n{first}.\n\n    {usage}\n", name(command));
        let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let is_last =
            |text: &&str| text.starts_with("Examples:") || text.starts_with("Exit codes:");
        let (last, before): (Vec<_>, Vec<_>) = after.trim().split("\n\n").partition(is_last);
        std::iter::once(rest).chain(before).for_each(|text| self.paragraph(text));
        self.arguments(command);
        headings(command).into_iter().for_each(|heading| self.group(command, heading));
        last.into_iter().for_each(|text| self.paragraph(text));
        visible(command).for_each(|sub| self.command(sub, "###"));
    }

    /// A paragraph, whose indented lines are examples.
    fn paragraph(&mut self, text: &str) {
        let (prose, examples): (Vec<_>, Vec<_>) =
            text.trim().lines().partition(|line| !line.starts_with("    "));
        for (lines, form) in [(prose, escaped as fn(&str) -> String), (examples, str::to_owned)] {
            if !lines.is_empty() {
                let _ = writeln!(self.text, "\n{}", form(&lines.join("\n")));
            }
        }
    }

    /// The arguments, which each command describes itself.
    fn arguments(&mut self, command: &Command) {
        let all: String = options(command).filter(|arg| arg.is_positional()).map(option).collect();
        if !all.is_empty() {
            let _ = write!(self.text, "\n**Arguments**\n\n{all}");
        }
    }

    /// The options of a command under one heading. Those of an earlier command are only named, or all of them together.
    fn group(&mut self, command: &Command, heading: &str) {
        let group: Vec<&Arg> =
            optional(command).filter(|arg| self::heading(arg) == heading).collect();
        let mut new = String::new();
        let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for arg in &group {
            let described = option(arg);
            match self.described.get(&described) {
                Some(place) => known.entry(place.clone()).or_default().push(format!("`{arg}`")),
                None => {
                    new += &described;
                    self.described.insert(described, name(command).into());
                }
            }
        }
        self.sizes.insert((name(command).into(), heading.into()), group.len());
        let is_whole = |place: &String| {
            let there = self.sizes.get(&(place.clone(), heading.to_string()));
            known.len() == 1 && new.is_empty() && there == Some(&group.len())
        };
        // Writing to a String can't fail.
        if let Some(place) = known.keys().next().filter(|place| is_whole(place)) {
            let _ = writeln!(self.text, "\n**{heading}**: as for {}", link(place));
            return;
        }
        let _ = writeln!(self.text, "\n**{heading}**");
        if !new.is_empty() {
            let _ = write!(self.text, "\n{new}");
        }
        for (place, options) in known {
            let _ = writeln!(self.text, "\nAs for {}: {}", link(&place), options.join(", "));
        }
    }
}

fn name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or("goodput")
}

/// A link to the section of a command.
fn link(name: &str) -> String {
    format!("[`{name}`](#{})", name.replace(' ', "-"))
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

/// The options and arguments of this command alone.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set() && heading(arg) != GLOBAL)
}

/// The options without the arguments.
fn optional(command: &Command) -> impl Iterator<Item = &Arg> {
    options(command).filter(|arg| !arg.is_positional())
}

/// Each heading once, in the order of the options.
fn headings(command: &Command) -> Vec<&str> {
    let mut headings = Vec::new();
    for heading in optional(command).map(heading) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings
}

fn heading(arg: &Arg) -> &str {
    arg.get_help_heading().unwrap_or("Options")
}

/// ``- `-t, --time <TIME>`: what it does``
fn option(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string);
    let help = help.unwrap_or_default().replace('\n', "\n  ").replace("\n  \n", "\n\n");
    format!("- `{}`: {}{}\n", spelled(arg), escaped(&help), values(arg))
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
    fn every_visible_option_is_described_once_and_named_wherever_it_is_taken() {
        let page = page();
        let mut root = Cli::whole();
        root.build();
        let mut next: Vec<&Command> = visible(&root).collect();
        while let Some(command) = next.pop() {
            next.extend(visible(command));
            let title = format!(" `{}`\n", name(command));
            let is_its = |part: &&str| part.trim_start_matches('#').starts_with(&title);
            let section = page.split("\n##").find(is_its).expect(&title);
            for arg in optional(command) {
                let described = option(arg);
                // Another option may say the same first, and then more.
                let longer = page.matches(&format!("{described}\n  ")).count();
                assert_eq!(page.matches(&described).count() - longer, 1, "{arg}");
                let all = format!("**{}**: as for", heading(arg));
                let places = [described, format!("`{arg}`"), all];
                assert!(places.iter().any(|text| section.contains(text)), "{title}{arg}");
            }
        }
        let list = page.split("\n##").find(|part| part.contains(" lab list`\n")).unwrap();
        let texts =
            ["goodput lab list [OPTIONS] [TEXT]", "**Arguments**\n\n- `[TEXT]`", "**Options**"];
        let places = texts.map(|text| list.find(text).expect(text));
        assert!(
            places.is_sorted(),
            "arguments come first, and each command describes its own: {list}"
        );
        assert!(page.contains("\n    goodput demo\n"), "it has no options of its own");
        assert_eq!(page.matches("- `--state-dir").count(), 1, "global options stand once");
        assert!(!page.contains("--no-observe"), "hidden options stay hidden");
    }

    #[test]
    fn examples_stand_apart_from_the_sentence_before_them() {
        let mut manual = Manual::default();
        manual.paragraph("Examples:\n    goodput list rules");
        assert_eq!(manual.text, "\nExamples:\n\n    goodput list rules\n");
    }
}
