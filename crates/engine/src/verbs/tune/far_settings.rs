//! What is configured at hosts that stand for the ends by SSH: at that of a far end that reports nothing itself, and at that
//! of the near end. They are asked, and nothing is changed there.

use std::net::IpAddr;
use std::sync::Arc;

use goodput_diagnose::check::{HostView, check};
use goodput_model::{EndName, Finding, Known};
use goodput_remote::{Address, Host, Hosts};

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
    let towards = measured.near_address();
    let read = read(hosts, address, towards, interrupt).await;
    measured.far_settings = note(measured, EndName::Far, read).map(Arc::new);
}

/// What `check` finds at the host that is changed for the near end, and says that it was asked. What this host's own check
/// finds is about other devices.
pub async fn checked_near(
    hosts: &Hosts,
    measured: &mut Measurement,
    interrupt: &Interrupt,
) -> Vec<Finding> {
    let Some(address) = hosts.near.clone() else { return Vec::new() };
    let read = read(hosts, address, measured.far_address(), interrupt).await;
    let settings = note(measured, EndName::Near, read);
    settings.iter().flat_map(|settings| checked(EndName::Near, settings)).collect()
}

async fn read(
    hosts: &Hosts,
    address: Address,
    towards: Option<IpAddr>,
    interrupt: &Interrupt,
) -> Result<FarSettings, EngineError> {
    let (host, access) = (address.to_string(), hosts.access.clone());
    let facts = blocking(move || Host::open(&address, &access)?.facts(towards));
    let facts = tokio::select! {
        facts = facts => facts.and_then(|facts| facts.map_err(Into::into)),
        () = interrupt.raised() => Err(EngineError::Interrupted),
    };
    facts.map(|facts| FarSettings { host, facts })
}

/// Says in the record from where the settings of an end are, or why they are unknown.
fn note(
    measured: &mut Measurement,
    end: EndName,
    read: Result<FarSettings, EngineError>,
) -> Option<FarSettings> {
    let (text, settings) = match read {
        Ok(settings) => {
            let text =
                format!("the settings of the {end} end were read by SSH from {}", settings.host);
            (text, Some(settings))
        }
        Err(why) => (format!("the settings of the {end} end are unknown: {why}"), None),
    };
    measured.doubts.push(text);
    settings
}

/// What `check` finds in these settings, with changes of this end.
pub fn checked(end: EndName, settings: &FarSettings) -> Vec<Finding> {
    let device = settings.facts.text("link.device").ok();
    let mut findings = check(&[HostView { device, now: &settings.facts, before: None }]).findings;
    for change in findings.iter_mut().flat_map(|finding| &mut finding.changes) {
        change.setting.end = end;
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

    /// As `tc qdisc replace dev v1 root tbf rate 50mbit burst 16k limit 4000` there.
    #[test]
    fn a_far_bucket_and_its_queue_are_both_proposed() {
        let mut facts = Snapshot::default();
        facts.put("qdisc.kind", "tbf");
        facts.put("qdisc.rate_bits_per_s", 50_000_000u64);
        facts.put("qdisc.burst_bytes", 16_384u64);
        facts.put("qdisc.limit_bytes", 4000u64);
        facts.put("link.device", "v1");
        facts.put("link.mtu_bytes", 1500u64);
        let settings = FarSettings { host: "ssh://root@b".into(), facts };
        let found = checked(EndName::Far, &settings);
        let changes: Vec<_> =
            found.iter().flat_map(|f| &f.changes).map(|c| c.setting.to_string()).collect();
        for one in ["far:qdisc.tbf.burst@v1", "far:qdisc.tbf.limit@v1"] {
            assert!(changes.iter().any(|change| change == one), "{changes:?}");
        }
    }

    #[test]
    fn checks_of_these_settings_change_the_end_of_the_host() {
        let mut facts = Snapshot::default();
        facts.put("sysctl.net.ipv4.tcp_window_scaling", "0");
        let settings = FarSettings { host: "ssh://b".into(), facts };
        let changes = |end| -> Vec<String> {
            let found = checked(end, &settings);
            found.iter().flat_map(|f| &f.changes).map(|c| c.as_argument()).collect()
        };
        assert_eq!(changes(EndName::Far), ["far:sysctl.net.ipv4.tcp_window_scaling=0,1"]);
        assert_eq!(changes(EndName::Near), ["sysctl.net.ipv4.tcp_window_scaling=0,1"]);
    }
}
