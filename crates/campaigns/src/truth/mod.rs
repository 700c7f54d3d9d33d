//! `cargo xtask truth`: runs every scenario of the lab against its expected verdict, and counts how
//! many the diagnosis named right.

mod case;
mod fixes;
pub mod report;
mod score;
mod twin;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Arg;

use crate::judge_again::judge_again;
use crate::kept::{self, Identity, KeptFile};
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
        let no_such = || {
            let names = self.only.join(" or ");
            format!("no run in {} has a name that begins with {names}", file.display())
        };
        self.must_want_some(lines.lines().count(), no_such)?;
        if self.again { judge_again(&lines) } else { Ok(lines) }
    }

    /// Says that nothing is left to do, before anything is built or run for it.
    fn must_want_some(&self, wanted: usize, why: impl Fn() -> String) -> Result<()> {
        if wanted == 0 && self.only.is_empty() {
            bail!("there is nothing to judge");
        }
        if wanted == 0 {
            bail!("--only {} leaves nothing to judge: {}", self.only.join(" "), why());
        }
        Ok(())
    }

    /// The wanted faults among so many drawn ones.
    fn drawn(&self, count: u64) -> Result<Vec<random::Case>> {
        let mut cases = random::cases(self.draw.seed, self.draw.first, count)?;
        let class = |case: &random::Case| Some(case.name.rsplit_once('-')?.0.to_owned());
        let classes: BTreeSet<String> = cases.iter().filter_map(class).collect();
        cases.retain(|case| self.wants(&case.name));
        self.must_want_some(cases.len(), || {
            let classes: Vec<String> = classes.iter().cloned().collect();
            format!("the classes drawn are {}", classes.join(", "))
        })?;
        Ok(cases)
    }
}

/// The case of a kept run, and its line.
fn named(line: &str) -> Result<(String, String)> {
    Ok((Ran::parse(line)?.case, line.to_owned()))
}

/// The case of a kept run, the digest of what was drawn for it, and its line.
fn drawn(line: &str) -> Result<[String; 3]> {
    let ran = Ran::parse(line)?;
    let drawn = ran.drawn.with_context(|| format!("{} was not drawn", ran.case))?;
    Ok([ran.case, drawn, line.to_owned()])
}

/// Runs all cases one after the other, because they share the CPUs that they measure. Each result is on
/// disk before the next case begins.
fn measure(options: &Options) -> Result<String> {
    let program = options.run.program()?;
    let cases = if options.full { program.every_case()? } else { program.default_cases()? };
    let cases: Vec<_> = cases.iter().filter(|case| options.wants(case)).collect();
    options.must_want_some(cases.len(), || "see `goodput lab list`".into())?;
    let mut kept = Kept::new(options)?;
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
    let cases = options.drawn(count)?;
    let program = options.run.program()?;
    let mut kept = Kept::new(options)?;
    let cases = kept.left(cases)?;
    let folder = tempfile::tempdir().context("make a temporary directory")?;
    let measure = |case| twin::run(&program, folder.path(), &case);
    side_by_side::each(
        cases,
        options.draw.jobs,
        |case| case.light,
        measure,
        |lines| {
            for line in &lines {
                println!("{}", report::one_line(&Ran::parse(line)?));
            }
            // In one piece: a fault without its healthy path would be no result.
            kept.add(&lines.join("\n"))
        },
    )?;
    Ok(kept.lines)
}

/// The results of the runs so far, in memory and on disk.
struct Kept {
    file: KeptFile,
    /// What there was before: the case, what was drawn, and the line.
    before: Vec<[String; 3]>,
    lines: String,
}

impl Kept {
    fn new(options: &Options) -> Result<Self> {
        let (file, before) = options.run.keep("truth", |file| kept::read_by(file, drawn))?;
        let wanted = before.iter().filter(|[case, ..]| options.wants(case));
        let lines = wanted.map(|[.., line]| format!("{line}\n")).collect();
        Ok(Self { file, before, lines })
    }

    /// The cases that are not there yet.
    fn left(&self, cases: Vec<random::Case>) -> Result<Vec<random::Case>> {
        let cases = cases.into_iter().map(|case| (case.digest(), case)).collect();
        let before = self.before.iter().map(|[name, drawn, _]| Identity { name, drawn });
        let left = kept::left(cases, before, |(drawn, case)| Identity { name: &case.name, drawn })?;
        Ok(left.into_iter().map(|(_, case)| case).collect())
    }

    fn add(&mut self, line: &str) -> Result<()> {
        self.file.add(line)?;
        self.lines.push_str(line);
        self.lines.push('\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn refused(arguments: &[&str]) -> String {
        let options = Command::parse_from(["truth"].iter().chain(arguments)).options;
        run(&options).unwrap_err().to_string()
    }

    #[test]
    fn a_name_that_nothing_has_is_refused_before_anything_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept.jsonl");
        let keep = ["--keep", kept.to_str().unwrap(), "--program", "/nonexistent"];
        let why = refused(&[&["--random", "20", "--only", "x"][..], &keep[..]].concat());
        assert!(why.contains("--only x leaves nothing to judge: the classes drawn are "), "{why}");
        assert!(!kept.exists());
    }

    #[test]
    fn a_name_that_no_kept_run_has_is_refused_before_they_are_judged_again() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("kept.jsonl");
        fs::write(&from, r#"{"case":"a-1","expected":{"limit":["a"]},"skipped":"luck"}"#).unwrap();
        let from = from.to_str().unwrap();
        let why = refused(&["--from", from, "--again", "--only", "x"]);
        assert!(why.ends_with("kept.jsonl has a name that begins with x"), "{why}");
    }
}
