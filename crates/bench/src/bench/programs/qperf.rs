//! qperf, which measures the bandwidth of one flow and supports no rate.

use std::time::Duration;

use anyhow::Result;

use super::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit, arguments, number_after};

pub static QPERF: Program = Program {
    name: "qperf",
    in_debian: true,
    server_file: None,
    version: "--version",
    control_connections: 1,
    leaves: ServerExit::Interrupted,
    counts_at: CountsAt::Client,
    beyond: |_| Duration::from_millis(400),
    server: |job| arguments!["--listen_port", job.port],
    client,
    count,
};

/// Nine digits, bits, one unit for each kind of value.
const PLAIN: [&str; 6] = [
    "--use_bits_per_sec",
    "--unify_units",
    "--unify_nodes",
    "--precision",
    "9",
    "--verbose_more_stat",
];

fn client(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["--listen_port", job.port, "--ip_port", job.port + 1];
    arguments.extend(arguments!["--time", job.seconds, "--msg_size", job.load.chunk_bytes]);
    arguments.extend(PLAIN.map(Into::into));
    arguments.extend(arguments![job.address, if job.is_udp() { "udp_bw" } else { "tcp_bw" }]);
    arguments
}

/// `bw` (TCP) and `recv_bw` (UDP) describe received payload; `loc` is the client, which sends, and `rem` the server.
fn count(job: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let number = |key| number_after(&said.client, key);
    let received = number("rem_recv_bytes")?;
    let sent = number("loc_send_bytes")?;
    let (rate, lost_percent) = match job.is_udp() {
        true => ("recv_bw", Some(100.0 * (1.0 - received / sent))),
        // Not the one of the heading, `tcp_bw:`.
        false => ("  bw", None),
    };
    Ok(Counted { bytes: received, bits_per_s: number(rate)?, lost_percent })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Load;
    use super::*;

    fn counted(load: Load, client: &str) -> Counted {
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 1 };
        count(&job, &ProgramOutputs { client: client.into(), ..ProgramOutputs::default() }).unwrap()
    }

    // Both from qperf 0.4.11.

    #[test]
    fn what_was_received_counts() {
        let udp = "udp_bw:\n    send_bw         =  6571820544 bits/sec\n    \
                   recv_bw         =  2286133760 bits/sec\n    msg_rate        =      194135 /sec\n    \
                   loc_send_bytes  =   821477568 bytes\n    rem_recv_bytes  =   285766720 bytes\n";
        let counted = counted(Load::udp(1472), udp);
        assert_eq!(counted.bytes, 285_766_720.0);
        assert_eq!(counted.bits_per_s, 2_286_133_760.0);
        assert_eq!((counted.lost_percent.unwrap() * 10.0).round(), 652.0);
    }

    #[test]
    fn the_head_is_no_bandwidth() {
        let tcp = "tcp_bw:\n    bw              =  14692597248 bits/sec\n    \
                   loc_send_bytes  =   1841058368 bytes\n    rem_recv_bytes  =   1836574656 bytes\n";
        let counted = counted(Load::tcp(1500), tcp);
        assert_eq!(counted.bits_per_s, 14_692_597_248.0);
        assert_eq!(counted.lost_percent, None);
    }
}
