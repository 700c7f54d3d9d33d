//! What `goodput top` takes.

use clap::{Args, ValueEnum};
use goodput_engine::WantedConnections;
use ipnet::IpNet;

use crate::args::values::number::whole;
use crate::args::values::{address, time};

/// `goodput top`
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Show only connections with this peer, or with peers in this network
    #[arg(long, value_name = "ADDRESS", value_parser = address::network)]
    pub peer: Option<IpNet>,
    /// Show only connections with this port at either end
    #[arg(long, value_name = "PORT", value_parser = whole("a port", 1..=u16::MAX))]
    pub port: Option<u16>,
    /// Show only connections of this process, by its id or name
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// Show only connections whose row has these words, such as `receive`
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    pub filter: String,
    /// Order of the connections, the largest first
    #[arg(long, value_name = "COLUMN", value_enum, default_value = "rate")]
    pub sort: Order,
    /// Time between two readings
    #[arg(long, value_name = "TIME", value_parser = time::refresh, default_value = "1s")]
    pub every: f64,
    /// Print one table, then end; with --summary, after that time
    #[arg(long)]
    pub once: bool,
    /// Sum up the last minute: limits, and the busiest peers
    #[arg(long, conflicts_with = "filter")]
    pub summary: bool,
    /// Time that is summed up
    #[arg(long, value_name = "TIME", value_parser = time::refresh, default_value = "1m")]
    pub over: f64,
    /// Also show idle connections, as --json always does
    #[arg(long)]
    pub idle: bool,
    /// Print one JSON document for each table
    #[arg(long)]
    pub json: bool,
}

/// What connections are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Payload per second in both directions
    #[default]
    Rate,
    /// Round-trip time
    RoundTrip,
    /// Retransmitted share of the sent segments
    Retransmitted,
}

impl Order {
    /// The order after this one.
    pub fn next(self) -> Self {
        match self {
            Self::Rate => Self::RoundTrip,
            Self::RoundTrip => Self::Retransmitted,
            Self::Retransmitted => Self::Rate,
        }
    }
}

impl TopArgs {
    /// Which connections are wanted.
    pub fn wanted(&self) -> WantedConnections {
        WantedConnections { peer: self.peer, port: self.port, process: self.process.clone() }
    }
}
