//! Applies the settings of one arm: in the plan, on this host, at the far end, or at a host reached by SSH.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::{ChangedHost, EndName, Plan, SettingRef, Transport};
use goodput_remote::{Address, Host, Hosts, Notify, RemoteChanges, RemoteError};
use goodput_settings::parameters::may_be_of_whole_host;
use goodput_settings::{
    Assignment, Changes, GuardProgram, RestoreReport, Setting, SettingError, may_cut,
};
use goodput_wire::session::SettingRequest;

use super::Arm;
use crate::error::EngineError;
use crate::events::Listener;
use crate::near::client::Client;
use crate::threads::blocking;
use crate::verbs::telling::telling;

/// The parameter that keeps a kernel from saving what a connection learned.
const METRICS: &str = "sysctl.net.ipv4.tcp_no_metrics_save";

/// What was changed so far, at either end. Whoever waits for a change may stop waiting: the change then comes to its end
/// on its thread, and [`Appliers::restore`] puts it back after that.
pub struct Appliers {
    state_dir: PathBuf,
    hosts: Hosts,
    near: Shared<Option<Changes>>,
    far_touched: bool,
    /// Settings of the far host, and values of theirs that the conversation has survived.
    confirmed: BTreeSet<Assignment>,
    remote: Shared<RemoteHosts>,
    /// The system of each of them.
    systems: Shared<BTreeMap<Address, &'static str>>,
    /// Those of them that are only watched.
    unchanged: BTreeSet<Address>,
    /// What is under way, in words.
    under_way: Option<String>,
}

/// Held by the thread that works with it.
type Shared<T> = Arc<Mutex<T>>;

/// Changes of hosts reached by SSH, by the addresses of these hosts.
type RemoteHosts = BTreeMap<Address, RemoteChanges>;

fn held<T>(shared: &Shared<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Appliers {
    /// Nothing is changed yet; the journals will be in `state_dir`, and `hosts` stand for the ends.
    pub fn new(state_dir: PathBuf, hosts: Hosts) -> Self {
        let (near, confirmed, remote, systems, unchanged) = Default::default();
        let (far_touched, under_way) = (false, None);
        Self {
            state_dir,
            hosts,
            near,
            far_touched,
            confirmed,
            remote,
            systems,
            unchanged,
            under_way,
        }
    }

    /// What was under way when nobody waited for it any more, in words.
    pub fn under_way(&self) -> Option<&str> {
        self.under_way.as_deref()
    }

    /// Takes the hosts that are changed for these ends, if any is reached by SSH, in the order in which every run takes hosts:
    /// in that of the changes, each of two runs could keep the other from its second host.
    pub async fn take(
        &mut self,
        ends: &[EndName],
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        if ends.iter().all(|end| self.hosts.at(*end).is_none()) {
            return Ok(());
        }
        let (hosts, state_dir, ends) = (self.hosts.clone(), self.state_dir.clone(), ends.to_vec());
        let taken = telling(listener, move |notify| taken(&hosts, &state_dir, &ends, notify));
        let (near, remote) = taken.await??;
        (*held(&self.near), *held(&self.remote)) = (near, remote);
        Ok(())
    }

    /// Keeps the kernels of the sending ends from saving what a connection learned, so that no run begins with the
    /// round-trip time or the reordering of another arm (net/ipv4/tcp_metrics.c). If that is not possible, returns the
    /// doubt in words. A comparison of the parameter itself is left alone.
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
            if let Err(error) = self.change_of_sender(client, &setting, "1").await {
                doubts.push(format!(
                    "the {end} kernel may carry over what it learned about the path from one run to the next (tcp_metrics): {error}"
                ));
            }
        }
        doubts
    }

    /// Sets one value of the kernel that sends for an end. Payload of the near end always leaves this host: a host that
    /// stands for this end, such as a router on the way, sends nothing, unless it is this host under another name.
    async fn change_of_sender(
        &mut self,
        client: &mut Client,
        setting: &SettingRef,
        value: &str,
    ) -> Result<String, EngineError> {
        let stands_for_near = self.hosts.near.clone().filter(|_| setting.end == EndName::Near);
        if let Some(address) = stands_for_near
            && !self.at_host(address, |changes| Ok(changes.is_this_host())).await?
        {
            return self.change_near(setting.clone(), value.into()).await;
        }
        self.change(client, setting, value).await
    }

    /// Refuses values of `arm` that a host would refuse, as far as it can tell before anything is changed. Each host is
    /// asked about all of its values at once, because one may depend on another.
    pub async fn check(&mut self, client: &mut Client, arm: &Arm) -> Result<(), EngineError> {
        for end in [EndName::Near, EndName::Far] {
            let own =
                arm.0.iter().filter(|(setting, _)| setting.end == end && !is_of_plan(setting));
            let own: Vec<_> = own.cloned().collect();
            if !own.is_empty() {
                self.check_at(client, end, own).await?;
            }
        }
        Ok(())
    }

    /// Asks the host that stands for `end` about values of its settings.
    async fn check_at(
        &mut self,
        client: &mut Client,
        end: EndName,
        mut arm: Vec<Assignment>,
    ) -> Result<(), EngineError> {
        if let Some(address) = self.hosts.at(end).cloned() {
            return self.at_host(address, move |changes| changes.check(&arm)).await;
        }
        match end {
            EndName::Near => {
                let check = move || goodput_settings::check_values(&arm);
                blocking(check).await?.map_err(Into::into)
            }
            EndName::Far => {
                // The far host treats its own settings as near ones.
                arm.iter_mut().for_each(|(setting, _)| setting.end = EndName::Near);
                client.setting(SettingRequest::Check(arm)).await.map(drop)
            }
        }
    }

    /// Sets everything as `arm` has it. Returns the plan to measure with.
    pub async fn apply(
        &mut self,
        client: &mut Client,
        arm: &Arm,
        plan: &Plan,
    ) -> Result<Plan, EngineError> {
        self.set(client, arm).await?;
        planned(arm, plan)
    }

    /// Sets everything as `arm` has it. Returns what each value became, in the order of the arm; `None` for a setting of
    /// the measurement.
    pub async fn set(
        &mut self,
        client: &mut Client,
        arm: &Arm,
    ) -> Result<Vec<Option<String>>, EngineError> {
        let mut effective = Vec::new();
        for (setting, value) in &arm.0 {
            effective.push(match is_of_plan(setting) {
                true => None,
                false => Some(self.change(client, setting, value).await?),
            });
        }
        Ok(effective)
    }

    /// Sets those kernel parameters as `arm` has them that only a change can try.
    pub async fn try_whole_host(
        &mut self,
        client: &mut Client,
        arm: &Arm,
    ) -> Result<(), EngineError> {
        for (setting, value) in arm.0.iter().filter(|(one, _)| may_be_of_whole_host(one)) {
            self.change(client, setting, value).await?;
        }
        Ok(())
    }

    /// Sets everything as `arm` has it, here and at hosts reached by SSH, while something else talks to the far end.
    pub async fn apply_here(&mut self, arm: &Arm) -> Result<(), EngineError> {
        for (setting, value) in &arm.0 {
            match self.hosts.at(setting.end) {
                Some(host) => {
                    self.change_remote(host.clone(), setting.clone(), value.clone()).await?
                }
                None => self.change_near(setting.clone(), value.clone()).await?,
            };
        }
        Ok(())
    }

    /// Sets one value, and returns what it became.
    async fn change(
        &mut self,
        client: &mut Client,
        setting: &SettingRef,
        value: &str,
    ) -> Result<String, EngineError> {
        let at = self.hosts.at(setting.end).map(|host| format!(" at {host}")).unwrap_or_default();
        self.under_way = Some(format!("the change of {setting}{at} to {value}"));
        let changed = self.change_in_turn(client, setting, value).await;
        self.under_way = None;
        changed
    }

    async fn change_in_turn(
        &mut self,
        client: &mut Client,
        setting: &SettingRef,
        value: &str,
    ) -> Result<String, EngineError> {
        if let Some(address) = self.hosts.at(setting.end) {
            return self.change_remote(address.clone(), setting.clone(), value.into()).await;
        }
        match setting.end {
            EndName::Near => self.change_near(setting.clone(), value.into()).await,
            EndName::Far => {
                // The far host treats its own settings as near ones.
                let own = SettingRef { end: EndName::Near, ..setting.clone() };
                let tried = (own.clone(), value.to_owned());
                // Whoever stops waiting for the answer has changed it all the same.
                let was_touched = self.far_touched;
                self.far_touched |= client.far_end().changes_settings;
                let applied = match may_cut(&own) && !self.confirmed.contains(&tried) {
                    true => client.try_setting(own, value.into()).await,
                    false => client.setting(SettingRequest::Apply(own, value.into())).await,
                };
                if applied.is_ok() {
                    self.confirmed.insert(tried);
                }
                // A far end that allows no changes has nothing to put back.
                if applied.as_ref().is_err_and(EngineError::not_permitted) {
                    self.far_touched = was_touched;
                }
                applied
            }
        }
    }

    async fn change_near(
        &mut self,
        setting: SettingRef,
        value: String,
    ) -> Result<String, EngineError> {
        let (near, state_dir) = (self.near.clone(), self.state_dir.clone());
        let applied = blocking(move || apply_near(&mut held(&near), &state_dir, &setting, &value));
        Ok(applied.await??)
    }

    async fn change_remote(
        &mut self,
        address: Address,
        setting: SettingRef,
        value: String,
    ) -> Result<String, EngineError> {
        self.unchanged.remove(&address);
        self.at_host(address, move |changes| changes.apply(&setting, &value)).await
    }

    /// Does something at a host reached by SSH, after a login if this is the first time.
    async fn at_host<T: Send + 'static>(
        &mut self,
        address: Address,
        act: impl FnOnce(&mut RemoteChanges) -> Result<T, RemoteError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let (remote, systems) = (self.remote.clone(), self.systems.clone());
        let (state_dir, hosts) = (self.state_dir.clone(), self.hosts.clone());
        let done = blocking(move || {
            let mut remote = held(&remote);
            let changes = changes_at(&mut remote, &hosts, &state_dir, address.clone())?;
            held(&systems).insert(address, changes.system());
            act(changes)
        });
        Ok(done.await??)
    }

    /// Logs in to the host that stands for `end`, if there is one, so that it is watched although no arm changes it.
    pub async fn reach(&mut self, end: EndName) -> Result<(), EngineError> {
        let Some(address) = self.hosts.at(end).cloned() else { return Ok(()) };
        if !held(&self.systems).contains_key(&address) {
            self.unchanged.insert(address.clone());
        }
        self.at_host(address, |_| Ok(())).await
    }

    /// The hosts reached by SSH.
    pub fn reached(&self) -> Vec<Address> {
        held(&self.systems).keys().cloned().collect()
    }

    /// The hosts reached by SSH that were changed.
    pub fn changed_hosts(&self) -> Vec<ChangedHost> {
        let systems = held(&self.systems);
        let at = |end| {
            let address = self.hosts.at(end).filter(|host| !self.unchanged.contains(host))?;
            let system = (*systems.get(address)?).to_owned();
            Some(ChangedHost { end, address: address.to_string(), system })
        };
        [EndName::Near, EndName::Far].into_iter().filter_map(at).collect()
    }

    /// Asks something of the host that stands for `end`, if that host was changed.
    pub async fn ask<T: Send + 'static>(
        &mut self,
        end: EndName,
        ask: impl FnOnce(&mut RemoteChanges) -> Result<T, RemoteError> + Send + 'static,
    ) -> Result<Option<T>, EngineError> {
        let Some(address) = self.hosts.at(end).cloned() else { return Ok(None) };
        let remote = self.remote.clone();
        let answer = blocking(move || held(&remote).get_mut(&address).map(ask).transpose());
        Ok(answer.await??)
    }

    /// Puts everything back at hosts reached by SSH. Returns what could not be put back.
    async fn restore_remote(&mut self) -> Result<Vec<String>, EngineError> {
        let remote = self.remote.clone();
        blocking(move || {
            let all = std::mem::take(&mut *held(&remote));
            let restored = all.into_values().map(|mut changes| changes.restore());
            let left = restored.filter(|restored| !restored.report.is_clean());
            left.map(|restored| restored.not_back()).collect()
        })
        .await
    }

    /// Puts everything back at this host.
    async fn restore_near(&mut self) -> Result<Option<RestoreReport>, EngineError> {
        let near = self.near.clone();
        blocking(move || held(&near).take().map(|mut changes| changes.restore())).await
    }

    /// Puts everything back at both ends, after what is still under way has come to its end. A far end without a client
    /// puts back its changes on its own, because their conversation is over.
    pub async fn restore(&mut self, client: Option<&mut Client>) -> Result<(), EngineError> {
        let remote = self.restore_remote().await;
        let near = self.restore_near().await?;
        let client = client.filter(|client| self.far_touched && !client.conversation.is_over());
        let far = match client {
            Some(client) => client.setting(SettingRequest::Restore).await.map(drop),
            None => Ok(()),
        };
        let near = near.filter(|report| !report.is_clean()).map(|report| report.not_back());
        let left: Vec<_> = near.into_iter().chain(remote?).collect();
        let near = (!left.is_empty()).then(|| {
            EngineError::Flow(format!("not everything was put back: {}", left.join("; ")))
        });
        match (near, far) {
            (None, far) => far,
            (Some(near), Ok(())) => Err(near),
            (Some(near), Err(far)) => {
                Err(EngineError::NotPutBack { cause: Box::new(near), not_back: Box::new(far) })
            }
        }
    }
}

/// The plan with the settings of `arm` that belong to the measurement.
pub fn planned(arm: &Arm, plan: &Plan) -> Result<Plan, EngineError> {
    let mut plan = plan.clone();
    for (setting, value) in arm.0.iter().filter(|(setting, _)| is_of_plan(setting)) {
        goodput_settings::apply_to_plan(setting, value, &mut plan)?;
    }
    Ok(plan)
}

/// The ends of whose hosts settings are compared.
pub fn ends_of_hosts(arms: &[Arm]) -> Vec<EndName> {
    let of_host = |end: &EndName| {
        let mut settings = arms.iter().flat_map(|arm| &arm.0);
        settings.any(|(setting, _)| setting.end == *end && !is_of_plan(setting))
    };
    [EndName::Near, EndName::Far].into_iter().filter(of_host).collect()
}

/// Whether a setting belongs to the measurement. A setting that this host does not know belongs to another host.
fn is_of_plan(setting: &SettingRef) -> bool {
    let near = SettingRef { end: EndName::Near, ..setting.clone() };
    goodput_settings::find_for(&near).is_ok_and(Setting::is_plan)
}

/// Begins the changes of the hosts that stand for these ends, this one included, in the order in which every run takes hosts.
fn taken(
    hosts: &Hosts,
    state_dir: &Path,
    ends: &[EndName],
    notify: &Notify,
) -> Result<(Option<Changes>, BTreeMap<Address, RemoteChanges>), EngineError> {
    let order = hosts.log_in(ends, notify)?;
    let mut remote = BTreeMap::new();
    for host in order.before_here {
        begin(host, state_dir, &mut remote)?;
    }
    let is_here = ends.contains(&EndName::Near) && hosts.near.is_none();
    let near = is_here.then(|| Changes::begin(state_dir, GuardProgram::current())).transpose()?;
    for host in order.after_here {
        begin(host, state_dir, &mut remote)?;
    }
    Ok((near, remote))
}

/// Begins the changes of a host.
fn begin(
    host: Host,
    state_dir: &Path,
    remote: &mut BTreeMap<Address, RemoteChanges>,
) -> Result<(), RemoteError> {
    let address = host.address().clone();
    let changes = Hosts::begin(state_dir, host, remote.values_mut())?;
    remote.insert(address, changes);
    Ok(())
}

/// The changes at a host, which begin with a login if this is the first time.
fn changes_at<'a>(
    remote: &'a mut RemoteHosts,
    hosts: &Hosts,
    state_dir: &Path,
    address: Address,
) -> Result<&'a mut RemoteChanges, RemoteError> {
    if !remote.contains_key(&address) {
        begin(hosts.open(&address)?, state_dir, remote)?;
    }
    remote.get_mut(&address).ok_or(RemoteError::Closed)
}

fn apply_near(
    changes: &mut Option<Changes>,
    state_dir: &Path,
    setting: &SettingRef,
    value: &str,
) -> Result<String, SettingError> {
    let begun = match changes.take() {
        Some(begun) => begun,
        None => Changes::begin(state_dir, GuardProgram::current())?,
    };
    changes.insert(begun).apply(setting, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_measurement_change_no_host() {
        let ends = |names: &[&str]| {
            let arm = names.iter().map(|name| (name.parse().unwrap(), String::new())).collect();
            ends_of_hosts(&[Arm(Vec::new()), Arm(arm)])
        };
        assert_eq!(ends(&["mover"]), []);
        assert_eq!(ends(&["mover", "far:polling@em0"]), [EndName::Far], "of another system");
        assert_eq!(ends(&["link.mtu@a", "far:link.mtu@a"]), [EndName::Near, EndName::Far]);
    }
}
