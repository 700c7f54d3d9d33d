//! `cargo xtask peers`: runs goodput with the programs whose protocols it speaks, and writes docs/peers.md.
//!
//! The matrix is a list in `crates/goodput/tests/peers/matrix.rs`; its test target lists the cases,
//! and leaves a line for each case.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::test_binaries;
use goodput_tools::shell::{capture, cargo, root, run as run_command};

/// Options of `cargo xtask peers`.
#[derive(clap::Args)]
pub struct Options {}

const PAGE: &str = "docs/peers.md";

const HEAD: &str = "\
# goodput and the programs that it talks to

`cargo xtask peers` writes this page. Each row is one measurement between goodput and the real program \
over a loopback device. In rows of `serve`, goodput is the server; in rows of `connect`, the other program is. \
The direction is as seen from the client, and the flows are those of each direction. Both sides count payload, \
each by its own means. The last column compares the counts.
";

const COLUMNS: &str = "| goodput's part | transport | direction | flows | counts of both sides |\n\
                       |---|---|---|---|---|\n";

/// Parts of a case's name: protocol, goodput's part, transport, direction, flows.
const NAME_PARTS: usize = 5;

/// Runs the matrix and writes the page, even if a case failed.
pub fn run(_: &Options) -> Result<()> {
    let folder = tempfile::tempdir().context("can't make a folder for the results")?;
    let mut tests = cargo(["test", "--package=goodput", "--test=peers"]);
    let ran = run_command(tests.env("GOODPUT_PEERS_DIR", folder.path()));
    let cases = cases()?;
    if cases.is_empty() {
        bail!("none of the programs is here; `cargo xtask test packages` installs them");
    }
    let page = page(&cases, folder.path())?;
    let path = root().join(PAGE);
    fs::write(&path, page).with_context(|| format!("can't write {}", path.display()))?;
    println!("wrote {PAGE}");
    ran
}

/// Cases that only the page or only the matrix lists. A program that is not here has
/// no cases, and its part of the page is left alone.
pub fn problems() -> Result<Vec<String>> {
    let page = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    let mut problems = differences(&cases()?, &rows(&page));
    if !problems.is_empty() {
        problems.push("`cargo xtask peers` writes it anew".into());
    }
    Ok(problems)
}

fn differences(cases: &[String], rows: &[String]) -> Vec<String> {
    let missing = cases.iter().filter(|case| !rows.contains(case));
    let here = |row: &&String| cases.iter().any(|case| protocol(case) == protocol(row));
    let gone = rows.iter().filter(here).filter(|row| !cases.contains(row));
    let missing = missing.map(|case| format!("{PAGE} does not list {case}"));
    missing.chain(gone.map(|row| format!("{PAGE} lists {row}, which is gone"))).collect()
}

fn protocol(case: &str) -> &str {
    case.split('/').next().unwrap_or_default()
}

/// The names of all cases, in the order of the matrix.
fn cases() -> Result<Vec<String>> {
    let source = root().join("crates/goodput/tests/peers/main.rs");
    let binaries = test_binaries::all()?;
    let (_, tests) = binaries
        .iter()
        .find(|(of, _)| *of == source)
        .with_context(|| format!("cargo builds no test of {}", source.display()))?;
    let listed = capture(Command::new(tests).arg("--list"))?;
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.filter(|name| name.split('/').count() == NAME_PARTS).map(Into::into).collect())
}

fn page(cases: &[String], folder: &Path) -> Result<String> {
    let mut page = String::from(HEAD);
    let mut last = "";
    for case in cases {
        let file = folder.join(case.replace('/', "."));
        let text = fs::read_to_string(&file).with_context(|| format!("{case} left nothing"))?;
        let result: Value = serde_json::from_str(&text).with_context(|| format!("read {case}"))?;
        let said = |key: &str| result[key].as_str().unwrap_or_default().replace('|', "\\|");
        if protocol(case) != last {
            last = protocol(case);
            write!(page, "\n## {last}\n\n{}\n\n{COLUMNS}", said("version"))?;
        }
        let cells = case.split('/').skip(1).collect::<Vec<_>>().join(" | ");
        writeln!(page, "| {cells} | {} |", said("text").lines().next().unwrap_or_default())?;
    }
    Ok(page)
}

/// The names of the cases that the page lists.
fn rows(page: &str) -> Vec<String> {
    let mut heading = "";
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(protocol) = line.strip_prefix("## ") {
            heading = protocol;
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", role, transport, direction, flows, ..] = cells.as_slice()
            && flows.parse::<u16>().is_ok()
        {
            rows.push([heading, role, transport, direction, flows].join("/"));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_lists_the_cases_that_it_was_made_of() {
        let cases =
            ["iperf3/serve/tcp/send/1", "iperf3/connect/udp/both/4", "ttcp/serve/tcp/send/1"];
        let cases = cases.map(String::from);
        let folder = tempfile::tempdir().unwrap();
        for case in &cases {
            let line = r#"{"version":"iperf 3.12","ok":true,"text":"equal"}"#;
            fs::write(folder.path().join(case.replace('/', ".")), line).unwrap();
        }
        let page = page(&cases, folder.path()).unwrap();
        assert_eq!(rows(&page), cases);
        assert_eq!(differences(&cases, &rows(&page)), Vec::<String>::new());
        assert!(page.contains("| serve | tcp | send | 1 | equal |"), "{page}");
    }

    #[test]
    fn a_program_that_is_not_here_is_left_alone() {
        let rows = ["iperf3/serve/tcp/send/1", "ttcp/serve/tcp/send/1"].map(String::from);
        let cases = ["iperf3/serve/tcp/send/4".to_string()];
        let problems = differences(&cases, &rows);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
