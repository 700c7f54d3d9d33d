//! Values of a mesh file as written, and what they become.

use std::fmt;

use goodput_model::{BitRate, Bytes};
use jiff::SignedDuration;
use jiff::civil;
use serde::Deserialize;

/// Seconds of a day.
const DAY_S: f64 = 86_400.0;
/// A longer time was mistyped: a year.
const MAX_TIME_S: f64 = 366.0 * DAY_S;
/// Longest test of one direction, seconds: it holds up the others of its round, and everyone waits for its record.
pub(crate) const MAX_LENGTH_S: f64 = 3600.0;
/// A higher rate was mistyped, bits per second: a thousand times the fastest Ethernet (IEEE 802.3df, 800 Gbit/s).
const MAX_RATE: f64 = 8e14;
/// Minutes of a day.
const DAY_MIN: u32 = 1440;

/// A time: `10s`, `15m`, `6h`, `1d`. Seconds, above 0 and at most a year.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Time(pub f64);

/// Length of a test: seconds, above 0 and at most an hour.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Length(pub f64);

/// A time that may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Pause(pub f64);

/// A rate above 0: `1gbit`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Rate(pub BitRate);

/// Bytes in any 24 hours: `20GB/day`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Budget(pub Bytes);

/// A part of each day, UTC: `22:00-06:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Window {
    /// When it begins, minutes after midnight UTC.
    pub from_min: u32,
    /// How long it is, minutes, 1 to 1440.
    pub length_min: u32,
}

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let time = seconds(&text).filter(|time| *time > 0.0);
        let noun = "a time above 0 and at most a year";
        time.map(Self).ok_or_else(|| unfit(&text, noun, "10s, 15m, 6h or 1d"))
    }
}

impl TryFrom<String> for Length {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let time = seconds(&text).filter(|time| *time > 0.0 && *time <= MAX_LENGTH_S);
        let noun = "the length of a test, above 0 and at most 1h";
        time.map(Self).ok_or_else(|| unfit(&text, noun, "10s or 1m"))
    }
}

impl TryFrom<String> for Pause {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let noun = "a time of at most a year";
        seconds(&text).map(Self).ok_or_else(|| unfit(&text, noun, "0s or 2s"))
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rate = text.parse().ok().filter(|rate: &BitRate| rate.0 > 0.0 && rate.0 <= MAX_RATE);
        let noun = "a rate above 0 and at most 800tbit";
        rate.map(Self).ok_or_else(|| unfit(&text, noun, "100mbit or 1.5gbit"))
    }
}

impl TryFrom<String> for Budget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = text.strip_suffix("/day").or_else(|| text.strip_suffix("/d"));
        let size = number.and_then(|number| number.parse().ok()).filter(|size: &Bytes| size.0 > 0);
        size.map(Self).ok_or_else(|| unfit(&text, "a number of bytes per day", "20GB/day"))
    }
}

impl TryFrom<String> for Window {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let ends = text.split_once('-').and_then(|(from, to)| Some([minute(from)?, minute(to)?]));
        let [from, to] = ends.ok_or_else(|| {
            unfit(&text, "a part of the day in UTC", "22:00-06:00, or 18:00-00:00 until midnight")
        })?;
        // The same time twice is the whole day.
        let length_min = match (to + DAY_MIN - from) % DAY_MIN {
            0 => DAY_MIN,
            length => length,
        };
        Ok(Self { from_min: from, length_min })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.opens_at(), at_minute(self.from_min + self.length_min))
    }
}

/// `22:00`
fn at_minute(minute: u32) -> String {
    format!("{:02}:{:02}", minute / 60 % 24, minute % 60)
}

impl Window {
    /// When it opens, UTC, like `22:00`.
    pub fn opens_at(self) -> String {
        at_minute(self.from_min)
    }

    /// Length, seconds.
    pub fn length_s(self) -> f64 {
        f64::from(self.length_min) * 60.0
    }

    /// Whether both have a minute of the day in common.
    pub(super) fn overlaps(self, other: Self) -> bool {
        let from = |one: Self, two: Self| (two.from_min + DAY_MIN - one.from_min) % DAY_MIN;
        from(self, other) < self.length_min || from(other, self) < other.length_min
    }
}

fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let units = [("d", DAY_S), ("w", 7.0 * DAY_S)];
    let long = units.iter().find_map(|(unit, scale)| {
        text.strip_suffix(unit)?.trim().parse::<f64>().ok().map(|number| number * scale)
    });
    let time = long.or_else(|| Some(text.parse::<SignedDuration>().ok()?.as_secs_f64()));
    time.filter(|time| (0.0..=MAX_TIME_S).contains(time))
}

/// Minutes after midnight of `22:00`.
fn minute(text: &str) -> Option<u32> {
    let time = civil::Time::strptime("%H:%M", text.trim()).ok()?;
    let [hour, minute] = [time.hour(), time.minute()].map(|part| u32::try_from(part).ok());
    Some(hour? * 60 + minute?)
}

fn unfit(text: &str, noun: &str, write: &str) -> String {
    format!("{text:?} is not {noun}; write it like {write}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(text: &str) -> Window {
        Window::try_from(text.to_string()).unwrap()
    }

    #[test]
    fn values_are_read_with_their_units() {
        assert_eq!(Time::try_from("15m".to_string()), Ok(Time(900.0)));
        assert_eq!(Time::try_from("1d".to_string()), Ok(Time(DAY_S)));
        assert_eq!(Time::try_from("1h30m".to_string()), Ok(Time(5400.0)));
        assert_eq!(Pause::try_from("0s".to_string()), Ok(Pause(0.0)));
        assert_eq!(Rate::try_from("1gbit".to_string()), Ok(Rate(BitRate(1e9))));
        assert_eq!(Budget::try_from("20GB/day".to_string()), Ok(Budget(Bytes(20_000_000_000))));
        assert_eq!(window("22:00-06:00"), Window { from_min: 1320, length_min: 480 });
        assert_eq!(window("00:00-00:00").length_min, 1440);
    }

    #[test]
    fn nonsense_says_what_to_write() {
        for wrong in ["often", "0s", "-1s", "10", "NaNd", "9000d", ""] {
            assert!(Time::try_from(wrong.to_string()).unwrap_err().contains("15m"), "{wrong}");
        }
        for wrong in ["24:00-06:00", "22-6", "22:00", "night", "22:00:30-23:00", ""] {
            assert!(Window::try_from(wrong.to_string()).unwrap_err().contains("22:00"), "{wrong}");
        }
        for wrong in ["20GB", "0GB/day", "much/day"] {
            assert!(Budget::try_from(wrong.to_string()).unwrap_err().contains("20GB/day"));
        }
        for wrong in ["0", "801tbit", &format!("{}gbit", "9".repeat(305))] {
            assert!(Rate::try_from(wrong.to_string()).unwrap_err().contains("100mbit"), "{wrong}");
        }
        for wrong in ["0s", "61m", "1d", "ten"] {
            assert!(Length::try_from(wrong.to_string()).unwrap_err().contains("at most 1h"));
        }
        assert_eq!(Length::try_from("1h".to_string()), Ok(Length(3600.0)));
    }

    #[test]
    fn windows_overlap_past_midnight_too() {
        let night = window("22:00-06:00");
        assert!(night.overlaps(window("05:00-07:00")) && window("05:00-07:00").overlaps(night));
        assert!(!night.overlaps(window("06:00-22:00")) && night.overlaps(night));
        assert!(night.overlaps(window("00:00-00:00")));
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_an_error(text in ".{0,24}") {
            let _ = Time::try_from(text.clone());
            let _ = (Length::try_from(text.clone()), Pause::try_from(text.clone()));
            let _ = Rate::try_from(text.clone());
            let _ = Budget::try_from(text.clone());
            let _ = Window::try_from(text);
        }
    }
}
