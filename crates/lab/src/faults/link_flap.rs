//! A link that goes down and comes back: the host's device on the path is repeatedly set down for a moment, and the
//! device at the other end of its cable loses its carrier. On a router this is the device towards near, so that near
//! sees it.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use goodput_netlink::{Netlink, NetlinkError, namespace};
use serde::Deserialize;

use super::{Fault, FaultTarget, Kind, Undo, read};
use crate::amount::{self, Time};
use crate::error::LabError;
use crate::host_name::HostName;

pub(super) const KIND: Kind = Kind {
    id: "link-flap",
    summary: "the host's link goes down for a while, again and again",
    example: "host = \"far\"\nevery = \"50ms\"\nlasts = \"10ms\"",
    read: read::<LinkFlap>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkFlap {
    host: HostName,
    #[serde(deserialize_with = "amount::required")]
    every: Time,
    #[serde(deserialize_with = "amount::required")]
    lasts: Time,
}

impl LinkFlap {
    fn failed(&self, why: impl fmt::Display) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why: why.to_string() }
    }

    /// The device, and how often its carrier came or went.
    fn device(&self, site: FaultTarget<'_>) -> Result<(u32, Option<u32>), LabError> {
        let port = site.host.ports().first().ok_or_else(|| self.failed("it has no device"))?;
        let link = site.host.netlink(|netlink| netlink.link(&port.device))?;
        Ok((link.index, link.carrier_changes))
    }
}

impl Fault for LinkFlap {
    fn host(&self) -> HostName {
        self.host
    }

    /// Takes the link down for the first time before it returns.
    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        let (device, _) = self.device(site)?;
        let up = self.every.0.checked_sub(self.lasts.0).filter(|up| !up.is_zero());
        let up = up.ok_or_else(|| self.failed("every must be longer than lasts"))?;
        let namespace = site.host.namespace();
        let mut netlink = namespace::inside(namespace, Netlink::open)
            .and_then(|opened| opened)
            .map_err(|error| self.failed(error))?;
        let down = self.lasts.0;
        flap(&mut netlink, device, down).map_err(|error| self.failed(error))?;
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("lab flap".into()).spawn(move || {
            while stopped.recv_timeout(up) == Err(RecvTimeoutError::Timeout) {
                // The device disappears with the lab: then nothing is left to flap.
                if flap(&mut netlink, device, down).is_err() {
                    return;
                }
            }
        });
        let thread = thread.map_err(|error| self.failed(error))?;
        Ok(Some(Box::new(Flapping { stop: Some(stop), thread: Some(thread) })))
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        Ok(format!("carrier changes {:?}", self.device(site)?.1))
    }
}

fn flap(netlink: &mut Netlink, device: u32, down: Duration) -> Result<(), NetlinkError> {
    netlink.set_down(device)?;
    thread::sleep(down);
    netlink.set_up(device)
}

/// The thread that takes the link down; dropping it leaves the link up.
struct Flapping {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Flapping {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panicked thread has already reported it on stderr.
            let _ = thread.join();
        }
    }
}
