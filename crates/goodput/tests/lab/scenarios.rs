//! Every built-in scenario against its expected verdict, once, in the case in the middle. A wrong verdict fails
//! its own test. One from a time in which others took the machine's CPUs is not judged: the path was not
//! what the scenario planted. `cargo xtask truth` measures how often verdicts are right.

use std::path::Path;

use goodput_lab::{Observed, Scenario};
use goodput_testing::not_judged;
use libtest_mimic::{Failed, Trial};

use crate::disturbed::Watch;

/// One test for each.
pub fn all() -> Vec<Trial> {
    goodput_lab::builtin().iter().map(|builtin| trial(builtin.name)).collect()
}

fn trial(name: &'static str) -> Trial {
    let title = format!("scenario::{name}");
    match Scenario::load(name).map(|scenario| (scenario.obstacle(), scenario)) {
        Err(why) => Trial::test(title, move || Err(why.to_string().into())),
        Ok((Some(needs), _)) => crate::needs(&title, needs),
        Ok((None, scenario)) => Trial::test(title, move || run(name, &scenario)),
    }
}

fn run(name: &'static str, scenario: &Scenario) -> Result<(), Failed> {
    let goodput = Path::new(env!("CARGO_BIN_EXE_goodput"));
    let watch = Watch::begin();
    let observed = goodput_lab::run(scenario, goodput, &[])?;
    let taken = watch.taken();
    if let Err(failed) = &observed.record {
        return Err(format!("no record: {failed:?}").into());
    }
    match (observed.is_as_expected(), taken) {
        (true, _) => Ok(()),
        (false, None) => Err(explain(&observed).into()),
        (false, Some(taken)) => {
            not_judged(&format!("scenario::{name}"), &format!("{taken}: {}", explain(&observed)));
            Ok(())
        }
    }
}

/// What was missed, and the evidence of what was found instead.
fn explain(observed: &Observed) -> String {
    let missed = observed.judged.iter().filter(|expectation| !expectation.ok);
    let missed = missed.map(|e| format!("{}: wanted {}, got {}", e.what, e.wanted, e.got));
    let findings = observed.record.iter().flat_map(|record| &record.findings);
    let evidence = findings.flat_map(|finding| {
        let of = &finding.rule;
        finding.evidence.iter().map(move |witness| format!("{of}: {}", witness.text))
    });
    missed.chain(evidence).collect::<Vec<_>>().join("\n  ")
}
