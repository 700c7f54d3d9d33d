//! Every built-in scenario: planted, measured, and judged against what it expects.

use std::path::Path;

use goodput_lab::{Observed, Scenario};
use libtest_mimic::{Failed, Trial};

/// One test for each.
pub fn all() -> Vec<Trial> {
    goodput_lab::builtin().iter().map(|builtin| trial(builtin.name)).collect()
}

fn trial(name: &'static str) -> Trial {
    let title = format!("scenario::{name}");
    match Scenario::load(name).map(|scenario| (scenario.obstacle(), scenario)) {
        Err(why) => Trial::test(title, move || Err(why.to_string().into())),
        Ok((Some(needs), _)) => crate::needs(&title, needs),
        Ok((None, scenario)) => Trial::test(title, move || run(&scenario)),
    }
}

fn run(scenario: &Scenario) -> Result<(), Failed> {
    let goodput = Path::new(env!("CARGO_BIN_EXE_goodput"));
    let observed = goodput_lab::run(scenario, goodput, &[])?;
    if observed.is_as_expected() { Ok(()) } else { Err(explain(&observed).into()) }
}

fn explain(observed: &Observed) -> String {
    match &observed.record {
        Err(failed) => format!("no record: {failed:?}"),
        Ok(record) => {
            let missed = observed.judged.iter().filter(|expectation| !expectation.ok);
            let missed: Vec<_> =
                missed.map(|e| format!("{}: wanted {}, got {}", e.what, e.wanted, e.got)).collect();
            let findings = serde_json::to_string_pretty(&record.findings);
            format!("{}\n{}", missed.join("\n"), findings.unwrap_or_default())
        }
    }
}
