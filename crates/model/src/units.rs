//! Bytes, bit rates and times: the types, how people write them, and how goodput prints them.
//!
//! Rates are decimal (1 Mbit/s = 10^6 bit/s). Sizes with a K, M or G are binary (64K = 65536), as in tc(8), iperf
//! and ttcp. `KB`, `MB` and `GB` are decimal, `KiB` and similar units binary.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rate in bits per second; never negative, may be zero.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BitRate(pub f64);

/// A size in bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// The size of a packet, of a part of it, or of the largest one that a path takes, in bytes. A person sees every byte: MTUs of 1400
/// and of 1404 bytes are two, and people compare them with what their tools print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketBytes(pub u64);

/// A time in seconds; may be negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

/// A number of packets, segments or other things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// A text that is not a size or a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind}; write it like {example}")]
pub struct UnitError {
    text: String,
    kind: &'static str,
    example: &'static str,
}

impl BitRate {
    /// The rate of `bytes` in `seconds`. `None` if no time has passed.
    pub fn over(bytes: u64, seconds: f64) -> Option<Self> {
        (seconds > 0.0).then(|| Self(bytes as f64 * 8.0 / seconds))
    }

    /// Bytes that the rate carries in `seconds`.
    pub fn bytes_in(self, seconds: f64) -> f64 {
        self.0 / 8.0 * seconds
    }

    /// The unit in which the rate is printed, and its size in bits per second.
    pub fn unit(self) -> (f64, &'static str) {
        let units = [(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
        if self.0 < 1e3 { (1.0, "bit/s") } else { largest(self.0, &units) }
    }
}

impl Seconds {
    /// A time in microseconds.
    pub fn of_us(us: f64) -> Self {
        Self(us / 1e6)
    }

    /// The unit in which the time is printed, and its size in seconds.
    pub fn unit(self) -> (f64, &'static str) {
        let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
        if self.0 == 0.0 { units[0] } else { largest(self.0.abs(), &units) }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = self.unit();
        f.pad(&format!("{} {unit}", three_digits(self.0 / scale)))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        let (scale, unit) = largest(bytes, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]);
        f.pad(&format!("{} {unit}", three_digits(bytes / scale)))
    }
}

impl fmt::Display for PacketBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.0 == 1 { "byte" } else { "bytes" };
        f.pad(&format!("{} {unit}", self.0))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = self.unit();
        f.pad(&format!("{} {unit}", three_digits(self.0 / scale)))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0 as f64;
        f.pad(&match count {
            // Below this, every digit has room.
            n if n < 1e4 => self.0.to_string(),
            n => {
                let (scale, letter) = largest(n, &[(1e9, "G"), (1e6, "M"), (1e3, "k")]);
                format!("{}{letter}", three_digits(n / scale))
            }
        })
    }
}

/// Size of a memory page, in which the kernel counts locked memory, pipes and socket memory: 4 KiB on x86-64, and
/// usually on other processors.
pub const PAGE_BYTES: u64 = 4096;

/// The largest unit of which `value` has at least one when it is printed, or the last unit. `units` are in falling
/// order.
fn largest(value: f64, units: &[(f64, &'static str)]) -> (f64, &'static str) {
    // From here on three_digits() rounds a number up to 1000.
    let has_one = |(scale, _): &&(f64, _)| value >= 0.999_95 * scale;
    let last = units.last().copied().unwrap_or((1.0, ""));
    units.iter().find(has_one).copied().unwrap_or(last)
}

/// From here on a number of the largest unit is absurd, such as one of a damaged record, and its digits would fill a screen.
const ABSURD: f64 = 1e9;

/// Three to four significant digits: 94.3, 312.4, 9.41, 0.14, whole numbers bare, and absurd ones like 1.70e296.
fn three_digits(value: f64) -> String {
    if value.abs() >= ABSURD {
        return format!("{value:.2e}");
    }
    // What was divided by its unit may differ from a whole number in the last bit.
    let is_whole = |v: f64| (v - v.round()).abs() <= v * 1e-12;
    let places = match value.abs() {
        v if v >= 999.95 || is_whole(v) => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

impl FromStr for BitRate {
    type Err = UnitError;

    /// Reads `100mbit`, `100M`, `1.5Gbit/s`, `9.4 Gbps`, `125KB/s`; a bare number is bits per second.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error =
            || UnitError { text: text.into(), kind: "rate", example: "100mbit or 1.5Gbit/s" };
        let (number, unit) = split_number(text).ok_or_else(error)?;
        rate_unit(unit).map(|scale| Self(number * scale)).ok_or_else(error)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    /// Reads `64K` (65536), `125KB` (125000), `1MiB`, `1500`. A part of a byte is an error, but for what a unit leaves over:
    /// `0.3K` is 307.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let no = |kind| UnitError { text: text.into(), kind, example: "64K, 125KB or 1500" };
        let error = || no("size");
        let (number, unit) = split_number(text).ok_or_else(error)?;
        let scale = size_unit(unit).ok_or_else(error)?;
        let bytes = number * scale;
        if scale == 1.0 && bytes.fract() != 0.0 {
            return Err(no("whole number of bytes"));
        }
        if bytes > u64::MAX as f64 {
            return Err(error());
        }
        Ok(Self(bytes.round() as u64))
    }
}

/// A number of at least zero at the beginning, and the unit after it.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}

fn rate_unit(unit: &str) -> Option<f64> {
    let lower = unit.to_ascii_lowercase();
    let bare = lower.strip_suffix("/s").or_else(|| lower.strip_suffix("ps")).unwrap_or(&lower);
    // `KB/s` and tc's `kbps` spelling of bytes differ; as people write `Mbps` for bits, only a
    // capital B before `/s` means bytes.
    let bytes = unit.contains('B') && !lower.ends_with("ps");
    let prefix = bare.strip_suffix("bit").or_else(|| bare.strip_suffix('b')).unwrap_or(bare);
    decimal_prefix(prefix).map(|scale| if bytes { scale * 8.0 } else { scale })
}

fn size_unit(unit: &str) -> Option<f64> {
    let lower = unit.to_ascii_lowercase();
    if let Some(prefix) = lower.strip_suffix("ib") {
        return binary_prefix(prefix);
    }
    match lower.strip_suffix('b') {
        Some(prefix) => decimal_prefix(prefix),
        None => binary_prefix(&lower),
    }
}

fn decimal_prefix(prefix: &str) -> Option<f64> {
    power(prefix).map(|n| 1000f64.powi(n))
}

fn binary_prefix(prefix: &str) -> Option<f64> {
    power(prefix).map(|n| 1024f64.powi(n))
}

fn power(prefix: &str) -> Option<i32> {
    ["", "k", "m", "g", "t"].iter().position(|p| *p == prefix).map(|n| n as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(text: &str) -> f64 {
        text.parse::<BitRate>().unwrap().0
    }

    fn size(text: &str) -> u64 {
        text.parse::<Bytes>().unwrap().0
    }

    #[test]
    fn an_absurd_number_is_short() {
        assert_eq!(BitRate(1.7e308).to_string(), "1.70e296 Tbit/s");
        assert_eq!(BitRate(9e20).to_string(), "900000000 Tbit/s");
        assert_eq!(Bytes(u64::MAX).to_string(), "1.84e10 GB");
        assert_eq!(Seconds(-1e300).to_string(), "-1.00e300 s");
    }

    #[test]
    fn the_size_of_a_packet_has_every_byte() {
        let all = [1, 1400, 1404, 65_535].map(|bytes| PacketBytes(bytes).to_string());
        assert_eq!(all, ["1 byte", "1400 bytes", "1404 bytes", "65535 bytes"]);
    }

    #[test]
    fn rates_are_decimal_and_both_spellings_are_read() {
        assert_eq!(rate("100mbit"), 1e8);
        assert_eq!(rate("100M"), 1e8);
        assert_eq!(rate("1.5Gbit/s"), 1.5e9);
        assert_eq!(rate("9.4 Gbps"), 9.4e9);
        assert_eq!(rate("125KB/s"), 1e6);
        assert_eq!(rate("0"), 0.0);
    }

    #[test]
    fn sizes_are_binary_unless_they_end_in_b() {
        assert_eq!(size("64K"), 65536);
        assert_eq!(size("125KB"), 125_000);
        assert_eq!(size("1MiB"), 1 << 20);
        assert_eq!(size("1500"), 1500);
        assert_eq!(size("0.5k"), 512);
        assert_eq!(size("0.3k"), 307);
    }

    #[test]
    fn there_is_no_part_of_a_byte() {
        for text in ["1280.5", "1280.5B", "0.1"] {
            let said = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(said.contains("is not a whole number of bytes"), "{said}");
        }
        assert_eq!(size("1280.0"), 1280);
    }

    #[test]
    fn nonsense_says_what_would_be_right() {
        for text in ["", "fast", "-1", "1.2.3", "10 apples", "1e99", "M"] {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        let error = "ten".parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(error, "\"ten\" is not a size; write it like 64K, 125KB or 1500");
    }

    #[test]
    fn a_time_is_printed_in_the_largest_unit_of_which_it_has_one() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (4e-6, "4 µs"),
            (4.4e-6, "4.40 µs"),
            (1.4e-7, "0.14 µs"),
            (1.234e-3, "1.23 ms"),
            (9.999e-3, "10.0 ms"),
            (0.02, "20 ms"),
            (0.999_949, "999.9 ms"),
            (0.999_96, "1.00 s"),
            (7.7228, "7.72 s"),
            (71.0, "71 s"),
            (-0.0123, "-12.3 ms"),
        ] {
            assert_eq!(Seconds(seconds).to_string(), text);
        }
        for us in 1..1000_u32 {
            assert_eq!(Seconds::of_us(us.into()).to_string(), format!("{us} µs"));
        }
    }

    #[test]
    fn counts_are_short() {
        let shown = [829, 9_999, 12_300, 829_400, 4_100_000].map(|count| Count(count).to_string());
        assert_eq!(shown, ["829", "9999", "12.3k", "829.4k", "4.10M"]);
    }

    #[test]
    fn print_as_the_field_does() {
        assert_eq!(BitRate(312_400_000.0).to_string(), "312.4 Mbit/s");
        assert_eq!(BitRate(9.41e9).to_string(), "9.41 Gbit/s");
        assert_eq!(BitRate(18.9e12).to_string(), "18.9 Tbit/s");
        assert_eq!(BitRate(0.0).to_string(), "0 bit/s");
        assert_eq!(Bytes(12_582_912).to_string(), "12.6 MB");
        assert_eq!(Bytes(999_960).to_string(), "1.00 MB");
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_an_error(text in ".{0,24}") {
            let _ = text.parse::<BitRate>();
            let _ = text.parse::<Bytes>();
        }
    }
}
