//! Kinds of network devices (fact `link.kind`), by what their speed means.

/// Virtual kinds that pass on the speed of the hardware below them. Of other virtual kinds, the speed means nothing: a veth
/// claims 10 Gbit/s and a tun 10 Mbit/s whatever they carry.
pub const SPEED_FROM_BELOW: &[&str] = &["bond", "ipvlan", "macvlan", "team", "vlan"];

/// The kind of a device that the kernel gives none, unless it is the loopback device.
pub const HARDWARE: &str = "hardware";
