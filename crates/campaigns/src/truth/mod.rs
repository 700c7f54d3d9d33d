//! `cargo xtask truth`: runs every scenario of the lab against its expected verdict, and counts how
//! many the diagnosis named right.

mod case;
mod fixes;
pub mod report;
mod score;
mod twin;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Arg;

use crate::judge_again::judge_again;
use crate::kept::{self, KeptFile};
use crate::options::{DrawOptions, RunOptions};
use crate::{random, side_by_side};
pub use case::{Came, Planted, Ran};
use goodput_tools::shell::root;
pub use score::{is_of_the_machine, score};
pub use twin::LEAST_COST;

/// Options of `cargo xtask truth`.
#[derive(clap::Args)]
#[command(mut_args(with_random))]
pub struct Options {
    /// Every strength on every link, and the page docs/truth.md written from it.
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// One case of each scenario, shown only; the default.
    #[arg(long)]
    quick: bool,
    /// Only scenarios or cases whose name begins with this; nothing is written then. Of random faults, only these
    /// classes are run.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// This many faults drawn at random instead, each beside its path without the fault.
    #[arg(long, value_name = "N", conflicts_with_all = ["full", "quick", "fixes"])]
    random: Option<u64>,
    #[command(flatten)]
    draw: DrawOptions,
    /// How often each case runs.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Also compare the change that each first finding proposes.
    #[arg(long)]
    fixes: bool,
    #[command(flatten)]
    run: RunOptions,
    /// Run nothing: make the tables of what an earlier run kept in this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["program", "repeat", "fixes", "random"])]
    from: Option<PathBuf>,
    /// Judge the kept runs again by today's rules, instead of showing what was said when they ran.
    #[arg(long, requires = "from", conflicts_with = "full")]
    again: bool,
}

/// Only random faults are drawn.
fn with_random(option: Arg) -> Arg {
    let is_of_draw = ["seed", "first", "jobs", "go_on"].contains(&option.get_id().as_str());
    if is_of_draw { option.requires("random") } else { option }
}

/// Runs the cases and shows or writes the tables.
pub fn run(options: &Options) -> Result<()> {
    let lines = match &options.from {
        Some(file) => options.kept(file)?,
        None => match options.random {
            Some(count) => measure_random(options, count)?,
            None => measure(options)?,
        },
    };
    let runs = lines.lines().map(Ran::parse).collect::<Result<Vec<_>>>()?;
    if runs.is_empty() {
        bail!("there is no such case: see `goodput lab list`");
    }
    let page = report::page(&runs, options.again)?;
    if options.full && options.only.is_empty() {
        let path = root().join("docs/truth.md");
        fs::write(&path, page).with_context(|| format!("write {}", path.display()))?;
        println!("{}", report::summary(&runs));
    } else {
        print!("{page}");
    }
    Ok(())
}

impl Options {
    /// Whether a case of this name should run.
    fn wants(&self, case: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| case.starts_with(only))
    }

    /// The wanted runs of a file, judged again if asked for.
    fn kept(&self, file: &Path) -> Result<String> {
        let mut lines = String::new();
        for (case, line) in kept::read_by(file, named)? {
            if self.wants(&case) {
                lines.push_str(&line);
                lines.push('\n');
            }
        }
        if self.again { judge_again(&lines) } else { Ok(lines) }
    }
}

/// The case of a kept run, and its line.
fn named(line: &str) -> Result<(String, String)> {
    Ok((Ran::parse(line)?.case, line.to_owned()))
}

/// Runs all cases one after the other, because they share the CPUs that they measure. Each result is on
/// disk before the next case begins.
fn measure(options: &Options) -> Result<String> {
    let program = options.run.program()?;
    let mut kept = Kept::new(options)?;
    let cases = if options.full { program.every_case()? } else { program.default_cases()? };
    let cases: Vec<_> = cases.iter().filter(|case| options.wants(case)).collect();
    for round in 1..=options.repeat {
        for (number, case) in cases.iter().enumerate() {
            let mut line = program.run(case)?;
            let ran = Ran::parse(&line)?;
            println!("{round}: {} of {}: {}", number + 1, cases.len(), report::one_line(&ran));
            let planted = !matches!(ran.planted, Planted::Nothing(_));
            if options.fixes && round == 1 && planted {
                line = fixes::add(&program, case, &line)?;
            }
            kept.add(&line)?;
        }
    }
    Ok(kept.lines)
}

/// Draws faults, and runs each beside its healthy twin.
fn measure_random(options: &Options, count: u64) -> Result<String> {
    let program = options.run.program()?;
    let mut kept = Kept::new(options)?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    let mut cases = random::cases(options.draw.seed, options.draw.first, count)?;
    cases.retain(|case| options.wants(&case.name) && !kept.cases.contains(&case.name));
    let measure = |case| twin::run(&program, folder.path(), &case);
    side_by_side::each(
        cases,
        options.draw.jobs,
        |case| case.light,
        measure,
        |lines| {
            lines.iter().try_for_each(|line| {
                println!("{}", report::one_line(&Ran::parse(line)?));
                kept.add(line)
            })
        },
    )?;
    Ok(kept.lines)
}

/// The results of the runs so far, in memory and on disk.
struct Kept {
    file: KeptFile,
    /// Cases that an earlier campaign ran.
    cases: Vec<String>,
    lines: String,
}

impl Kept {
    fn new(options: &Options) -> Result<Self> {
        let (file, before) = options.run.keep("truth", |file| kept::read_by(file, named))?;
        let (cases, lines): (_, Vec<String>) = before.into_iter().unzip();
        let lines = lines.into_iter().map(|line| line + "\n").collect();
        Ok(Self { file, cases, lines })
    }

    fn add(&mut self, line: &str) -> Result<()> {
        self.file.add(line)?;
        self.lines.push_str(line);
        self.lines.push('\n');
        Ok(())
    }
}
