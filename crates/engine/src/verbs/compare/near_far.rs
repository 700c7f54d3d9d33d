//! Brings the settings of one arm about: in the plan, on this host, or at the far end.

use std::path::PathBuf;

use goodput_model::{EndName, Plan, SettingRef, Transport};
use goodput_settings::{Backend, Changes, GuardProgram, SettingError};
use goodput_wire::session::SettingRequest;

use super::Arm;
use crate::error::EngineError;
use crate::near::client::Client;
use crate::threads::blocking;

/// The parameter that keeps a kernel from noting what a connection learned.
const METRICS: &str = "sysctl.net.ipv4.tcp_no_metrics_save";

/// What was changed so far, at either end.
pub struct Appliers {
    state_dir: PathBuf,
    near: Option<Changes>,
    far_touched: bool,
}

impl Appliers {
    /// Nothing changed yet; the journal of this host will be in `state_dir`.
    pub fn new(state_dir: PathBuf) -> Self {
        Self { state_dir, near: None, far_touched: false }
    }

    /// Keeps the kernels of the sending ends from noting what a connection learned, so that no run
    /// begins with the round-trip time or the reordering of another arm (net/ipv4/tcp_metrics.c).
    /// Where that is not possible, the doubt in words. A comparison of the parameter itself is left
    /// alone.
    pub async fn forget_metrics(
        &mut self,
        client: &mut Client,
        plan: &Plan,
        arms: &[Arm],
    ) -> Vec<String> {
        let compared = |end| {
            let mut settings = arms.iter().flat_map(|arm| &arm.0);
            settings.any(|(setting, _)| setting.end == end && setting.name == METRICS)
        };
        let sends = |end| plan.flow_plans().iter().any(|flow| flow.sender == end);
        let mut doubts = Vec::new();
        for end in [EndName::Near, EndName::Far] {
            if plan.transport != Transport::Tcp || !sends(end) || compared(end) {
                continue;
            }
            let setting = SettingRef { end, name: METRICS.into(), scope: None };
            if let Err(error) = self.change(client, &setting, "1").await {
                doubts.push(format!(
                    "the {end} kernel may carry over what it learned about the path from one run to the next (tcp_metrics): {error}"
                ));
            }
        }
        doubts
    }

    /// Sets everything as `arm` has it; the plan it is to be measured with.
    pub async fn apply(
        &mut self,
        client: &mut Client,
        arm: &Arm,
        plan: &Plan,
    ) -> Result<Plan, EngineError> {
        let mut plan = plan.clone();
        for (setting, value) in &arm.0 {
            match goodput_settings::find_for(setting)?.backend {
                Backend::Plan(_) => goodput_settings::apply_to_plan(setting, value, &mut plan)?,
                Backend::Machine(_) => self.change(client, setting, value).await?,
            }
        }
        Ok(plan)
    }

    async fn change(
        &mut self,
        client: &mut Client,
        setting: &SettingRef,
        value: &str,
    ) -> Result<(), EngineError> {
        match setting.end {
            EndName::Near => self.change_near(setting.clone(), value.into()).await,
            EndName::Far => {
                // The far host is the near one of its own settings.
                let own = SettingRef { end: EndName::Near, ..setting.clone() };
                let request = SettingRequest::Apply(own, value.into());
                let applied = client.setting(request).await.map(drop);
                // Where it lets nobody change anything, it lets nobody put anything back.
                let refused = applied.as_ref().is_err_and(EngineError::not_permitted);
                self.far_touched |= client.far_end().changes_settings && !refused;
                applied
            }
        }
    }

    async fn change_near(&mut self, setting: SettingRef, value: String) -> Result<(), EngineError> {
        let (changes, state_dir) = (self.near.take(), self.state_dir.clone());
        let (changes, applied) =
            blocking(move || apply_near(changes, state_dir, &setting, &value)).await?;
        self.near = changes;
        applied.map_err(Into::into)
    }

    /// Puts everything back at both ends.
    pub async fn restore(&mut self, client: &mut Client) -> Result<(), EngineError> {
        let near = match self.near.take() {
            Some(mut changes) => blocking(move || changes.restore()).await.map(Some)?,
            None => None,
        };
        // A far end puts back on its own what it changed for a conversation that is over.
        let far = match self.far_touched && !client.conversation.is_over() {
            true => client.setting(SettingRequest::Restore).await.map(drop),
            false => Ok(()),
        };
        let near = near
            .filter(|report| !report.is_clean())
            .map(|report| EngineError::Flow(format!("not everything was put back: {report}")));
        match (near, far) {
            (None, far) => far,
            (Some(near), Ok(())) => Err(near),
            (Some(near), Err(far)) => {
                Err(EngineError::NotPutBack { cause: Box::new(near), not_back: Box::new(far) })
            }
        }
    }
}

type Applied = (Option<Changes>, Result<(), SettingError>);

fn apply_near(
    changes: Option<Changes>,
    state_dir: PathBuf,
    setting: &SettingRef,
    value: &str,
) -> Applied {
    let begun = match changes {
        Some(changes) => Ok(changes),
        None => Changes::begin(&state_dir, GuardProgram::current()),
    };
    match begun {
        Ok(mut changes) => {
            let applied = changes.apply(setting, value).map(drop);
            (Some(changes), applied)
        }
        Err(error) => (None, Err(error)),
    }
}
