//! Numbers as iperf prints them.

/// Unit prefixes: unit, kilo, mega, giga, tera.
const NAMES: [&str; 5] = ["", "K", "M", "G", "T"];

/// Bytes in four characters and their unit, in powers of 1024: `2.15 GBytes` (iperf3 units.c,
/// unit_snprintf with 'A').
pub fn bytes(bytes: u64) -> String {
    in_units(bytes as f64, 'A')
}

/// A rate in the unit of `-f`: `18.5 Gbits/sec` for `a`, `2.15 GBytes/sec` for `A`.
pub fn rate(bits_per_s: f64, unit: char) -> String {
    format!("{}/sec", in_units(bits_per_s / 8.0, unit))
}

/// `bytes` in the letter's unit (iperf3 units.c, unit_snprintf): small letters count bits in powers of
/// 1000, capitals bytes in powers of 1024, `a` and `A` choose the power.
pub fn in_units(bytes: f64, unit: char) -> String {
    let (value, step, name) = match unit.is_uppercase() {
        true => (bytes, 1024.0, "Bytes"),
        false => (bytes * 8.0, 1000.0, "bits"),
    };
    let power = match unit.to_ascii_lowercase() {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => (1..NAMES.len()).take_while(|p| value >= f64::powi(step, *p as i32)).count(),
    };
    format!("{} {}{name}", four(value / f64::powi(step, power as i32)), NAMES[power])
}

/// A number in four characters.
fn four(value: f64) -> String {
    let places = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.places$}")
}

/// C's `%.2g`.
pub fn two_digits(value: f64) -> String {
    let scientific = format!("{value:.1e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 {
        "0".into()
    } else if (-4..2).contains(&exponent) {
        bare(&format!("{value:.*}", (1 - exponent).max(0) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", bare(mantissa), exponent.abs())
    }
}

/// Without trailing zeros of a fraction.
fn bare(number: &str) -> String {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').into(),
        false => number.into(),
    }
}

/// Whether `-f` accepts a letter.
pub fn is_unit(letter: char) -> bool {
    "akmgtAKMGT".contains(letter)
}

/// Puts a title in front of every line.
pub fn titled(title: Option<&str>, lines: &str) -> String {
    let Some(title) = title else { return lines.into() };
    lines.lines().map(|line| format!("{title}:  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_iperf3() {
        assert_eq!(bytes(2_228_224_000), "2.08 GBytes");
        assert_eq!(bytes(1_047_728), "1023 KBytes");
        assert_eq!(bytes(0), "0.00 Bytes");
        assert_eq!(rate(17_823_172_260.0, 'a'), "17.8 Gbits/sec");
        assert_eq!(rate(123e9, 'a'), " 123 Gbits/sec");
        assert_eq!(rate(13152.0 * 8.0 * 1_048_576.0, 'M'), "13152 MBytes/sec");
    }

    #[test]
    fn shares_have_two_digits_as_c_prints_them() {
        let all = [0.0, 2.094, 8.9005, 0.05, 50.0, 99.4, 100.0, 0.00004];
        let printed = all.map(two_digits);
        assert_eq!(printed, ["0", "2.1", "8.9", "0.05", "50", "99", "1e+02", "4e-05"]);
    }

    proptest::proptest! {
        #[test]
        fn any_number_has_a_unit(value in 0.0f64..1e30, unit in "[a-zA-Z]") {
            let letter = unit.chars().next().unwrap();
            assert!(in_units(value, letter).contains(' '));
            two_digits(value);
        }
    }
}
