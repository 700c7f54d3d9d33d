//! sockperf's throughput mode: the client's time, the server's count.

use std::time::Duration;

use anyhow::Result;

use super::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit, arguments, number_after};

pub static SOCKPERF: Program = Program {
    name: "sockperf",
    in_debian: true,
    server_file: None,
    version: "--version",
    control_connections: 0,
    leaves: ServerExit::Interrupted,
    counts_at: CountsAt::Client,
    // It waits two seconds around its warm-up.
    beyond: |_| Duration::from_millis(2500),
    server: |job| with_transport(job, arguments!["server", "-i", job.address, "-p", job.port]),
    client,
    count,
};

fn client(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["throughput", "-i", job.address, "-p", job.port];
    arguments.extend(arguments!["-t", job.seconds, "-m", job.load.chunk_bytes]);
    if let Some(rate) = job.load.rate_bits_per_s {
        // To the nearest message per second, the finest unit that it supports.
        let bits = u64::from(job.load.chunk_bytes) * 8;
        arguments.extend(arguments!["--mps", (rate + bits / 2) / bits]);
    }
    with_transport(job, arguments)
}

fn with_transport(job: &Job<'_>, mut arguments: Vec<String>) -> Vec<String> {
    arguments.extend((!job.is_udp()).then(|| "--tcp".into()));
    arguments
}

fn count(job: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let sent = number_after(&said.client, "Total of ")?;
    let seconds = number_after(&said.client, "messages sent in ")?;
    let received = number_after(&said.server, "Total ")?;
    let bytes = received * f64::from(job.load.chunk_bytes);
    let lost_percent = job.is_udp().then(|| 100.0 * (1.0 - received / sent));
    Ok(Counted { bytes, bits_per_s: bytes * 8.0 / seconds, lost_percent })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Load;
    use super::*;

    #[test]
    fn the_server_counts_and_the_client_has_the_time() {
        // From sockperf 3.7.
        let said = ProgramOutputs {
            client: "sockperf: Test ended\nsockperf: Total of 84911 messages sent in 1.001 sec\n"
                .into(),
            server: "sockperf: Test end (interrupted by user)\n\
                     sockperf: Total 75781 messages received and handled\n"
                .into(),
        };
        let load = Load::udp(1472).at(1_000_000_000);
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 1 };
        let counted = count(&job, &said).unwrap();
        assert_eq!(counted.bytes, 111_549_632.0);
        assert_eq!((counted.bits_per_s / 1e6).round(), 892.0);
        assert_eq!((counted.lost_percent.unwrap() * 10.0).round(), 108.0);
        assert!(client(&job).contains(&"84918".into()));
    }
}
