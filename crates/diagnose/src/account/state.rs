//! What stops TCP from sending at one instant, from one `tcp_info`.
//!
//! The kernel tests pacing, the congestion window, the peer's window, Nagle's algorithm and the limit of what may wait
//! below TCP, in this order, and stops at the first (net/ipv4/tcp_output.c, `tcp_write_xmit`). So the first that stops hides
//! the rest, and what is in flight says more than the counters of time.

use goodput_model::{Missing, TcpInfo};

/// `TCP_CA_Loss` (include/uapi/linux/tcp.h, `enum tcp_ca_state`): after a time-out.
pub const CA_LOSS: u64 = 4;
/// Largest amount that the kernel sends at once, bytes (net/ipv4/tcp_output.c, `tcp_tso_autosize`; `sk_gso_max_size`).
const MAX_AT_ONCE_BYTES: f64 = 65_536.0;
/// The kernel sends at once what the pacing rate gives in a 1024th of a second (`sk_pacing_shift` 10).
const AT_ONCE_PER_PACING_RATE: f64 = 1.0 / 1024.0;
/// Share of a window that may be free while it counts as full: samples come at any moment of a burst.
const FREE_SHARE_OF_FULL_WINDOW: f64 = 0.1;

/// What stops a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The peer's window is full.
    Closed,
    /// The congestion window is full.
    Full,
    /// Nothing waits to be sent.
    Hungry,
    /// Something waits, and neither window is full: pacing, what may wait below TCP, or a queue of this host that drops
    /// all.
    Gated,
}

/// What is in flight, segments (include/net/tcp.h, `tcp_packets_in_flight`).
///
/// # Errors
/// If the kernel does not report one of its parts.
pub fn in_flight_segments(tcp: &TcpInfo) -> Result<f64, Missing> {
    let out = tcp.unacked_segments()?.saturating_add(tcp.retrans_out_segments()?);
    let gone = tcp.sacked_segments()?.saturating_add(tcp.lost_segments()?);
    Ok(out.saturating_sub(gone) as f64)
}

/// What the kernel sends at once at this pacing rate, bytes.
///
/// # Errors
/// If the kernel does not report the segment size or the pacing rate.
pub fn at_once_bytes(tcp: &TcpInfo) -> Result<f64, Missing> {
    let least = (2.0 * segment_bytes(tcp)?).min(MAX_AT_ONCE_BYTES);
    let paced = tcp.pacing_rate_bytes_per_s()? as f64 * AT_ONCE_PER_PACING_RATE;
    Ok(paced.clamp(least, MAX_AT_ONCE_BYTES))
}

/// What stops the sender.
///
/// # Errors
/// If the kernel does not report one of the quantities.
pub fn state(tcp: &TcpInfo) -> Result<State, Missing> {
    let segment = segment_bytes(tcp)?;
    let congestion = tcp.snd_cwnd_segments()? as f64 * segment;
    // Before Linux 5.4 only the chronograph shows the peer's window.
    let peer = tcp.snd_wnd_bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
    let by_peer = peer < congestion;
    let window = if by_peer { peer } else { congestion };
    let segments = if by_peer { tcp.unacked_segments()? as f64 } else { in_flight_segments(tcp)? };
    let free = at_once_bytes(tcp)?.max(FREE_SHARE_OF_FULL_WINDOW * window);
    // What is sent at once may be more than a small window. Yet with nothing on its way, a window that takes a segment stops
    // nobody: this host's own queue has refused what waits, and the kernel tries again when its probe timer ends
    // (net/ipv4/tcp_output.c, `tcp_send_probe0`).
    let is_empty = tcp.unacked_segments()? == 0 && window >= segment;
    Ok(match (!is_empty && segments * segment >= window - free, by_peer) {
        (true, true) => State::Closed,
        (true, false) => State::Full,
        (false, _) if (tcp.notsent_bytes()? as f64) < segment => State::Hungry,
        (false, _) => State::Gated,
    })
}

fn segment_bytes(tcp: &TcpInfo) -> Result<f64, Missing> {
    crate::view::positive(tcp.snd_mss_bytes()? as f64, "tcp_info.snd_mss")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 segments of 1000 bytes may be in flight, and the peer takes 200.
    fn info(unacked: u64, not_sent: u64) -> TcpInfo {
        TcpInfo {
            snd_mss_bytes: Some(1000),
            snd_cwnd_segments: Some(100),
            snd_wnd_bytes: Some(200_000),
            unacked_segments: Some(unacked),
            sacked_segments: Some(0),
            lost_segments: Some(0),
            retrans_out_segments: Some(0),
            notsent_bytes: Some(not_sent),
            pacing_rate_bytes_per_s: Some(1_024_000),
            ..TcpInfo::default()
        }
    }

    #[test]
    fn a_window_is_full_up_to_what_is_sent_at_once() {
        assert_eq!(state(&info(90, 50_000)), Ok(State::Full));
        assert_eq!(state(&info(89, 50_000)), Ok(State::Gated));
        assert_eq!(state(&info(50, 999)), Ok(State::Hungry));
        let fast = TcpInfo { pacing_rate_bytes_per_s: Some(u64::MAX), ..info(40, 50_000) };
        assert_eq!(state(&fast), Ok(State::Full));
    }

    #[test]
    fn the_smaller_window_stops() {
        let peer = TcpInfo { snd_wnd_bytes: Some(50_000), ..info(50, 50_000) };
        assert_eq!(state(&peer), Ok(State::Closed));
    }

    #[test]
    fn a_kernel_that_does_not_report_the_peers_window_tells_the_rest() {
        let old = TcpInfo { snd_wnd_bytes: None, ..info(100, 50_000) };
        assert_eq!(state(&old), Ok(State::Full));
    }

    /// A shaper with room for less than one super-packet, behind which round trips are short: 46 kB may leave at once.
    #[test]
    fn nothing_in_flight_fills_no_window_that_takes_a_segment() {
        let refused = |window| TcpInfo {
            snd_wnd_bytes: Some(window),
            pacing_rate_bytes_per_s: Some(47_000_000),
            ..info(0, 50_000)
        };
        assert_eq!(state(&refused(11_000)), Ok(State::Gated), "of the peer");
        assert_eq!(state(&refused(200_000)), Ok(State::Gated), "of congestion control");
        assert_eq!(state(&refused(0)), Ok(State::Closed));
        assert_eq!(
            state(&TcpInfo { unacked_segments: Some(1), ..refused(11_000) }),
            Ok(State::Closed)
        );
    }

    #[test]
    fn what_is_lost_or_acknowledged_is_not_in_flight() {
        let lossy = TcpInfo {
            sacked_segments: Some(30),
            lost_segments: Some(10),
            retrans_out_segments: Some(5),
            ..info(100, 50_000)
        };
        assert_eq!(in_flight_segments(&lossy), Ok(65.0));
        assert_eq!(state(&lossy), Ok(State::Gated));
        assert!(state(&TcpInfo { sacked_segments: None, ..info(100, 0) }).is_err());
    }
}
