//! A congestion window that is the limit though the path has room: it is always full, nothing
//! is lost and no queue stands, and it grows by about one segment per round trip.

use goodput_model::{Missing, TcpInfo};

use crate::thresholds::MIN_LIKELY_QUEUE_RTT_RATIO;
use crate::view::{Moment, View};

/// Shortest round-trip time at which a congestion window is worth checking, seconds. On a shorter
/// path it has grown within a test.
const LONG_PATH_S: f64 = 0.001;
/// Share of the window in flight at which it is full.
const MIN_INFLIGHT_SHARE_OF_CWND: f64 = 0.85;
/// `TCP_CA_Disorder` (include/uapi/linux/tcp.h): states above it repair losses.
const CA_DISORDER: u64 = 1;

/// How a connection crawls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crawl {
    /// Share of the measured samples in which the window crawled, all connections together.
    pub share: f64,
    /// How often losses began within the measured window, all connections together.
    pub losses: u32,
    /// The highest observed delivery rate, slow start included, all connections together, bits
    /// per second.
    pub best: f64,
    /// The window at the last sample, segments, of the first connection.
    pub window: u64,
    /// Its slow-start threshold.
    pub threshold: u64,
}

/// How the sending connections crawl.
pub fn crawl(view: &View) -> Result<Crawl, Missing> {
    let (connections, base) = (view.sender.connections()?, view.sender.min_rtt_s()?);
    let (mut crawling, mut all, mut losses, mut best) = (0, 0, 0, 0.0);
    for connection in &connections {
        for pair in connection.windows(2).filter(|pair| pair[1].is_measured) {
            all += 1;
            let lossless = !loses(pair[0].tcp, pair[1].tcp)?;
            crawling += u32::from(lossless && crawls(pair[1].tcp, base)?);
        }
        losses += loss_events(connection)?;
        best += best_delivery(connection)?;
    }
    let last = connections[0][connections[0].len() - 1].tcp;
    if all == 0 {
        return Err(Missing::because("no connection was sampled in the measured window"));
    }
    Ok(Crawl {
        share: f64::from(crawling) / f64::from(all),
        losses,
        best,
        window: last.snd_cwnd_segments()?,
        threshold: last.snd_ssthresh_segments()?,
    })
}

/// Whether it crawls at this moment, on a path with this smallest round-trip time, seconds.
fn crawls(tcp: &TcpInfo, base: f64) -> Result<bool, Missing> {
    let (window, threshold) = (tcp.snd_cwnd_segments()?, tcp.snd_ssthresh_segments()?);
    let avoids_congestion = threshold < TcpInfo::INFINITE_SSTHRESH && window >= threshold;
    let queue = tcp.rtt_us()? as f64 / 1e6 >= MIN_LIKELY_QUEUE_RTT_RATIO * base;
    let is_full = tcp.unacked_segments()? as f64 >= MIN_INFLIGHT_SHARE_OF_CWND * window as f64;
    Ok(tcp.ca_state()? <= CA_DISORDER
        && avoids_congestion
        && is_full
        && !queue
        && base >= LONG_PATH_S)
}

/// Whether anything was retransmitted in between.
fn loses(before: &TcpInfo, after: &TcpInfo) -> Result<bool, Missing> {
    Ok(after.total_retrans_segments()? > before.total_retrans_segments()?)
}

/// How often retransmissions began within the measured window, after a sample without any.
fn loss_events(connection: &[Moment]) -> Result<u32, Missing> {
    let (mut events, mut going_on) = (0, false);
    for pair in connection.windows(2).filter(|pair| pair[0].is_measured && pair[1].is_measured) {
        let lost = loses(pair[0].tcp, pair[1].tcp)?;
        events += u32::from(lost && !going_on);
        going_on = lost;
    }
    Ok(events)
}

fn best_delivery(connection: &[Moment]) -> Result<f64, Missing> {
    let mut best = 0;
    for moment in connection {
        best = best.max(moment.tcp.delivery_rate_bytes_per_s()?);
    }
    Ok(best as f64 * 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn of(case: Case) -> Crawl {
        crawl(&View::new(&case.evidence())).unwrap()
    }

    #[test]
    fn a_full_window_past_its_threshold_without_loss_or_queue_crawls() {
        let crawl = of(Case::crawling());
        assert_eq!((crawl.share, crawl.losses), (1.0, 0));
        assert!(crawl.best > 1.5 * 120e6, "{crawl:?}");
    }

    #[test]
    fn a_queue_a_half_empty_window_and_slow_start_do_not() {
        let none =
            |change: fn(&mut TcpInfo)| of(Case::crawling().tcp(move |tcp, _| change(tcp))).share;
        assert_eq!(none(|tcp| tcp.rtt_us = Some(130_000)), 0.0);
        assert_eq!(none(|tcp| tcp.unacked_segments = Some(500)), 0.0);
        assert_eq!(none(|tcp| tcp.snd_ssthresh_segments = Some(TcpInfo::INFINITE_SSTHRESH)), 0.0);
        assert_eq!(none(|tcp| tcp.ca_state = Some(3)), 0.0);
        assert_eq!(of(Case::healthy()).share, 0.0);
    }

    #[test]
    fn nothing_crawls_while_it_loses() {
        let case = Case::crawling().tcp(|tcp, n| tcp.total_retrans_segments = Some(10 * n));
        assert_eq!(of(case).share, 0.0);
    }

    #[test]
    fn losses_that_go_on_are_one_event() {
        let case = Case::crawling().tcp(|tcp, n| {
            tcp.total_retrans_segments = Some(match n {
                0..=20 => 0,
                21..=24 => n,
                25..=34 => 24,
                _ => 30,
            });
        });
        assert_eq!(of(case).losses, 2);
    }

    #[test]
    fn says_what_it_lacks() {
        let case = Case::crawling().tcp(|tcp, _| tcp.ca_state = None);
        assert!(crawl(&View::new(&case.evidence())).is_err());
    }
}
