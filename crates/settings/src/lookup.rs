//! Finds a setting by name, and does what needs no change of the machine.

use goodput_model::{EndName, Permanent, Plan, SettingRef};

use crate::error::{SettingError, needed};
use crate::machine::sysctl_name;
use crate::permanent::merged;
use crate::privilege::{may_change_anything, may_change_devices};
use crate::setting::{Assignment, Backend, Machine, Setting};
use crate::settings::ALL;
use goodput_model::nearest;
use goodput_model::shell::word;

/// The setting called `name` on this host; for a sysctl, its file must exist. The error for an unknown name
/// lists the most similar existing names.
pub fn find(name: &str) -> Result<&'static Setting, SettingError> {
    let found = registered(name)?;
    if found.id == SYSCTL {
        sysctl_name::check_exists(&near(name))?;
    }
    Ok(found)
}

/// The setting that `setting` means, after all checks possible from here: it has the
/// scope it needs, it is not a setting of the plan with `far:`, and, unless it is the far
/// end's, a sysctl exists.
pub fn find_for(setting: &SettingRef) -> Result<&'static Setting, SettingError> {
    let far = setting.end == EndName::Far;
    let found = if far { registered(&setting.name)? } else { find(&setting.name)? };
    if far && found.is_plan() {
        return Err(SettingError::HoldsAtBothEnds(setting.clone()));
    }
    found.check_scope(setting)?;
    Ok(found)
}

/// The effective value of a setting of this host, now. A setting of the plan has none.
pub fn read(setting: &SettingRef) -> Result<String, SettingError> {
    find(&setting.name)?;
    machine(setting)?.read(setting)
}

/// How to keep these values after a reboot: commands that write the same files as [`crate::Changes::save`], or, for a setting of
/// the plan, what the application must do. `host` is the address of the host that stands for an end, if it is changed by
/// SSH. Empty if no setting of this name is known here and no such host has it.
pub fn to_keep<'a>(
    assignments: impl IntoIterator<Item = (&'a SettingRef, &'a str)>,
    host: impl Fn(EndName) -> Option<String>,
) -> Vec<Permanent> {
    merged(assignments.into_iter().flat_map(|(setting, value)| {
        let host = host(setting.end);
        match find_for(setting) {
            Ok(known) if known.is_plan() => permanent(setting, value).unwrap_or_default(),
            Err(_) if host.is_none() => Vec::new(),
            _ => vec![Permanent {
                file: match (&host, setting.end) {
                    (Some(_), _) => "a shell here".into(),
                    (None, EndName::Near) => "a root shell".into(),
                    (None, EndName::Far) => "a root shell at the far end".into(),
                },
                lines: command_to_keep(setting, value, host.as_deref()),
            }],
        }
    }))
}

/// The command that sets a value now and keeps it after a reboot; `host` as in [`to_keep`].
pub fn command_to_keep(setting: &SettingRef, value: &str, host: Option<&str>) -> String {
    command("goodput settings set --save", setting, value, host)
}

/// The command that sets a value until the next boot; `host` as in [`to_keep`].
pub fn command_to_set(setting: &SettingRef, value: &str, host: Option<&str>) -> String {
    command("goodput settings set", setting, value, host)
}

fn command(begin: &str, setting: &SettingRef, value: &str, host: Option<&str>) -> String {
    let own = SettingRef { end: EndName::Near, ..setting.clone() };
    let on = host.map(|host| format!(" --on {}", word(host))).unwrap_or_default();
    format!("{begin} {}{on}", word(&format!("{own}={value}")))
}

/// Refuses a setting without the device, class or route that it needs, or with one that it does not have. Settings that
/// only another host knows are not checked.
///
/// # Errors
/// With what is missing or too much.
pub fn check_scope(setting: &SettingRef) -> Result<(), SettingError> {
    registered(&setting.name).map_or(Ok(()), |known| known.check_scope(setting))
}

/// Refuses a value that can't be valid for `setting`, as far as this host knows. It knows nothing about the far end or
/// about devices that are not here.
///
/// # Errors
/// If there is no such setting, or not with this scope or value.
pub fn check_value(setting: &SettingRef, value: &str) -> Result<(), SettingError> {
    check_after(&[], setting, value)
}

/// The same for values that are set one after the other: each is judged as if the earlier ones were in effect.
///
/// # Errors
/// About the first value that is refused.
pub fn check_values(assignments: &[Assignment]) -> Result<(), SettingError> {
    let mut all = assignments.iter().enumerate();
    all.try_for_each(|(place, (setting, value))| check_after(&assignments[..place], setting, value))
}

fn check_after(
    earlier: &[Assignment],
    setting: &SettingRef,
    value: &str,
) -> Result<(), SettingError> {
    match find_for(setting)?.backend {
        Backend::Plan(edit) => edit(&mut Plan::standard(), setting, value),
        Backend::Machine(_) if setting.end == EndName::Far => Ok(()),
        Backend::Machine(machine) => match usable(machine, setting, value, earlier) {
            Err(bad @ SettingError::BadValue { .. }) => Err(bad),
            _ => Ok(()),
        },
    }
}

/// Refuses a value that the setting would refuse after `earlier`.
fn usable(
    machine: &dyn Machine,
    setting: &SettingRef,
    value: &str,
    earlier: &[Assignment],
) -> Result<(), SettingError> {
    let wanted = machine.normalise(setting, value)?;
    match machine.read(setting)? == wanted {
        true => Ok(()),
        false => machine.check_new(setting, value, earlier),
    }
}

/// Whether this process may change a setting of this host at all. What only the change itself shows passes.
///
/// # Errors
/// If there is no such setting, or if nothing of this host may be changed.
pub fn may_change(setting: &SettingRef) -> Result<(), SettingError> {
    match find_for(setting)?.backend {
        Backend::Machine(_) if !may(setting) => Err(SettingError::NotPermitted {
            operation: "change it".into(),
            setting: setting.clone(),
            needs: needed(setting).lacking(),
        }),
        _ => Ok(()),
    }
}

/// Areas of settings that only a network administrator may change, whoever owns a file.
const OF_DEVICES: [&str; 3] = ["link.", "offload.", "qdisc."];

/// Root without capabilities may write a sysctl of the network, and changes no device (net/sysctl_net.c `net_ctl_permissions`;
/// net/ethtool/ioctl.c `dev_ethtool`).
fn may(setting: &SettingRef) -> bool {
    let is_of_device = OF_DEVICES.iter().any(|area| setting.name.starts_with(area));
    may_change_anything() && (!is_of_device || may_change_devices())
}

/// Puts `value` into the plan; `default` clears it. Nothing on the machine changes.
pub fn apply_to_plan(
    setting: &SettingRef,
    value: &str,
    plan: &mut Plan,
) -> Result<(), SettingError> {
    match find_for(setting)?.backend {
        Backend::Plan(edit) => edit(plan, setting, value),
        Backend::Machine(_) => Err(SettingError::NotInThePlan(setting.clone())),
    }
}

/// The files of the system that make `value` of `setting` survive a reboot; none if only goodput's unit can. For a setting
/// of the plan: what the application must do.
/// Looks up hardware addresses and gateways of this host if `setting` is its own; for another
/// host they are left open.
///
/// # Errors
/// When there is no such setting, or not with this scope.
pub fn permanent(setting: &SettingRef, value: &str) -> Result<Vec<Permanent>, SettingError> {
    // A line break would begin a new line in the file.
    let value = value.replace(char::is_control, " ");
    Ok((find_for(setting)?.permanent)(setting, &value))
}

/// The code that reads and writes `setting`. The scope is checked; whether its object exists is not.
pub(crate) fn machine(setting: &SettingRef) -> Result<&'static dyn Machine, SettingError> {
    let found = registered(&setting.name)?;
    found.check_scope(setting)?;
    match found.backend {
        Backend::Machine(machine) => Ok(machine),
        Backend::Plan(_) => Err(SettingError::NotOnTheMachine(setting.clone())),
    }
}

const SYSCTL: &str = "sysctl";

fn registered(name: &str) -> Result<&'static Setting, SettingError> {
    #[cfg(test)]
    if name == crate::testing::SETTING.id {
        return Ok(&crate::testing::SETTING);
    }
    let sysctl = name.starts_with("sysctl.");
    let wanted = if sysctl { SYSCTL } else { name };
    let found = ALL.iter().find(|s| s.id == wanted && (s.id != SYSCTL || sysctl));
    found.copied().ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> SettingError {
    let as_sysctl = format!("sysctl.{name}");
    // Someone who writes `net.ipv4.tcp_rmem` has only forgotten the prefix.
    let nearest = match sysctl_name::check_exists(&near(&as_sysctl)) {
        Ok(()) => vec![as_sysctl],
        Err(_) => nearest(name, ALL.iter().map(|s| s.id)),
    };
    SettingError::Unknown { name: name.into(), nearest }
}

fn near(name: &str) -> SettingRef {
    SettingRef { end: EndName::Near, name: name.into(), scope: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Bytes;

    fn edit(plan: &mut Plan, setting: &str, value: &str) -> Result<(), SettingError> {
        apply_to_plan(&setting.parse().unwrap(), value, plan)
    }

    #[test]
    fn settings_of_the_plan_edit_it_and_default_clears_them() {
        let mut plan = Plan::standard();
        for (name, value) in [
            ("socket.sndbuf", "64K"),
            ("socket.rcvbuf", "125KB"),
            ("socket.congestion", "cubic"),
            ("socket.nodelay", "on"),
            ("mover", "sendfile"),
            ("chunk", "1M"),
        ] {
            edit(&mut plan, name, value).unwrap();
        }
        assert_eq!(plan.socket.sndbuf_bytes, Some(Bytes(65536)));
        assert_eq!(plan.socket.rcvbuf_bytes, Some(Bytes(125_000)));
        assert_eq!(plan.socket.congestion.as_deref(), Some("cubic"));
        assert!(plan.socket.nodelay);
        assert_eq!((plan.mover.as_str(), plan.chunk_bytes), ("sendfile", Bytes(1 << 20)));
        for setting in ALL.iter().filter(|s| s.is_plan()) {
            edit(&mut plan, setting.id, "default").unwrap();
        }
        assert_eq!(plan, Plan::standard());
    }

    #[test]
    fn every_setting_of_the_plan_refuses_nonsense_far_and_a_scope() {
        for setting in ALL.iter().filter(|s| s.is_plan()) {
            let mut plan = Plan::standard();
            let id = setting.id;
            for value in ["", "-1", "a b", "0 apples", "\0"] {
                assert!(edit(&mut plan, id, value).is_err(), "{id}={value:?}");
            }
            let far = edit(&mut plan, &format!("far:{id}"), "default").unwrap_err();
            assert!(far.to_string().contains("both ends"), "{far}");
            let scoped = edit(&mut plan, &format!("{id}@eth0"), "default").unwrap_err();
            assert!(matches!(scoped, SettingError::Scope { .. }), "{scoped}");
            let value = read(&near(id)).unwrap_err();
            assert!(matches!(value, SettingError::NotOnTheMachine(_)), "{value}");
            assert_eq!(plan, Plan::standard());
        }
    }

    #[test]
    fn an_unknown_name_brings_the_nearest() {
        let said = |name: &str| find(name).err().unwrap().to_string();
        assert!(said("socket.sndbuff").contains("did you mean socket.sndbuf"));
        assert!(said("net.ipv4.tcp_rmem").contains("did you mean sysctl.net.ipv4.tcp_rmem?"));
        assert!(said("zzzzzzz").contains("settings list"));
        assert!(find("sysctl").is_err() && find("sysctl.").is_err());
    }

    #[test]
    fn a_sysctl_of_the_far_end_need_not_exist_here() {
        let far: SettingRef = "far:sysctl.net.ipv4.not_here".parse().unwrap();
        assert_eq!(find_for(&far).unwrap().id, SYSCTL);
    }
}
