//! Every built-in scenario: planted, measured, and judged against what it expects.
//!
//! A scenario's test fails if the verdict is wrong: it names, as likely or certain, a cause that was not planted, and no
//! finding is one that was. What is right with a probability is judged in the sum at the end: a planted cause that is
//! missed, named second, or held for merely possible. Too many are a number that a diagnosis with 95 % accuracy has only
//! once in a hundred runs, and also two false alarms on healthy paths. Each is printed. `cargo xtask truth` measures the
//! rate. A verdict from a time in which others took the machine's CPUs is not judged: the path was not what the scenario
//! planted. It is printed, and counted apart from what passed.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use goodput_lab::scenario::Expect;
use goodput_lab::{Observed, Scenario};
use goodput_model::{Confidence, Record};
use goodput_testing::{as_test, not_judged};
use libtest_mimic::Failed;

use crate::disturbed::{CPUS, Watch};
use crate::neighbours::{Needs, Test};

/// Share of the verdicts that must be right.
const RIGHT: f64 = 0.95;
/// Chance that a diagnosis with this accuracy fails.
const CHANCE: f64 = 0.01;
/// False alarms on the healthy scenarios that chance explains.
const FALSE_ALARMS: usize = 1;

/// The scenarios that came out otherwise than expected, and how many ran.
static TALLY: Mutex<(usize, Vec<&'static str>)> = Mutex::new((0, Vec::new()));

/// One test for each, and one for what they come to, after all of them.
pub fn all() -> Vec<Test> {
    let each = goodput_lab::builtin().iter().map(|builtin| scenario(builtin.name));
    let own =
        Test::of_facts("scenarios::a_confident_verdict_of_another_cause_is_wrong", wrong_is_told);
    each.chain([Test::new("scenarios_in_all", Needs::All, in_all), own]).collect()
}

fn scenario(name: &'static str) -> Test {
    let title = format!("scenario::{name}");
    match Scenario::load(name).map(|scenario| (scenario.obstacle(), scenario)) {
        Err(why) => Test::of_facts(title, move || Err(why.to_string().into())),
        Ok((Some(needs), _)) => Test::skipped(title, needs),
        Ok((None, scenario)) => {
            let (test, needs) = (title.clone(), Needs::of(&scenario));
            Test::new(title, needs, move || as_test(&test, || run(name, &scenario, needs)))
        }
    }
}

fn run(name: &'static str, scenario: &Scenario, needs: Needs) -> Result<(), Failed> {
    let goodput = Path::new(env!("CARGO_BIN_EXE_goodput"));
    let watch = Watch::begin(needs);
    let observed = goodput_lab::run(scenario, goodput, &[])?;
    let taken = watch.taken();
    if let Err(failed) = &observed.record {
        return Err(format!("no record: {failed:?}").into());
    }
    if let Some(taken) = taken {
        // A right one passes, but what chance allows is counted over those that would count if wrong.
        if !observed.is_as_expected() {
            not_judged(&format!("{taken}: {}", explain(&observed)));
        }
        return Ok(());
    }
    let record = observed.record.as_ref();
    if record.is_ok_and(|record| is_wrong(&scenario.expect, &Named::of(record))) {
        return Err(format!("wrong: {}", explain(&observed)).into());
    }
    let mut tally = TALLY.lock().unwrap_or_else(PoisonError::into_inner);
    tally.0 += 1;
    if !observed.is_as_expected() {
        tally.1.push(name);
        eprintln!("NOT AS EXPECTED {name}: {}", explain(&observed));
    }
    Ok(())
}

/// What a record says.
struct Named<'a> {
    /// The limit, with how sure its rule is.
    limit: (&'a str, Confidence),
    /// The rules of all findings.
    found: Vec<&'a str>,
}

impl<'a> Named<'a> {
    fn of(record: &'a Record) -> Self {
        let limit = record.verdict.limit.as_str();
        let finding = record.findings.iter().find(|finding| finding.rule == limit);
        let sure = finding.map_or(Confidence::Possible, |finding| finding.confidence);
        let found = record.findings.iter().map(|finding| finding.rule.as_str()).collect();
        Self { limit: (limit, sure), found }
    }
}

/// Whether it names with confidence what was not planted, and nothing that was. That a machine's own CPUs limit may be
/// true of any path.
fn is_wrong(expect: &Expect, named: &Named<'_>) -> bool {
    let planted = |rule: &str| expect.limit.iter().chain(&expect.both).any(|one| one == rule);
    let (limit, sure) = named.limit;
    sure >= Confidence::Likely
        && !CPUS.contains(&limit)
        && !planted(limit)
        && !named.found.iter().any(|rule| planted(rule))
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

fn in_all() -> Result<(), Failed> {
    let tally = TALLY.lock().unwrap_or_else(PoisonError::into_inner);
    let (ran, wrong) = (tally.0, &tally.1);
    let alarms = wrong.iter().filter(|name| name.contains("healthy")).count();
    let bound = most_by_chance(ran);
    if wrong.len() > bound || alarms > FALSE_ALARMS {
        let names = wrong.join(", ");
        return Err(format!("{} of {ran} verdicts were wrong: {names}", wrong.len()).into());
    }
    Ok(())
}

/// The most wrong verdicts of `ran` that a diagnosis right in [`RIGHT`] of the cases exceeds with no
/// more than [`CHANCE`]: a quantile of the binomial distribution.
fn most_by_chance(ran: usize) -> usize {
    let wrong = 1.0 - RIGHT;
    let mut exactly = RIGHT.powi(i32::try_from(ran).unwrap_or(i32::MAX));
    let mut up_to = exactly;
    for count in 0..ran {
        if 1.0 - up_to <= CHANCE {
            return count;
        }
        exactly *= (ran - count) as f64 / (count + 1) as f64 * wrong / RIGHT;
        up_to += exactly;
    }
    ran
}

fn wrong_is_told() -> Result<(), Failed> {
    let expect = Expect { limit: vec!["policer".into()], ..Expect::default() };
    let wrong = |limit, sure, found: &[&'static str]| {
        is_wrong(&expect, &Named { limit: (limit, sure), found: found.to_vec() })
    };
    let cases = [
        (wrong("path-loss", Confidence::Likely, &["path-loss"]), true, "another cause"),
        (wrong("path-loss", Confidence::Possible, &["path-loss"]), false, "merely possible"),
        (wrong("path-loss", Confidence::Likely, &["path-loss", "policer"]), false, "second"),
        (wrong("policer", Confidence::Certain, &["policer"]), false, "right"),
        (wrong("none", Confidence::Possible, &[]), false, "missed"),
        (wrong("cpu-steal", Confidence::Certain, &["cpu-steal"]), false, "the machine's CPUs"),
    ];
    let failed = cases.iter().find(|(is, should, _)| is != should);
    failed.map_or(Ok(()), |(is, _, what)| Err(format!("{what}: {is}").into()))
}
