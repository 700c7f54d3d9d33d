//! What it was like to fetch a file repeatedly from a server that is not goodput, or to store one there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::nfs::Rpcs;

/// The questions of one measurement for a file, and what the answers were like. If this end sends, each question was to
/// store a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fetches {
    /// Protocol and version that was spoken, as "HTTP/1.1".
    pub version: Known<String>,
    /// What the server calls itself.
    pub server: Known<String>,
    /// Version of TLS and cipher, if the payload was encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Host and port of the proxy that was asked instead of the server: what was measured is the path to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Where redirects led, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// What the server or a cache on the way said of how its last answer came about, by field of the header: `age`,
    /// `x-cache`, `server-timing` and such.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remarks: BTreeMap<String, String>,
    /// The fetch before the measurement, which brings the file into the caches of the server. Missing for uploads.
    pub first: Known<Fetch>,
    /// Length of the file as the server announced it, bytes; for uploads, of the longest.
    pub file_bytes: Known<u64>,
    /// Questions that were answered while it was measured, the last ones cut off by its end among them.
    pub answers: u64,
    /// Connections to the server that payload came on, all flows together. Missing for mounts that count none.
    pub connections: Known<u64>,
    /// Median time from a question to the first byte of its answer, microseconds; for uploads, to when payload could be
    /// sent.
    pub first_byte_us: Known<f64>,
    /// The longest of them.
    pub longest_first_byte_us: Known<f64>,
    /// Median time of a whole fetch, from its question to its last byte, seconds. If it was asked for while the one before
    /// still came, from the end of that one.
    pub whole_s: Known<f64>,
    /// Median time from the last byte that was written of an upload to the server's word that it has it, microseconds.
    /// What the kernel still had to send is in it. Absent for fetches, and if no upload came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_us: Option<f64>,
    /// How the times of whole fetches spread.
    #[serde(default = "not_kept")]
    pub whole_times: Known<FetchTimes>,
    /// How the times of further whole fetches spread that were made before the measurement just as the first was: alone, over a
    /// connection of their own, none asked for before the one before was over.
    #[serde(default = "not_kept")]
    pub alone_times: Known<FetchTimes>,
    /// Share of the flows' time in which no payload could move, as a question was on its way or not yet answered: 0 to 1.
    pub asking_share: Known<f64>,
    /// The calls that asked for the file piece by piece or carried it, if it was moved so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpcs: Option<Rpcs>,
}

/// One fetch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fetch {
    /// Payload that came, bytes.
    pub bytes: u64,
    /// Whether that is all that was wanted: the file, or its beginning if fewer bytes were asked for. A long file is given
    /// up.
    pub whole: bool,
    /// From the question to the first byte of the answer, microseconds. Missing if no byte came.
    pub first_byte_us: Known<f64>,
    /// From the question to the last byte that was read, seconds.
    pub took_s: f64,
    /// Time of that in which the thread that read was ready to run and waited for a CPU, microseconds.
    #[serde(default = "not_kept_time")]
    pub cpu_wait_us: Known<f64>,
}

/// How long several fetches of one file took, as the two parameters of a log-normal distribution: times are positive, and
/// vary by factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FetchTimes {
    /// Number of fetches, 2 or more.
    pub n: u64,
    /// Geometric mean, seconds.
    pub geometric_mean_s: f64,
    /// Geometric standard deviation (of the sample, `n - 1`): a factor, 1 or more.
    pub geometric_deviation: f64,
    /// The longest, seconds.
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
