//! nuttcp, read from its `key=value` line.

use std::time::Duration;

use anyhow::Result;

use super::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit, arguments, number_after};
use crate::bench::load::Transport;

pub static NUTTCP: Program = Program {
    name: "nuttcp",
    in_debian: true,
    server_file: None,
    version: "-V",
    control_connections: 1,
    leaves: ServerExit::ByItself,
    counts_at: CountsAt::Client,
    // It waits two seconds for late datagrams.
    beyond: |transport| Duration::from_millis(if transport == Transport::Udp { 2500 } else { 300 }),
    server: |job| arguments!["-1", "--nofork", format!("-P{}", job.port)],
    client,
    count,
};

/// nuttcp's megabyte, bytes.
const MEGABYTE_BYTES: f64 = 1_048_576.0;

fn client(job: &Job<'_>) -> Vec<String> {
    let data_port = job.port + 1;
    let mut arguments = arguments!["-fparse", format!("-P{}", job.port), format!("-p{data_port}")];
    arguments.push(format!("-T{}", job.seconds));
    arguments.push(format!("-l{}", job.load.chunk_bytes));
    if job.load.flows > 1 {
        arguments.push(format!("-N{}", job.load.flows));
    }
    if job.is_udp() {
        // Its default UDP rate is 1 Mbit/s; 0 is unlimited. Without a letter, the unit is kbit/s.
        let kbit = job.load.rate_bits_per_s.unwrap_or(0) / 1000;
        arguments.extend(arguments!["-u", format!("-R{kbit}")]);
    }
    arguments.push(job.address.into());
    arguments
}

fn count(job: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let number = |key| number_after(&said.client, key);
    let lost_percent = match job.is_udp() {
        true => Some(100.0 * number("drop=")? / number("pkt=")?),
        false => None,
    };
    Ok(Counted {
        bytes: number("megabytes=")? * MEGABYTE_BYTES,
        bits_per_s: number("rate_Mbps=")? * 1e6,
        lost_percent,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Load;
    use super::*;

    /// From nuttcp 6.1.2.
    const UDP: &str = "megabytes=78.7228 real_seconds=1.00 rate_Mbps=662.3809 tx_cpu=38 rx_cpu=5 \
                       drop=28841 pkt=84919 data_loss=33.96292";

    #[test]
    fn megabytes_are_binary_and_rates_are_not() {
        let load = Load::udp(1472);
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 1 };
        let counted =
            count(&job, &ProgramOutputs { client: UDP.into(), ..ProgramOutputs::default() })
                .unwrap();
        assert_eq!((counted.bytes / 1e6).round(), 83.0);
        assert_eq!(counted.bits_per_s, 662_380_900.0);
        assert_eq!((counted.lost_percent.unwrap() * 100.0).round(), 3396.0);
    }

    #[test]
    fn a_rate_is_in_kilobits() {
        let load = Load::udp(1472).at(1_000_000_000);
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 1 };
        assert!(client(&job).contains(&"-R1000000".into()));
    }
}
