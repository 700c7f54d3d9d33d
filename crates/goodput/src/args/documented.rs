//! Every command that README.md, the pages and the help show can be typed: its verb, options and values exist.

use std::path::{Path, PathBuf};

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
        let commands = commands(&text);
        count += commands.len();
        let found = commands.into_iter().filter_map(problem);
        problems.extend(found.map(|problem| format!("{}: {problem}", page.display())));
    }
    assert!(count > 30, "only {count} commands were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Why a command that is shown somewhere can't be typed.
fn problem(command: &str) -> Option<String> {
    let cause = Cli::from_words(command.split_whitespace().map(Into::into)).err()?;
    (!is_only_a_name(&cause)).then(|| format!("{command}\n{cause}"))
}

/// A narrow terminal.
const TERMINAL_COLUMNS: usize = 80;

/// Every command of the command line that is not hidden, with its whole help.
pub(super) fn all_commands() -> Vec<clap::Command> {
    let mut whole = Cli::whole().term_width(TERMINAL_COLUMNS);
    whole.build();
    let (mut all, mut next) = (Vec::new(), vec![whole]);
    while let Some(command) = next.pop() {
        let subcommands = command.get_subcommands().filter(|sub| sub.get_name() != "help");
        next.extend(subcommands.filter(|sub| !sub.is_hide_set()).cloned());
        all.push(command);
    }
    all
}

/// All that a command and its options say, as it is in the source.
fn texts(command: &clap::Command) -> Vec<String> {
    let options = command.get_arguments();
    let options = options.filter_map(|option| option.get_long_help().or_else(|| option.get_help()));
    let own = [command.get_about(), command.get_long_about(), command.get_after_long_help()];
    options.chain(own.into_iter().flatten()).map(ToString::to_string).collect()
}

#[test]
fn every_example_in_the_help_is_a_line_of_its_own_and_parses() {
    let mut count = 0;
    for mut command in all_commands() {
        let help = command.render_long_help().to_string();
        let texts = texts(&command);
        let lines = texts.iter().flat_map(|text| text.lines());
        for example in lines.filter(|line| line.starts_with("    ")) {
            count += 1;
            let name = command.get_name();
            let is_whole = help.lines().any(|line| line.trim_start() == example.trim_start());
            assert!(is_whole, "goodput {name} --help breaks {example:?}:\n{help}");
            assert!(example.starts_with("    goodput "), "{name}: {example:?} is no command");
        }
        let unparsed = texts.iter().flat_map(|text| commands(text)).filter_map(problem);
        let unparsed: Vec<_> = unparsed.collect();
        assert!(unparsed.is_empty(), "{}", unparsed.join("\n"));
    }
    assert!(count > 20, "only {count} examples were found");
}

#[test]
fn every_short_help_names_the_long_one() {
    for mut command in all_commands() {
        let path = command.get_bin_name().unwrap_or("goodput").to_string();
        let [short, long] =
            [command.render_help(), command.render_long_help()].map(|help| help.to_string());
        let named = format!("`{path} --help` describes every option");
        assert!(short.split_whitespace().collect::<Vec<_>>().join(" ").contains(&named), "{short}");
        assert!(!long.contains("short help") && long.len() > short.len(), "{long}");
    }
}

/// The first line of a help text is shorter than this (docs/style.md, rule 7).
const FIRST_LINE_CHARS: usize = 70;

#[test]
fn the_first_line_of_each_command_and_option_is_short() {
    let first = |help: &str| help.split(" [default: ").next().unwrap_or_default().to_string();
    let mut long = Vec::new();
    for command in all_commands() {
        let name = command.get_name();
        let about = command.get_about().map(|about| (name.to_string(), about.to_string()));
        let options = command.get_arguments().filter_map(|option| {
            Some((format!("{name} {option}"), option.get_help()?.to_string()))
        });
        let texts = about.filter(|_| name != "goodput").into_iter().chain(options);
        let firsts = texts.map(|(whose, help)| (whose, first(&help)));
        long.extend(firsts.filter(|(_, first)| first.chars().count() >= FIRST_LINE_CHARS));
    }
    assert!(long.is_empty(), "at most {} characters: {long:#?}", FIRST_LINE_CHARS - 1);
}
