//! The quotas that a charge counts against, and their limits: a client, the networks around it, everyone; once in
//! total, and once for clients that have proven nothing.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// Limits of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// For all clients together.
    pub all: u64,
    /// For one client.
    pub client: u64,
    /// Share of both for clients that have proven nothing, percent.
    pub unproven_percent: u64,
}

impl Limit {
    /// No limit.
    pub const NONE: Self = Self { all: u64::MAX, client: u64::MAX, unproven_percent: 100 };

    /// A limit of `all`, of which one client gets at most `percent`, and all unproven clients together half.
    pub fn shared(all: u64, percent: u64) -> Self {
        Self { all, client: part(all, percent), unproven_percent: 50 }
    }

    /// The most that may be booked on a quota.
    pub fn most(&self, quota: &Quota) -> u64 {
        let percent = if quota.unproven { self.unproven_percent } else { 100 };
        let all = part(self.all, percent);
        let client = part(self.client, percent).min(all);
        match quota.whose {
            Whose::All => all,
            Whose::Client(_) => client,
            Whose::Around(_, left) => client + (all - client) / left,
        }
    }
}

/// This percentage of it, rounded up.
fn part(all: u64, percent: u64) -> u64 {
    u64::try_from((u128::from(all) * u128::from(percent)).div_ceil(100)).unwrap_or(u64::MAX)
}

/// What a charge counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Its owner.
    pub whose: Whose,
    /// Whether only charges of unproven clients are booked here.
    pub unproven: bool,
}

/// Whose quota it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// One client.
    Client(IpNet),
    /// A network around the client. It may have one part in this number of what a single client does not get.
    Around(IpNet, u64),
    /// Everyone.
    All,
}

/// The IPv4 address, or the IPv6 network of 64 bits: a host can use any address of such a network (RFC 4291 section
/// 2.5.4).
pub fn client_of(address: IpAddr) -> IpNet {
    let address = address.to_canonical();
    network(address, if address.is_ipv4() { 32 } else { 64 })
}

fn network(address: IpAddr, bits: u8) -> IpNet {
    IpNet::new(address, bits).map_or(IpNet::from(address), |network| network.trunc())
}

/// The largest network around an address that counts as one site.
pub fn site_of(address: IpAddr) -> IpNet {
    let address = address.to_canonical();
    network(address, if address.is_ipv4() { 24 } else { 48 })
}

/// Whose shares a charge of `address` is taken from, the smallest share first. A site gets a network of 56 or 48 bits
/// (RFC 6177), and an IPv4 address is rarely alone in its 24.
pub fn whose(address: IpAddr) -> Vec<Whose> {
    let address = address.to_canonical();
    let around = |bits, left| Whose::Around(network(address, bits), left);
    let mut all = vec![Whose::Client(client_of(address))];
    all.extend(match address {
        IpAddr::V4(_) => vec![around(24, 2)],
        IpAddr::V6(_) => vec![around(56, 4), around(48, 2)],
    });
    all.push(Whose::All);
    all
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whose {
            Whose::Client(_) => f.write_str("one client"),
            Whose::Around(network, _) => write!(f, "the network {network}"),
            Whose::All => f.write_str("all clients together"),
        }
    }
}
