//! neper's `tcp_stream`, which Debian does not have: one thread for each flow.

use std::time::Duration;

use anyhow::Result;

use super::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit, arguments, number_after};

pub static NEPER: Program = Program {
    name: "neper",
    in_debian: false,
    server_file: None,
    version: "--version",
    control_connections: 1,
    leaves: ServerExit::ByItself,
    counts_at: CountsAt::Client,
    beyond: |_| Duration::from_millis(300),
    server: |job| {
        let mut arguments = both(job);
        arguments.extend(arguments!["--test-length", job.seconds]);
        arguments
    },
    client: |job| {
        let mut arguments = both(job);
        arguments.extend(arguments!["--client", "--host", job.address]);
        arguments.extend(arguments!["--test-length", job.seconds]);
        arguments
    },
    count,
};

fn both(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["--control-port", job.port, "--port", job.port + 1];
    arguments.extend(arguments!["--num-flows", job.load.flows, "--num-threads", job.load.flows]);
    arguments.extend(arguments!["--buffer-size", job.load.chunk_bytes, "--nolog"]);
    arguments
}

/// The receiver tells the client its rate, bits per second, and has no count of bytes.
fn count(job: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let bits_per_s = number_after(&said.client, "remote_throughput=")?;
    let bytes = bits_per_s / 8.0 * f64::from(job.seconds);
    Ok(Counted { bytes, bits_per_s, lost_percent: None })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Load;
    use super::*;

    #[test]
    fn the_servers_rate_counts() {
        // From neper 1.1.0.
        let client = "local_throughput=0\nremote_throughput=22880262477\n";
        let load = Load::tcp(1500);
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 2 };
        let said = ProgramOutputs { client: client.into(), ..ProgramOutputs::default() };
        let counted = count(&job, &said).unwrap();
        assert_eq!((counted.bits_per_s / 1e9).round(), 23.0);
        assert_eq!((counted.bytes / 1e9 * 100.0).round(), 572.0);
    }
}
