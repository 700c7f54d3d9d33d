//! `cargo xtask corpus`: the kept runs of random faults, judged by today's rules without running anything.

mod page;
mod store;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::truth::Ran;
use goodput_tools::shell::{self, cargo, command, root};

/// Options of `cargo xtask corpus`.
#[derive(clap::Args)]
pub struct Options {
    /// Add the runs that `cargo xtask truth --random` kept in this file.
    #[arg(long, value_name = "FILE", requires = "name")]
    add: Option<PathBuf>,
    /// Name of the campaign that is added: when it ran, where, and what was special about it.
    #[arg(long, value_name = "NAME", requires = "add")]
    name: Option<String>,
    /// Changes nothing; fails if docs/corpus.md is not what today's rules say.
    #[arg(long, conflicts_with = "add")]
    check: bool,
}

/// Adds a campaign if asked for, and writes the page.
pub fn run(options: &Options) -> Result<()> {
    if options.check {
        return match &problems()?[..] {
            [] => Ok(()),
            problems => bail!("{}", problems.join("\n  ")),
        };
    }
    if let Some((file, name)) = options.add.as_ref().zip(options.name.as_ref()) {
        let lines = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        if page::cases(&lines)?.is_empty() {
            bail!("{} has no runs", file.display());
        }
        println!("{}", store::add(name, &lines)?.display());
    }
    let page = judged()?;
    fs::write(path(), &page).context("write docs/corpus.md")?;
    print!("{page}");
    Ok(())
}

/// How docs/corpus.md differs from what today's rules say.
pub fn problems() -> Result<Vec<String>> {
    let shown = fs::read_to_string(path()).context("read docs/corpus.md")?;
    let now = judged()?;
    let changed = now.lines().find(|line| !shown.lines().any(|old| old == *line));
    Ok(match (shown == now, changed) {
        (true, _) => Vec::new(),
        (false, changed) => vec![format!(
            "docs/corpus.md is out of date: `cargo xtask corpus` writes it anew; see first what the change of the \
             rules has made worse. Now: {}",
            changed.unwrap_or("fewer lines, or another order")
        )],
    })
}

fn path() -> PathBuf {
    root().join("docs/corpus.md")
}

/// The page on the corpus by today's rules.
fn judged() -> Result<String> {
    let lines = judge_again(&store::lines()?)?;
    page::page(&page::cases(&lines)?)
}

/// The lines with the verdicts and findings of today's rules.
fn judge_again(lines: &str) -> Result<String> {
    // Built with the whole workspace: alone, it would get other features of its dependencies, and so a second build.
    shell::run(&mut cargo(["build", "--quiet", "--workspace", "--example=rejudge"]))?;
    let mut judge = command("target/debug/examples/rejudge");
    judge.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = judge.spawn().context("start the example `rejudge`")?;
    let mut input = child.stdin.take().context("the example has no standard input")?;
    let said = thread::scope(|scope| {
        // Written beside reading, because both pipes are shorter than the lines. If it stops reading, its end says why.
        scope.spawn(move || input.write_all(lines.as_bytes()));
        child.wait_with_output()
    })?;
    if !said.status.success() {
        bail!("the example `rejudge` ended with {}", said.status);
    }
    String::from_utf8(said.stdout).context("the example `rejudge` printed no UTF-8")
}

/// A run with the part of the corpus it belongs to.
type Case = (store::Part, Ran);
