//! The confidence interval of a share.

/// 97.5 % quantile of the normal distribution.
const Z_OF_95_PERCENT: f64 = 1.959_964;

/// The 95 % interval of a share, seen as `hits` of `n`; both ends are 0 to 1 (E. B. Wilson,
/// "Probable inference, the law of succession, and statistical inference", JASA 22, 1927). Also good at
/// shares near 0 and 1 and at small numbers. `None` if `n` is 0.
pub fn interval(hits: usize, n: usize) -> Option<(f64, f64)> {
    if n == 0 {
        return None;
    }
    let (share, n) = (hits as f64 / n as f64, n as f64);
    let middle = share + Z_OF_95_PERCENT * Z_OF_95_PERCENT / (2.0 * n);
    let half = Z_OF_95_PERCENT
        * (share * (1.0 - share) / n + Z_OF_95_PERCENT * Z_OF_95_PERCENT / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z_OF_95_PERCENT * Z_OF_95_PERCENT / n;
    Some((((middle - half) / whole).max(0.0), ((middle + half) / whole).min(1.0)))
}

/// "19 of 20 (95 %, 76 to 99 %)".
pub fn shown(hits: usize, n: usize) -> String {
    match interval(hits, n) {
        None => "none".into(),
        Some((low, high)) => format!(
            "{hits} of {n} ({:.0} %; {:.0} to {:.0} %)",
            100.0 * hits as f64 / n as f64,
            100.0 * low,
            100.0 * high
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_literature() {
        // Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in
        // Medicine 17, 1998, table I: 81 of 263, 15 of 148, 0 of 20, 29 of 29.
        let published = [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (29, 29, 0.8830, 1.0),
        ];
        for (hits, n, low, high) in published {
            let (l, h) = interval(hits, n).unwrap();
            assert!((l - low).abs() < 5e-5 && (h - high).abs() < 5e-5, "{hits}/{n}: {l} {h}");
        }
        assert_eq!(interval(0, 0), None);
    }

    #[test]
    fn a_share_is_shown_with_its_interval() {
        assert_eq!(shown(19, 20), "19 of 20 (95 %; 76 to 99 %)");
        assert_eq!(shown(0, 0), "none");
    }
}
