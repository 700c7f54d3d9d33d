//! What `goodput ceiling` takes.

use clap::Args;
use goodput_model::{BitRate, Bytes};

use crate::args::options::CeilingInputArgs;
use crate::args::values::{rate, size};

/// What the longer help adds.
const MORE: &str = "\
goodput computes every bound whose inputs are known. The lowest bound is the ceiling. If a measured goodput is \
above the ceiling, the model, an input or the measurement is wrong. goodput then says so, and changes no number.

Examples:
    goodput ceiling --link 1gbit                    # the link, less headers
    goodput ceiling --link 1gbit --tunnel pppoe,wireguard --bytes 64MB
    goodput ceiling --link 44.21mbit --framing hdlc --rtt 25ms --window 64K
    goodput ceiling --link 10gbit --rtt 20ms --loss 0.1% --flows 4
    goodput ceiling --link 10gbit --bus pcie3x1
    goodput ceiling --link 1gbit --ring 256 --drain-gap 2ms
    goodput ceiling --link 100mbit --udp --datagram 64 --hz 100 --poll-burst 150
    goodput ceiling --here eth0 --to nas            # what this host knows
    goodput ceiling --fit 6.7MHz:740KB/s,13.4MHz:970KB/s,26.7MHz:1075KB/s

Exit codes: 0 fine, 1 the measured goodput is above a bound, 2 could not do it.";

/// `goodput ceiling`
#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
pub struct CeilingArgs {
    #[command(flatten)]
    pub inputs: CeilingInputArgs,
    #[command(flatten)]
    pub question: QuestionArgs,
}

/// Where inputs come from and what is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Question")]
pub struct QuestionArgs {
    /// Fill in what this host knows about a network device
    ///
    /// Options override what is filled in.
    #[arg(long, value_name = "DEVICE")]
    pub here: Option<String>,
    /// Fill in what this host knows about the path to a host
    ///
    /// The round-trip time is that of an open connection to the host. If there is none, goodput times three TCP handshakes
    /// and takes the shortest; a refused one counts too. Options override what is filled in.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub to: Option<String>,
    /// Show how long this much payload takes
    #[arg(long, value_name = "SIZE", value_parser = size::positive)]
    pub bytes: Option<Bytes>,
    /// Show this measured goodput among the bounds
    #[arg(long, value_name = "RATE", value_parser = rate::positive)]
    pub measured: Option<BitRate>,
    /// Fit a series of measurements against a clock
    ///
    /// The model is: time per byte = fixed + clocks / clock. A series is CLOCK:RATE,…; a file has a clock and a rate
    /// in each line. At least three clocks are needed.
    #[arg(long, value_name = "FILE|SERIES", exclusive = false,
          conflicts_with_all = ["LinkArgs", "PacketArgs", "PathArgs", "HostArgs", "here", "to", "bytes", "measured"])]
    pub fit: Option<String>,
    /// Print one JSON document and nothing else
    #[arg(long)]
    pub json: bool,
}
