//! `goodput lab`: scenarios on virtual hosts.

use std::env;

use anyhow::{Context, Result};
use goodput_lab::{Lab, Observed, Scenario};

use super::list;
use super::measured::{self, Signals};
use crate::args;
use crate::exit::Exit;
use crate::report::style;

/// Carries out one of the subcommands.
pub fn run(what: args::Lab) -> Result<Exit> {
    match what {
        args::Lab::List => list::scenarios().map(|()| Exit::Fine),
        args::Lab::Show { scenario } => {
            print!("{}", goodput_lab::scenario_source(&scenario)?);
            Ok(Exit::Fine)
        }
        args::Lab::Run { scenarios, json } => run_all(&scenarios, json),
        args::Lab::Up { scenario } => up(&scenario),
    }
}

fn run_all(names: &[String], json: bool) -> Result<Exit> {
    goodput_lab::privilege::enter()?;
    let all: Vec<String> = goodput_lab::builtin().iter().map(|b| b.name.to_string()).collect();
    let names = if names.is_empty() { &all } else { names };
    let exe = env::current_exe().context("cannot find the program that runs")?;
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for name in names {
        let scenario = Scenario::load(name)?;
        if let Some(needs) = scenario.obstacle() {
            skipped += 1;
            eprintln!("SKIPPED {name}: needs {needs}");
            continue;
        }
        let observed = goodput_lab::run(&scenario, &exe, &[])?;
        if observed.is_as_expected() {
            passed += 1;
        } else {
            failed += 1;
        }
        if json { print_json(&observed)? } else { print_text(name, &observed) }
    }
    if !json {
        println!("{passed} as expected, {failed} not, {skipped} skipped");
    }
    Ok(if failed == 0 { Exit::Fine } else { Exit::Problem })
}

fn print_json(observed: &Observed) -> Result<()> {
    if let Ok(record) = &observed.record {
        println!("{}", serde_json::to_string(record)?);
    }
    Ok(())
}

fn print_text(name: &str, observed: &Observed) {
    let ok = if observed.is_as_expected() { style::good("ok") } else { style::bad("not ok") };
    let found = match &observed.record {
        Ok(record) => format!("{}   {}", record.result.goodput_bits_per_s, record.verdict.summary),
        Err(failure) => failure.stderr.trim().into(),
    };
    anstream::println!("{name:22} {ok:8} {found}");
    for expectation in observed.judged.iter().filter(|e| !e.ok) {
        println!(
            "{:22}   {}: wanted {}, got {}",
            "", expectation.what, expectation.wanted, expectation.got
        );
    }
}

fn up(name: &str) -> Result<Exit> {
    goodput_lab::privilege::enter()?;
    let scenario = Scenario::load(name)?;
    let runtime = measured::runtime()?;
    let mut signals = runtime.block_on(async { Signals::listen() })?;
    let lab = Lab::up(&scenario)?;
    println!("{}: {}", scenario.name, scenario.title);
    for host in lab.hosts() {
        let address = host.address(goodput_model::Family::V4);
        println!("  {:6}  {address:15}  {}", host.name(), lab.enter_hint(host));
    }
    println!("Ctrl-C takes it down.");
    runtime.block_on(signals.next());
    Ok(Exit::Fine)
}
