//! Which tests are older than they should be kept.
//!
//! What is deleted is gone, and a clock may be wrong: by years after a flat battery, until the first answer of a time
//! server. So age is time in which the paths were watched, from test to test in the order in which they were stored. A
//! step of the clock adds no more to it than a pause does, and neither adds more than two rounds.

/// Rounds that a longer time between two tests counts as.
const ROUNDS_OF_A_PAUSE: f64 = 2.0;

/// The number of the newest test that is older than `keep_s`, if any is. `tests` are the numbers of all tests and when each
/// began, seconds on any clock, in the order in which they were stored; `round_s` is the time between two tests of a
/// target.
pub fn newest_to_delete(tests: &[(i64, f64)], keep_s: f64, round_s: f64) -> Option<i64> {
    let mut age_s = 0.0;
    let mut later_s: Option<f64> = None;
    for (number, at_s) in tests.iter().rev() {
        let since_s = later_s.map_or(0.0, |later_s| later_s - at_s);
        age_s += since_s.clamp(0.0, ROUNDS_OF_A_PAUSE * round_s);
        if age_s > keep_s {
            return Some(*number);
        }
        later_s = Some(*at_s);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: f64 = 3600.0;
    const YEAR_S: f64 = 365.0 * 24.0 * HOUR_S;

    /// A hundred hours of tests, one an hour.
    fn tests() -> Vec<(i64, f64)> {
        (0..100).map(|n| (n, n as f64 * HOUR_S)).collect()
    }

    fn oldest_kept(tests: &[(i64, f64)]) -> i64 {
        newest_to_delete(tests, 10.5 * HOUR_S, HOUR_S).map_or(0, |newest| newest + 1)
    }

    #[test]
    fn what_is_older_is_deleted() {
        assert_eq!(oldest_kept(&tests()), 89, "ten hours before the last test");
        assert_eq!(newest_to_delete(&tests(), 100.0 * HOUR_S, HOUR_S), None);
        assert_eq!(newest_to_delete(&[], 0.0, HOUR_S), None);
    }

    #[test]
    fn a_clock_that_jumps_deletes_nothing_early() {
        for jump_s in [YEAR_S, -YEAR_S] {
            for back in [false, true] {
                let mut tests = tests();
                tests[95..].iter_mut().for_each(|test| test.1 += jump_s);
                if back {
                    tests[98..].iter_mut().for_each(|test| test.1 -= jump_s);
                }
                let kept = oldest_kept(&tests);
                assert!((88..=91).contains(&kept), "{jump_s} {back}: from {kept}");
            }
        }
    }

    #[test]
    fn a_month_without_tests_ages_nothing() {
        let mut tests = tests();
        tests[95..].iter_mut().for_each(|test| test.1 += YEAR_S / 12.0);
        assert_eq!(oldest_kept(&tests), 90);
    }

    #[test]
    fn times_that_are_no_numbers_are_no_age() {
        assert_eq!(newest_to_delete(&[(1, f64::NAN), (2, f64::INFINITY)], 1.0, HOUR_S), None);
    }
}
