//! How values on axes and in tables are written.

use goodput_model::{BitRate, Bytes, Seconds, is_plain};

/// From this on, a number is written as a power of ten: no chart has room for its digits.
const ABSURD: f64 = 1e12;

/// A rate in bits per second; nothing below zero, where a chart may have room for something else.
pub fn rate(bits_per_s: f64) -> String {
    if bits_per_s < 0.0 { String::new() } else { BitRate(bits_per_s).to_string() }
}

/// A number of bytes.
pub fn bytes(count: f64) -> String {
    if count < 0.0 { String::new() } else { Bytes(count.round() as u64).to_string() }
}

/// Seconds as a time.
pub fn seconds(seconds: f64) -> String {
    Seconds(seconds).to_string()
}

/// A number with three significant digits, and no zeros at its end.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".into();
    }
    if value.abs() >= ABSURD {
        return format!("{value:.2e}");
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let places = (2 - magnitude).clamp(0, 9) as usize;
    let digits = format!("{value:.places$}");
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').into(),
        false => digits,
    }
}

/// Text without characters that control a terminal, a parser or the direction of writing; a peer may have chosen it.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_plain(c) && c != '\t' { c } else { ' ' }).collect()
}

/// A share. What is smaller than a ten-thousandth is called so: its digits say nothing.
pub fn percent(value: f64) -> String {
    const LEAST: f64 = 0.01;
    if value > 0.0 && value < LEAST {
        format!("under {LEAST} %")
    } else {
        format!("{} %", short(value))
    }
}

/// Words as a sentence begins with them.
pub fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_numbers_take_no_more_room_than_others() {
        let all =
            [rate(1.7e308), seconds(1e300), short(1e300), percent(-1e200), rate(f64::INFINITY)];
        assert!(all.iter().all(|text| text.chars().count() <= 15), "{all:?}");
        assert_eq!(all[..3], ["1.70e296 Tbit/s", "1.00e300 s", "1.00e300"].map(String::from));
        assert_eq!(short(123_456_789.0), "123456789");
    }

    #[test]
    fn values_are_short_and_have_their_unit() {
        assert_eq!(rate(94.3e6), "94.3 Mbit/s");
        assert_eq!(rate(-1.0), "");
        assert_eq!(bytes(1500.0), "1.50 kB");
        assert_eq!(
            [seconds(0.0), seconds(0.02), seconds(12.5), seconds(3e-5)],
            ["0 s", "20 ms", "12.5 s", "30 µs"].map(String::from)
        );
        assert_eq!(
            [percent(7.25), percent(1.5), percent(300.0), percent(8.18e-5), percent(0.0)],
            ["7.25 %", "1.5 %", "300 %", "under 0.01 %", "0 %"].map(String::from)
        );
    }
}
