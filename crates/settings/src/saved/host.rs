//! What must be known about a host to choose the files that keep values there: this host, or one that is reached in
//! another way.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use goodput_netlink::Netlink;

use super::root::below;

/// A host whose files keep values. Nothing is changed through this.
pub trait SavingHost {
    /// The text of the file at this absolute path; `None` if it can't be read.
    fn read(&mut self, path: &str) -> Option<String>;

    /// The names in the folder at this absolute path; none if it can't be read.
    fn list(&mut self, folder: &str) -> Vec<String>;

    /// A network device; `None` if there is none of this name.
    fn device(&mut self, name: &str) -> Option<Device>;

    /// Tells apart what is at this absolute path, or what a link there leads to, from everything else of the host; `None`
    /// if there is nothing, or this user may not see it.
    fn identity(&mut self, path: &str) -> Option<String>;

    /// What `udevadm --version` prints; `None` without systemd-udevd.
    fn udev_version(&mut self) -> Option<String>;
}

/// A network device of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its hardware address, like `02:00:00:00:00:01`, if it has one of Ethernet's length.
    pub address: Option<String>,
}

/// This host, or what is below another root.
pub(super) struct Here<'a>(pub(super) &'a Path);

impl SavingHost for Here<'_> {
    fn read(&mut self, path: &str) -> Option<String> {
        fs::read_to_string(below(self.0, path)).ok()
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(below(self.0, folder)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn device(&mut self, name: &str) -> Option<Device> {
        let link = Netlink::open().ok()?.link(name).ok()?;
        let bytes: Vec<String> = link.address.iter().map(|byte| format!("{byte:02x}")).collect();
        let address = (bytes.len() == 6 && !link.loopback).then(|| bytes.join(":"));
        Some(Device { index: link.index, name: link.name, address })
    }

    fn identity(&mut self, path: &str) -> Option<String> {
        let status = fs::metadata(below(self.0, path)).ok()?;
        Some(format!("{}:{}", status.dev(), status.ino()))
    }

    fn udev_version(&mut self) -> Option<String> {
        let program = ["/usr/bin/udevadm", "/bin/udevadm"].map(|path| below(self.0, path));
        let program = program.iter().find(|path| path.exists())?;
        let said = Command::new(program).arg("--version").output().ok()?;
        String::from_utf8(said.stdout).ok()
    }
}
