//! Routes: the table, the kernel's choice for an address, and lossless changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::{Netlink, NetlinkError, RouteMetrics};

/// The IP version of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// One route. Attributes that have no field here are kept and written back unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// IP version.
    pub family: Family,
    /// Network and prefix length; `None` for the default route.
    pub destination: Option<(IpAddr, u8)>,
    /// Next hop.
    pub gateway: Option<IpAddr>,
    /// Index of the outgoing link. `None` for multipath and unreachable routes.
    pub device: Option<u32>,
    /// Routing table; 254 is main, 255 local.
    pub table: u32,
    /// Who made it (`RTPROT_*`): 2 kernel, 3 boot, 4 static.
    pub protocol: u8,
    /// Its scope (`RT_SCOPE_*`): 0 universe, 253 link, 254 host.
    pub scope: u8,
    /// Its type (`RTN_*`): 1 unicast, 2 local, 7 unreachable.
    pub kind: u8,
    /// Metric by which routes to the same destination are ordered.
    pub priority: Option<u32>,
    /// Preferred source address.
    pub preferred_source: Option<IpAddr>,
    /// Its TCP parameters.
    pub metrics: RouteMetrics,
    original: RouteMessage,
}

impl Route {
    /// A unicast route of the main table to `destination`, or to everywhere.
    pub fn new(family: Family, destination: Option<(IpAddr, u8)>) -> Self {
        Self {
            family,
            destination,
            gateway: None,
            device: None,
            table: u32::from(RouteHeader::RT_TABLE_MAIN),
            protocol: RouteProtocol::Boot.into(),
            scope: RouteScope::Universe.into(),
            kind: RouteType::Unicast.into(),
            priority: None,
            preferred_source: None,
            metrics: RouteMetrics::default(),
            original: RouteMessage::default(),
        }
    }

    /// The route through `gateway` to `destination`, or to everywhere.
    pub fn via(destination: Option<(IpAddr, u8)>, gateway: IpAddr) -> Self {
        let mut route = Self::new(family_of(gateway), destination);
        route.gateway = Some(gateway);
        route
    }

    fn from_message(message: RouteMessage) -> Option<Self> {
        let header = &message.header;
        let family = match header.address_family {
            AddressFamily::Inet => Family::V4,
            AddressFamily::Inet6 => Family::V6,
            _ => return None,
        };
        let mut route = Self::new(family, None);
        route.table = u32::from(header.table);
        route.protocol = header.protocol.into();
        route.scope = header.scope.into();
        route.kind = header.kind.into();
        for attribute in &message.attributes {
            route.note(attribute, header.destination_prefix_length);
        }
        route.original = message;
        Some(route)
    }

    fn note(&mut self, attribute: &RouteAttribute, prefix_len: u8) {
        match attribute {
            RouteAttribute::Destination(to) => {
                self.destination = ip(to).map(|ip| (ip, prefix_len));
            }
            RouteAttribute::Gateway(gateway) => self.gateway = ip(gateway),
            RouteAttribute::Oif(index) => self.device = Some(*index),
            RouteAttribute::Table(table) => self.table = *table,
            RouteAttribute::Priority(priority) => self.priority = Some(*priority),
            RouteAttribute::PrefSource(source) => self.preferred_source = ip(source),
            RouteAttribute::Metrics(metrics) => {
                self.metrics = RouteMetrics::from_attributes(metrics);
            }
            _ => {}
        }
    }

    /// The message that creates this route, with everything in `original` that no field covers.
    fn to_message(&self) -> RouteMessage {
        let mut message = self.original.clone();
        let header = &mut message.header;
        header.address_family = match self.family {
            Family::V4 => AddressFamily::Inet,
            Family::V6 => AddressFamily::Inet6,
        };
        header.destination_prefix_length = self.destination.map_or(0, |(_, len)| len);
        header.table = u8::try_from(self.table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
        header.protocol = self.protocol.into();
        header.scope = self.scope.into();
        header.kind = self.kind.into();
        // Other flags report a state; the kernel refuses some of them in a request.
        header.flags &= RouteFlags::Onlink;
        message.attributes.retain(is_kept);
        message.attributes.extend(self.attributes());
        message
    }

    fn attributes(&self) -> Vec<RouteAttribute> {
        let mut all = vec![RouteAttribute::Table(self.table)];
        all.extend(self.destination.map(|(ip, _)| RouteAttribute::Destination(ip.into())));
        all.extend(self.gateway.map(|ip| RouteAttribute::Gateway(ip.into())));
        all.extend(self.device.map(RouteAttribute::Oif));
        all.extend(self.priority.map(RouteAttribute::Priority));
        all.extend(self.preferred_source.map(|ip| RouteAttribute::PrefSource(ip.into())));
        let metrics = self.metrics.onto(self.original_metrics());
        if !metrics.is_empty() {
            all.push(RouteAttribute::Metrics(metrics));
        }
        all.extend(self.expiry());
        all
    }

    fn original_metrics(&self) -> &[netlink_packet_route::route::RouteMetric] {
        let metrics = self.original.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Metrics(metrics) => Some(metrics.as_slice()),
            _ => None,
        });
        metrics.unwrap_or_default()
    }

    /// The kernel reports a route's remaining lifetime in `RTA_CACHEINFO`, in USER_HZ ticks of
    /// 10 ms, and takes it as `RTA_EXPIRES`, in seconds.
    fn expiry(&self) -> Option<RouteAttribute> {
        self.original.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::CacheInfo(info) => {
                let ticks = i32::from_ne_bytes(info.expires.to_ne_bytes());
                (ticks > 0).then(|| RouteAttribute::Expires(info.expires.div_ceil(100)))
            }
            _ => None,
        })
    }
}

impl Netlink {
    /// All routes of all tables, both families.
    pub fn routes(&mut self) -> Result<Vec<Route>, NetlinkError> {
        let question = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let replies = self.dump("list the routes", question)?;
        Ok(replies.into_iter().filter_map(route).collect())
    }

    /// How the kernel would send to `address` now: device, gateway and source, and the effective
    /// metrics. This is a decision, not an entry of a table; see [`Netlink::entry_for`]. `scope` is the
    /// number of the device on which a link-local address is reached, 0 for other addresses.
    pub fn route_to(&mut self, address: IpAddr, scope: u32) -> Result<Route, NetlinkError> {
        self.look_up(address, scope, None, RouteFlags::empty())
    }

    /// The same for packets from `source`, an address of this host: a rule may route them elsewhere.
    pub fn route_from(
        &mut self,
        source: IpAddr,
        address: IpAddr,
        scope: u32,
    ) -> Result<Route, NetlinkError> {
        self.look_up(address, scope, Some(source), RouteFlags::empty())
    }

    /// The entry of the routing table that packets to `address` match, to be read and replaced. `scope`
    /// as above.
    pub fn entry_for(&mut self, address: IpAddr, scope: u32) -> Result<Route, NetlinkError> {
        self.look_up(address, scope, None, RouteFlags::FibMatch)
    }

    /// Creates a route, or replaces the one with the same destination, table and
    /// priority.
    pub fn replace_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        let operation = format!("set the route to {}", destination_text(route));
        let question = RouteNetlinkMessage::NewRoute(route.to_message());
        self.request(&operation, question, NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }

    fn look_up(
        &mut self,
        address: IpAddr,
        scope: u32,
        source: Option<IpAddr>,
        flags: RouteFlags,
    ) -> Result<Route, NetlinkError> {
        let operation = format!("find the route to {address}");
        let prefix_len = if address.is_ipv4() { 32 } else { 128 };
        let mut message = RouteMessage::default();
        message.header.address_family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.destination_prefix_length = prefix_len;
        message.header.flags = flags;
        message.attributes.push(RouteAttribute::Destination(address.into()));
        if let Some(source) = source {
            message.header.source_prefix_length = prefix_len;
            message.attributes.push(RouteAttribute::Source(source.into()));
        }
        if scope > 0 {
            message.attributes.push(RouteAttribute::Oif(scope));
        }
        let replies = self.request(&operation, RouteNetlinkMessage::GetRoute(message), 0)?;
        let found = replies.into_iter().find_map(route);
        found.ok_or_else(|| NetlinkError::malformed(operation, "no route in it"))
    }
}

/// A destination as ip(8) writes it: "192.0.2.0/24" or "default".
pub fn destination_text(route: &Route) -> String {
    route.destination.map_or("default".into(), |(ip, len)| format!("{ip}/{len}"))
}

/// The network that `address` with `prefix_len` lies in: host bits cleared.
pub fn network(address: IpAddr, prefix_len: u8) -> IpAddr {
    match address {
        IpAddr::V4(ip) => {
            let host = u32::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & !host).into()
        }
        IpAddr::V6(ip) => {
            let host = u128::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & !host).into()
        }
    }
}

pub(crate) fn route(message: RouteNetlinkMessage) -> Option<Route> {
    match message {
        RouteNetlinkMessage::NewRoute(message) => Route::from_message(message),
        _ => None,
    }
}

fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some((*ip).into()),
        RouteAddress::Inet6(ip) => Some((*ip).into()),
        _ => None,
    }
}

/// Whether an attribute of the original is written back unchanged: no field covers it, and it is
/// not merely reported.
fn is_kept(attribute: &RouteAttribute) -> bool {
    !matches!(
        attribute,
        RouteAttribute::Destination(_)
            | RouteAttribute::Gateway(_)
            | RouteAttribute::Oif(_)
            | RouteAttribute::Table(_)
            | RouteAttribute::Priority(_)
            | RouteAttribute::PrefSource(_)
            | RouteAttribute::Metrics(_)
            | RouteAttribute::CacheInfo(_)
    )
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{DefaultNla, Nla};

    use super::*;
    use goodput_testing::in_namespace;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A veth pair with 192.0.2.1/24 and 2001:db8::1/64 on the returned end.
    fn connected() -> (Netlink, u32) {
        let mut netlink = Netlink::open().unwrap();
        netlink.create_veth("left", "right").unwrap();
        let index = netlink.link("left").unwrap().index;
        let other = netlink.link("right").unwrap().index;
        netlink.add_address(index, address("192.0.2.1"), 24).unwrap();
        netlink.add_address(index, address("2001:db8::1"), 64).unwrap();
        netlink.set_up(index).unwrap();
        netlink.set_up(other).unwrap();
        (netlink, index)
    }

    #[test]
    fn a_window_is_set_and_taken_back_and_nothing_else_changes() {
        in_namespace(|| {
            let (mut netlink, _) = connected();
            for peer in ["192.0.2.2", "2001:db8::2"] {
                let before = netlink.entry_for(address(peer), 0).unwrap();
                assert_eq!(before.metrics, RouteMetrics::default());
                let mut changed = before.clone();
                changed.metrics.window = Some(65536);
                changed.metrics.congctl = Some("reno".into());
                netlink.replace_route(&changed).unwrap();
                let seen = netlink.entry_for(address(peer), 0).unwrap();
                assert_eq!(seen.metrics, changed.metrics);
                assert_eq!((seen.scope, seen.protocol), (before.scope, before.protocol));
                netlink.replace_route(&before).unwrap();
                assert_eq!(netlink.entry_for(address(peer), 0).unwrap().metrics, before.metrics);
            }
        });
    }

    #[test]
    fn the_kernel_says_how_it_would_route() {
        in_namespace(|| {
            let (mut netlink, index) = connected();
            assert!(netlink.route_to(address("198.51.100.1"), 0).is_err());
            netlink.replace_route(&Route::via(None, address("192.0.2.254"))).unwrap();
            let chosen = netlink.route_to(address("198.51.100.1"), 0).unwrap();
            assert_eq!(chosen.device, Some(index));
            assert_eq!(chosen.gateway, Some(address("192.0.2.254")));
            assert_eq!(chosen.preferred_source, Some(address("192.0.2.1")));
            let entry = netlink.entry_for(address("198.51.100.1"), 0).unwrap();
            assert_eq!(destination_text(&entry), "default");
        });
    }

    #[test]
    fn all_routes_are_listed() {
        in_namespace(|| {
            let (mut netlink, _) = connected();
            let texts: Vec<_> = netlink.routes().unwrap().iter().map(destination_text).collect();
            assert!(texts.contains(&"192.0.2.0/24".into()), "{texts:?}");
            assert!(texts.contains(&"2001:db8::/64".into()), "{texts:?}");
        });
    }

    #[test]
    fn what_no_field_covers_goes_back_as_it_came() {
        let unknown = RouteAttribute::Other(DefaultNla::new(99, vec![1, 2, 3, 4]));
        let mut message = Route::via(None, address("192.0.2.9")).to_message();
        message.attributes.push(unknown.clone());
        message.attributes.push(RouteAttribute::Mark(7));
        let back = Route::from_message(message).unwrap().to_message();
        assert!(back.attributes.contains(&unknown));
        assert!(back.attributes.contains(&RouteAttribute::Mark(7)));
        assert_eq!(back.attributes.iter().filter(|a| a.kind() == 5).count(), 1);
    }

    #[test]
    fn a_network_has_no_host_bits() {
        assert_eq!(network(address("192.0.2.77"), 24), address("192.0.2.0"));
        assert_eq!(network(address("192.0.2.77"), 0), address("0.0.0.0"));
        assert_eq!(network(address("192.0.2.77"), 32), address("192.0.2.77"));
        assert_eq!(network(address("2001:db8::7"), 64), address("2001:db8::"));
    }
}
