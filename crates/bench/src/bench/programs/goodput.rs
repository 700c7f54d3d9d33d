//! goodput itself, with its own protocol.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Counted, CountsAt, Job, Program, ProgramOutputs, ServerExit, arguments};

pub static GOODPUT: Program = Program {
    name: "goodput",
    in_debian: true,
    server_file: None,
    version: "--version",
    control_connections: 1,
    leaves: ServerExit::ByItself,
    counts_at: CountsAt::Client,
    beyond: |_| Duration::from_millis(400),
    server,
    client,
    count,
};

/// A server's usual limit is 256 flows.
fn server(job: &Job<'_>) -> Vec<String> {
    let mut arguments = arguments!["serve", "--bind", job.address];
    arguments.extend((!job.has_crowd()).then(|| "--one-off".into()));
    arguments.extend(arguments!["--port", job.port]);
    if job.load.flows > 256 {
        arguments.extend(arguments!["--max-flows", job.load.flows]);
    }
    arguments
}

fn client(job: &Job<'_>) -> Vec<String> {
    let target = format!("{}:{}", job.address, job.port);
    let mut arguments = arguments!["test", target, "--json", "--no-store"];
    arguments.extend(arguments!["--omit", f64::from(job.load.omit_ms) / 1e3]);
    arguments.extend(arguments!["--time", job.seconds, "--flows", job.load.flows]);
    arguments.extend(arguments!["--chunk", job.load.chunk_bytes]);
    arguments.extend(job.is_udp().then(|| "--udp".into()));
    if let Some(rate) = job.load.rate_bits_per_s {
        arguments.extend(arguments!["--rate", format!("{rate}bit")]);
    }
    arguments
}

fn count(job: &Job<'_>, said: &ProgramOutputs) -> Result<Counted> {
    let json: Value = serde_json::from_str(&said.client).context("the record is not JSON")?;
    let result = &json["result"];
    let rate = result["goodput_bits_per_s"].as_f64();
    let bits_per_s = rate.context("the record has no result.goodput_bits_per_s")?;
    let direction = &result["directions"][0];
    // Without observing, it has no byte count of the whole run, and samples too rarely for its length.
    let seconds = f64::from(job.seconds) + f64::from(job.load.omit_ms) / 1e3;
    let whole = bits_per_s / 8.0 * seconds;
    let bytes = direction["received_bytes"].as_f64().unwrap_or(whole);
    let lost_percent = direction["lost_percent"].as_f64();
    Ok(Counted { bytes, bits_per_s, lost_percent: lost_percent.filter(|_| job.is_udp()) })
}

#[cfg(test)]
mod tests {
    use super::super::super::load::Load;
    use super::*;

    fn counted(load: Load, result: &str) -> Counted {
        let job = Job { load: &load, address: "192.0.2.2", port: 10_000, seconds: 1 };
        let said = ProgramOutputs {
            client: format!("{{\"result\":{result}}}"),
            ..ProgramOutputs::default()
        };
        count(&job, &said).unwrap()
    }

    #[test]
    fn the_bytes_of_the_whole_run_are_taken_where_they_are_known() {
        let observed = r#"{"goodput_bits_per_s": 6e10, "duration_s": 0.9, "directions": [
            {"received_bytes": 8773974109, "lost_percent": {"missing": "only for UDP"}}]}"#;
        let expected = Counted { bytes: 8_773_974_109.0, bits_per_s: 6e10, lost_percent: None };
        assert_eq!(counted(Load::tcp(131_072), observed), expected);
        let not = r#"{"goodput_bits_per_s": 8e9, "duration_s": 2.0, "directions": [
            {"received_bytes": {"missing": "this end did not report its flows"}}]}"#;
        assert_eq!(counted(Load::tcp(131_072), not).bytes, 1.01e9);
    }

    #[test]
    fn loss_is_of_udp() {
        let udp = r#"{"goodput_bits_per_s": 3.5e9, "duration_s": 1.0, "directions": [
            {"received_bytes": 447180160, "lost_percent": 68.16837220388598}]}"#;
        assert_eq!(counted(Load::udp(64), udp).lost_percent, Some(68.16837220388598));
    }
}
