//! The devices that a packet passes on its way out of this host: tunnels and VLANs, and the devices below them.

use std::net::SocketAddr;

use goodput_kernel::Context;
use goodput_model::{Missing, Snapshot};

use crate::error::EngineError;

/// More devices than are ever stacked.
const MAX_STACKED_DEVICES: usize = 8;
/// Virtual devices for which the kernel names no single device below.
const OPEN_BELOW: [&str; 5] = ["bridge", "bond", "team", "wireguard", "vrf"];

/// Snapshots of the devices from the route's device down to the last known one, at least one.
///
/// # Errors
/// If there is no such device, or the route leaves by another one.
pub(super) fn of(
    device: Option<&str>,
    address: Option<SocketAddr>,
) -> Result<Vec<Snapshot>, EngineError> {
    if let Some(device) = device {
        goodput_kernel::devices(&[device.into()]).map_err(refused)?;
    }
    let context = address.map(Context::towards).unwrap_or_default();
    let about = |device: &str| {
        goodput_kernel::snapshot(&Context { device: Some(device.into()), ..context.clone() })
    };
    let first = match (address, device) {
        (Some(address), _) => {
            let routed = goodput_kernel::snapshot(&context);
            let named = routed.text("route.device").map(String::from);
            let named = named.map_err(|why| {
                EngineError::Flow(format!("no route to {} is known: {why}", address.ip()))
            })?;
            about(&named)
        }
        (None, Some(device)) => about(device),
        (None, None) => return Err(EngineError::Flow("no device and no host was named".into())),
    };
    let mut chain = down(first, about);
    if let Some(device) = device {
        match entered(&chain, device) {
            Entered::Already => {}
            Entered::Below => chain.push(about(device)),
            Entered::Elsewhere(by) => {
                return Err(EngineError::Flow(format!(
                    "the route leaves by {by}, not by {device}; name {by}, or leave --here out"
                )));
            }
        }
    }
    Ok(chain)
}

fn refused(why: Missing) -> EngineError {
    EngineError::Flow(why.to_string())
}

/// From a device down to the lowest one that the kernel names below it.
fn down(first: Snapshot, about: impl Fn(&str) -> Snapshot) -> Vec<Snapshot> {
    let mut chain = vec![first];
    while chain.len() < MAX_STACKED_DEVICES {
        let below = chain.last().and_then(|last| last.text("link.below").ok()).map(String::from);
        match below {
            Some(below) => chain.push(about(&below)),
            None => break,
        }
    }
    chain
}

/// How a named device belongs to the chain.
#[derive(Debug, PartialEq)]
enum Entered {
    Already,
    /// The chain ends at a device for which the kernel does not name the device below.
    Below,
    Elsewhere(String),
}

fn entered(chain: &[Snapshot], device: &str) -> Entered {
    if chain.iter().any(|one| one.text("link.device") == Ok(device)) {
        return Entered::Already;
    }
    let last = chain.last();
    let kind = last.and_then(|last| last.text("link.kind").ok()).unwrap_or_default();
    let tunnel = goodput_ceiling::tunnels::of_device(kind).is_some();
    if tunnel || OPEN_BELOW.contains(&kind) {
        return Entered::Below;
    }
    let by = chain.first().and_then(|first| first.text("link.device").ok());
    Entered::Elsewhere(by.unwrap_or("another device").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, kind: &str, below: Option<&str>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.put("link.device", name);
        snapshot.put("link.kind", kind);
        if let Some(below) = below {
            snapshot.put("link.below", below);
        }
        snapshot
    }

    #[test]
    fn a_chain_goes_down_to_hardware_and_ends_in_any_circle() {
        let about = |name: &str| match name {
            "vlan5" => device("vlan5", "vlan", Some("eth0")),
            name => device(name, "hardware", None),
        };
        let chain = down(device("vx", "vxlan", Some("vlan5")), about);
        let names: Vec<_> = chain.iter().map(|one| one.text("link.device").unwrap()).collect();
        assert_eq!(names, ["vx", "vlan5", "eth0"]);
        let circle = down(device("a", "vlan", Some("a")), |_| device("a", "vlan", Some("a")));
        assert_eq!(circle.len(), MAX_STACKED_DEVICES);
    }

    #[test]
    fn a_named_device_may_be_below_a_tunnel_but_not_beside_the_route() {
        let chain = |kind| [device("x0", kind, None)];
        assert_eq!(entered(&chain("wireguard"), "eth0"), Entered::Below);
        assert_eq!(entered(&chain("bridge"), "eth0"), Entered::Below);
        assert_eq!(entered(&chain("hardware"), "x0"), Entered::Already);
        assert_eq!(entered(&chain("hardware"), "eth0"), Entered::Elsewhere("x0".into()));
    }

    #[test]
    fn an_unknown_device_is_refused_and_loopback_is_found() {
        assert!(of(Some("nosuch0"), None).unwrap_err().to_string().contains("no device nosuch0"));
        let chain = of(Some("lo"), Some("127.0.0.1:9".parse().unwrap())).unwrap();
        assert_eq!(chain[0].text("link.kind"), Ok("loopback"));
    }
}
