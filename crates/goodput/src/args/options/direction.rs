//! What kind of traffic goes which way.

use clap::Args;
use goodput_model::{Direction, Family, Plan, Transport};

use super::words::Words;
use crate::args::values::number::whole;

/// What kind of traffic, which way, in how many flows.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Direction")]
pub struct DirectionArgs {
    /// Measure UDP instead of TCP
    #[arg(short, long)]
    pub udp: bool,
    /// Reverse the direction: the far end sends
    #[arg(short = 'R', long, conflicts_with = "both")]
    pub reverse: bool,
    /// Send in both directions at the same time
    #[arg(long)]
    pub both: bool,
    /// Number of flows in each direction
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1,
          value_parser = whole("a number of flows", 1..=u16::MAX))]
    pub flows: u16,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", hide_short_help = true)]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long, hide_short_help = true)]
    pub ipv6: bool,
}

impl DirectionArgs {
    /// TCP or UDP.
    pub fn transport(&self) -> Transport {
        if self.udp { Transport::Udp } else { Transport::Tcp }
    }

    /// Who sends.
    pub fn direction(&self) -> Direction {
        match (self.reverse, self.both) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => Direction::Send,
        }
    }

    /// The version of IP, if only one may be used.
    pub fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        }
    }

    /// Those of a plan. Whether a `file` is read or written is said elsewhere.
    pub fn words(plan: &Plan, file: bool) -> Words {
        let family = plan.socket.family;
        Words::default()
            .flag("udp", plan.transport == Transport::Udp)
            .flag("reverse", plan.direction == Direction::Reverse && !file)
            .flag("both", plan.direction == Direction::Both)
            .value("flows", (plan.flows > 1).then_some(plan.flows))
            .flag("ipv4", family == Some(Family::V4))
            .flag("ipv6", family == Some(Family::V6))
    }
}
