//! The few settings in question, compared in all combinations.

use std::path::PathBuf;
use std::time::Duration;

use goodput_model::{
    Direction, EndName, Length, Missing, NotProven, Plan, Record, Response, SettingRef,
    ShapingProof, ShapingTest,
};
use goodput_remote::Hosts;
use goodput_settings::{SettingError, may_change, to_keep};
use goodput_shaping::{Chosen, Question, Questions, Timers, chosen, proof, questions};
use goodput_wire::session::SettingRequest;

use super::ShapingRequest;
use super::sender_facts::{sender, tcp_rate};
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::verbs::compare::{Arm, CompareRequest, Factor, compare, factorial, run_s};

/// Half-width of an interval at which the comparison stops, percent.
const PRECISION_PERCENT: f64 = 2.0;

/// How to compare.
#[derive(Clone)]
pub struct ProveRequest {
    /// Stop after this time at the latest.
    pub max_time: Duration,
    /// Seed for the order of the runs.
    pub seed: u64,
    /// Where the journal of settings is kept.
    pub state_dir: PathBuf,
}

/// Fails if this process may change no setting of the host that sends, so that nothing could be compared after the test. What
/// only a change itself shows passes.
///
/// # Errors
/// If nothing of that host may be changed, with what the user can do.
pub(super) async fn may_prove(
    request: &ShapingRequest,
    client: &mut Client,
) -> Result<(), EngineError> {
    if request.prove.is_none() {
        return Ok(());
    }
    match request.plan.direction {
        Direction::Reverse => may_change_far(client).await,
        _ => near_refusal(may_change(&any_setting())),
    }
}

/// One of the settings that a proof changes, of any device.
fn any_setting() -> SettingRef {
    SettingRef { end: EndName::Near, name: "offload.tso".into(), scope: Some("lo".into()) }
}

fn near_refusal(answer: Result<(), SettingError>) -> Result<(), EngineError> {
    match answer {
        Err(SettingError::NotPermitted { needs, .. }) => {
            Err(refused(EndName::Near, &format!("it needs {needs}")))
        }
        Err(why) if why.not_permitted() => Err(refused(EndName::Near, &why.to_string())),
        // Any other error comes again when a setting is changed, and is reported then.
        _ => Ok(()),
    }
}

/// Asks the far end to put back what it has changed for this client, which is nothing: it refuses a client that may change nothing.
/// Any other error ends the test: the connection is of no use any more.
async fn may_change_far(client: &mut Client) -> Result<(), EngineError> {
    if !client.far_end().changes_settings {
        return Err(refused(EndName::Far, "its program changes no settings"));
    }
    match client.setting(SettingRequest::Restore).await {
        Err(EngineError::FarSetting { not_permitted: true, why, .. }) => {
            Err(refused(EndName::Far, &why))
        }
        answer => answer.map(drop),
    }
}

fn refused(end: EndName, why: &str) -> EngineError {
    EngineError::Forbidden(format!(
        "--prove changes settings of the {end} host, which sends, and may not: {why}; without --prove, goodput only tests"
    ))
}

/// Adds to the record of a test what a comparison shows, or why there is none.
pub(super) async fn prove(
    request: &ShapingRequest,
    how: &ProveRequest,
    mut record: Record,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Record {
    let Some(mut test) = record.shaping.take() else { return record };
    let asked = match in_question(&test, &record) {
        Ok(asked) => asked,
        Err(not) => {
            test.not_proven = Some(not);
            return Record { shaping: Some(test), ..record };
        }
    };
    match compared(request, how, (&test, asked), &record, interrupt, listener).await {
        Ok((found, whole)) => {
            test.proof = Some(found);
            record.comparison = whole.comparison;
            let new = whole.doubts.into_iter().filter(|doubt| !record.doubts.contains(doubt));
            let new: Vec<_> = new.collect();
            record.doubts.extend(new);
            record.incomplete = record.incomplete.or(whole.incomplete);
        }
        Err(why) => {
            let not_permitted = why.not_permitted();
            let why = why.to_string();
            test.not_proven = Some(NotProven { why, not_permitted, nothing_in_question: false });
        }
    }
    Record { shaping: Some(test), ..record }
}

/// What to compare, or why there is nothing.
fn in_question(test: &ShapingTest, record: &Record) -> Result<Questions, NotProven> {
    let not = |why: String, nothing_in_question| NotProven {
        why,
        not_permitted: false,
        nothing_in_question,
    };
    let sender = sender(record, unwatched(), None).map_err(|why| not(why.to_string(), false))?;
    let found = questions(test, &sender);
    match found.asked.is_empty() {
        true => Err(not(found.left_out.join("; "), found.may_be_none)),
        false => Ok(found),
    }
}

fn unwatched() -> Result<Timers, Missing> {
    Err(Missing::because("timers were watched before"))
}

async fn compared(
    request: &ShapingRequest,
    how: &ProveRequest,
    (test, questions): (&ShapingTest, Questions),
    record: &Record,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<(ShapingProof, Record), EngineError> {
    let (Questions { asked, left_out, .. }, whole) =
        compared_if_possible(request, how, questions, interrupt, listener).await?;
    let nothing = || EngineError::Flow("nothing was compared".into());
    let comparison = whole.comparison.as_ref().ok_or_else(nothing)?;
    // Of the part of the time of which the runs count.
    let goodput = tcp_rate(record).map_or(0.0, |tcp| tcp.goodput.value);
    let mut found = proof(test, goodput, comparison, left_out);
    if let Some(arm) = found.gives {
        let values = comparison.arms[arm].values.iter().zip(&comparison.arms[0].values);
        let sender =
            sender(record, unwatched(), None).map_err(|why| EngineError::Flow(why.to_string()))?;
        keep(&mut found, values.map(|(value, base)| value != base), &asked, |wanted| {
            chosen(test, &sender, wanted)
        });
    }
    Ok((found, whole))
}

/// Compares the settings in question without those of which the kernel does not take the other value, such as segmentation
/// offload that the device can't do. Nothing was sent before that is known.
async fn compared_if_possible(
    request: &ShapingRequest,
    how: &ProveRequest,
    mut questions: Questions,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<(Questions, Record), EngineError> {
    loop {
        let names: Vec<_> =
            questions.asked.iter().map(|question| question.setting.to_string()).collect();
        listener(Event::Note { text: format!("compares {}", names.join(" and ")) });
        let why = match compare(&comparison_of(request, how, &questions), interrupt, listener).await
        {
            Ok(whole) => return Ok((questions, whole)),
            Err(why) => why,
        };
        let asked = &mut questions.asked;
        let known = asked.iter().position(|question| is_about(&why, &question.setting));
        let is_needed = questions.at_once || asked.len() < 2;
        let Some(place) = known.filter(|_| !is_needed) else { return Err(why) };
        asked.remove(place);
        questions.left_out.push(format!("not compared: {why}"));
    }
}

/// Whether a kernel did not take a value of `setting`, and nothing stayed changed. All settings in question are of one end.
fn is_about(why: &EngineError, setting: &SettingRef) -> bool {
    why.not_taken().is_some_and(|of| of.name == setting.name && of.scope == setting.scope)
}

/// All combinations of the settings in question, or all other values at once, with TCP as the test has it.
fn comparison_of(
    request: &ShapingRequest,
    how: &ProveRequest,
    questions: &Questions,
) -> CompareRequest {
    let factor = |question: &Question| Factor {
        setting: question.setting.clone(),
        values: question.values.to_vec(),
    };
    let factors: Vec<_> = questions.asked.iter().map(factor).collect();
    let arms = arms_of(&factors, questions.at_once);
    let length = Length::Seconds(run_s(arms.len(), how.max_time, false));
    CompareRequest {
        target: request.target.clone(),
        credentials: request.credentials.clone(),
        plan: Plan { length, far_capture: false, ..request.plan.clone() },
        arms,
        responses: vec![Response::Throughput],
        ways_to_win: 1,
        precision_percent: PRECISION_PERCENT,
        threshold_percent: request.configured.tolerance_percent,
        may_shorten: true,
        is_about_parts: false,
        settled: true,
        past_slow_start: false,
        proof_by: None,
        given_up_at: None,
        turns: None,
        max_time: how.max_time.into(),
        seed: how.seed,
        state_dir: how.state_dir.clone(),
        hosts: Hosts::default(),
        far_settings: None,
        started: request.started.clone(),
    }
}

/// Every combination, the present values first; only these and all the other ones if what is in question goes together.
fn arms_of(factors: &[Factor], at_once: bool) -> Vec<Arm> {
    let all = factorial(factors);
    match (at_once, &all[..]) {
        (true, [now, .., other]) => vec![now.clone(), other.clone()],
        _ => all,
    }
}

/// How to have the values of an arm, now and after a reboot.
fn keep(
    found: &mut ShapingProof,
    values: impl Iterator<Item = bool>,
    asked: &[Question],
    how: impl FnOnce(&[&Question]) -> Chosen,
) {
    let changed: Vec<&Question> =
        asked.iter().zip(values).filter(|(_, is_other)| *is_other).map(|(one, _)| one).collect();
    let Chosen { commands, networkd } = how(&changed);
    (found.commands, found.networkd) = (commands, networkd);
    let values = changed.iter().map(|one| (&one.setting, one.values[1].as_str()));
    found.permanent = to_keep(values, |_| None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_remote::RemoteError;

    #[test]
    fn a_user_without_privileges_is_told_before_the_test_what_to_do() {
        let lacks = |setting| SettingError::NotPermitted {
            operation: "change it".into(),
            setting,
            needs: "CAP_NET_ADMIN; run it with sudo".into(),
        };
        let refused = near_refusal(Err(lacks(any_setting()))).unwrap_err();
        let said = refused.to_string();
        assert!(refused.not_permitted() && said.contains("run it with sudo"), "{said}");
        assert!(said.contains("without --prove") && !said.contains("offload"), "{said}");
        let odd = SettingError::NotEffective {
            setting: any_setting(),
            asked: "on".into(),
            effective: "off".into(),
            not_back: None,
        };
        assert!(near_refusal(Err(odd)).is_ok() && near_refusal(Ok(())).is_ok());
    }

    #[test]
    fn what_goes_together_is_changed_at_once() {
        let factor = |name: &str, values: [&str; 2]| Factor {
            setting: format!("qdisc.tbf.{name}@eth0").parse().unwrap(),
            values: values.map(String::from).to_vec(),
        };
        let both = [factor("rate", ["20mbit", "100mbit"]), factor("burst", ["1600", "68130"])];
        let arms = arms_of(&both, true);
        let values: Vec<_> = arms.iter().map(|arm| arm.values().join(" ")).collect();
        assert_eq!(values, ["20mbit 1600", "100mbit 68130"]);
        assert_eq!(arms_of(&both, false).len(), 4);
    }

    #[test]
    fn a_value_that_a_kernel_does_not_take_is_left_out_whichever_host_it_is_of() {
        let tso = |device: &str| -> SettingRef { format!("offload.tso@{device}").parse().unwrap() };
        let not_effective = || SettingError::NotEffective {
            setting: tso("eth0"),
            asked: "on".into(),
            effective: "off".into(),
            not_back: None,
        };
        let far = |not_taken| EngineError::FarSetting {
            not_permitted: false,
            not_taken,
            busy: false,
            why: not_effective().to_string(),
        };
        let asked = SettingRef { end: EndName::Far, ..tso("eth0") };
        for why in [
            not_effective().into(),
            RemoteError::Setting(not_effective()).into(),
            far(Some(tso("eth0"))),
        ] {
            assert!(is_about(&why, &asked) && !is_about(&why, &tso("eth1")), "{why}");
        }
        for other in [far(None), EngineError::Interrupted] {
            assert!(!is_about(&other, &asked), "{other}");
        }
    }
}
