//! Reads and writes one metric of a route of the main table (`RTAX_*`, ip-route(8)).

use std::net::IpAddr;

use goodput_model::SettingRef;
use goodput_netlink::routes::{destination_text, network};
use goodput_netlink::{Family, Netlink, ROUTE_FEATURE_ECN, Route, RouteMetrics};

use super::{congestion, device};
use crate::error::{SettingError, from_netlink};
use crate::footprint::Footprint;
use crate::setting::{Assignment, Machine};
use crate::value;

/// `RT_TABLE_MAIN` of include/uapi/linux/rtnetlink.h.
const MAIN_TABLE: u32 = 254;

/// The backend of one metric of a route.
pub(crate) struct RouteMetric {
    get: fn(&RouteMetrics) -> Option<String>,
    /// Applies a checked value.
    set: fn(&mut RouteMetrics, Option<&str>),
    /// The value as it reads back.
    check: fn(&SettingRef, &str) -> Result<String, SettingError>,
    /// Refuses a value that this kernel does not know.
    known: fn(&SettingRef, &str) -> Result<(), SettingError>,
}

/// Every value within the metric's range is known.
fn any(_: &SettingRef, _: &str) -> Result<(), SettingError> {
    Ok(())
}

fn text(number: u32) -> String {
    number.to_string()
}

fn digits(value: &str) -> Option<u32> {
    value.parse().ok()
}

fn bytes(setting: &SettingRef, value: &str) -> Result<String, SettingError> {
    value::size(setting, value, u32::MAX.into()).map(|bytes| bytes.to_string())
}

fn within<const FROM: u32, const TO: u32>(
    setting: &SettingRef,
    value: &str,
) -> Result<String, SettingError> {
    value::number(setting, value, &(FROM..=TO)).map(text)
}

/// The largest window that connections over the route advertise.
pub(crate) static WINDOW: RouteMetric = RouteMetric {
    get: |metrics| metrics.window.map(text),
    set: |metrics, value| metrics.window = value.and_then(digits),
    check: bytes,
    known: any,
};

/// The initial congestion window, segments; TCP accepts at most what fits into its sequence space.
pub(crate) static INITCWND: RouteMetric = RouteMetric {
    get: |metrics| metrics.initcwnd.map(text),
    set: |metrics, value| metrics.initcwnd = value.and_then(digits),
    check: within::<1, 65535>,
    known: any,
};

/// The initial receive window, segments.
pub(crate) static INITRWND: RouteMetric = RouteMetric {
    get: |metrics| metrics.initrwnd.map(text),
    set: |metrics, value| metrics.initrwnd = value.and_then(digits),
    check: within::<1, 65535>,
    known: any,
};

/// The path's MTU; the kernel caps larger values (net/ipv4/metrics.c `ip_metrics_convert`).
pub(crate) static MTU: RouteMetric = RouteMetric {
    get: |metrics| metrics.mtu.map(text),
    set: |metrics, value| metrics.mtu = value.and_then(digits),
    check: within::<68, 65520>,
    known: any,
};

/// The maximum segment size to advertise, which the kernel also caps (as above).
pub(crate) static ADVMSS: RouteMetric = RouteMetric {
    get: |metrics| metrics.advmss.map(text),
    set: |metrics, value| metrics.advmss = value.and_then(digits),
    check: within::<48, 65495>,
    known: any,
};

/// The smallest retransmission time-out, milliseconds.
pub(crate) static RTO_MIN: RouteMetric = RouteMetric {
    get: |metrics| metrics.rto_min.map(text),
    set: |metrics, value| metrics.rto_min = value.and_then(digits),
    check: within::<1, 120_000>,
    known: any,
};

/// Whether every segment is acknowledged at once.
pub(crate) static QUICKACK: RouteMetric = RouteMetric {
    get: |metrics| metrics.quickack.map(|on| value::on_off(on != 0).into()),
    set: |metrics, value| metrics.quickack = value.map(|value| u32::from(value == "on")),
    check: |setting, value| value::switch(setting, value).map(|on| value::on_off(on).into()),
    known: any,
};

/// Whether connections over the route ask for congestion marks; other features stay.
pub(crate) static ECN: RouteMetric = RouteMetric {
    get: |metrics| (metrics.features? & ROUTE_FEATURE_ECN != 0).then(|| value::on_off(true).into()),
    set: |metrics, value| {
        let others = metrics.features.unwrap_or(0) & !ROUTE_FEATURE_ECN;
        let all = others | if value.is_some() { ROUTE_FEATURE_ECN } else { 0 };
        metrics.features = (all != 0).then_some(all);
    },
    check: |setting, value| match value {
        "on" => Ok(value.into()),
        _ => {
            Err(value::bad(setting, value, "it must be on, or default for sysctl net.ipv4.tcp_ecn"))
        }
    },
    known: any,
};

/// The congestion control of connections over the route.
pub(crate) static CONGCTL: RouteMetric = RouteMetric {
    get: |metrics| metrics.congctl.clone(),
    set: |metrics, value| metrics.congctl = value.map(Into::into),
    check: |setting, value| value::word(setting, value, value::CONGESTION_NAME_MAX),
    known: congestion::check_known,
};

impl RouteMetric {
    fn checked(&self, setting: &SettingRef, value: &str) -> Result<Option<String>, SettingError> {
        value::or_default(value, |value| (self.check)(setting, value))
    }
}

impl Machine for RouteMetric {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let route = route(&mut device::netlink(setting)?, setting)?;
        Ok((self.get)(&route.metrics).unwrap_or_else(|| value::DEFAULT.into()))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let checked = self.checked(setting, value)?;
        let mut netlink = device::netlink(setting)?;
        let mut route = route(&mut netlink, setting)?;
        (self.set)(&mut route.metrics, checked.as_deref());
        netlink.replace_route(&route).map_err(|e| {
            from_netlink(setting, format!("change it to {value:?}"), device::scope(setting), e)
        })
    }

    fn footprint(&self, _: &SettingRef) -> Footprint {
        Footprint::Routes
    }

    fn check_new(
        &self,
        setting: &SettingRef,
        value: &str,
        _earlier: &[Assignment],
    ) -> Result<(), SettingError> {
        if value == value::DEFAULT { Ok(()) } else { (self.known)(setting, value) }
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        Ok(self.checked(setting, value)?.unwrap_or_else(|| value::DEFAULT.into()))
    }
}

/// The route that the scope names; of several to the same destination, the one in use.
fn route(netlink: &mut Netlink, setting: &SettingRef) -> Result<Route, SettingError> {
    let wanted = destination(setting)?;
    let all = netlink.routes().map_err(|e| from_netlink(setting, "list routes", "route", e))?;
    let main: Vec<Route> = all.into_iter().filter(|route| route.table == MAIN_TABLE).collect();
    let matching = main.iter().filter(|route| wanted.matches(route));
    let found = matching.min_by_key(|route| (route.family == Family::V6, route.priority)).cloned();
    found.ok_or_else(|| SettingError::Gone {
        setting: setting.clone(),
        what: device::missing(
            &format!("route to exactly {}", device::scope(setting)),
            main.iter().map(destination_text).collect(),
            device::ONE_OF_THESE,
        ),
    })
}

/// The meaning of a route's scope.
#[derive(Debug, PartialEq, Eq)]
enum Destination {
    /// `default`: IPv4's, or IPv6's if only IPv6 has one.
    Default,
    /// `0.0.0.0/0` or `::/0`.
    DefaultOf(Family),
    /// A network; a bare address is its own network.
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
    let text = device::scope(setting);
    if text == value::DEFAULT {
        return Ok(Destination::Default);
    }
    let parsed = parse(text);
    parsed.ok_or_else(|| SettingError::Scope {
        setting: setting.clone(),
        why: format!("{text:?} is not a destination; write it like 192.0.2.0/24 or default"),
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
