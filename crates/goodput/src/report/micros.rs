//! Times in readable units.

/// A time of `us` microseconds, in the unit that needs the fewest digits.
pub(super) fn micros(us: f64) -> String {
    // What rounds to the next unit is written in it.
    if us >= 9_999_500.0 {
        format!("{:.1} s", us / 1e6)
    } else if us >= 999_950.0 {
        format!("{:.2} s", us / 1e6)
    } else if us >= 9_995.0 {
        format!("{:.1} ms", us / 1000.0)
    } else if us >= 1000.0 {
        format!("{:.2} ms", us / 1000.0)
    } else {
        format!("{us:.0} µs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_has_its_unit() {
        let times =
            [(4.4, "4 µs"), (1234.0, "1.23 ms"), (9_999.0, "10.0 ms"), (12_340.0, "12.3 ms")];
        let long = [
            (999_949.0, "999.9 ms"),
            (999_960.0, "1.00 s"),
            (7_722_800.0, "7.72 s"),
            (71e6, "71.0 s"),
        ];
        for (us, text) in times.into_iter().chain(long) {
            assert_eq!(micros(us), text);
        }
    }
}
