//! What the ceilings of `goodput ceiling` are computed from.

use clap::Args;
use goodput_ceiling::{TIMESTAMPS_BYTES, bounds, buses, framings, tunnels};
use goodput_model::{BitRate, Bytes, CeilingInputs, Family, Transport};

use crate::args::values::number::whole;
use crate::args::values::{frequency, per_second, percent, rate, size, time};

/// MTU of Ethernet if nothing else is said, bytes (IEEE 802.3).
const DEFAULT_MTU_BYTES: u64 = 1500;

/// Frames or packets above which a number was mistyped: no memory holds more.
const MAX_FRAMES: u64 = 1 << 32;

/// The link and what it carries beside payload.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Link")]
pub struct LinkArgs {
    /// Speed of the slowest link of the path
    #[arg(long, value_name = "RATE", value_parser = rate::positive)]
    pub link: Option<BitRate>,
    /// Only one end of the link sends at a time, as on a hub
    #[arg(long, hide_short_help = true)]
    pub half_duplex: bool,
    /// Largest IP packet of the link [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = whole("a number of bytes", 1..=65_536_u64))]
    pub mtu: Option<u64>,
    /// What the link adds to an IP packet: ethernet, hdlc or none [default: ethernet]
    ///
    /// ethernet adds 38 bytes, hdlc (T1, T3) 8, none 0.
    #[arg(long, value_name = "KIND", value_parser = framing, hide_short_help = true)]
    pub framing: Option<String>,
    /// VLAN tags of each frame
    #[arg(long, value_name = "N", value_parser = whole("a number of VLAN tags", 1..=8_u8))]
    pub vlan: Option<u8>,
    /// Tunnels around each packet, the outermost first, like pppoe,wireguard
    ///
    /// Kinds: ipip, 6in4, gre, gre-key, gretap, vxlan, geneve, wireguard, gtp-u, pppoe. All but pppoe take a 6
    /// at the end if their outer packets are IPv6: vxlan6.
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', value_parser = tunnel)]
    pub tunnel: Vec<String>,
    /// Largest IP packet inside the tunnels [default: what they leave]
    #[arg(long, value_name = "BYTES", requires = "tunnel", hide_short_help = true,
          value_parser = whole("a number of bytes", 1..=65_536_u64))]
    pub tunnel_mtu: Option<u64>,
    /// Rate of a shaper that counts Ethernet frames, as tbf and htb do
    #[arg(long, value_name = "RATE", value_parser = rate::positive)]
    pub shaper: Option<BitRate>,
}

/// What the packets are.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Packets")]
pub struct PacketArgs {
    /// IPv6 carries the payload [default: IPv4]
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// UDP carries the payload [default: TCP]
    #[arg(short, long)]
    pub udp: bool,
    /// Payload of a UDP datagram, 1 to 65507 bytes [default: what fits into one packet]
    #[arg(long, value_name = "BYTES", value_parser = size::datagram, requires = "udp")]
    pub datagram: Option<Bytes>,
    /// Payload of a TCP segment [default: what the MTU leaves]
    #[arg(long, value_name = "BYTES", value_parser = size::positive, conflicts_with = "udp",
          hide_short_help = true)]
    pub mss: Option<Bytes>,
    /// TCP options in each segment [default: 12, which is timestamps]
    #[arg(long, value_name = "BYTES", conflicts_with = "udp", hide_short_help = true,
          value_parser = whole("a number of bytes", 0..=40_u64))]
    pub tcp_options: Option<u64>,
}

/// What happens on the way.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Path")]
pub struct PathArgs {
    /// Payload that each flow may have in flight
    #[arg(long, value_name = "BYTES", value_parser = size::window, conflicts_with = "udp")]
    pub window: Option<Bytes>,
    /// Round-trip time, with its unit, like 20ms
    #[arg(long, value_name = "TIME", value_parser = time::with_unit)]
    pub rtt: Option<f64>,
    /// Share of the segments that are lost
    #[arg(long, value_name = "PERCENT", value_parser = percent::share, conflicts_with = "udp")]
    pub loss: Option<f64>,
    /// Model of congestion control [default: cubic]
    ///
    /// none stands for a sender that does not slow down because of loss, such as BBR.
    #[arg(long, value_name = "MODEL", requires = "loss", hide_short_help = true,
          value_parser = ["mathis", "cubic", "pftk", "none"])]
    pub loss_model: Option<String>,
    /// Flows at the same time [default: 1]
    #[arg(short = 'P', long, value_name = "N", value_parser = whole("a number of flows", 1..=u16::MAX))]
    pub flows: Option<u16>,
}

/// What the host does with each packet.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Host")]
pub struct HostArgs {
    /// Bus of the network card, like pcie3x8, pcix-133, usb2 or isa16
    ///
    /// Write PCI Express with its generation and lanes: pcie1x1 to pcie7x32. The other buses are isa8, isa16, pci,
    /// pci-66, pci64, pci64-66, pcix-66, pcix-100, pcix-133, pcix-266, pcix-533, usb1, usb2, usb3, usb3-10g,
    /// usb3-20g.
    #[arg(long, value_name = "BUS", value_parser = bus)]
    pub bus: Option<String>,
    /// Clock of an ISA, PCI or PCI-X bus [default: the standard one]
    #[arg(long, value_name = "HZ", value_parser = frequency::hertz, requires = "bus", hide_short_help = true)]
    pub bus_clock: Option<f64>,
    /// Largest payload of a PCI Express packet (lspci -vv: MaxPayload) [default: 256]
    #[arg(long, value_name = "BYTES", requires = "bus", hide_short_help = true,
          value_parser = whole("a number of bytes", 128..=4096_u64))]
    pub pcie_payload: Option<u64>,
    /// Frames that the card's receive ring holds
    #[arg(long, value_name = "FRAMES", value_parser = whole("a number of frames", 1..=MAX_FRAMES))]
    pub ring: Option<u64>,
    /// Size of the card's receive buffer, if the card has no ring of frames
    #[arg(long, alias = "room", value_name = "BYTES", value_parser = size::positive, conflicts_with = "ring",
          hide_short_help = true)]
    pub card_buffer: Option<Bytes>,
    /// Frames that arrive back to back
    #[arg(long, alias = "burst", value_name = "FRAMES", hide_short_help = true,
          value_parser = whole("a number of frames", 1..=MAX_FRAMES))]
    pub burst_frames: Option<u64>,
    /// Longest time in which the host doesn't empty the card's buffer
    ///
    /// The time needs a unit, like 2ms.
    #[arg(long, value_name = "TIME", value_parser = time::with_unit)]
    pub drain_gap: Option<f64>,
    /// Packets per second that a host or device handles
    #[arg(long, value_name = "N", value_parser = per_second::packets)]
    pub packet_rate: Option<f64>,
    /// Times per second that the card is polled (FreeBSD: HZ)
    #[arg(long, value_name = "HZ", value_parser = frequency::hertz, requires = "poll_burst",
          hide_short_help = true)]
    pub hz: Option<f64>,
    /// Packets that each poll takes (FreeBSD: kern.polling.burst_max)
    #[arg(long, alias = "burst-max", value_name = "PACKETS", requires = "hz", hide_short_help = true,
          value_parser = whole("a number of packets", 1..=MAX_FRAMES))]
    pub poll_burst: Option<u64>,
}

/// All of these groups.
#[derive(Debug, Clone, Args)]
pub struct CeilingInputArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub packets: PacketArgs,
    #[command(flatten)]
    pub path: PathArgs,
    #[command(flatten)]
    pub host: HostArgs,
}

impl CeilingInputArgs {
    /// IP version of the payload, if only one may be used.
    pub fn family(&self) -> Option<Family> {
        self.packets.ipv6.then_some(Family::V6)
    }

    /// What was typed.
    pub fn inputs(&self) -> CeilingInputs {
        let Self { link, packets, path, host } = self;
        CeilingInputs {
            transport: packets.udp.then_some(Transport::Udp),
            family: self.family(),
            mtu_bytes: link.mtu,
            mss_bytes: packets.mss.map(|Bytes(bytes)| bytes),
            tcp_option_bytes: packets.tcp_options,
            datagram_bytes: packets.datagram.map(|Bytes(bytes)| bytes),
            flows: path.flows,
            tunnels: link.tunnel.clone(),
            tunnel_mtu_bytes: link.tunnel_mtu,
            vlan_tags: link.vlan,
            framing: link.framing.clone(),
            link_bits_per_s: link.link,
            half_duplex: link.half_duplex.then_some(true),
            shaper_bits_per_s: link.shaper,
            window_bytes: path.window.map(|Bytes(bytes)| bytes),
            rtt_us: path.rtt.map(|seconds| seconds * 1e6),
            loss_percent: path.loss,
            loss_model: path.loss_model.clone(),
            bus: host.bus.clone(),
            bus_clock_hz: host.bus_clock,
            pcie_payload_bytes: host.pcie_payload,
            ring_frames: host.ring,
            room_bytes: host.card_buffer.map(|Bytes(bytes)| bytes),
            burst_frames: host.burst_frames,
            drain_gap_us: host.drain_gap.map(|seconds| seconds * 1e6),
            packets_per_s: host.packet_rate,
            polls_per_s: host.hz,
            poll_packets: host.poll_burst,
            transfer_bytes: None,
        }
    }
}

/// What the help promises if nothing was typed or read.
pub fn with_defaults(inputs: CeilingInputs) -> CeilingInputs {
    let transport = inputs.transport.unwrap_or(Transport::Tcp);
    let options =
        inputs.tcp_option_bytes.or((transport == Transport::Tcp).then_some(TIMESTAMPS_BYTES));
    CeilingInputs {
        transport: Some(transport),
        family: Some(inputs.family.unwrap_or(Family::V4)),
        mtu_bytes: Some(inputs.mtu_bytes.unwrap_or(DEFAULT_MTU_BYTES)),
        tcp_option_bytes: options,
        ..inputs
    }
}

/// Whether anything bounds goodput by these inputs.
pub fn asks_for_something(inputs: &CeilingInputs) -> bool {
    bounds::ALL.iter().any(|bound| (bound.asked)(inputs))
}

fn tunnel(text: &str) -> Result<String, String> {
    tunnels::find(text).map(|_| text.into()).map_err(|why| why.to_string())
}

fn framing(text: &str) -> Result<String, String> {
    framings::find(Some(text)).map(|_| text.into()).map_err(|why| why.to_string())
}

fn bus(text: &str) -> Result<String, String> {
    buses::check(text).map(|()| text.into()).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help can't be made from the tables, so it is compared with them.
    #[test]
    fn the_help_names_every_tunnel_and_bus() {
        let command = CeilingInputArgs::augment_args(clap::Command::new("x"));
        let help = |id: &str| {
            let argument =
                command.get_arguments().find(|argument| argument.get_id() == id).unwrap();
            argument.get_long_help().unwrap().to_string()
        };
        for row in tunnels::ALL {
            assert!(help("tunnel").contains(row.id), "{}", row.id);
        }
        for row in buses::ALL {
            assert!(help("bus").contains(row.id), "{}", row.id);
        }
    }

    #[test]
    fn defaults_fill_what_is_absent_and_nothing_else() {
        let inputs = with_defaults(CeilingInputs::default());
        assert_eq!((inputs.mtu_bytes, inputs.tcp_option_bytes), (Some(1500), Some(12)));
        let typed = CeilingInputs { mtu_bytes: Some(9000), tcp_option_bytes: Some(0), ..inputs };
        assert_eq!(with_defaults(typed.clone()), typed);
    }
}
