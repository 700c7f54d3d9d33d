//! How fast congestion control can go at a given loss, by the published models.
//!
//! In all of them `mss` is in bytes, `rtt` in seconds, `loss` between 0 and 1, each above 0; the rate is in
//! bits per second.

/// Shortest retransmission timeout of Linux above the round-trip time, seconds (`TCP_RTO_MIN`,
/// include/net/tcp.h).
const RTO_MIN_S: f64 = 0.2;

/// Rate of Reno-like congestion control without delayed acknowledgements: `MSS/RTT · sqrt(3/2p)` (Mathis,
/// Semke, Mahdavi, Ott 1997).
pub fn mathis(mss: f64, rtt: f64, loss: f64) -> f64 {
    mss * 8.0 / rtt * (1.5 / loss).sqrt()
}

/// Window of CUBIC's own curve, segments: `1.054 · (RTT/p)^0.75` with RFC 9438's C of 0.4 and β of 0.7
/// (section 5.1).
pub fn cubic_segments(rtt: f64, loss: f64) -> f64 {
    1.054 * (rtt / loss).powf(0.75)
}

/// Rate of CUBIC: that of its curve, never below Reno's (RFC 9438 sections 4.3 and 5).
pub fn cubic(mss: f64, rtt: f64, loss: f64) -> f64 {
    (cubic_segments(rtt, loss) * mss * 8.0 / rtt).max(mathis(mss, rtt, loss))
}

/// A retransmission timeout of Linux if round trips hardly vary, seconds.
pub fn timeout_s(rtt: f64) -> f64 {
    rtt + RTO_MIN_S
}

/// Part of the loss events that end in a timeout, at most all of them (Padhye et al. 1998; RFC 5348 leaves
/// the limit out).
pub fn timeout_share(loss: f64) -> f64 {
    (3.0 * (3.0 * loss / 8.0).sqrt()).min(1.0)
}

/// Rate of Reno with its timeouts (Padhye, Firoiu, Towsley, Kurose 1998; equation of RFC 5348 section 3.1
/// with one acknowledgement per segment). `timeout` in seconds.
pub fn pftk(mss: f64, rtt: f64, loss: f64, timeout: f64) -> f64 {
    let recovery = rtt * (2.0 * loss / 3.0).sqrt();
    mss * 8.0 / (recovery + timeout * timeout_share(loss) * loss * (1.0 + 32.0 * loss * loss))
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

    /// RFC 9438 section 5.1, `AVG_W_cubic`, worked out by hand for 0.1 s and C 0.4.
    #[test]
    fn cubic_s_window_is_that_of_its_rfc() {
        for (loss, window) in [(1e-2, 5.93), (1e-3, 33.3), (1e-4, 187.4), (1e-8, 187_431.0)] {
            let got = cubic_segments(0.1, loss);
            assert!((got / window - 1.0).abs() < 0.001, "{loss} {got}");
        }
    }

    #[test]
    fn timeouts_cost_little_at_little_loss_and_much_at_much() {
        let at = |loss| pftk(1448.0, 0.02, loss, timeout_s(0.02)) / mathis(1448.0, 0.02, loss);
        assert!(at(1e-6) > 0.95, "{}", at(1e-6));
        // 2.3 of the 4.1 Mbit/s that Mathis gives.
        assert!((at(0.03) - 0.567).abs() < 0.001, "{}", at(0.03));
    }
}
