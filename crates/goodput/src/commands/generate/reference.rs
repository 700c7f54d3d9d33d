//! The reference documents: docs/cli.md, rules.md, settings.md, movers.md and the record's schema.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::{ceiling_schema, check_schema, cli, schema};
use crate::pages::{self, planted};
use anyhow::{Context, Result};

/// States where a document comes from, so that nobody edits it by hand.
const MADE: &str =
    "<!-- Made by `cargo xtask docs`. Edit the code it comes from, not this file. -->";

/// Writes every document to `directory`.
pub fn write(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("can't make {}", directory.display()))?;
    let documents = [
        ("cli.md", format!("{MADE}\n\n{}", cli::page())),
        ("rules.md", rules()),
        ("settings.md", settings()),
        ("movers.md", movers()),
        ("old-names.md", format!("{MADE}\n\n{}", goodput_compat::programs::document())),
        ("record.schema.json", schema()? + "\n"),
        ("check.schema.json", check_schema()? + "\n"),
        ("ceiling.schema.json", ceiling_schema()? + "\n"),
        ("checks.md", checks()),
    ];
    for (name, text) in documents {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

fn rules() -> String {
    let pages: String = goodput_diagnose::rules::ALL.iter().map(|rule| pages::rule(rule)).collect();
    format!("{MADE}\n\n# Causes that goodput can name\n{pages}{}", planted::unnamed())
}

fn checks() -> String {
    let mut text = format!(
        "{MADE}\n\n# What `goodput check` looks for\n\n`goodput check` looks at this host only, without traffic. If a rule names the same cause when it limits a transfer,\nthe check has the rule's name ([rules.md](rules.md)).\n\n| check | looks at | looks for |\n|---|---|---|\n"
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
    let pages: String =
        goodput_settings::settings::ALL.iter().map(|setting| pages::setting(setting)).collect();
    format!("{MADE}\n\n# Settings that goodput can compare and change\n{pages}{}", far_settings())
}

/// The settings that a server's clients may reach.
fn far_settings() -> String {
    let mut text = String::from(
        "\n## What clients of a server may change\n\nNothing, unless the server's operator allows it with `serve --allow-settings '*'` or a pattern; then only these settings,\nwithin these bounds. A value that was there before may always return. Clients can't read other settings either. The administrator of a host can set\nmore there with `goodput settings set`.\n\n\
         | setting | values | why |\n|---|---|---|\n",
    );
    for entry in goodput_settings::allowlist::ALL {
        let _ = writeln!(text, "| `{}` | {} | {} |", entry.name, entry.bounds, entry.why);
    }
    text
}

/// What `auto` means on any machine.
const AUTO_WORDS: &str = "\
`--mover NAME` chooses a mover. If that mover only sends or only receives, `copy` does the other side, or the mover of
`--receive-mover`. With `--mover auto`, each end chooses the mover that costs the least CPU time for the plan, among those
that can run there. The record names the choice and the reason. `goodput list movers` shows which movers can run on this
machine, and what the others need.
";

fn movers() -> String {
    let pages: String =
        goodput_mover::movers::ALL.iter().map(|mover| pages::mover(*mover)).collect();
    format!("{MADE}\n\n# Ways to move payload\n\n{AUTO_WORDS}{pages}")
}
