//! The reference documents: docs/cli.md, rules.md, settings.md, movers.md and the record's schema.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use goodput_settings::Scope;

use super::{check_schema, planted, schema};
use crate::args::Cli;

/// Says where a document comes from, so that nobody edits it by hand.
const MADE: &str =
    "<!-- Made by `cargo xtask docs`. Edit the code it comes from, not this file. -->";

/// Writes every document to `directory`.
pub fn write(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let documents = [
        ("cli.md", cli()),
        ("rules.md", rules()),
        ("settings.md", settings()),
        ("movers.md", movers()),
        ("old-names.md", format!("{MADE}\n\n{}", crate::shims::document())),
        ("record.schema.json", schema()? + "\n"),
        ("check.schema.json", check_schema()? + "\n"),
        ("checks.md", checks()),
    ];
    for (name, text) in documents {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn cli() -> String {
    let mut text = format!("{MADE}\n\n# The command line\n");
    let mut root = Cli::command();
    root.build();
    help(&mut text, &mut root);
    text
}

fn help(text: &mut String, command: &mut clap::Command) {
    let name = command.get_bin_name().unwrap_or("goodput").to_string();
    let long = command.render_long_help();
    // Writing to a String cannot fail, here and below.
    let _ = write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", trimmed(&long.to_string()));
    let visible =
        command.get_subcommands_mut().filter(|c| !c.is_hide_set() && c.get_name() != "help");
    visible.for_each(|command| help(text, command));
}

fn trimmed(help: &str) -> String {
    help.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn rules() -> String {
    let mut text = format!("{MADE}\n\n# Causes that goodput can name\n");
    for rule in goodput_diagnose::rules::ALL {
        // A page's headings are of the first level; here they stand below the rule's own.
        let page = format!("\n{}", rule.page()).replace("\n# ", "\n### ");
        let planted = planted::line(rule.id);
        let _ = write!(text, "\n## `{}`\n\n{}. {planted}\n{page}\n", rule.id, rule.title);
    }
    text + &planted::unnamed()
}

fn checks() -> String {
    let mut text = format!(
        "{MADE}\n\n# What `goodput check` looks for\n\nWithout traffic, on this host alone. What a check \
         finds has the name of the rule that\nnames the same cause once it limits a transfer \
         ([rules.md](rules.md)), where there is one.\n\n| check | looks at | looks for |\n|---|---|---|\n"
    );
    for check in goodput_diagnose::check::checks::ALL {
        let scope = match check.scope {
            goodput_diagnose::check::Scope::Host => "the host",
            goodput_diagnose::check::Scope::Device => "each device",
        };
        let _ = writeln!(text, "| `{}` | {scope} | {} |", check.id, check.title);
    }
    text
}

fn settings() -> String {
    let mut text = format!("{MADE}\n\n# Settings that goodput can compare and change\n");
    for setting in goodput_settings::settings::ALL {
        let scope = match setting.scope {
            Scope::Plan => "the measurement itself: nothing on the machine changes".to_string(),
            other => other.to_string(),
        };
        let _ = write!(
            text,
            "\n## `{}`\n\n{}. {}\n\n- holds for: {scope}\n- values: {}\n",
            setting.id,
            sentence(setting.title),
            setting.why,
            setting.values
        );
    }
    text + &far_settings()
}

/// What the clients of a server may reach.
fn far_settings() -> String {
    let mut text = String::from(
        "\n## What clients of a server may change\n\nNothing, unless the server's operator names it with \
         `serve --allow-settings`; and then only these settings,\nwithin these bounds. Clients read other \
         settings just as little. The administrator of a host may set\nmore there with `goodput settings set`.\n\n\
         | setting | values | why |\n|---|---|---|\n",
    );
    for entry in goodput_settings::others::ALL {
        let _ = writeln!(text, "| `{}` | {} | {} |", entry.name, entry.bounds, entry.why);
    }
    text
}

/// What `auto` means on any machine.
const AUTO_WORDS: &str = "\
`--mover NAME` names one. One that only sends, or only receives, leaves the other side to `copy`;
`--receive-mover NAME` names another for it. `--mover auto` lets each end take the one that costs the least
CPU time for the plan among those that can run there, and the record says which and why.
`goodput list movers` says which can run on a machine, and what the others would need.
";

fn movers() -> String {
    let mut text = format!("{MADE}\n\n# Ways to move payload\n\n{AUTO_WORDS}");
    for mover in goodput_mover::movers::ALL {
        let transports: Vec<_> = mover.transports().iter().map(|t| format!("{t:?}")).collect();
        let _ = write!(
            text,
            "\n## `{}`\n\n{}.\n\n- for: {}\n- side: {}\n",
            mover.id(),
            sentence(mover.summary()),
            transports.join(", "),
            crate::commands::list::sides(*mover)
        );
    }
    text
}

/// With a capital in front.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
