//! `cargo xtask new`: adds an entry to a registry, from a template that compiles.

mod edit;
mod registry;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use goodput_tools::shell::{command, root};
use registry::REGISTRIES;

pub use registry::BLANK;

/// Options of `cargo xtask new`.
#[derive(clap::Args)]
pub struct Options {
    /// What to add.
    #[arg(value_parser = REGISTRIES.map(|registry| registry.kind))]
    kind: String,
    /// Its id, as users will type it.
    id: String,
}

/// Writes the file and adds its lines to the list.
pub fn run(options: &Options) -> Result<()> {
    let registry = REGISTRIES.iter().find(|registry| registry.kind == options.kind);
    let registry = registry.context("there is no such registry")?;
    registry.check_id(&options.id)?;
    let file = registry.file(&options.id);
    if root().join(&file).exists() {
        bail!("{file} exists already");
    }
    let list = registry.list();
    let text = fs::read_to_string(root().join(&list)).with_context(|| format!("no {list}"))?;
    fs::write(root().join(&list), rustfmt(&registry.add_to(&text, &options.id)?)?)?;
    println!("added it to {list}");
    fs::write(root().join(&file), registry.text(&options.id))?;
    println!("wrote {file}");
    println!("now write what says {BLANK}, and then: {}", registry.then(&options.id));
    Ok(())
}

/// The text as `cargo fmt` would write it.
fn rustfmt(text: &str) -> Result<String> {
    let mut formatter = command("rustfmt");
    formatter.args(["--edition", "2024"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = formatter.spawn().context("can't start rustfmt")?;
    let mut stdin = child.stdin.take().context("rustfmt has no stdin")?;
    stdin.write_all(text.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("rustfmt ended with {}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}
