//! How fast congestion control can go at a given loss, by the published models.

use goodput_model::Missing;

use crate::view::{View, positive};

/// Rate of Reno-like congestion control without delayed acknowledgements, bits per second:
/// `MSS/RTT · sqrt(3/2p)` (Mathis, Semke, Mahdavi, Ott 1997). `mss` in bytes, `rtt` in seconds,
/// `loss` between 0 and 1; each above 0.
pub fn mathis(mss: f64, rtt: f64, loss: f64) -> f64 {
    mss * 8.0 / rtt * (1.5 / loss).sqrt()
}

/// Rate of CUBIC, bits per second: window of `1.054 · (RTT/p)^0.75` segments, never below Reno's
/// (RFC 9438 section 5). Units as in [`mathis`].
pub fn cubic(mss: f64, rtt: f64, loss: f64) -> f64 {
    let segments = 1.054 * (rtt / loss).powf(0.75);
    (segments * mss * 8.0 / rtt).max(mathis(mss, rtt, loss))
}

/// Rate that the flows together could have with a loss-based congestion control at the loss they
/// met, bits per second. `None` if nothing was lost.
pub fn rate_at_loss(view: &View) -> Result<Option<f64>, Missing> {
    let side = &view.sender;
    let loss = side.lasting_loss()?.share;
    if loss <= 0.0 {
        return Ok(None);
    }
    let (mss, rtt) = (side.mss_bytes()?, side.rtt_s()?);
    let reno = view.congestion().is_ok_and(|name| name == "reno");
    let one = if reno { mathis(mss, rtt, loss) } else { cubic(mss, rtt, loss) };
    Ok(Some(positive(one * side.flow_count()?, "the rate at this loss")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mathis_meets_the_worked_example() {
        // 1448 bytes, 20 ms, 0.1 %: 22.4 Mbit/s.
        assert!((mathis(1448.0, 0.02, 1e-3) / 22.43e6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn cubic_is_never_slower_than_reno_and_faster_on_long_paths() {
        assert_eq!(cubic(1448.0, 0.001, 1e-2), mathis(1448.0, 0.001, 1e-2));
        assert!(cubic(1448.0, 0.2, 1e-5) > 1.5 * mathis(1448.0, 0.2, 1e-5));
    }
}
