//! What is configured at a far end that reports nothing itself: its host is asked by SSH, and nothing is changed there.

use std::sync::Arc;

use goodput_diagnose::check::{HostView, check};
use goodput_model::{EndName, Finding, Known};
use goodput_remote::{Host, Hosts};

use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::result::measurement::{FarSettings, Measurement};
use crate::threads::blocking;

/// Whether the host that is changed for the far end is asked what is configured there, because the far end itself does
/// not report it.
pub fn are_asked_for<T>(hosts: &Hosts, far: &Known<T>) -> bool {
    hosts.far.is_some() && far.value().is_none()
}

/// Asks that host, and says so.
pub async fn add(hosts: &Hosts, measured: &mut Measurement, interrupt: &Interrupt) {
    let asked = hosts.far.clone().filter(|_| are_asked_for(hosts, &measured.far));
    let Some(address) = asked else { return };
    let (host, access, towards) =
        (address.to_string(), hosts.access.clone(), measured.near_address());
    let facts = blocking(move || Host::open(&address, &access)?.facts(towards));
    let facts = tokio::select! {
        facts = facts => facts.and_then(|facts| facts.map_err(Into::into)),
        () = interrupt.raised() => Err(EngineError::Interrupted),
    };
    measured.doubts.push(match facts {
        Ok(facts) => {
            let text = format!("the settings of the far end were read by SSH from {host}");
            measured.far_settings = Some(Arc::new(FarSettings { host, facts }));
            text
        }
        Err(why) => format!("the settings of the far end are unknown: {why}"),
    });
}

/// What `check` finds in these settings, with changes of the far end.
pub fn checked(settings: &FarSettings) -> Vec<Finding> {
    let device = settings.facts.text("link.device").ok();
    let mut findings = check(&[HostView { device, now: &settings.facts, before: None }]).findings;
    for change in findings.iter_mut().flat_map(|finding| &mut finding.changes) {
        change.setting.end = EndName::Far;
    }
    findings
}

#[cfg(test)]
mod tests {
    use goodput_model::Snapshot;

    use super::*;

    #[test]
    fn a_far_end_that_reports_itself_is_not_asked() {
        let far = Some("ssh://b".parse().unwrap());
        let hosts = Hosts::new(None, far, Default::default());
        let missing = Known::<()>::missing("iperf3 reports nothing");
        assert!(are_asked_for(&hosts, &missing));
        assert!(!are_asked_for(&hosts, &Known::Value(())));
        assert!(!are_asked_for(&Hosts::default(), &missing));
    }

    #[test]
    fn checks_of_these_settings_change_the_far_end() {
        let mut facts = Snapshot::default();
        facts.put("sysctl.net.ipv4.tcp_window_scaling", "0");
        let found = checked(&FarSettings { host: "ssh://b".into(), facts });
        let changes: Vec<_> =
            found.iter().flat_map(|f| &f.changes).map(|c| c.as_argument()).collect();
        assert_eq!(changes, ["far:sysctl.net.ipv4.tcp_window_scaling=0,1"]);
    }
}
