//! The devices and files that a footprint contains.

use std::path::{Path, PathBuf};

use goodput_model::SettingRef;
use goodput_netlink::Link;

use super::host::{Host, Trouble};
use crate::footprint::Footprint;
use crate::machine::device;

/// A part of the namespace.
#[derive(Default)]
pub(super) struct Part {
    /// The links that belong to it with every property.
    pub(super) links: Vec<Link>,
    /// Whether addresses, routes and rules of all links belong to it.
    pub(super) routes: bool,
    /// Parameters, as files below /proc/sys.
    pub(super) files: Vec<PathBuf>,
    /// Directories below /proc/sys; each file in them is a parameter that belongs to it.
    pub(super) folders: Vec<PathBuf>,
    /// The same with everything below them.
    pub(super) trees: Vec<PathBuf>,
}

impl Part {
    pub(super) fn of(
        host: &mut Host,
        setting: &SettingRef,
        footprint: &Footprint,
    ) -> Result<Self, Trouble> {
        let mut part = Self::default();
        match footprint {
            Footprint::Nothing => {}
            Footprint::Device => part.add_device(&host.links, device::name(setting)),
            Footprint::DeviceAnd(files) => {
                part.add_device(&host.links, device::name(setting));
                part.files.clone_from(files);
            }
            Footprint::Routes => part.routes = true,
            Footprint::Sysctls(files) => part.files.clone_from(files),
            Footprint::Namespace => {
                part.links = host.links.clone();
                part.routes = true;
                part.trees.push("/proc/sys/net".into());
            }
        }
        Ok(part)
    }

    fn add_device(&mut self, all: &[Link], name: &str) {
        self.links = related(all, name);
        for link in &self.links {
            let folders = DEVICE_FOLDERS.map(|folder| Path::new(folder).join(&link.name));
            self.folders.extend(folders);
        }
        self.folders.sort();
        self.folders.dedup();
    }

    pub(super) fn has(&self, index: u32) -> bool {
        self.links.iter().any(|link| link.index == index)
    }
}

/// Directories with each device's own parameters.
const DEVICE_FOLDERS: [&str; 5] = [
    "/proc/sys/net/ipv4/conf",
    "/proc/sys/net/ipv6/conf",
    "/proc/sys/net/ipv4/neigh",
    "/proc/sys/net/ipv6/neigh",
    "/proc/sys/net/mpls/conf",
];

/// The link called `name`, the links below it, its members, and all links that are on top of one of
/// these or have one as a member: VLANs, macvlans, bonds and bridges take over changes of the links below
/// them.
fn related(all: &[Link], name: &str) -> Vec<Link> {
    let Some(first) = all.iter().find(|link| link.name == name) else { return Vec::new() };
    let here = |link: &Link| link.peer_index.filter(|_| !link.peer_elsewhere);
    let below =
        |link: &&Link| here(first) == Some(link.index) || link.master_index == Some(first.index);
    let mut found = vec![first.clone()];
    found.extend(all.iter().filter(below).cloned());
    let mut next = 0;
    while let Some(link) = found.get(next).cloned() {
        for other in all {
            let stands_on = here(other) == Some(link.index);
            let has_part = link.master_index == Some(other.index);
            if (stands_on || has_part) && found.iter().all(|known| known.index != other.index) {
                found.push(other.clone());
            }
        }
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, below: Option<u32>, master: Option<u32>) -> Link {
        let (peer_index, master_index) = (below, master);
        Link { index, name: name.into(), peer_index, master_index, ..Link::default() }
    }

    #[test]
    fn what_stands_on_a_device_is_found_and_what_is_beside_it_is_not() {
        let all = [
            link(1, "lo", None, None),
            link(2, "eth0", None, Some(4)),
            link(3, "eth0.10", Some(2), None),
            link(4, "br0", None, None),
            link(5, "br0.7", Some(4), None),
            link(6, "eth1", None, Some(4)),
            Link { peer_elsewhere: true, ..link(7, "veth", Some(2), None) },
        ];
        let names = |name| related(&all, name).into_iter().map(|l| l.name).collect::<Vec<_>>();
        assert_eq!(names("eth0"), ["eth0", "eth0.10", "br0", "br0.7"]);
        assert_eq!(names("br0"), ["br0", "eth0", "eth1", "br0.7", "eth0.10"]);
        assert!(names("eth9").is_empty());
    }
}
