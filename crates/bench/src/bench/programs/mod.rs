//! The programs that take part: how to start each, and how to read its counts.

mod goodput;
mod iperf;
mod iperf3;
mod neper;
mod netperf;
mod nuttcp;
mod qperf;
mod sockperf;

use std::time::Duration;

use anyhow::{Context, Result};

use super::load::{Load, Transport};

pub use goodput::GOODPUT;
pub use iperf::IPERF;
pub use iperf3::IPERF3;
pub use neper::NEPER;
pub use netperf::{NETPERF, NETPERF_SENDFILE};
pub use nuttcp::NUTTCP;
pub use qperf::QPERF;
pub use sockperf::SOCKPERF;

/// All programs.
pub const ALL: &[&Program] =
    &[&GOODPUT, &IPERF3, &IPERF, &NUTTCP, &QPERF, &SOCKPERF, &NETPERF, &NEPER];

/// A program, as a peer or as the one under test.
pub struct Program {
    /// Its name, and the name of its file.
    pub name: &'static str,
    /// Whether Debian has it; others take part only if they are given (`--peer`).
    pub in_debian: bool,
    /// The name of the server's file, beside the client's, if it has its own.
    pub server_file: Option<&'static str>,
    /// The argument that makes it print its version.
    pub version: &'static str,
    /// How many TCP connections its client opens before the first one for payload.
    pub control_connections: usize,
    /// How its server ends.
    pub leaves: ServerExit,
    /// Which of its outputs has the counts.
    pub counts_at: CountsAt,
    /// Approximate duration of a run beyond its payload.
    pub beyond: fn(Transport) -> Duration,
    /// Arguments of the server.
    pub server: fn(&Job<'_>) -> Vec<String>,
    /// Arguments of the client.
    pub client: fn(&Job<'_>) -> Vec<String>,
    /// The receiver's counts, from the output of both.
    pub count: fn(&Job<'_>, &ProgramOutputs) -> Result<Counted>,
}

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerExit {
    /// After its first client.
    ByItself,
    /// By SIGINT.
    Interrupted,
}

/// Where a program prints the receiver's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountsAt {
    /// Each client prints its own.
    Client,
    /// The server prints those of all.
    Server,
}

/// The task of a run.
pub struct Job<'a> {
    /// What to send.
    pub load: &'a Load,
    /// The address to send to.
    pub address: &'a str,
    /// The server's port; the next 100 are free too.
    pub port: u16,
    /// How long to send.
    pub seconds: u32,
}

/// What both programs printed on stdout.
#[derive(Debug, Default)]
pub struct ProgramOutputs {
    /// The client.
    pub client: String,
    /// The server.
    pub server: String,
}

/// The receiver's counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Payload of the whole run.
    pub bytes: f64,
    /// Payload bits per second.
    pub bits_per_s: f64,
    /// Datagrams that were sent and not received.
    pub lost_percent: Option<f64>,
}

impl Job<'_> {
    /// Whether the server has to take several clients at once.
    fn has_crowd(&self) -> bool {
        self.load.clients > 1
    }

    fn is_udp(&self) -> bool {
        self.load.transport == Transport::Udp
    }
}

/// Words and values as arguments.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { vec![$($argument.to_string()),*] };
}
use arguments;

/// The number after `key` in a text of `key SEPARATOR number …` lines.
fn number_after(text: &str, key: &str) -> Result<f64> {
    let found = text.split(key).nth(1).map(|rest| {
        let rest = rest.trim_start_matches([' ', '=']);
        let end = rest.find(|c: char| !c.is_ascii_digit() && !".-e+".contains(c));
        &rest[..end.unwrap_or(rest.len())]
    });
    let found = found.with_context(|| format!("it printed no `{key}`"))?;
    found.parse().with_context(|| format!("`{found}` after `{key}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_what_stands_before_them() {
        assert_eq!(number_after("a=1.5 b = 2e+3 /s", "b").unwrap(), 2000.0);
        assert_eq!(number_after("Total 53200 messages", "Total").unwrap(), 53200.0);
        assert!(number_after("a=1", "c").is_err());
        assert!(number_after("a=x", "a").is_err());
    }

    #[test]
    fn every_program_reads_no_count_from_silence() {
        let load = Load::udp(1472);
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 2 };
        for program in ALL {
            assert!((program.count)(&job, &ProgramOutputs::default()).is_err(), "{}", program.name);
        }
    }

    #[test]
    fn every_program_gets_the_load() {
        for load in [Load::tcp(1500), Load::udp(1472)] {
            let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 7 };
            for program in ALL {
                let client = (program.client)(&job).join(" ");
                let chunk = load.chunk_bytes.to_string();
                for word in ["192.0.2.2", "10000", "7", &chunk] {
                    assert!(client.contains(word), "{}: {client} lacks {word}", program.name);
                }
                assert!((program.server)(&job).join(" ").contains("10000"), "{}", program.name);
            }
        }
    }
}
