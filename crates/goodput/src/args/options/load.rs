//! How payload is sent and received.

use clap::Args;
use goodput_model::{BitRate, Bytes, MountPlan, Pins, Plan};

use super::words::Words;

use crate::args::values::mover::mover;
use crate::args::values::pin::{self, PinArg, pins};
use crate::args::values::rate::{self, Burst, Rate};
use crate::args::values::size;

/// How fast payload is sent, and by which means.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Send at this rate; 0 or unlimited sends as fast as possible [default: 0]
    ///
    /// 100mbit is the rate of each direction, 100mbit/flow that of each flow. Datagrams leave evenly spaced. After a
    /// stall the sender catches up on 10 ms at most, with gaps that are 15 % shorter. If the timers are too slow for
    /// that, it sends bursts of up to 64 KiB.
    #[arg(long, value_name = "RATE[/flow]", allow_negative_numbers = true)]
    pub rate: Option<Rate>,
    /// Send the datagrams of a flow in bursts of this size
    ///
    /// No burst is larger than this. A time means the bytes sent in that time at --rate. Bursts cost less CPU time than
    /// even spacing. [default: 1 datagram, or 20us if that is more]
    #[arg(long, value_name = "BYTES|TIME", requires_all = ["rate", "udp"], hide_short_help = true)]
    pub burst: Option<Burst>,
    /// How to send the payload (`goodput list movers`)
    ///
    /// A mover is a way to get bytes into a socket, such as a system call. auto lets each end choose the cheapest.
    /// [default: copy; auto for UDP without --rate]
    #[arg(long, value_name = "MOVER", value_parser = mover)]
    pub mover: Option<String>,
    /// How to receive the payload, if not like --mover
    ///
    /// discard drops the payload unread, to measure the network alone.
    #[arg(long, value_name = "MOVER", value_parser = mover, hide_short_help = true)]
    pub receive_mover: Option<String>,
    /// Size of a write or a datagram [default: 128K; UDP over IPv4 1472, over IPv6 1452]
    #[arg(short = 'l', long, value_name = "BYTES", value_parser = size::positive, hide_short_help = true)]
    pub chunk: Option<Bytes>,
    /// CPUs for the flows' threads: none, auto, or a list like 2,4-7
    ///
    /// far: in front means CPUs of the far end. none leaves the choice to the scheduler. auto chooses CPUs that are on the
    /// memory node of the path's card and do not serve its interrupts, if these are known. With a list, each flow takes
    /// the next CPU.
    #[arg(long, value_name = "[far:]CPUS", hide_short_help = true)]
    pub pin: Vec<PinArg>,
}

impl LoadArgs {
    /// The rate of one direction with `flows` flows.
    pub fn rate(&self, flows: u16) -> Option<BitRate> {
        self.rate?.of_direction(flows)
    }

    /// Bytes of one of `flows` flows that may leave at once.
    pub fn burst(&self, flows: u16, chunk: Bytes) -> Option<Bytes> {
        Some(self.burst?.of_flow(self.rate(flows), flows, chunk))
    }

    /// The CPUs of both ends.
    pub fn pins(&self) -> Pins {
        pins(&self.pin)
    }

    /// Those of a plan, of a `file` at a file server or on a mount too.
    pub fn words(plan: &Plan, file: bool) -> Words {
        let chunk = plan.chunk_bytes;
        let is_usual =
            chunk == plan.transport.standard_chunk() || file && chunk == MountPlan::STANDARD_CHUNK;
        let usual_mover = plan.usual_mover();
        Words::default()
            .value("rate", plan.rate_bits_per_s.map(rate::typed))
            .value("burst", plan.burst_bytes.map(|bytes| bytes.0))
            .value("mover", Some(&plan.mover).filter(|mover| *mover != usual_mover))
            .value("receive-mover", &plan.receive_mover)
            .value("chunk", (!is_usual).then_some(chunk.0))
            .value("pin", pin::typed(&plan.pin))
    }
}
