//! How fast a measurement sends, and how evenly.

use std::str::FromStr;

use clap::Args;
use goodput_model::{BitRate, Bytes};

/// Rate and bursts.
#[derive(Debug, Clone, Args)]
pub struct PacingArgs {
    /// Strict pacing of each direction, or of each flow as in 100mbit/flow; `unlimited` is as fast as it
    /// goes. Datagrams are spaced evenly, by spinning where their gaps are shorter than what a timer can do. A
    /// sender that is held up makes up for 10 ms at most, by gaps shorter by 15 %, or where timers wake it
    /// too late for that, by up to 64 KiB at once [default: unlimited]
    #[arg(long, value_name = "RATE[/flow]", allow_negative_numbers = true)]
    pub rate: Option<Rate>,
    /// Let datagrams of a flow leave in bursts of this many bytes, never more, or of what the rate gives
    /// in a time like 500us or 2ms; it takes less CPU [default: 1 datagram, or 20us where that is more]
    #[arg(long, value_name = "BYTES|TIME", requires_all = ["rate", "udp"])]
    pub burst: Option<Burst>,
}

/// What to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Nothing: as fast as it goes.
    Unlimited,
    /// All flows of a direction together.
    Total(BitRate),
    /// Each flow.
    PerFlow(BitRate),
}

/// How much may leave at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Burst {
    /// Bytes of one flow.
    Bytes(Bytes),
    /// What the rate of one flow gives in these seconds.
    Seconds(f64),
}

impl PacingArgs {
    /// The rate of one direction with `flows` flows.
    pub fn rate(&self, flows: u16) -> Option<BitRate> {
        match self.rate? {
            Rate::Unlimited => None,
            Rate::Total(rate) => Some(rate),
            Rate::PerFlow(rate) => Some(BitRate(rate.0 * f64::from(flows))),
        }
    }

    /// Bytes of one of `flows` flows that may leave at once, at least one datagram of `chunk` bytes
    /// where a time was given, which can be too short for any.
    pub fn burst(&self, flows: u16, chunk: Bytes) -> Option<Bytes> {
        Some(match (self.burst?, self.rate(flows)) {
            (Burst::Bytes(bytes), _) => bytes,
            (Burst::Seconds(seconds), rate) => {
                let each = rate.map_or(0.0, |rate| rate.bytes_in(seconds) / f64::from(flows));
                chunk.max(Bytes(each as u64))
            }
        })
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("unlimited") {
            return Ok(Self::Unlimited);
        }
        let (number, each) = match text.strip_suffix("/flow") {
            Some(number) => (number, true),
            None => (text, false),
        };
        if number.trim_start().starts_with('-') {
            return Err("a rate can't be negative".into());
        }
        let rate: BitRate = number.parse().map_err(|error| format!("{error}"))?;
        match (rate.0 > 0.0, each) {
            (false, _) => {
                Err("a rate of 0 moves nothing; write `unlimited`, or leave it out, to go \
                               as fast as it can"
                    .into())
            }
            (true, false) => Ok(Self::Total(rate)),
            (true, true) => Ok(Self::PerFlow(rate)),
        }
    }
}

impl FromStr for Burst {
    type Err = String;

    /// A time ends in `s`, which no size does.
    fn from_str(text: &str) -> Result<Self, String> {
        let times = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        let time = times.iter().find_map(|(unit, s)| Some((text.strip_suffix(unit)?, s)));
        let parsed = match time {
            Some((number, scale)) => {
                let number: f64 = number.trim().parse().map_err(|_| malformed(text))?;
                Self::Seconds(number * scale)
            }
            None => Self::Bytes(text.parse().map_err(|_| malformed(text))?),
        };
        match parsed {
            Self::Bytes(Bytes(0)) => Err("a burst of 0 bytes lets nothing leave".into()),
            Self::Seconds(seconds) if !(seconds > 0.0 && seconds.is_finite()) => {
                Err("a burst takes more time than none".into())
            }
            burst => Ok(burst),
        }
    }
}

fn malformed(text: &str) -> String {
    format!("{text:?} is neither a size like 64K nor a time like 500us or 2ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(rate: &str, burst: &str) -> PacingArgs {
        PacingArgs { rate: Some(rate.parse().unwrap()), burst: Some(burst.parse().unwrap()) }
    }

    #[test]
    fn a_rate_is_of_all_flows_or_of_each() {
        let rate = |text| args(text, "64K").rate(4).map(|rate| rate.0);
        assert_eq!(rate("100mbit"), Some(1e8));
        assert_eq!(rate("100mbit/flow"), Some(4e8));
        assert_eq!(rate("12.5MB/s/flow"), Some(4e8));
        assert_eq!(rate("unlimited"), None);
    }

    #[test]
    fn a_burst_is_of_bytes_or_of_time_at_the_rate_of_a_flow() {
        let burst = |text| args("80mbit", text).burst(2, Bytes(1000)).map(|burst| burst.0);
        assert_eq!(burst("64K"), Some(65536));
        assert_eq!(burst("2ms"), Some(10_000));
        assert_eq!(burst("500us"), Some(2500));
        assert_eq!(burst("1us"), Some(1000), "no datagram can be cut");
        assert_eq!(burst("999"), Some(999), "which the plan's check refuses");
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        let rate = |text: &str| text.parse::<Rate>().unwrap_err();
        assert!(rate("0").contains("unlimited"), "{}", rate("0"));
        assert!(rate("0mbit/flow").contains("moves nothing"));
        assert!(rate("-5mbit").contains("negative"));
        assert!(rate("fast").contains("rate"));
        for bad in ["0", "0ms", "-1ms", "infs", "NaNms", "much", "5 parsecs", ""] {
            assert!(bad.parse::<Burst>().is_err(), "{bad}");
        }
    }
}
