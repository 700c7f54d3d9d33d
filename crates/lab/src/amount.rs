//! Amounts as written in a scenario file: times, shares, queues and switches.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use goodput_model::ETHERNET_HEADER_BYTES;
use goodput_model::units::{BitRate, Bytes};
use serde::de::{self, Deserializer, Visitor};

/// Text that is not such an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {kind}; write it like {example}")]
pub struct AmountError {
    text: String,
    kind: &'static str,
    example: &'static str,
}

/// A span of time: `20ms`, `150us`, `1.5s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// A share of 0 to 100 percent: `1%`, `0.5 %`, or a bare number of percent.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

/// Size of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Bytes, headers included: `250K`.
    Bytes(u64),
    /// Packets of full size: `100 packets`.
    Packets(u64),
}

/// `on` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

impl Queue {
    /// The size in bytes, on a link of this `mtu`.
    pub fn bytes(self, mtu: u32) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Packets(packets) => {
                packets.saturating_mul(u64::from(mtu) + u64::from(ETHERNET_HEADER_BYTES))
            }
        }
    }
}

/// A number followed by a unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

impl FromStr for Time {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let error =
            || AmountError { text: text.into(), kind: "a time", example: "20ms, 150us or 1.5s" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let scale = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            _ => return Err(error()),
        };
        Duration::try_from_secs_f64(number * scale).map(Self).map_err(|_| error())
    }
}

impl FromStr for Percent {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let error =
            || AmountError { text: text.into(), kind: "a share of 0 to 100 %", example: "0.5%" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let fits = matches!(unit, "" | "%") && (0.0..=100.0).contains(&number);
        fits.then_some(Self(number)).ok_or_else(error)
    }
}

impl FromStr for Queue {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let error =
            || AmountError { text: text.into(), kind: "a queue", example: "250K or 100 packets" };
        let packets = text.trim().strip_suffix("packets").or(text.trim().strip_suffix("packet"));
        match packets {
            Some(number) => number.trim().parse().map(Self::Packets).map_err(|_| error()),
            None => text.parse::<Bytes>().map(|bytes| Self::Bytes(bytes.0)).map_err(|_| error()),
        }
    }
}

impl FromStr for Switch {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        match text {
            "on" | "true" => Ok(Self::On),
            "off" | "false" => Ok(Self::Off),
            _ => Err(AmountError { text: text.into(), kind: "a switch", example: "on or off" }),
        }
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if *self == Self::On { "on" } else { "off" })
    }
}

/// Reads a rate, which must be above zero.
pub fn positive_rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error| format!("{error}"))?;
    if rate.0 > 0.0 { Ok(rate) } else { Err("the rate must be more than 0".into()) }
}

/// For `#[serde(deserialize_with)]`: reads a required amount written as text or as a number.
pub fn required<'de, D: Deserializer<'de>, T>(input: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
{
    let text = input.deserialize_any(Words)?;
    text.parse().map_err(de::Error::custom)
}

/// For `#[serde(deserialize_with)]`: reads an amount that may be left out.
pub fn optional<'de, D: Deserializer<'de>, T>(input: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: fmt::Display>,
{
    required(input).map(Some)
}

/// For `#[serde(deserialize_with)]`: a rate above zero.
pub fn rate<'de, D: Deserializer<'de>>(input: D) -> Result<BitRate, D::Error> {
    positive_rate(&input.deserialize_any(Words)?).map_err(de::Error::custom)
}

/// For `#[serde(deserialize_with)]`: a rate above zero that may be left out.
pub fn optional_rate<'de, D: Deserializer<'de>>(input: D) -> Result<Option<BitRate>, D::Error> {
    rate(input).map(Some)
}

/// Accepts text, a number or a truth value, and returns its text.
struct Words;

impl Visitor<'_> for Words {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount with its unit, in quotes")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<String, E> {
        Ok(truth.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_read_with_their_units() {
        assert_eq!("20ms".parse(), Ok(Time(Duration::from_millis(20))));
        assert_eq!("1.5 s".parse(), Ok(Time(Duration::from_millis(1500))));
        assert_eq!("150us".parse(), Ok(Time(Duration::from_micros(150))));
        assert_eq!("0.5 %".parse(), Ok(Percent(0.5)));
        assert_eq!("250K".parse(), Ok(Queue::Bytes(256_000)));
        assert_eq!("100 packets".parse(), Ok(Queue::Packets(100)));
        assert_eq!(Queue::Packets(10).bytes(1500), 15_140);
    }

    #[test]
    fn nonsense_says_what_would_be_right() {
        let error = "20".parse::<Time>().unwrap_err().to_string();
        assert_eq!(error, "\"20\" is not a time; write it like 20ms, 150us or 1.5s");
        for text in ["101%", "-1", "one", "1 per mille"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
        assert!("ten packets".parse::<Queue>().is_err());
        assert!("maybe".parse::<Switch>().is_err());
        assert!(positive_rate("0").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_an_amount_or_an_error(text in ".{0,24}") {
            let _ = text.parse::<Time>();
            let _ = text.parse::<Percent>();
            let _ = text.parse::<Queue>();
        }
    }
}
