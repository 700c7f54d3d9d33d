//! netperf, from its own sources: Debian has it only outside of its free part. Its server is `netserver`, beside it.

use std::time::Duration;

use anyhow::Result;

use super::{Counted, Job, Program, ProgramOutputs, ServerExit, arguments, number_after};

pub static NETPERF: Program = Program {
    name: "netperf",
    in_debian: false,
    server_file: Some("netserver"),
    version: "-V",
    control_connections: 1,
    leaves: ServerExit::Interrupted,
    beyond: |_| Duration::from_millis(400),
    // It stays in the foreground and serves in the process that is waited for, whose CPU time counts.
    server: |job| arguments!["-D", "-f", "-L", job.address, "-p", job.port],
    client,
    count,
};

/// The test's own options come after `--`, so that further ones can follow.
fn client(job: &Job<'_>) -> Vec<String> {
    let test = if job.is_udp() { "UDP_STREAM" } else { "TCP_STREAM" };
    let mut arguments = arguments!["-H", job.address, "-p", job.port, "-l", job.seconds];
    arguments.extend(arguments!["-P", 0, "-t", test, "--"]);
    arguments.extend(arguments!["-m", job.load.chunk_bytes, "-M", job.load.chunk_bytes]);
    arguments.extend(arguments!["-k", "ELAPSED_TIME,REMOTE_BYTES_RECVD,LOCAL_BYTES_SENT"]);
    arguments
}

fn count(job: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let number = |key| number_after(&said.client, key);
    let (bytes, seconds) = (number("REMOTE_BYTES_RECVD")?, number("ELAPSED_TIME")?);
    let lost_percent = match job.is_udp() {
        true => Some(100.0 * (1.0 - bytes / number("LOCAL_BYTES_SENT")?)),
        false => None,
    };
    Ok(Counted { bytes, bits_per_s: bytes * 8.0 / seconds, lost_percent })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Load;
    use super::*;

    #[test]
    fn the_receivers_bytes_count() {
        // From netperf 2.7.1.
        let client = "ELAPSED_TIME=1.01\nREMOTE_BYTES_RECVD=2576192\nLOCAL_BYTES_SENT=5644608\n";
        let load = Load::udp(64);
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 1 };
        let said = ProgramOutputs { client: client.into(), ..ProgramOutputs::default() };
        let counted = count(&job, &said).unwrap();
        assert_eq!(counted.bytes, 2_576_192.0);
        assert_eq!(counted.bits_per_s.round(), 20_405_481.0);
        assert_eq!(counted.lost_percent.unwrap().round(), 54.0);
    }
}
