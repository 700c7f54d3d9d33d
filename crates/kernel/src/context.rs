//! The subject of a snapshot: one path from this host, and where the host's files are.

use std::net::{IpAddr, SocketAddr};

use goodput_model::Missing;
use goodput_netlink::{Netlink, NetlinkError, Qdisc};

use crate::{FileMount, Root};

/// Whose facts the areas `process`, `schedule` and `cgroup` hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subject {
    /// Our own process: it moves the payload.
    #[default]
    Ourselves,
    /// Another program, whose transfer is watched; by its process id.
    Process(u32),
    /// Another program that could not be identified.
    Unknown,
}

/// The path whose device, queue and route are of interest.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Where /proc and /sys are.
    pub root: Root,
    /// The device to look at; by default the one towards `peer`, or else the one that has `local`.
    pub device: Option<String>,
    /// Address of the other end.
    pub peer: Option<IpAddr>,
    /// Number of the device on whose link a link-local peer is (`sin6_scope_id`, ipv6(7)); 0 for other peers.
    pub scope: u32,
    /// Address of this end.
    pub local: Option<IpAddr>,
    /// Whose processes move the payload.
    pub subject: Subject,
    /// The mount of the measured file, if the target is on a mount.
    pub mount: Option<FileMount>,
}

impl Context {
    /// The path to `peer`.
    pub fn towards(peer: SocketAddr) -> Self {
        let scope = match peer {
            SocketAddr::V6(peer) => peer.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        Self { peer: Some(peer.ip()), scope, ..Self::default() }
    }

    /// A file of the process that moves the payload, as a path below the root.
    pub(crate) fn process_file(&self, name: &str) -> Result<String, Missing> {
        match self.subject {
            Subject::Ourselves => Ok(format!("proc/self/{name}")),
            Subject::Process(pid) => Ok(format!("proc/{pid}/{name}")),
            Subject::Unknown => {
                Err(Missing::because("the process that moves the payload is unknown"))
            }
        }
    }

    /// Name of the device of the path.
    ///
    /// # Errors
    /// If there is no route, or no device with the address.
    pub fn device_name(&self) -> Result<String, Missing> {
        match (&self.device, self.peer, self.local) {
            (Some(device), _, _) => Ok(device.clone()),
            (None, Some(_), _) if self.scope > 0 => device_numbered(self.scope),
            (None, Some(peer), _) => device_towards(peer),
            (None, None, Some(local)) => device_with(local),
            (None, None, None) => Err(Missing::because("no device and no peer was named")),
        }
    }

    /// Name and queueing disciplines of the path's device, with the netlink socket that read them.
    pub(crate) fn qdiscs(&self) -> Result<(String, Netlink, Vec<Qdisc>), Missing> {
        let device = self.device_name()?;
        let mut netlink = Netlink::open().map_err(missing)?;
        let index = netlink.link(&device).map_err(missing)?.index;
        let qdiscs = netlink.qdiscs(index).map_err(missing)?;
        Ok((device, netlink, qdiscs))
    }

    /// The same path with its device looked up once, so that not every source repeats it.
    pub(crate) fn resolved(&self) -> Self {
        Self { device: self.device_name().ok(), ..self.clone() }
    }
}

/// A netlink error as the reason why a fact is missing.
pub(crate) fn missing(error: NetlinkError) -> Missing {
    Missing::because(error.to_string())
}

fn device_numbered(index: u32) -> Result<String, Missing> {
    let mut netlink = Netlink::open().map_err(missing)?;
    netlink.link_by_index(index).map(|link| link.name).map_err(missing)
}

fn device_towards(peer: IpAddr) -> Result<String, Missing> {
    let mut netlink = Netlink::open().map_err(missing)?;
    let route = netlink.route_to(peer, 0).map_err(missing)?;
    let index = route
        .device
        .ok_or_else(|| Missing::because(format!("the route to {peer} has no device")))?;
    netlink.link_by_index(index).map(|link| link.name).map_err(missing)
}

fn device_with(local: IpAddr) -> Result<String, Missing> {
    let mut netlink = Netlink::open().map_err(missing)?;
    let addresses = netlink.addresses().map_err(missing)?;
    let found = addresses.iter().find(|address| address.address == local);
    let index = found
        .ok_or_else(|| Missing::because(format!("no device here has the address {local}")))?
        .index;
    netlink.link_by_index(index).map(|link| link.name).map_err(missing)
}
