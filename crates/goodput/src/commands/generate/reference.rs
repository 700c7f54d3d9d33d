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
that can run there. This is also the default of UDP without `--rate`; otherwise the default is `copy`. The record names the
choice and the reason. `goodput list movers` shows which movers can run on this
machine, and what the others need.
";

/// What there is for fast devices, and what of it has run.
const FAST_WORDS: &str = "\
## Devices beyond 100 Gbit/s

No such device was at hand. What has run, ran on Linux 6.18 with two CPUs on one node of memory.

| what | state |
|---|---|
| header split (`ring.tcp_data_split`, `ring.hds_thresh`) | has run against a card in memory, and is refused by veth; no real device with a header split has run it |
| flow steering (`offload.ntuple`) | has run against a card in memory. goodput adds no rule for a flow: `ethtool -N` does. Rules that a driver drops along with a change are put back |
| io_uring zero-copy receive | absent: Linux has it since 6.15, but only for drivers with header split and queues that restart one by one. No device here, virtual ones included, can move a byte with it |
| AF_XDP datagrams | absent |
| sending registered pages (`uring-zerocopy`) | has run over loopback, where the kernel copies. The pages are a huge page if the kernel grants one |
| a UDP port for each queue | each UDP flow has a port of its own at the near end; the card's hash chooses the queue |
| memory near the card | what a flow touches first is on the node of the CPU on which its thread runs then: `--pin` chooses it, nothing else does. Flows share payload, which is on the node of the flow that came first. More than one node has not run |
";

fn movers() -> String {
    let pages: String =
        goodput_mover::movers::ALL.iter().map(|mover| pages::mover(*mover)).collect();
    format!("{MADE}\n\n# Ways to move payload\n\n{AUTO_WORDS}{pages}\n{FAST_WORDS}")
}
