//! Whether the changes of a plan may be made: this host by what it permits this process, a far end that runs goodput by its
//! answer. Nothing is tried.

use goodput_model::{EndName, Known, SettingRef, TuningOutcome, TuningStep};
use goodput_settings::SettingError;
use goodput_wire::session::SettingRequest;

use super::TuneRequest;
use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::near::client::Client;

/// Marks the changes that this host does not permit, and those that the far end refuses. If that can't be asked, they stay
/// planned.
///
/// # Errors
/// When the far end is gone, or at an interrupt.
pub async fn ask(
    request: &TuneRequest,
    interrupt: &Interrupt,
    steps: &mut [TuningStep],
) -> Result<(), EngineError> {
    if request.hosts.near.is_none() {
        of_this_host(steps, goodput_settings::may_change);
    }
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

/// Marks the changes of this host that it `may` not make.
fn of_this_host(steps: &mut [TuningStep], may: impl Fn(&SettingRef) -> Result<(), SettingError>) {
    for step in steps.iter_mut().filter(|step| step.change.setting.end == EndName::Near) {
        // What else is wrong with a change shows when it is tried.
        if let Err(why) = may(&step.change.setting)
            && why.not_permitted()
        {
            refuse(step, &why.into());
        }
    }
}

fn refuse(step: &mut TuningStep, why: &EngineError) {
    step.outcome = match why.not_permitted() {
        true => TuningOutcome::NotPermitted,
        false => TuningOutcome::Failed,
    };
    step.comparison = Known::missing(why.to_string());
}

/// Takes the far end's answer about a change.
fn note(step: &mut TuningStep, answer: Result<String, EngineError>) -> Result<(), EngineError> {
    match answer {
        Ok(_) => Ok(()),
        Err(refusal @ EngineError::FarSetting { .. }) => {
            refuse(step, &refusal);
            Ok(())
        }
        Err(gone) => Err(gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Change;

    fn planned(setting: &str) -> TuningStep {
        let (from, to, why) = (None, "4096 131072 8388608".into(), String::new());
        let change = Change { setting: setting.parse().unwrap(), from, to, why };
        let (rule, outcome) = ("receive-window".into(), TuningOutcome::Planned);
        TuningStep { change, rule, outcome, comparison: Known::missing("a plan") }
    }

    #[test]
    fn what_this_host_does_not_permit_is_no_plan() {
        let all = ["sysctl.net.ipv4.tcp_rmem", "chunk", "far:sysctl.net.ipv4.tcp_rmem"];
        let mut steps = all.map(planned);
        of_this_host(&mut steps, |setting| match setting.name.as_str() {
            "chunk" => Ok(()),
            _ => Err(SettingError::NotForOthers { setting: setting.clone(), why: "no".into() }),
        });
        use TuningOutcome::{NotPermitted, Planned};
        assert_eq!(steps.map(|step| step.outcome), [NotPermitted, Planned, Planned]);
    }

    #[test]
    fn what_the_far_end_refuses_is_no_plan() {
        let asked = |answer| {
            let mut step = planned("far:sysctl.net.ipv4.tcp_rmem");
            let why = |step: TuningStep| step.comparison.get().unwrap_err().to_string();
            note(&mut step, answer).map(|()| (step.outcome, why(step)))
        };
        let refused = |not_permitted| {
            Err(EngineError::FarSetting {
                not_permitted,
                not_taken: None,
                busy: false,
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
