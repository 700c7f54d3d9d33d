//! iperf 2, read from its server's rows.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit, arguments};
use crate::bench::load::Transport;

pub static IPERF: Program = Program {
    name: "iperf",
    in_debian: true,
    server_file: None,
    version: "--version",
    control_connections: 0,
    leaves: ServerExit::Interrupted,
    counts_at: CountsAt::Server,
    beyond: |transport| Duration::from_millis(if transport == Transport::Udp { 800 } else { 300 }),
    server,
    client,
    count,
};

/// More than any host sends. iperf 2 has no way to request an unlimited rate of datagrams.
const UNLIMITED_BITS_PER_S: u64 = 1_000_000_000_000;

fn server(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["--server", "--port", job.port, "--bind", job.address];
    arguments.extend(arguments!["--reportstyle", "C"]);
    arguments.extend(job.is_udp().then(|| "--udp".into()));
    arguments
}

fn client(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["--client", job.address, "--port", job.port];
    arguments.extend(arguments!["--len", job.load.chunk_bytes, "--time", job.seconds]);
    arguments.extend(arguments!["--parallel", job.load.flows, "--reportstyle", "C"]);
    if job.is_udp() {
        let rate = job.load.rate_bits_per_s.unwrap_or(UNLIMITED_BITS_PER_S);
        arguments.extend(arguments!["--udp", "--bandwidth", rate]);
    }
    arguments
}

/// The server prints one row per flow: time, two addresses with ports, id, interval, bytes, bits per second; for UDP
/// also jitter, lost, sent, percent, out of order. Rows with id -1 are sums. The rate is all bytes over the time of the
/// longest flow: many threads do not all start at once, so a sum of their rates would cover times that do not overlap.
fn count(job: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let (mut bytes, mut seconds, mut lost, mut sent, mut flows) = (0.0, 0.0f64, 0.0, 0.0, 0);
    for row in said.server.lines() {
        let fields: Vec<&str> = row.split(',').collect();
        if fields.len() < 9 || fields[5] == "-1" {
            continue;
        }
        let number = |at: usize| -> Result<f64> {
            let field = fields.get(at).with_context(|| format!("`{row}` is too short"))?;
            field.parse().with_context(|| format!("`{field}` in `{row}` is no number"))
        };
        bytes += number(7)?;
        if number(8)? > 0.0 {
            seconds = seconds.max(number(7)? * 8.0 / number(8)?);
        }
        if job.is_udp() {
            (lost, sent) = (lost + number(10)?, sent + number(11)?);
        }
        flows += 1;
    }
    if flows != job.load.flows {
        bail!("its server printed {flows} of {} flows", job.load.flows);
    }
    let lost_percent = (sent > 0.0).then(|| 100.0 * lost / sent);
    Ok(Counted { bytes, bits_per_s: bytes * 8.0 / seconds, lost_percent })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Load;
    use super::*;

    fn counted(load: Load, server: &str) -> Result<Counted> {
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 1 };
        count(&job, &ProgramOutputs { server: server.into(), ..ProgramOutputs::default() })
    }

    #[test]
    fn flows_add_up() {
        // From iperf 2.1.8.
        let rows = "19700101000000,127.0.0.1,46792,127.0.0.1,6005,1,0.0-1.0,1421082684,11342041700\n\
                    19700101000000,127.0.0.1,46800,127.0.0.1,6005,3,0.0-1.0,1319501884,10557640948\n";
        let load = Load::tcp(131_072).flows(2);
        let counted_both = counted(load, rows).unwrap();
        assert_eq!(counted_both.bytes, 2_740_584_568.0);
        // The first flow took 1.0024 s, the other 0.9998 s.
        assert_eq!((counted_both.bits_per_s / 1e6).round(), 21_873.0);
        assert_eq!(counted_both.lost_percent, None);
        assert!(counted(load.flows(3), rows).is_err(), "one is missing");
    }

    #[test]
    fn loss_is_of_what_was_sent() {
        let row = "19700101000000,127.0.0.1,54473,127.0.0.1,6006,1,0.0-0.9,112679910,963543513,\
                   0.001,8264,84917,9.732,0\nWaiting for server threads to complete.\n";
        let lost = counted(Load::udp(1472), row).unwrap().lost_percent.unwrap();
        assert_eq!((lost * 1000.0).round(), 9732.0);
    }
}
