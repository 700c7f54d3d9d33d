//! Options of the data connections' sockets.

use clap::Args;
use goodput_model::{BitRate, Bytes, SocketOptions};

use super::words::Words;
use crate::args::values::dscp::dscp;
use crate::args::values::local::LocalAddress;
use crate::args::values::number::whole;
use crate::args::values::source_ports::SourcePorts;
use crate::args::values::{rate, time};

/// Where connections start, and what is set on their sockets.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sockets")]
pub struct SocketArgs {
    /// Local address of the connections; %DEVICE also binds them to a device
    #[arg(long, value_name = "ADDRESS[%DEVICE]")]
    pub bind: Option<LocalAddress>,
    /// Bind the connections to this device
    #[arg(long, value_name = "DEVICE", hide_short_help = true)]
    pub device: Option<String>,
    /// Local port of the first data connection
    ///
    /// The other connections take the next free ports. A card always hashes the same ports to the same receive queues.
    /// `spread` chooses ports that spread the flows evenly over the far card's receive queues; spread:PORT begins at
    /// PORT.
    #[arg(long, value_name = "PORT|spread[:PORT]", hide_short_help = true)]
    pub source_port: Option<SourcePorts>,
    /// Congestion control at both ends
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Send buffer at both ends; switches its autotuning off
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub sndbuf: Option<Bytes>,
    /// Receive buffer at both ends; switches its autotuning off
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub rcvbuf: Option<Bytes>,
    /// Maximum segment size
    #[arg(long, value_name = "BYTES", value_parser = whole("a segment size", 88..=32767_u32), hide_short_help = true)]
    pub mss: Option<u32>,
    /// Send small segments at once (TCP_NODELAY)
    #[arg(long, hide_short_help = true)]
    pub nodelay: bool,
    /// Send no partial segment before the end of a file (TCP_CORK)
    #[arg(long, conflicts_with = "udp", hide_short_help = true)]
    pub cork: bool,
    /// Let the kernel pace each flow at this rate (SO_MAX_PACING_RATE)
    ///
    /// The option is set at both ends.
    #[arg(long, value_name = "RATE", conflicts_with_all = ["udp", "rate"], hide_short_help = true)]
    pub max_pacing: Option<BitRate>,
    /// Acknowledge received segments at once (TCP_QUICKACK)
    #[arg(long, conflicts_with_all = ["udp", "mptcp"], hide_short_help = true)]
    pub quickack: bool,
    /// Stop writing while this much is unsent (TCP_NOTSENT_LOWAT)
    ///
    /// The kernel then holds little unsent data, so new data waits less. The option is set at both ends.
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["udp", "mptcp"], hide_short_help = true)]
    pub notsent_lowat: Option<Bytes>,
    /// Let a reader poll the device for this time, like 50us (SO_BUSY_POLL)
    ///
    /// The time needs a unit. The option is set at both ends. On older kernels, a time above sysctl net.core.busy_read
    /// needs CAP_NET_ADMIN. A program that waits with poll(2), as goodput does, polls more than once only if sysctl
    /// net.core.busy_poll is set too.
    #[arg(long, value_name = "TIME", value_parser = time::busy_poll, hide_short_help = true)]
    pub busy_poll: Option<u32>,
    /// Priority of the packets in the queues of both hosts (SO_PRIORITY)
    ///
    /// Priorities above 6 need CAP_NET_ADMIN.
    #[arg(long, value_name = "NUMBER", value_parser = whole("a priority", 0..=0x7fff_ffff_u32), hide_short_help = true)]
    pub priority: Option<u32>,
    /// Mark packets with this differentiated services code point, like ef
    #[arg(long, value_name = "DSCP", value_parser = dscp, hide_short_help = true)]
    pub dscp: Option<u8>,
    /// Never fragment a datagram over IPv4
    ///
    /// A datagram larger than the path's MTU is an error.
    #[arg(long, requires = "udp", hide_short_help = true)]
    pub dont_fragment: bool,
    /// Use MPTCP
    ///
    /// The record lists the subflows of each connection, or says that it fell back to TCP.
    #[arg(long, conflicts_with = "udp", hide_short_help = true)]
    pub mptcp: bool,
}

impl SocketArgs {
    /// The part of a plan that these options make. The IP version is an option of the direction.
    pub fn options(&self) -> SocketOptions {
        let bound_device = || self.bind.as_ref().and_then(|local| local.device.clone());
        SocketOptions {
            bind: self.bind.as_ref().map(|local| local.ip),
            device: self.device.clone().or_else(bound_device),
            family: None,
            source_port: self.source_port.and_then(|ports| ports.first),
            spread_ports: self.source_port.is_some_and(|ports| ports.spread),
            mptcp: self.mptcp,
            mss_bytes: self.mss,
            sndbuf_bytes: self.sndbuf,
            rcvbuf_bytes: self.rcvbuf,
            congestion: self.congestion.clone(),
            nodelay: self.nodelay,
            cork: self.cork,
            max_pacing_bits_per_s: self.max_pacing.filter(|rate| rate.0 > 0.0),
            quickack: self.quickack.then_some(true),
            notsent_lowat_bytes: self.notsent_lowat,
            busy_poll_us: self.busy_poll,
            priority: self.priority,
            dscp: self.dscp,
            dont_fragment: self.dont_fragment,
        }
    }

    /// Those of a plan.
    pub fn words(options: &SocketOptions) -> Words {
        let ports = SourcePorts { first: options.source_port, spread: options.spread_ports };
        let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
        Words::default()
            .value("bind", options.bind)
            .value("device", &options.device)
            .value("source-port", (ports != SourcePorts::default()).then_some(ports))
            .value("congestion", &options.congestion)
            .value("sndbuf", bytes(options.sndbuf_bytes))
            .value("rcvbuf", bytes(options.rcvbuf_bytes))
            .value("mss", options.mss_bytes)
            .flag("nodelay", options.nodelay)
            .flag("cork", options.cork)
            .value("max-pacing", options.max_pacing_bits_per_s.map(rate::typed))
            .flag("quickack", options.quickack == Some(true))
            .value("notsent-lowat", bytes(options.notsent_lowat_bytes))
            .value("busy-poll", options.busy_poll_us.map(|us| format!("{us}us")))
            .value("priority", options.priority)
            .value("dscp", options.dscp)
            .flag("dont-fragment", options.dont_fragment)
            .flag("mptcp", options.mptcp)
    }
}
