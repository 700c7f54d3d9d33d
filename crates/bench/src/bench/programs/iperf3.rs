//! iperf3, read from its JSON.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit, arguments};

pub static IPERF3: Program = Program {
    name: "iperf3",
    in_debian: true,
    server_file: None,
    version: "--version",
    control_connections: 1,
    leaves: ServerExit::ByItself,
    counts_at: CountsAt::Client,
    beyond: |_| Duration::from_millis(400),
    server: |job| arguments!["--server", "--one-off", "--bind", job.address, "--port", job.port],
    client,
    count,
};

fn client(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["--client", job.address, "--port", job.port, "--json"];
    arguments.extend(arguments!["--length", job.load.chunk_bytes, "--time", job.seconds]);
    arguments.extend(arguments!["--parallel", job.load.flows]);
    if job.is_udp() {
        // Its default UDP rate is 1 Mbit/s; 0 is unlimited.
        let rate = job.load.rate_bits_per_s.unwrap_or(0);
        arguments.extend(arguments!["--udp", "--bitrate", rate]);
    }
    arguments
}

/// `sum_received` has the receiver's bytes. Its count of lost datagrams excludes those sent after the last one that
/// arrived, so loss is computed from the sender's count.
fn count(job: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let json: Value = serde_json::from_str(&said.client).context("the result is not JSON")?;
    let number = |place: &str| {
        json.pointer(place).and_then(Value::as_f64).with_context(|| format!("it has no {place}"))
    };
    let bytes = number("/end/sum_received/bytes")?;
    let bits_per_s = number("/end/sum_received/bits_per_second")?;
    let lost_percent = match job.is_udp() {
        true => Some(100.0 * (1.0 - bytes / number("/end/sum_sent/bytes")?)),
        false => None,
    };
    Ok(Counted { bytes, bits_per_s, lost_percent })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Load;
    use super::*;

    /// From iperf3 3.12.
    const UDP: &str = r#"{"end": {
        "sum": {"packets": 109140, "lost_packets": 61459, "lost_percent": 56.3120762323621},
        "sum_sent": {"bytes": 6984960, "bits_per_second": 49950415.7940043, "packets": 109140},
        "sum_received": {"seconds": 1.122513, "bytes": 2183936,
            "bits_per_second": 15564619.741597647, "packets": 95583}}}"#;

    #[test]
    fn the_receivers_count_is_taken() {
        let load = Load::udp(64);
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 1 };
        let counted =
            count(&job, &ProgramOutputs { client: UDP.into(), ..ProgramOutputs::default() })
                .unwrap();
        assert_eq!(counted.bytes, 2_183_936.0);
        assert_eq!(counted.bits_per_s.round(), 15_564_620.0);
        assert_eq!(counted.lost_percent.unwrap().round(), 69.0);
    }
}
