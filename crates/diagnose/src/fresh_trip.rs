//! The round trips that acknowledgements measured between two samples, out of the smoothed ones that TCP reports.
//!
//! To the smoothed round trip, each acknowledgement adds an eighth of what it differs by (RFC 6298 section 2;
//! net/ipv4/tcp_input.c, `tcp_rtt_estimator`). So after a few acknowledgements it is still mostly of the past, however long ago
//! that was.

use goodput_model::{Missing, TcpInfo};

/// What an acknowledgement leaves of the smoothed round trip before it.
const LEFT_BY_ONE: f64 = 7.0 / 8.0;
/// After so many, nothing is left.
const LEAVE_NOTHING: u64 = 200;

/// Mean round trip that the acknowledgements between two samples of a connection measured, microseconds; the latest count
/// most. `None` if none acknowledged anything new.
///
/// Segments that acknowledge nothing new are counted with those that do. So the result may lie between the right one and the
/// smoothed one, but never beyond either.
///
/// # Errors
/// If the kernel does not report the round trip, what was delivered, or the segments that came (Linux before 4.18).
pub fn fresh_trip_us(from: &TcpInfo, to: &TcpInfo) -> Result<Option<f64>, Missing> {
    let came = to.segs_in()?.saturating_sub(from.segs_in()?);
    let (before_us, after_us) = (from.rtt_us()? as f64, to.rtt_us()? as f64);
    if to.delivered_segments()? <= from.delivered_segments()? || came == 0 {
        return Ok(None);
    }
    // The first one is taken as it is.
    let left = if before_us > 0.0 { LEFT_BY_ONE.powi(came.min(LEAVE_NOTHING) as i32) } else { 0.0 };
    Ok(Some(((after_us - left * before_us) / (1.0 - left)).max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(came: u64, delivered: u64, rtt_us: u64) -> TcpInfo {
        TcpInfo {
            segs_in: Some(came),
            delivered_segments: Some(delivered),
            rtt_us: Some(rtt_us),
            ..TcpInfo::default()
        }
    }

    /// 0.24 s before, and then one acknowledgement of 45 segments that had waited for 0.96 s.
    #[test]
    fn one_acknowledgement_says_how_long_its_round_trip_took() {
        let trip = fresh_trip_us(&at(14, 219, 237_745), &at(15, 264, 328_157)).unwrap();
        assert!(trip.is_some_and(|us| (us - 961_041.0).abs() < 1.0), "{trip:?}");
    }

    #[test]
    fn after_many_the_smoothed_one_is_of_the_present() {
        let trip = fresh_trip_us(&at(0, 0, 900_000), &at(5_000, 9_000, 40_000)).unwrap();
        assert!(trip.is_some_and(|us| (us - 40_000.0).abs() < 1.0), "{trip:?}");
    }

    #[test]
    fn without_an_acknowledgement_there_is_none() {
        assert_eq!(fresh_trip_us(&at(7, 10, 50_000), &at(9, 10, 50_000)), Ok(None));
        assert_eq!(fresh_trip_us(&at(7, 10, 50_000), &at(7, 11, 50_000)), Ok(None));
        assert_eq!(fresh_trip_us(&at(0, 0, 0), &at(1, 1, 50_000)), Ok(Some(50_000.0)));
        assert!(fresh_trip_us(&TcpInfo::default(), &at(1, 1, 50_000)).is_err());
    }
}
