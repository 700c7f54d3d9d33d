//! Whether packets are captured.

use std::path::PathBuf;

use clap::Args;

/// What is kept of packets.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Observing")]
pub struct CaptureArgs {
    /// Write the headers of the test's packets to this pcapng file
    ///
    /// goodput captures on this host, at the device towards the target, and takes each packet's time from the kernel: of
    /// outgoing packets behind the queueing discipline. The report shows their sizes and gaps. This needs CAP_NET_RAW.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub pcap: Option<PathBuf>,
}
