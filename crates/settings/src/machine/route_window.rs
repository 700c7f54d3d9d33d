//! Reads and writes the window of a route of the main table (`RTAX_WINDOW`, ip-route(8)).

use std::net::IpAddr;

use goodput_model::SettingRef;
use goodput_netlink::routes::{destination_text, network};
use goodput_netlink::{Family, Netlink, Route};

use super::device;
use crate::error::{SettingError, from_netlink};
use crate::setting::Machine;
use crate::value;

/// `RT_TABLE_MAIN` of include/uapi/linux/rtnetlink.h.
const MAIN: u32 = 254;

/// The backend of `route.window`.
pub(crate) struct RouteWindow;

impl Machine for RouteWindow {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let route = route(&mut device::netlink(setting)?, setting)?;
        let window = route.metrics.window.map(|bytes| bytes.to_string());
        Ok(window.unwrap_or_else(|| value::DEFAULT.into()))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let window = window(setting, value)?;
        let mut netlink = device::netlink(setting)?;
        let mut route = route(&mut netlink, setting)?;
        route.metrics.window = window;
        netlink.replace_route(&route).map_err(|e| {
            from_netlink(setting, format!("change it to {value:?}"), device::name(setting), e)
        })
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let window = window(setting, value)?.map(|bytes| bytes.to_string());
        Ok(window.unwrap_or_else(|| value::DEFAULT.into()))
    }
}

fn window(setting: &SettingRef, value: &str) -> Result<Option<u32>, SettingError> {
    let max = u32::MAX;
    let bytes = value::or_default(value, |v| value::size(setting, v, max.into()))?;
    Ok(bytes.map(|bytes| u32::try_from(bytes).unwrap_or(max)))
}

/// The route that the scope names; of several to the same destination the one that is used.
fn route(netlink: &mut Netlink, setting: &SettingRef) -> Result<Route, SettingError> {
    let wanted = destination(setting)?;
    let all = netlink.routes().map_err(|e| from_netlink(setting, "list routes", "route", e))?;
    let main: Vec<Route> = all.into_iter().filter(|route| route.table == MAIN).collect();
    let matching = main.iter().filter(|route| wanted.matches(route));
    let found = matching.min_by_key(|route| (route.family == Family::V6, route.priority)).cloned();
    found.ok_or_else(|| SettingError::Gone {
        operation: "find it".into(),
        setting: setting.clone(),
        what: device::missing(
            "route to exactly",
            device::name(setting),
            main.iter().map(destination_text).collect(),
        ),
    })
}

/// What the scope of a route says.
#[derive(Debug, PartialEq, Eq)]
enum Destination {
    /// `default`: IPv4's, or IPv6's where that is the only one.
    Default,
    /// `0.0.0.0/0` or `::/0`.
    DefaultOf(Family),
    /// A network; a bare address is a network of its own.
    Network(IpAddr, u8),
}

impl Destination {
    fn matches(&self, route: &Route) -> bool {
        match *self {
            Self::Default => route.destination.is_none(),
            Self::DefaultOf(family) => route.destination.is_none() && route.family == family,
            Self::Network(address, len) => route.destination == Some((address, len)),
        }
    }
}

fn destination(setting: &SettingRef) -> Result<Destination, SettingError> {
    let text = device::name(setting);
    if text == value::DEFAULT {
        return Ok(Destination::Default);
    }
    let parsed = parse(text);
    parsed.ok_or_else(|| SettingError::Scope {
        setting: setting.clone(),
        why: format!("{text:?} is no destination; write it like 192.0.2.0/24 or default"),
    })
}

fn parse(text: &str) -> Option<Destination> {
    let (address, len) = match text.split_once('/') {
        Some((address, len)) => (address, Some(len.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let (family, max) = match address {
        IpAddr::V4(_) => (Family::V4, 32),
        IpAddr::V6(_) => (Family::V6, 128),
    };
    match len.unwrap_or(max) {
        0 => Some(Destination::DefaultOf(family)),
        len if len <= max => Some(Destination::Network(network(address, len), len)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn destinations_are_read_as_ip_route_prints_them() {
        let net = |ip: &str, len| Some(Destination::Network(ip.parse().unwrap(), len));
        assert_eq!(parse("192.0.2.0/24"), net("192.0.2.0", 24));
        assert_eq!(parse("192.0.2.7/24"), net("192.0.2.0", 24));
        assert_eq!(parse("192.0.2.7"), net("192.0.2.7", 32));
        assert_eq!(parse("2001:db8::/32"), net("2001:db8::", 32));
        assert_eq!(parse("::/0"), Some(Destination::DefaultOf(Family::V6)));
        for text in ["", "/", "192.0.2.0/33", "192.0.2.0/-1", "eth0", "1.2.3/24", "::/129"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_destination_or_not(text in "[0-9a-f:./]{0,24}|.{0,12}") {
            let _ = parse(&text);
        }
    }
}
