//! The network devices of this host that are worth a look.

use goodput_model::Missing;
use goodput_netlink::Netlink;

use crate::context::missing;

/// The devices of `named`, once each is known to exist. If none is named, the devices that are up: all hardware, and
/// those of the default routes; if there is neither, every device but loopback.
pub fn devices(named: &[String]) -> Result<Vec<String>, Missing> {
    let mut netlink = Netlink::open().map_err(missing)?;
    let links = netlink.links().map_err(missing)?;
    if let Some(unknown) = named.iter().find(|name| links.iter().all(|link| link.name != **name)) {
        let there: Vec<_> = links.into_iter().map(|link| link.name).collect();
        let there = there.join(", ");
        return Err(Missing::because(format!(
            "there is no device {unknown} here; there are {there}"
        )));
    }
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let routes = netlink.routes().map_err(missing)?;
    let defaults: Vec<u32> = routes
        .iter()
        .filter(|route| route.destination.is_none())
        .filter_map(|r| r.device)
        .collect();
    let up: Vec<_> = links.into_iter().filter(|link| link.up && !link.loopback).collect();
    let worth = up.iter().filter(|link| link.kind.is_none() || defaults.contains(&link.index));
    let worth: Vec<String> = worth.map(|link| link.name.clone()).collect();
    Ok(if worth.is_empty() { up.into_iter().map(|link| link.name).collect() } else { worth })
}

#[cfg(test)]
mod tests {
    #[test]
    fn loopback_is_none_of_them() {
        assert!(!super::devices(&[]).unwrap().iter().any(|name| name == "lo"));
    }

    #[test]
    fn an_unknown_device_is_refused_with_those_that_are_there() {
        let why = super::devices(&["nosuch0".into()]).unwrap_err().to_string();
        assert!(why.starts_with("there is no device nosuch0 here; there are "), "{why}");
        assert_eq!(super::devices(&["lo".into()]), Ok(vec!["lo".into()]));
    }
}
