//! Fetches from, or uploads to, a file server: times, connections and what the server reported.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::nfs::Rpcs;

/// Fetches from, or uploads to, a file server during one measurement. They are uploads if this end sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fetches {
    /// Protocol and version, for example "HTTP/1.1".
    pub version: Known<String>,
    /// Name of the server program, as the server reports it.
    pub server: Known<String>,
    /// TLS version and cipher, if the payload was encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Host and port of the proxy, if one was used. The measured path then ends at the proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Final address after redirects, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// Header fields of the last response that show how a server or a cache made it, by name: `age`, `x-cache`,
    /// `server-timing` and similar ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remarks: BTreeMap<String, String>,
    /// The fetch before the measurement, which fills the server's caches. Missing for uploads.
    pub first: Known<Fetch>,
    /// Length of the file as the server announced it, bytes; for uploads, length of the longest one.
    pub file_bytes: Known<u64>,
    /// Responses during the measurement, including the last ones, which its end cut off.
    pub answers: u64,
    /// Connections to the server that carried payload, all flows together. Missing for mounts that don't count them.
    pub connections: Known<u64>,
    /// Median time from a request to the first byte of its response, microseconds. For uploads, the time until payload
    /// could be sent.
    pub first_byte_us: Known<f64>,
    /// Longest time from a request to the first byte of its response, microseconds.
    pub longest_first_byte_us: Known<f64>,
    /// Median time of a whole fetch, from its request to its last byte, seconds. If the fetch was requested before the
    /// previous one ended, its time begins at that end.
    pub whole_s: Known<f64>,
    /// Median time from writing an upload's last byte to the server's confirmation, microseconds, including what the
    /// kernel still had to send. Absent for fetches, and if no upload was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_us: Option<f64>,
    /// Spread of the times of whole fetches during the measurement.
    #[serde(default = "not_kept")]
    pub whole_times: Known<FetchTimes>,
    /// Spread of the times of further whole fetches before the measurement. Each used a new connection, like the first
    /// fetch, and began after the previous one had ended.
    #[serde(default = "not_kept")]
    pub alone_times: Known<FetchTimes>,
    /// Share of the flows' time in which no payload could move, because a request was under way or unanswered: 0 to 1.
    pub asking_share: Known<f64>,
    /// The remote procedure calls that read or wrote the file, if the protocol uses such calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpcs: Option<Rpcs>,
}

/// One fetch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fetch {
    /// Payload received, bytes.
    pub bytes: u64,
    /// Whether the fetch was complete (the file, or the requested part of it). Long files are cut off.
    pub whole: bool,
    /// Time from the request to the first byte of the response, microseconds. Missing if no byte arrived.
    pub first_byte_us: Known<f64>,
    /// Time from the request to the last byte that was read, seconds.
    pub took_s: f64,
    /// Part of this time in which the reading thread was ready to run and waited for a CPU, microseconds.
    #[serde(default = "not_kept_time")]
    pub cpu_wait_us: Known<f64>,
}

/// Times of several fetches of one file, as the two parameters of a log-normal distribution, because such times are
/// positive and vary by factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FetchTimes {
    /// Number of fetches, 2 or more.
    pub n: u64,
    /// Geometric mean, seconds.
    pub geometric_mean_s: f64,
    /// Geometric standard deviation of the sample (`n - 1`): a factor, 1 or more.
    pub geometric_deviation: f64,
    /// Longest time, seconds.
    #[serde(default = "no_longest")]
    pub longest_s: Known<f64>,
}

impl FetchTimes {
    /// The distribution of these times, seconds; missing if there are fewer than two, or one is not above zero.
    pub fn of(times_s: &[f64]) -> Known<Self> {
        let logs: Vec<f64> = times_s.iter().map(|time| time.ln()).collect();
        if logs.len() < 2 || !logs.iter().all(|log| log.is_finite()) {
            return Known::missing("fewer than two fetches of the whole file");
        }
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        Known::Value(Self {
            n: logs.len() as u64,
            geometric_mean_s: mean.exp(),
            geometric_deviation: (squares / (n - 1.0)).sqrt().exp(),
            longest_s: times_s
                .iter()
                .copied()
                .reduce(f64::max)
                .map_or_else(no_longest, Known::Value),
        })
    }
}

const UNKEPT: &str = "this version of goodput did not keep it";

fn not_kept() -> Known<FetchTimes> {
    Known::missing(UNKEPT)
}

fn not_kept_time() -> Known<f64> {
    Known::missing(UNKEPT)
}

fn no_longest() -> Known<f64> {
    Known::missing(UNKEPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up_by_their_logarithms() {
        let known = FetchTimes::of(&[1.0, 4.0, 2.0]);
        let times = known.get().unwrap();
        assert_eq!(times.n, 3);
        assert!((times.geometric_mean_s - 2.0).abs() < 1e-12, "{times:?}");
        assert!((times.geometric_deviation - 2.0).abs() < 1e-12, "{times:?}");
        assert_eq!(times.longest_s, Known::Value(4.0));
    }

    #[test]
    fn one_time_or_none_has_no_spread() {
        for times in [&[][..], &[1.0], &[1.0, 0.0], &[1.0, f64::NAN]] {
            assert!(FetchTimes::of(times).get().is_err(), "{times:?}");
        }
    }
}
