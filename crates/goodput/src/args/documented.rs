//! Every command that README.md and the pages show can be typed: its verb, options and values exist.

use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

/// Pages whose code starts with "goodput" and is no command: the generated lists, and the protocol's tables.
const NO_COMMANDS: [&str; 3] = ["cli.md", "old-names.md", "protocol.md"];

/// README.md and the pages in `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let other = |path: &PathBuf| NO_COMMANDS.iter().any(|name| path.ends_with(name));
    let pages = docs.filter(|path| path.extension().is_some_and(|name| name == "md"));
    pages.filter(|path| !other(path)).chain([root.join("README.md")]).collect()
}

/// The commands of a page: indented lines, and text in backticks, without comments and redirections.
fn commands(text: &str) -> Vec<&str> {
    let indented = text.lines().filter_map(|line| line.strip_prefix("    "));
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let alone = |command: &'static str| move |text: &&str| text.starts_with(command);
    let ends = ["   #", "  #", " # ", " > ", " | ", " && ", " &"];
    let cut = |command: &str| ends.iter().filter_map(|end| command.find(end)).min();
    indented
        .chain(quoted)
        .filter(alone("goodput "))
        .map(|command| command[..cut(command).unwrap_or(command.len())].trim())
        .filter(|command| !command.contains(['|', '[', '…', '<', '"', '\'', '\\', '(']))
        .collect()
}

/// A page may name a verb without all that it takes.
fn is_only_a_name(cause: &clap::Error) -> bool {
    use ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
        MissingRequiredArgument, MissingSubcommand,
    };
    matches!(
        cause.kind(),
        DisplayHelp
            | DisplayHelpOnMissingArgumentOrSubcommand
            | DisplayVersion
            | MissingRequiredArgument
            | MissingSubcommand
    )
}

#[test]
fn every_command_in_the_pages_parses() {
    let mut problems = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for command in commands(&text) {
            count += 1;
            if let Err(cause) = Cli::try_parse_from(command.split_whitespace())
                && !is_only_a_name(&cause)
            {
                problems.push(format!("{}: {command}\n{cause}", page.display()));
            }
        }
    }
    assert!(count > 30, "only {count} commands were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
