//! A series of measurements against a clock, fitted: time per byte = fixed + clocks per byte / clock.

use goodput_model::{BitRate, CeilingFit, CeilingPoint, Known, Missing};

/// Measurements below which two constants explain anything.
const MIN_POINTS: usize = 3;
/// Version of the result's format.
const FIT_FORMAT_VERSION: u32 = 1;

/// Fits `points`, each a clock in Hz and the goodput measured with it, by least squares on the time per byte.
///
/// # Errors
/// There are fewer than three clocks, or a value that is not above zero.
pub fn fit(points: &[(f64, BitRate)]) -> Result<CeilingFit, Missing> {
    check(points)?;
    let inverse = |points: &[(f64, BitRate)]| -> Vec<(f64, f64)> {
        points.iter().map(|(clock, rate)| (1.0 / clock, 8.0 / rate.0)).collect()
    };
    let times = inverse(points);
    let count = times.len() as f64;
    let mean_x = times.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = times.iter().map(|(_, y)| y).sum::<f64>() / count;
    let xx: f64 = times.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let xy: f64 = times.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let clocks = xy / xx;
    let fixed = mean_y - clocks * mean_x;
    if !(clocks.is_finite() && fixed.is_finite()) {
        return Err(Missing::because("the points are too close together or too far apart to fit"));
    }
    Ok(CeilingFit {
        format: FIT_FORMAT_VERSION,
        fixed_s_per_byte: fixed,
        clocks_per_byte: clocks,
        asymptote_bits_per_s: match clocks > 0.0 {
            true => rate_of(fixed, "the fit gives no time to what the clock does not shorten"),
            // What falls approaches nothing from below.
            false => Known::missing("the rates do not rise with the clock"),
        },
        points: points.iter().map(|point| beside(*point, fixed, clocks)).collect(),
    })
}

fn check(points: &[(f64, BitRate)]) -> Result<(), Missing> {
    let valid = |value: f64| value.is_finite() && value > 0.0;
    if let Some((clock, rate)) =
        points.iter().find(|(clock, rate)| !(valid(*clock) && valid(rate.0)))
    {
        return Err(Missing::because(format!(
            "clocks and rates must be above 0; there is a clock of {clock} Hz with {rate}"
        )));
    }
    let mut clocks: Vec<f64> = points.iter().map(|(clock, _)| *clock).collect();
    clocks.sort_by(f64::total_cmp);
    clocks.dedup();
    match clocks.len() {
        0..MIN_POINTS => Err(Missing::because(format!(
            "a fit needs at least {MIN_POINTS} different clocks, not {}",
            clocks.len()
        ))),
        _ => Ok(()),
    }
}

fn beside((clock, measured): (f64, BitRate), fixed: f64, clocks: f64) -> CeilingPoint {
    let fitted = rate_of(fixed + clocks / clock, "the fit gives no time for this clock");
    CeilingPoint {
        clock_hz: clock,
        measured_bits_per_s: measured,
        off_percent: fitted.clone().map(|fitted| (fitted.0 / measured.0 - 1.0) * 100.0),
        fitted_bits_per_s: fitted,
    }
}

fn rate_of(s_per_byte: f64, why: &'static str) -> Known<BitRate> {
    match 8.0 / s_per_byte {
        rate if rate.is_finite() && rate > 0.0 => Known::Value(BitRate(rate)),
        _ => Known::missing(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kilobytes(rate: f64) -> BitRate {
        BitRate(rate * 8e3)
    }

    /// Ethernet HOWTO: ttcp receive rates of an 8-bit WD8003EP by ISA clock.
    const HOWTO: [(f64, f64); 4] =
        [(6.7e6, 740.0), (13.4e6, 970.0), (20.0e6, 1030.0), (26.7e6, 1075.0)];

    #[test]
    fn the_isa_table_of_the_ethernet_howto_is_met_within_5_percent() {
        let fitted = fit(&HOWTO.map(|(clock, rate)| (clock, kilobytes(rate)))).unwrap();
        for point in &fitted.points {
            let off = point.off_percent.get().unwrap();
            assert!(off.abs() < 5.0, "{point:?}");
        }
        // 1075 kB/s, which no 10 Mbit/s card does much better than.
        let last = fitted.points[3].fitted_bits_per_s.get().unwrap().0 / 8e3;
        assert!((last / 1075.0 - 1.0).abs() < 0.05, "{last}");
        assert!((fitted.clocks_per_byte - 3.8).abs() < 0.02, "{fitted:?}");
        let asymptote = fitted.asymptote_bits_per_s.get().unwrap().0 / 8e3;
        assert!((asymptote - 1291.0).abs() < 1.0, "{asymptote}");
    }

    #[test]
    fn constants_that_made_the_points_are_found() {
        let at = |clock: f64| (clock, BitRate(8.0 / (1e-6 + 4.0 / clock)));
        let fitted = fit(&[at(1e6), at(2e6), at(8e6), at(64e6)]).unwrap();
        assert!((fitted.fixed_s_per_byte - 1e-6).abs() < 1e-12);
        assert!((fitted.clocks_per_byte - 4.0).abs() < 1e-9);
    }

    #[test]
    fn two_clocks_are_too_few_and_zero_is_refused() {
        let why = |points: &[(f64, f64)]| {
            let points: Vec<_> =
                points.iter().map(|(clock, rate)| (*clock, BitRate(*rate))).collect();
            fit(&points).unwrap_err().to_string()
        };
        assert!(why(&[(1.0, 1.0), (2.0, 2.0), (2.0, 3.0)]).ends_with("not 2"));
        assert!(why(&[(1.0, 1.0), (2.0, 2.0), (3.0, 0.0)]).contains("above 0"));
        assert!(why(&[]).contains("not 0"));
    }

    #[test]
    fn rates_that_do_not_rise_with_the_clock_have_no_asymptote() {
        let falling = [(1e6, BitRate(4e6)), (2e6, BitRate(3e6)), (4e6, BitRate(2e6))];
        let asymptote = fit(&falling).unwrap().asymptote_bits_per_s;
        assert!(asymptote.get().unwrap_err().to_string().contains("do not rise"));
    }

    #[test]
    fn rates_that_grow_faster_than_the_clock_have_no_asymptote() {
        let points = [(1e6, BitRate(1e6)), (2e6, BitRate(4e6)), (4e6, BitRate(16e6))];
        assert!(fit(&points).unwrap().asymptote_bits_per_s.value().is_none());
    }

    proptest! {
        #[test]
        fn any_points_are_fitted_or_refused(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..6)) {
            let points: Vec<_> = points.into_iter().map(|(clock, rate)| (clock, BitRate(rate))).collect();
            if let Ok(fitted) = fit(&points) {
                prop_assert!(fitted.fixed_s_per_byte.is_finite() && fitted.clocks_per_byte.is_finite());
            }
        }
    }
}
