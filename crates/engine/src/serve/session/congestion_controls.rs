//! The congestion controls that clients may choose here.

use goodput_model::{EndName, SettingRef};
use rustix::thread::{CapabilitySet, capabilities};

/// Refuses a congestion control that this process may not choose, or that is not loaded: requesting it by
/// setsockopt(TCP_CONGESTION) with CAP_NET_ADMIN would load a kernel module at any client's wish.
pub fn known_congestion_control(name: Option<&str>) -> Result<(), String> {
    let Some(name) = name else { return Ok(()) };
    let privileged =
        capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::NET_ADMIN));
    let has = |choices: &str| choices.split_whitespace().any(|known| known == name);
    let choices = congestion_controls(privileged)?;
    if has(&choices) {
        return Ok(());
    }
    if has(&congestion_controls(true)?) {
        return Err(format!(
            "congestion control {name:?} is there, but for privileged programs only; allowed for others: {choices} \
             (sysctl net.ipv4.tcp_allowed_congestion_control)"
        ));
    }
    Err(format!("congestion control {name:?} is not available there; available: {choices}"))
}

/// The loaded congestion controls that a process may choose, with and without CAP_NET_ADMIN (tcp(7)).
fn congestion_controls(privileged: bool) -> Result<String, String> {
    let which = if privileged { "available" } else { "allowed" };
    let name = format!("sysctl.net.ipv4.tcp_{which}_congestion_control");
    let setting = SettingRef { end: EndName::Near, name, scope: None };
    goodput_settings::read(&setting).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in tcp(7): the allowed ones are a part of the available ones.
    #[test]
    fn a_server_without_privileges_offers_what_it_may_choose() {
        let [available, allowed] = [true, false].map(|may| congestion_controls(may).unwrap());
        assert!(!allowed.is_empty());
        let mut allowed = allowed.split_whitespace();
        assert!(allowed.all(|one| available.split_whitespace().any(|other| other == one)));
        assert!(known_congestion_control(Some("no-such-control")).is_err());
    }
}
