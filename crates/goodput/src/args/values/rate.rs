//! How fast a measurement sends, and how evenly.

use std::str::FromStr;

use goodput_model::{BitRate, Bytes};

use super::unfit;

/// The rate to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// As fast as it goes.
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

/// Rate above which a number was mistyped, bits per second.
const MAX_RATE_BITS_PER_S: f64 = 1e15;

/// Smallest rate of a shaper, bits per second: at a tenth of it, a frame takes two minutes.
const LEAST_SHAPED_BITS_PER_S: f64 = 1e3;

const LIKE: &str = "it like 100mbit or 1.5Gbit/s";

/// A rate above zero.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn positive(text: &str) -> Result<BitRate, String> {
    let rate = text.parse().ok().filter(|BitRate(rate)| (0.0..=MAX_RATE_BITS_PER_S).contains(rate));
    let noun = "a rate above 0 and at most 1000 Tbit/s";
    rate.filter(|rate| rate.0 > 0.0).ok_or_else(|| unfit(text, noun, LIKE))
}

/// The rate of a shaper: 1 kbit/s at least, because a smaller number hardly is bits per second.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn of_shaper(text: &str) -> Result<BitRate, String> {
    let rate = positive(text)?;
    if rate.0 < LEAST_SHAPED_BITS_PER_S {
        let noun = format!("a rate of 1 kbit/s or more ({text} is {rate})");
        return Err(unfit(text, &noun, LIKE));
    }
    Ok(rate)
}

/// A rate that others are held to: one bit per second at least, or unlimited.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn limit(text: &str) -> Result<Rate, String> {
    match text.parse() {
        Ok(Rate::Unlimited) => Ok(Rate::Unlimited),
        Ok(Rate::Total(rate)) if (1.0..=MAX_RATE_BITS_PER_S).contains(&rate.0) => {
            Ok(Rate::Total(rate))
        }
        _ => {
            let noun = "a rate of at least 1 bit/s and at most 1000 Tbit/s";
            Err(unfit(text, noun, format_args!("{LIKE}, or unlimited")))
        }
    }
}

/// A rate as it can be typed, with every digit.
pub fn typed(rate: BitRate) -> String {
    format!("{}bit", rate.0)
}

impl Rate {
    /// The rate of one direction with `flows` flows; none if it is unlimited.
    pub fn of_direction(self, flows: u16) -> Option<BitRate> {
        match self {
            Self::Unlimited => None,
            Self::Total(rate) => Some(rate),
            Self::PerFlow(rate) => Some(BitRate(rate.0 * f64::from(flows))),
        }
    }
}

impl Burst {
    /// Bytes of one of `flows` flows that may leave at once, with `rate` for all of them together. A time
    /// can be too short for any datagram; then it is one datagram of `chunk` bytes.
    pub fn of_flow(self, rate: Option<BitRate>, flows: u16, chunk: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Seconds(seconds) => {
                let each = rate.map_or(0.0, |rate| rate.bytes_in(seconds) / f64::from(flows));
                chunk.max(Bytes(each as u64))
            }
        }
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
        let rate: BitRate = number.parse().map_err(|_| {
            unfit(text, "a rate of at least 0", "it like 100mbit, 12.5MB/s/flow or unlimited")
        })?;
        match (rate.0 > 0.0, each) {
            // As iperf and iperf3 read `-b 0`.
            (false, _) => Ok(Self::Unlimited),
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
        let burst = match time {
            Some((number, scale)) => {
                let number = number.trim().parse::<f64>().ok();
                number.map(|number| Self::Seconds(number * scale))
            }
            None => text.parse().ok().map(Self::Bytes),
        };
        let lasts = |burst: &Self| match *burst {
            Self::Bytes(Bytes(bytes)) => bytes > 0,
            Self::Seconds(seconds) => seconds > 0.0 && seconds.is_finite(),
        };
        let noun = "a size of at least 1 byte or a time above 0";
        burst.filter(lasts).ok_or_else(|| unfit(text, noun, "it like 64K, 500us or 2ms"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_all_flows_or_of_each() {
        let rate = |text: &str| text.parse::<Rate>().unwrap().of_direction(4).map(|rate| rate.0);
        assert_eq!(rate("100mbit"), Some(1e8));
        assert_eq!(rate("100mbit/flow"), Some(4e8));
        assert_eq!(rate("12.5MB/s/flow"), Some(4e8));
        for unlimited in ["unlimited", "0", "0mbit/flow"] {
            assert_eq!(rate(unlimited), None, "{unlimited}");
        }
    }

    #[test]
    fn a_rate_that_can_t_be_is_refused() {
        assert_eq!(positive("44.21mbit"), Ok(BitRate(44.21e6)));
        for nonsense in ["0", "-1", "", "fast", "9999999tbit"] {
            assert!(positive(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_shaper_of_bits_is_a_slip() {
        assert_eq!(of_shaper("1kbit"), Ok(BitRate(1e3)));
        let said = of_shaper("100").unwrap_err();
        assert!(said.contains("(100 is 100 bit/s); write it like 100mbit"), "{said}");
    }

    #[test]
    fn a_limit_lets_something_through() {
        assert_eq!(limit("1"), Ok(Rate::Total(BitRate(1.0))));
        for all in ["0", "0mbit", "unlimited"] {
            assert_eq!(limit(all), Ok(Rate::Unlimited), "{all}");
        }
        for bad in ["0.5", "9999999tbit", "-1", "1mbit/flow", "fast"] {
            assert!(limit(bad).unwrap_err().ends_with("or unlimited"), "{bad}");
        }
    }

    #[test]
    fn a_burst_is_of_bytes_or_of_time_at_the_rate_of_a_flow() {
        let burst = |text: &str| {
            text.parse::<Burst>().unwrap().of_flow(Some(BitRate(80e6)), 2, Bytes(1000)).0
        };
        assert_eq!(burst("64K"), 65536);
        assert_eq!(burst("2ms"), 10_000);
        assert_eq!(burst("500us"), 2500);
        assert_eq!(burst("1us"), 1000, "no datagram can be cut");
        assert_eq!(burst("999"), 999, "which the plan's check refuses");
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        let rate = |text: &str| text.parse::<Rate>().unwrap_err();
        for bad in ["-5mbit", "-5", "fast", "fast/flow"] {
            assert!(rate(bad).contains("a rate of at least 0"), "{bad}");
        }
        for bad in ["0", "0ms", "-1ms", "infs", "NaNms", "much", "5 parsecs", ""] {
            assert!(bad.parse::<Burst>().is_err(), "{bad}");
        }
    }
}
