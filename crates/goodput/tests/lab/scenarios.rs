//! Every built-in scenario: planted, measured, and judged against what it expects.
//!
//! A scenario that does not come out as expected runs again, and most runs decide. A verdict from a time in which others
//! took the machine's CPUs is not judged: the path was not what the scenario planted. It is printed, and counted apart from
//! what passed. If all runs name the same wrong cause, the test fails all the same.

use std::path::Path;

use goodput_lab::{Observed, Scenario};
use goodput_model::Verdict;
use libtest_mimic::Failed;

use crate::disturbed::{CPUS, Judgement, Watch, outcome};
use crate::majority::{Outcome, by_majority};
use crate::neighbours::{Needs, Test};

/// One test for each.
pub fn all() -> Vec<Test> {
    goodput_lab::builtin().iter().map(|builtin| scenario(builtin.name)).collect()
}

fn scenario(name: &'static str) -> Test {
    let title = format!("scenario::{name}");
    match Scenario::load(name).map(|scenario| (scenario.obstacle(), scenario)) {
        Err(why) => Test::of_facts(title, move || Err(why.to_string().into())),
        Ok((Some(needs), _)) => Test::skipped(title, needs),
        Ok((None, scenario)) => {
            let needs = Needs::of(&scenario);
            Test::new(title, needs, move || by_majority(name, || run_once(&scenario, needs)))
        }
    }
}

/// What one run comes to, as [`outcome`] has it.
fn run_once(scenario: &Scenario, needs: Needs) -> Result<Outcome, Failed> {
    let goodput = Path::new(env!("CARGO_BIN_EXE_goodput"));
    let watch = Watch::begin(needs);
    let observed = goodput_lab::run(scenario, goodput, &[])?;
    let machine = watch.end();
    let record = observed.record.as_ref().map_err(|failed| format!("no record: {failed:?}"))?;
    let judgement = match observed.is_as_expected() {
        true => Judgement::Right,
        false if CPUS.contains(&record.verdict.limit.as_str()) => {
            Judgement::Cpus(explain(&observed))
        }
        // The path was not what the scenario planted if others took the CPUs.
        false => match named_wrongly(scenario, &observed) {
            Some(cause) => Judgement::Other(cause.into(), explain(&observed)),
            None => Judgement::Open(explain(&observed)),
        },
    };
    Ok(outcome(judgement, &machine))
}

/// The cause that the verdict names although the scenario wants another, or none; otherwise the first one that is found
/// although the scenario rules it out, if a busy machine does not excuse it.
fn named_wrongly<'o>(scenario: &Scenario, observed: &'o Observed) -> Option<&'o str> {
    let missed = observed.judged.iter().find(|expectation| expectation.what == "limit");
    let instead = missed.filter(|limit| !limit.ok && limit.got != Verdict::NO_LIMIT);
    let found = observed.record.iter().flat_map(|record| &record.findings);
    let mut found = found.map(|finding| finding.rule.as_str());
    let is_ruled_out = |rule: &&str| scenario.expect.not.iter().any(|not| not == *rule);
    instead
        .map(|limit| &*limit.got)
        .or_else(|| found.find(|rule| is_ruled_out(rule) && !CPUS.contains(rule)))
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
