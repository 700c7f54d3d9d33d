//! Rates and bursts of shapers: how they are written, and how one is changed without the other.
//!
//! The kernel keeps a burst as a time at the rate, in steps of 64 ns (`psched.rs` of
//! goodput-netlink), so at another rate the same bytes may be rounded differently. Therefore a rate is saved
//! together with its burst, and bursts that differ by one step count as equal.

use goodput_model::{BitRate, SettingRef};

use crate::error::SettingError;
use crate::value::{self, bad};

/// Above every device, and exact as a floating-point number.
const MAX_BITS_PER_S: f64 = 1e13;
/// A step of 64 ns is this share of a burst of 13 µs, the shortest that a shaper can work with.
const STEP_SHARE: f64 = 0.005;
/// Separates the two parts of a captured rate.
const BURST: &str = " burst ";

/// A rate in bytes per second, as the kernel takes it.
///
/// # Errors
/// When it is no rate, or not from 8 bit/s to 10 Tbit/s.
pub fn rate(setting: &SettingRef, value: &str) -> Result<u64, SettingError> {
    let bits = value.parse::<BitRate>().map_err(|e| bad(setting, value, e.to_string()))?.0;
    if !(8.0..=MAX_BITS_PER_S).contains(&bits) {
        return Err(bad(setting, value, "it must be 8 bit/s to 10 Tbit/s"));
    }
    Ok((bits / 8.0) as u64)
}

/// The text of a rate in bytes per second: exact, in the largest unit for which it is exact.
pub fn rate_text(bytes_per_s: u64) -> String {
    let bits = u128::from(bytes_per_s) * 8;
    let units = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit")];
    let unit = units.into_iter().find(|(size, _)| bits > 0 && bits.is_multiple_of(*size));
    let (size, unit) = unit.unwrap_or((1, "bit"));
    format!("{}{unit}", bits / size)
}

/// A burst, bytes.
pub(super) fn burst(setting: &SettingRef, value: &str) -> Result<u32, SettingError> {
    let bytes = value::size(setting, value, u32::MAX.into())?;
    Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// The saved form of a rate.
pub(super) fn with_burst(bytes_per_s: u64, burst_bytes: u32) -> String {
    format!("{}{BURST}{burst_bytes}", rate_text(bytes_per_s))
}

/// A rate, and the burst that goes with it: the saved one, unless `now` differs by more than rounding
/// can explain, so that someone has changed it deliberately.
pub(super) fn rate_and_burst(
    setting: &SettingRef,
    value: &str,
    now: u32,
) -> Result<(u64, u32), SettingError> {
    let Some((value, saved)) = value.split_once(BURST) else {
        return Ok((rate(setting, value)?, now));
    };
    let saved = burst(setting, saved)?;
    Ok((rate(setting, value)?, if close(saved, now) { saved } else { now }))
}

/// Whether two saved or read rates are equal, whatever their bursts.
pub(super) fn same_rate(one: &str, other: &str) -> bool {
    let rate = |text: &str| text.split_once(BURST).map_or(text.to_owned(), |(rate, _)| rate.into());
    rate(one) == rate(other)
}

/// Whether two bursts are equal except for rounding.
pub(super) fn same_burst(one: &str, other: &str) -> bool {
    match (one.parse(), other.parse()) {
        (Ok(one), Ok(other)) => close(one, other),
        _ => one == other,
    }
}

fn close(one: u32, other: u32) -> bool {
    f64::from(one.abs_diff(other)) <= f64::from(one.max(other)) * STEP_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn setting() -> SettingRef {
        "qdisc.tbf.rate@eth0".parse().unwrap()
    }

    #[test]
    fn rates_are_printed_exactly_in_their_largest_unit() {
        let texts = [12_500_000, 125_000_000, 12_500_001, 125].map(rate_text);
        assert_eq!(texts, ["100mbit", "1gbit", "100000008bit", "1kbit"]);
    }

    #[test]
    fn a_saved_burst_comes_back_unless_it_was_changed_for_its_own_sake() {
        let saved = with_burst(12_500_000, 10_000);
        let back = |now| rate_and_burst(&setting(), &saved, now).unwrap();
        assert_eq!(back(9_992), (12_500_000, 10_000));
        assert_eq!(back(20_000), (12_500_000, 20_000));
        assert!(same_rate(&saved, "100mbit") && !same_rate(&saved, "10mbit"));
        assert!(same_burst("10000", "9992") && !same_burst("10000", "9000"));
    }

    proptest! {
        #[test]
        fn any_rate_is_read_back(bytes in 1u64..1 << 40) {
            prop_assert_eq!(rate(&setting(), &rate_text(bytes)).unwrap(), bytes);
        }
    }
}
