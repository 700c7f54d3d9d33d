//! Whether a far end that runs goodput lets the changes of a plan be made there: it is asked, and nothing is tried.

use goodput_model::{EndName, Known, SettingRef, TuningOutcome, TuningStep};
use goodput_wire::session::SettingRequest;

use super::TuneRequest;
use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::near::client::Client;

/// Marks the changes that the far end refuses. If it can't be asked, they stay planned.
///
/// # Errors
/// When the far end is gone, or at an interrupt.
pub async fn ask(
    request: &TuneRequest,
    interrupt: &Interrupt,
    steps: &mut [TuningStep],
) -> Result<(), EngineError> {
    let is_far = |step: &&mut TuningStep| step.change.setting.end == EndName::Far;
    let far: Vec<_> = steps.iter_mut().filter(is_far).collect();
    if far.is_empty() || request.hosts.far.is_some() {
        return Ok(());
    }
    let TuneRequest { target, plan, credentials, .. } = request;
    let mut client = Client::connect(target, plan, credentials, interrupt, &mut |_| {}).await?;
    if client.far_end().changes_settings {
        for step in far {
            let own = SettingRef { end: EndName::Near, ..step.change.setting.clone() };
            let wanted = vec![(own, step.change.to.clone())];
            let answer = client.setting(SettingRequest::Check(wanted)).await;
            note(step, answer)?;
        }
    }
    client.leave().await;
    Ok(())
}

/// Takes the far end's answer about a change.
fn note(step: &mut TuningStep, answer: Result<String, EngineError>) -> Result<(), EngineError> {
    let why = match answer {
        Ok(_) => return Ok(()),
        Err(refusal @ EngineError::FarSetting { .. }) => refusal,
        Err(gone) => return Err(gone),
    };
    step.outcome = match why.not_permitted() {
        true => TuningOutcome::NotPermitted,
        false => TuningOutcome::Failed,
    };
    step.comparison = Known::missing(why.to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Change;

    #[test]
    fn what_the_far_end_refuses_is_no_plan() {
        let asked = |answer| {
            let setting = "far:sysctl.net.ipv4.tcp_rmem".parse().unwrap();
            let (from, to, why) = (None, "4096 131072 8388608".into(), String::new());
            let change = Change { setting, from, to, why };
            let (rule, outcome) = ("receive-window".into(), TuningOutcome::Planned);
            let comparison = Known::missing("a plan");
            let mut step = TuningStep { change, rule, outcome, comparison };
            let why = |step: TuningStep| step.comparison.get().unwrap_err().to_string();
            note(&mut step, answer).map(|()| (step.outcome, why(step)))
        };
        let refused = |not_permitted| {
            Err(EngineError::FarSetting {
                not_permitted,
                not_taken: None,
                why: "it allows nothing".into(),
            })
        };
        let (not_permitted, failed) = (TuningOutcome::NotPermitted, TuningOutcome::Failed);
        for (answer, outcome) in [(refused(true), not_permitted), (refused(false), failed)] {
            let (came, why) = asked(answer).unwrap();
            assert!(came == outcome && why.contains("it allows nothing"), "{why}");
        }
        let may = asked(Ok("it may".into())).unwrap();
        assert_eq!(may, (TuningOutcome::Planned, "a plan".into()));
        assert!(asked(Err(EngineError::Interrupted)).is_err());
    }
}
