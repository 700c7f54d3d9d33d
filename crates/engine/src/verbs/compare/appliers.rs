//! Applies the settings of one arm: in the plan, on this host, at the far end, or at a host reached by SSH.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::{ChangedHost, EndName, Plan, SettingRef};
use goodput_remote::{Address, Hosts, Leg, RemoteChanges, RemoteError};
use goodput_settings::parameters::may_be_of_whole_host;
use goodput_settings::{Assignment, Changes, RestoreReport, SettingError, may_cut};
use goodput_wire::session::SettingRequest;

use super::Arm;
use super::taking::{
    Awaiting, Needs, Purpose, RemoteHosts, begin, begin_here, forgetful, forgetting, is_of_plan,
    taken,
};
use crate::error::EngineError;
use crate::events::Listener;
use crate::near::client::Client;
use crate::threads::blocking;
use crate::verbs::far_turn::{hold, place};
use crate::verbs::telling::telling;

/// What was changed so far, at either end. Whoever waits for a change may stop waiting. A change that has begun on its thread
/// then comes to its end, and [`Appliers::restore`] puts it back after that; one that has not begun by then is not made.
pub struct Appliers {
    state_dir: PathBuf,
    hosts: Hosts,
    near: Shared<Closing<Option<Changes>>>,
    far_touched: bool,
    /// Settings of the far host, and values of theirs that the conversation has survived.
    confirmed: BTreeSet<Assignment>,
    remote: Shared<Closing<RemoteHosts>>,
    /// The system of each of them.
    systems: Shared<BTreeMap<Address, &'static str>>,
    /// Those of them that are only watched.
    unchanged: BTreeSet<Address>,
    /// What is under way, in words.
    under_way: Option<String>,
}

/// Held by the thread that works with it.
type Shared<T> = Arc<Mutex<T>>;

/// Changes that may be made until all of them are put back. This is looked up while they are held.
#[derive(Default)]
struct Closing<T> {
    changes: T,
    is_closed: bool,
}

impl<T: Default> Closing<T> {
    /// The changes, unless they are closed.
    fn open(&mut self) -> Option<&mut T> {
        (!self.is_closed).then_some(&mut self.changes)
    }

    /// The changes, after which no more are made.
    fn close(&mut self) -> T {
        self.is_closed = true;
        std::mem::take(&mut self.changes)
    }
}

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

    /// Takes the hosts that are needed, if any is reached by SSH or is to be changed by the far end itself, in the order in
    /// which every run takes hosts: in that of the changes, each of two runs could keep the other from its second host.
    pub async fn take(
        &mut self,
        client: &mut Client,
        needs: Needs,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let changes_far = needs.changes_far_itself(&self.hosts);
        let far = if changes_far { place(client).await? } else { None };
        if far.is_none() && !needs.any_by_ssh(&self.hosts) {
            return Ok(());
        }
        let (hosts, wanted) = (self.hosts.clone(), needs.clone());
        let log_in = telling(listener, move |notify| Awaiting::log_in(&hosts, &wanted, notify));
        let Awaiting { order, here } = log_in.await??;
        let Some(far) = far else { return self.take_leg(&needs, order.into(), here).await };
        let [first, then] = order.split(&far, &goodput_settings::identity_here()?);
        self.take_leg(&needs, first, here).await?;
        // Whoever stops waiting for the answer holds it all the same.
        self.far_touched = true;
        hold(client, needs.far_patience, listener).await?;
        self.take_leg(&needs, then, here).await
    }

    /// Takes a part of them, one after the other.
    async fn take_leg(
        &mut self,
        needs: &Needs,
        leg: Leg,
        here: Option<Purpose>,
    ) -> Result<(), EngineError> {
        let is_here = leg.here;
        let (hosts, state_dir, needs) = (self.hosts.clone(), self.state_dir.clone(), needs.clone());
        let before = std::mem::take(&mut held(&self.remote).changes);
        let taken = blocking(move || taken(&hosts, &state_dir, &needs, (leg, here), before));
        let (near, remote) = taken.await??;
        held(&self.remote).changes = remote;
        if is_here {
            held(&self.near).changes = near;
        }
        Ok(())
    }

    /// Keeps the kernels of the sending ends from saving what a connection learned ([`forgetful`]). If that is not possible,
    /// returns the doubt in words.
    pub async fn forget_metrics(
        &mut self,
        client: &mut Client,
        plan: &Plan,
        arms: &[Arm],
    ) -> Vec<String> {
        let mut doubts = Vec::new();
        for end in forgetful(plan, arms) {
            if let Err(error) = self.change_of_sender(client, &forgetting(end), "1").await {
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
        let applied = blocking(move || {
            let mut near = held(&near);
            let open = near.open().ok_or_else(|| SettingError::Closed(setting.clone()))?;
            apply_near(open, &state_dir, &setting, &value)
        });
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
            let open = remote.open().ok_or(RemoteError::Closed)?;
            let changes = changes_at(open, &hosts, &state_dir, address.clone())?;
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
        let answer = blocking(move || held(&remote).changes.get_mut(&address).map(ask).transpose());
        Ok(answer.await??)
    }

    /// Puts everything back at hosts reached by SSH. Returns what could not be put back.
    async fn restore_remote(&mut self) -> Result<Vec<String>, EngineError> {
        let remote = self.remote.clone();
        blocking(move || {
            let all = held(&remote).close();
            let restored = all.into_values().map(|mut changes| changes.restore());
            let left = restored.filter(|restored| !restored.report.is_clean());
            left.map(|restored| restored.not_back()).collect()
        })
        .await
    }

    /// Puts everything back at this host.
    async fn restore_near(&mut self) -> Result<Option<RestoreReport>, EngineError> {
        let near = self.near.clone();
        blocking(move || held(&near).close().map(|mut changes| changes.restore())).await
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
        None => begin_here(state_dir)?,
    };
    changes.insert(begun).apply(setting, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever made it has stopped waiting, and its thread comes late.
    #[tokio::test]
    async fn a_change_that_begins_after_everything_was_put_back_is_not_made() {
        let state = tempfile::tempdir().unwrap();
        // No login is possible there (RFC 6761, section 6.4).
        let far: Address = "ssh://b.invalid".parse().unwrap();
        let hosts = Hosts::new(None, Some(far.clone()), Default::default());
        let mut appliers = Appliers::new(state.path().into(), hosts);
        appliers.restore(None).await.unwrap();
        let setting = |name: &str| -> SettingRef { name.parse().unwrap() };
        let near = appliers.change_near(setting("link.mtu@no-such"), "1400".into()).await;
        assert!(matches!(near, Err(EngineError::Setting(SettingError::Closed(_)))), "{near:?}");
        let far = appliers.change_remote(far, setting("link.mtu@no-such"), "1400".into()).await;
        let is_closed = |error: &EngineError| match error {
            EngineError::Remote(error) => matches!(**error, RemoteError::Closed),
            _ => false,
        };
        assert!(far.as_ref().is_err_and(is_closed), "{far:?}");
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0, "no journal was begun");
    }
}
