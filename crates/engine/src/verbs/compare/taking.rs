//! Which hosts a comparison needs, and taking them in the order in which every run takes hosts: in another order, each of two
//! runs could keep the other from its second host.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use goodput_model::{EndName, Plan, Response, SettingRef, Transport};
use goodput_remote::{Address, Host, Hosts, InOrder, Leg, Notify, RemoteChanges, RemoteError};
use goodput_settings::{Changes, GuardProgram, Setting, SettingError};

use super::{Arm, CompareRequest};
use crate::control::target::Target;
use crate::error::EngineError;
use crate::verbs::far_turn::patience;

/// The parameter that keeps a kernel from saving what a connection learned.
const METRICS: &str = "sysctl.net.ipv4.tcp_no_metrics_save";

/// Changes of hosts reached by SSH, by the addresses of these hosts.
pub(super) type RemoteHosts = BTreeMap<Address, RemoteChanges>;

/// The ends whose hosts a comparison changes or reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Those that the arms change: without their hosts there is no comparison.
    changed: Vec<EndName>,
    /// Others, with which the comparison is better: a kernel that forgets, CPU time that is read. Why such a host can't be
    /// taken is said when it is about to be used.
    beside: Vec<EndName>,
    /// Whether this host's kernel is to forget, too.
    forgets_here: bool,
    /// How long another run at the far end is waited for.
    pub(super) far_patience: Duration,
}

impl Needs {
    /// What the runs of a comparison need.
    pub fn of(request: &CompareRequest) -> Self {
        let changed = ends_of_hosts(&request.arms);
        let mut beside = forgetful(&request.plan, &request.arms);
        let forgets_here = beside.contains(&EndName::Near);
        if reads_far_cpu(request) && !beside.contains(&EndName::Far) {
            beside.push(EndName::Far);
        }
        beside.retain(|end| !changed.contains(end));
        let far_patience = patience(request.given_up_at);
        Self { changed, beside, forgets_here, far_patience }
    }

    /// Whether the arms change the far end by its own goodput.
    pub(super) fn changes_far_itself(&self, hosts: &Hosts) -> bool {
        self.changed.contains(&EndName::Far) && hosts.far.is_none()
    }

    /// Whether one of the hosts is reached by SSH.
    pub(super) fn any_by_ssh(&self, hosts: &Hosts) -> bool {
        self.changed.iter().chain(&self.beside).any(|end| hosts.at(*end).is_some())
    }

    /// Whether a host stands for an end that the arms change.
    fn is_changed(&self, hosts: &Hosts, address: &Address) -> bool {
        self.changed.iter().any(|end| hosts.at(*end) == Some(address))
    }

    /// Logs in at the hosts; if that is not possible at all of them, at those that the arms change.
    pub(super) fn log_in(&self, hosts: &Hosts, notify: &Notify) -> Result<InOrder, RemoteError> {
        let all = [&self.changed[..], &self.beside].concat();
        match hosts.log_in(&all, notify) {
            Err(_) if !self.beside.is_empty() => {
                match self.changed.iter().any(|end| hosts.at(*end).is_some()) {
                    true => hosts.log_in(&self.changed, notify),
                    false => Ok(InOrder::default()),
                }
            }
            order => order,
        }
    }

    /// What this host's changes are for, if any are to be made. Payload of the near end always leaves this host. A login that
    /// leads back to this host stands for it.
    pub(super) fn of_this_host(&self, hosts: &Hosts, order: &InOrder) -> Option<Purpose> {
        if hosts.near.is_none() && self.changed.contains(&EndName::Near) {
            return Some(Purpose::Arms);
        }
        let mut all = order.before_here.iter().chain(&order.after_here);
        (self.forgets_here && !all.any(Host::is_this_host)).then_some(Purpose::Beside)
    }
}

/// What a host is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The arms change it.
    Arms,
    /// Without it, the comparison is possible.
    Beside,
}

/// The ends of whose hosts settings are compared.
pub(super) fn ends_of_hosts(arms: &[Arm]) -> Vec<EndName> {
    let of_host = |end: &EndName| {
        let mut settings = arms.iter().flat_map(|arm| &arm.0);
        settings.any(|(setting, _)| setting.end == *end && !is_of_plan(setting))
    };
    [EndName::Near, EndName::Far].into_iter().filter(of_host).collect()
}

/// Whether a setting belongs to the measurement. A setting that this host does not know belongs to another host.
pub(super) fn is_of_plan(setting: &SettingRef) -> bool {
    let near = SettingRef { end: EndName::Near, ..setting.clone() };
    goodput_settings::find_for(&near).is_ok_and(Setting::is_plan)
}

/// Whether the CPU time of the far end's host is read there, if that host is known: it is judged, and the far end does not
/// report it.
pub(super) fn reads_far_cpu(request: &CompareRequest) -> bool {
    let is_judged = request.responses.contains(&Response::Cpu);
    is_judged && !request.target.protocol.far_end.reports && !is_file(&request.target)
}

/// Whether the far end is a server of files or a mount: only this end's CPU time counts then.
pub(super) fn is_file(target: &Target) -> bool {
    target.file.is_some() || target.mounted.is_some()
}

/// The sending ends whose kernels are to forget what a connection learned, so that no run begins with the round-trip time or
/// the reordering of another arm (net/ipv4/tcp_metrics.c). A comparison of the parameter itself is left alone.
pub(super) fn forgetful(plan: &Plan, arms: &[Arm]) -> Vec<EndName> {
    let compared = |end| {
        let mut settings = arms.iter().flat_map(|arm| &arm.0);
        settings.any(|(setting, _)| setting.end == end && setting.name == METRICS)
    };
    let sends = |end| plan.flow_plans().iter().any(|flow| flow.sender == end);
    let forgets =
        |end: &EndName| plan.transport == Transport::Tcp && sends(*end) && !compared(*end);
    [EndName::Near, EndName::Far].into_iter().filter(forgets).collect()
}

/// What makes the kernel of an end forget.
pub(super) fn forgetting(end: EndName) -> SettingRef {
    SettingRef { end, name: METRICS.into(), scope: None }
}

/// The hosts to which a run has logged in, before it takes them.
pub(super) struct Awaiting {
    /// Those by SSH.
    pub(super) order: InOrder,
    /// What this host is taken for, if it is.
    pub(super) here: Option<Purpose>,
}

impl Awaiting {
    /// Logs in.
    pub(super) fn log_in(
        hosts: &Hosts,
        needs: &Needs,
        notify: &Notify,
    ) -> Result<Self, RemoteError> {
        let order = needs.log_in(hosts, notify)?;
        let here = needs.of_this_host(hosts, &order);
        Ok(Self { order, here })
    }
}

/// Begins the changes of a leg's hosts, this one included if it is taken `here`. The run has taken those of `remote` before.
pub(super) fn taken(
    hosts: &Hosts,
    state_dir: &Path,
    needs: &Needs,
    (leg, here): (Leg, Option<Purpose>),
    mut remote: RemoteHosts,
) -> Result<(Option<Changes>, RemoteHosts), EngineError> {
    let mut begin_all = |all: Vec<Host>| {
        all.into_iter().try_for_each(|host| {
            let is_changed = needs.is_changed(hosts, host.address());
            let begun = begin(host, state_dir, &mut remote);
            if is_changed { begun } else { Ok(()) }
        })
    };
    begin_all(leg.before_here)?;
    let near = here.filter(|_| leg.here).map(|purpose| (purpose, begin_here(state_dir)));
    let near = match near {
        Some((Purpose::Arms, begun)) => Some(begun?),
        Some((Purpose::Beside, begun)) => begun.ok(),
        None => None,
    };
    begin_all(leg.after_here)?;
    Ok((near, remote))
}

/// Begins the changes of a host.
pub(super) fn begin(
    host: Host,
    state_dir: &Path,
    remote: &mut RemoteHosts,
) -> Result<(), RemoteError> {
    let address = host.address().clone();
    let changes = Hosts::begin(state_dir, host, remote.values_mut())?;
    remote.insert(address, changes);
    Ok(())
}

/// Begins the changes of this host.
pub(super) fn begin_here(state_dir: &Path) -> Result<Changes, SettingError> {
    Changes::begin(state_dir, GuardProgram::current())
}

#[cfg(test)]
mod tests {
    use goodput_model::Direction;

    use super::*;

    fn arms(setting: &str) -> Vec<Arm> {
        ["1", "2"].map(|value| Arm(vec![(setting.parse().unwrap(), value.into())])).into()
    }

    #[test]
    fn every_sending_end_forgets_unless_that_is_compared() {
        let ends = |direction, setting: &str| {
            let plan = Plan { direction, ..Plan::standard() };
            forgetful(&plan, &arms(setting))
        };
        let [near, far] = [EndName::Near, EndName::Far];
        assert_eq!(ends(Direction::Send, "link.mtu@a"), [near]);
        assert_eq!(ends(Direction::Reverse, "link.mtu@a"), [far]);
        assert_eq!(ends(Direction::Both, "link.mtu@a"), [near, far]);
        assert_eq!(ends(Direction::Both, METRICS), [far]);
        let udp = Plan { transport: Transport::Udp, ..Plan::standard() };
        assert_eq!(forgetful(&udp, &arms("link.mtu@a")), []);
    }

    #[test]
    fn hosts_that_are_only_used_beside_the_arms_are_taken_in_the_same_order() {
        let at = |text: &str| Some(text.parse().unwrap());
        let far = Hosts::new(None, at("ssh://b"), Default::default());
        let needs = Needs {
            changed: vec![EndName::Far],
            beside: vec![EndName::Near],
            forgets_here: true,
            far_patience: Duration::ZERO,
        };
        assert!(needs.changes_far_itself(&Hosts::default()), "goodput there changes it");
        let none = InOrder::default();
        assert_eq!(needs.of_this_host(&far, &none), Some(Purpose::Beside), "its kernel forgets");
        assert!(!needs.changes_far_itself(&far));
        assert!(needs.any_by_ssh(&far) && needs.is_changed(&far, &"ssh://b".parse().unwrap()));
        let router = Hosts::new(at("ssh://r"), at("ssh://b"), Default::default());
        assert_eq!(
            needs.of_this_host(&router, &none),
            Some(Purpose::Beside),
            "payload is sent here"
        );
        assert!(!needs.is_changed(&router, &"ssh://r".parse().unwrap()));
        let both = Needs { changed: vec![EndName::Near, EndName::Far], ..needs.clone() };
        assert_eq!(both.of_this_host(&far, &none), Some(Purpose::Arms));
        let quiet = Needs { forgets_here: false, ..needs };
        assert_eq!(quiet.of_this_host(&far, &none), None);
    }

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
