//! netperf, from its own sources: Debian has it only outside of its free part. Its server is `netserver`, beside it.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit, arguments, number_after};

pub static NETPERF: Program = OMNI;

/// The same program, which sends a file from the page cache (`TCP_SENDFILE`).
pub static NETPERF_SENDFILE: Program =
    Program { client: client_of_sendfile, count: count_of_sendfile, ..OMNI };

const OMNI: Program = Program {
    name: "netperf",
    in_debian: false,
    server_file: Some("netserver"),
    version: "-V",
    control_connections: 1,
    leaves: ServerExit::Interrupted,
    counts_at: CountsAt::Client,
    beyond: |_| Duration::from_millis(400),
    server,
    client,
    count,
};

/// It stays in the foreground. For a single client it serves in the process that is waited for, whose CPU time counts; for
/// several it needs a process each.
fn server(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["-D", "-L", job.address, "-p", job.port];
    arguments.extend((!job.has_crowd()).then(|| "-f".into()));
    arguments
}

/// The test's own options come after `--`, so that further ones can follow.
fn client(job: &Job<'_>) -> Vec<String> {
    let test = if job.is_udp() { "UDP_STREAM" } else { "TCP_STREAM" };
    let mut arguments = arguments!["-H", job.address, "-p", job.port, "-l", job.seconds];
    arguments.extend(arguments!["-P", 0, "-t", test, "--"]);
    arguments.extend(arguments!["-m", job.load.chunk_bytes, "-M", job.load.chunk_bytes]);
    arguments.extend(arguments!["-k", "ELAPSED_TIME,REMOTE_BYTES_RECVD,LOCAL_BYTES_SENT"]);
    arguments
}

/// This older test knows no keys, and makes its own file if it is given none.
fn client_of_sendfile(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["-H", job.address, "-p", job.port, "-l", job.seconds];
    arguments.extend(arguments!["-P", 0, "-t", "TCP_SENDFILE", "--"]);
    arguments.extend(arguments!["-m", job.load.chunk_bytes, "-M", job.load.chunk_bytes]);
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

/// One line: two buffer sizes and the size of a send, bytes; the seconds; 10^6 bits per second.
fn count_of_sendfile(_: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let numbers = |line: &str| -> Option<Vec<f64>> {
        let numbers =
            line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>().ok()?;
        (numbers.len() == 5).then_some(numbers)
    };
    let line =
        said.client.lines().find_map(numbers).context("it printed no line of five numbers")?;
    let (seconds, bits_per_s) = (line[3], line[4] * 1e6);
    Ok(Counted { bytes: bits_per_s / 8.0 * seconds, bits_per_s, lost_percent: None })
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

    #[test]
    fn the_older_test_prints_a_line_of_numbers() {
        // From netperf 2.7.1.
        let client = " 131072  16384 131072    2.00     49805.27   \n";
        let load = Load::tcp(131_072);
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 2 };
        let said = ProgramOutputs { client: client.into(), ..ProgramOutputs::default() };
        let counted = (NETPERF_SENDFILE.count)(&job, &said).unwrap();
        assert_eq!(counted.bits_per_s.round(), 49_805_270_000.0);
        assert_eq!((counted.bytes / 1e6).round(), 12_451.0);
        assert!((NETPERF_SENDFILE.count)(&job, &ProgramOutputs::default()).is_err());
    }
}
