//! Whether packets are captured.

use std::path::PathBuf;

use clap::Args;

/// What is kept of packets.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Observing")]
pub struct CaptureArgs {
    /// Write the headers of packets to and from the target to this file
    ///
    /// The file is pcapng, which Wireshark reads. goodput captures on this host, at the device towards the target. Packets
    /// have the kernel's times: outgoing ones are captured after the queueing discipline. The report shows the sizes and
    /// gaps of the test's own packets. This needs CAP_NET_RAW.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub pcap: Option<PathBuf>,
}
