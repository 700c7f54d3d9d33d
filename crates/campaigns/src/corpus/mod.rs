//! `cargo xtask corpus`: the kept runs of random faults, judged by today's rules without running anything.

mod fit;
mod misses;
mod page;
mod reliability;
mod said;
mod store;
mod thresholds;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::judge_again::judge_again;
use crate::part::Part;
use crate::truth::Ran;
use fit::Fit;
use goodput_tools::shell::root;
use said::Said;

/// Options of `cargo xtask corpus`.
#[derive(clap::Args)]
pub struct Options {
    /// Add the runs that `cargo xtask truth --random` kept in this file.
    #[arg(long, value_name = "FILE", requires = "name")]
    add: Option<PathBuf>,
    /// Name of the campaign that is added: when it ran, where, and what was special about it.
    #[arg(long, value_name = "NAME", requires = "add")]
    name: Option<String>,
    /// Changes nothing; prints each run of the part for fitting that was not right, with all that today's rules say of it.
    #[arg(long, conflicts_with_all = ["add", "check"])]
    misses: bool,
    /// Changes nothing; fails if docs/corpus.md and the fitted weights are not what today's rules give.
    #[arg(long, conflicts_with = "add")]
    check: bool,
}

/// Adds a campaign if asked for, fits the weights of probabilities, and writes the page.
pub fn run(options: &Options) -> Result<()> {
    if options.check {
        return match &problems()?[..] {
            [] => Ok(()),
            problems => bail!("{}", problems.join("\n  ")),
        };
    }
    if options.misses {
        let corpus = Corpus::judged()?;
        print!("{}", misses::misses(&corpus.cases, &corpus.judged)?);
        return Ok(());
    }
    if let Some((file, name)) = options.add.as_ref().zip(options.name.as_ref()) {
        let lines = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        if page::cases(&lines)?.is_empty() {
            bail!("{} has no runs", file.display());
        }
        println!("{}", store::add(name, &lines)?.display());
    }
    let page = fitted_page()?;
    fs::write(path(), &page).context("write docs/corpus.md")?;
    print!("{page}");
    Ok(())
}

/// Passes after which a fit stays as it is: with new thresholds there are other findings, and so other weights.
const MAX_PASSES: usize = 4;

/// Fits the weights and thresholds, and returns the page with them.
fn fitted_page() -> Result<String> {
    for _ in 0..MAX_PASSES {
        let (corpus, old) = (Corpus::judged()?, Fit::read()?);
        let fit = corpus.fit(&old);
        if fit == old {
            return page::page(&corpus.cases, &fit);
        }
        // The findings are the program's own: it is built again, with the new numbers.
        fit.write()?;
    }
    bail!("the fit still changes after {MAX_PASSES} passes")
}

/// With so many digits that a fitted number is the same on every machine.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

/// How docs/corpus.md and the fitted weights differ from what today's rules give.
pub fn problems() -> Result<Vec<String>> {
    let shown = fs::read_to_string(path()).context("read docs/corpus.md")?;
    let (corpus, fit) = (Corpus::judged()?, Fit::read()?);
    let now = page::page(&corpus.cases, &fit)?;
    let changed = now.lines().find(|line| !shown.lines().any(|old| old == *line));
    let page = (shown != now).then(|| {
        format!(
            "docs/corpus.md is out of date: `cargo xtask corpus` writes it anew; see first what the change of the \
             rules has made worse. Now: {}",
            changed.unwrap_or("fewer lines, or another order")
        )
    });
    let weights = (corpus.fit(&fit) != fit).then(|| {
        "crates/diagnose/data/fit.json is not what a fit to the corpus gives: `cargo xtask corpus` writes it anew".into()
    });
    Ok(page.into_iter().chain(weights).collect())
}

fn path() -> PathBuf {
    root().join("docs/corpus.md")
}

/// The corpus by today's rules.
struct Corpus {
    /// As it is kept.
    lines: String,
    /// With today's findings.
    judged: String,
    cases: Vec<Case>,
}

impl Corpus {
    fn judged() -> Result<Self> {
        let lines = store::lines()?;
        let judged = judge_again(&lines)?;
        Ok(Self { cases: page::cases(&judged)?, judged, lines })
    }

    /// The weights fitted to the part that is for it, with the priors of `old`.
    fn fit(&self, old: &Fit) -> Fit {
        let cases: Vec<_> = page::judged(&self.cases, Part::Fit);
        let said: Vec<_> = cases.iter().flat_map(|case| case.said.clone()).collect();
        let runs: Vec<_> = cases.iter().map(|case| (&case.ran.planted, &case.measured)).collect();
        old.again(&said, &runs, &self.lines)
    }
}

/// A run with the part of the corpus that it belongs to, its findings, and what else it shows.
#[derive(Debug)]
struct Case {
    part: Part,
    ran: Ran,
    said: Vec<Said>,
    /// What it shows of each quantity that a threshold is fitted to.
    measured: BTreeMap<String, f64>,
}
