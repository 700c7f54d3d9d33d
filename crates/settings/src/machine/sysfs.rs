//! Reads and writes an attribute of a network device below /sys/class/net
//! (Documentation/ABI/testing/sysfs-class-net).
//!
//! /sys shows the devices of the network namespace in which it was mounted, which need not be that
//! of the calling thread. So this opens its own view (fsopen(2)), which belongs to the
//! thread's namespace. If that is not permitted, /sys is used if the device there is the same.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use goodput_model::SettingRef;
use goodput_netlink::Link;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::device;
use crate::error::{SettingError, from_io, from_netlink};
use crate::privilege::Privilege;

/// The attribute `name` of the setting's device, without its final line break.
pub(super) fn read(setting: &SettingRef, name: &str) -> Result<String, SettingError> {
    let directory = directory(setting)?;
    attribute(&directory, name, OFlags::RDONLY)
        .and_then(|mut file| {
            let mut text = String::new();
            file.read_to_string(&mut text).map(|_| text.trim().to_owned())
        })
        .map_err(|e| from_io(setting, "read it", name, e))
}

/// Writes the attribute with one write(2).
pub(super) fn write(setting: &SettingRef, name: &str, value: &str) -> Result<(), SettingError> {
    let directory = directory(setting)?;
    attribute(&directory, name, OFlags::WRONLY)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|e| from_io(setting, format!("change it to {value:?}"), name, e))
}

/// The queues of the setting's device whose names begin with `kind`, `rx-` or `tx-`, in order.
pub(super) fn queues(setting: &SettingRef, kind: &str) -> Result<Vec<String>, SettingError> {
    let failed = |e: io::Error| from_io(setting, "list its queues", "directory of queues", e);
    let queues = openat(directory(setting)?, "queues", OFlags::DIRECTORY, Mode::empty())
        .map_err(|e| failed(e.into()))?;
    let entries = rustix::fs::Dir::read_from(queues).map_err(|e| failed(e.into()))?;
    let names = entries.filter_map(Result::ok).map(|e| e.file_name().to_string_lossy().into());
    let number = |name: &String| name.strip_prefix(kind).and_then(|n| n.parse::<u32>().ok());
    let mut queues: Vec<String> = names.filter(|name| number(name).is_some()).collect();
    queues.sort_by_key(number);
    Ok(queues)
}

/// The devices of the calling thread's network namespace in /sys.
pub(crate) struct View(Option<OwnedFd>);

impl View {
    /// Its own view, or /sys if that is not permitted.
    pub(crate) fn open() -> Self {
        Self(own_view().ok())
    }

    /// The directory of a link. `None`: it is not visible from here.
    pub(crate) fn device(&self, link: &Link) -> Option<OwnedFd> {
        let path = format!("class/net/{}", link.name);
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        match &self.0 {
            Some(own) => openat(own, path, flags, Mode::empty()).ok(),
            None => open("/sys", flags, Mode::empty())
                .and_then(|sys| openat(sys, path, flags, Mode::empty()))
                .ok()
                .filter(|found| is_same(found, link.index, &link.address)),
        }
    }
}

pub(crate) fn attribute(directory: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    Ok(openat(directory, name, flags | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// The directory of the setting's device. Netlink has confirmed that the device exists, so its name
/// leads nowhere else.
pub(super) fn directory(setting: &SettingRef) -> Result<OwnedFd, SettingError> {
    let mut netlink = device::netlink(setting)?;
    let index = device::index(&mut netlink, setting)?;
    #[cfg(test)]
    if let Some(root) = crate::testing::made_up_root() {
        let path = root.join("sys/class/net").join(device::name(setting));
        return open(path, OFlags::DIRECTORY, Mode::empty()).map_err(|_| hidden(setting));
    }
    let link = netlink
        .link_by_index(index)
        .map_err(|e| from_netlink(setting, "read its address", "device", e))?;
    View::open().device(&link).ok_or_else(|| hidden(setting))
}

/// The error if a device is not visible in /sys.
pub(crate) fn hidden(setting: &SettingRef) -> SettingError {
    SettingError::NotPermitted {
        operation: "find it in /sys, which shows another network namespace".into(),
        setting: setting.clone(),
        needs: Privilege::Sysfs.lacking(),
    }
}

/// A mount of sysfs that no path leads to, for the calling thread's network namespace.
fn own_view() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

fn is_same(directory: &OwnedFd, index: u32, address: &[u8]) -> bool {
    let text = |name: &str| {
        let mut text = String::new();
        attribute(directory, name, OFlags::RDONLY).and_then(|mut f| f.read_to_string(&mut text))?;
        io::Result::Ok(text.trim().to_owned())
    };
    let bytes: Vec<String> = address.iter().map(|byte| format!("{byte:02x}")).collect();
    text("ifindex").is_ok_and(|seen| seen == index.to_string())
        && text("address").is_ok_and(|seen| seen == bytes.join(":"))
}
