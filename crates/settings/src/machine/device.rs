//! Finds the network device of this host that a setting's `@` names.

use goodput_model::{ETHERNET_HEADER_BYTES, SettingRef};
use goodput_netlink::{Link, Netlink, Qdisc, SizeCount};

use super::sysctl_name;
use crate::error::{SettingError, from_netlink};
pub(crate) use crate::scope::{name, scope};

/// A connection to the kernel of the calling thread's network namespace.
pub(super) fn netlink(setting: &SettingRef) -> Result<Netlink, SettingError> {
    Netlink::open().map_err(|e| from_netlink(setting, "ask the kernel", "netlink", e))
}

/// The index of the link that a setting belongs to, if it belongs to one.
pub(crate) fn link_of(setting: &SettingRef) -> Option<u32> {
    let name = device_of(setting)?;
    Some(Netlink::open().ok()?.link(&name).ok()?.index)
}

/// The name of the link with this index, if `setting` calls it differently.
pub(crate) fn renamed(setting: &SettingRef, link: u32) -> Option<String> {
    let found = Netlink::open().ok()?.link_by_index(link).ok()?;
    (device_of(setting)? != found.name).then_some(found.name)
}

/// The device that a setting names, in its scope or as a parameter of it.
fn device_of(setting: &SettingRef) -> Option<String> {
    match sysctl_name::dotted(setting) {
        Some(_) => sysctl_name::device(setting),
        None => setting.scope.as_ref().map(|_| name(setting).into()),
    }
}

/// The index of the device. If there is no such device, the error lists those that exist.
pub(super) fn index(netlink: &mut Netlink, setting: &SettingRef) -> Result<u32, SettingError> {
    match netlink.link(name(setting)) {
        Ok(link) => Ok(link.index),
        Err(error) => {
            let links = netlink.links().unwrap_or_default();
            let names = links.into_iter().map(|link| link.name).collect();
            let what = no_device(name(setting), names);
            Err(from_netlink(setting, "find its device", &what, error))
        }
    }
}

/// The MTU of the device.
pub(crate) fn mtu(setting: &SettingRef) -> Result<u32, SettingError> {
    Ok(link(setting)?.mtu)
}

/// Length of the device's largest packet, bytes: at least its MTU, or the MTU that it is about to have. A device with an address of Ethernet's length puts
/// Ethernet's header in front (`psched_mtu`, include/net/pkt_sched.h); other headers are left out.
pub(super) fn largest_packet(setting: &SettingRef, mtu: Option<u32>) -> Result<u32, SettingError> {
    let link = link(setting)?;
    let header = if link.address.len() == 6 { ETHERNET_HEADER_BYTES } else { 0 };
    Ok(mtu.unwrap_or(link.mtu).saturating_add(header))
}

fn link(setting: &SettingRef) -> Result<Link, SettingError> {
    let mut netlink = netlink(setting)?;
    let index = index(&mut netlink, setting)?;
    let link = netlink.link_by_index(index);
    link.map_err(|error| from_netlink(setting, "read its MTU", name(setting), error))
}

/// Refuses a qdisc with a table of sizes: each change without one removes the table (net/sched/sch_api.c `qdisc_change`),
/// and the kernel does not report all that it would take to give the table again.
pub(super) fn refuse_size_table(
    netlink: &mut Netlink,
    setting: &SettingRef,
    qdisc: &Qdisc,
) -> Result<(), SettingError> {
    let count = netlink.size_count(qdisc);
    let count = count.map_err(|e| from_netlink(setting, "read its sizes", name(setting), e))?;
    let why = "it has a table of sizes (tc-stab(8)), which a change would remove; change it with tc, which sets both at \
               once";
    match count {
        SizeCount::AsTheyAre => Ok(()),
        SizeCount::ByTable(_) | SizeCount::ByUnknownTable => {
            Err(SettingError::Irreversible { setting: setting.clone(), why })
        }
    }
}

/// The qdisc of the device in which `pick` finds what it looks for: the root, or the only one. `kinds` names
/// its kinds, `several` more than one of them.
pub(super) fn qdisc<T>(
    netlink: &mut Netlink,
    setting: &SettingRef,
    (kinds, several): (&str, &str),
    pick: impl Fn(&Qdisc) -> Option<T>,
) -> Result<(Qdisc, T), SettingError> {
    let index = index(netlink, setting)?;
    let device = name(setting);
    let all =
        netlink.qdiscs(index).map_err(|e| from_netlink(setting, "read its qdiscs", device, e))?;
    let present = all.iter().map(|qdisc| qdisc.kind.clone()).collect();
    let picked = all.into_iter().filter_map(|qdisc| pick(&qdisc).map(|found| (qdisc, found)));
    let mut found: Vec<_> = picked.collect();
    found.sort_by_key(|(qdisc, _)| !qdisc.is_root());
    match &found[..] {
        [] => Err(SettingError::Gone {
            setting: setting.clone(),
            what: missing(
                &format!("{kinds} on {device}"),
                present,
                &format!("name a device with {kinds}"),
            ),
        }),
        [(first, _), _, ..] if !first.is_root() => Err(SettingError::Scope {
            setting: setting.clone(),
            why: format!("{device} has {} {several}, none of them at its root", found.len()),
        }),
        _ => Ok(found.swap_remove(0)),
    }
}

/// What the user can do if objects of the wanted kind exist.
pub(super) const ONE_OF_THESE: &str = "name one of these";

/// Says that there is no such device, what the `names` of those are that exist, and what the user can do.
pub fn no_device(device: &str, names: Vec<String>) -> String {
    missing(&format!("device {device}"), names, ONE_OF_THESE)
}

/// Names what is missing, what exists instead, and what the user can do then.
pub(super) fn missing(object: &str, mut present: Vec<String>, advice: &str) -> String {
    const MAX_SHOWN_NAMES: usize = 8;
    present.sort();
    present.dedup();
    if present.is_empty() {
        return object.into();
    }
    let more = if present.len() > MAX_SHOWN_NAMES { ", …" } else { "" };
    present.truncate(MAX_SHOWN_NAMES);
    format!("{object}, only {}{more}; {advice}", present.join(", "))
}
