//! The sender's tcp_info over the window: chronographs, windows, round-trip times, loss.
//!
//! Chronographs (net/ipv4/tcp_output.c): one state at a time, send buffer before peer's window
//! before busy; `busy` includes the other two; the resolution is one jiffy.

use std::collections::BTreeMap;

use goodput_model::{Missing, TcpInfo};

use super::{Side, mean, median, positive};

/// An option of a connection, as its bit in `tcpi_options`. SYNs on both ways must carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpOption {
    /// RFC 7323 section 3.
    Timestamps = 1,
    /// RFC 2018.
    Sack = 2,
    /// RFC 7323 section 2.
    WindowScale = 4,
}
/// Share of the samples in which a steady window may be low: a reader on a busy host is occasionally late.
/// Measured: 0.09.
const MAX_RARE_TIME_SHARE: f64 = 0.1;
/// A window below this share of the previous one has fallen, rather than been rounded.
const MAX_FALLING_WINDOW_RATIO: f64 = 0.98;
/// Least variation that a retransmission time-out allows for, microseconds (include/net/tcp.h, `TCP_RTO_MIN`).
const LEAST_TIMEOUT_US: u64 = 200_000;
/// A time-out that was doubled twice, over one that never was, less what round trips have varied since.
const TWICE_DOUBLED_RATIO: u64 = 3;
/// Share of falling samples at which a window counts as falling all the time.
const MIN_FALLING_STEPS_SHARE: f64 = 0.2;

impl Side<'_> {
    fn chronograph(
        &self,
        what: &str,
        read: impl Fn(&TcpInfo) -> Result<u64, Missing>,
    ) -> Result<f64, Missing> {
        self.share(what, |f| read(f.tcp.get()?))
    }

    /// Share of the window in which the peer's window stopped the sender.
    pub fn rwnd_limited_share(&self) -> Result<f64, Missing> {
        self.chronograph("tcp_info.rwnd_limited", TcpInfo::rwnd_limited_us)
    }

    /// Share of samples whose delivery rate was limited by the application.
    pub fn app_limited_share(&self) -> Result<f64, Missing> {
        let marks = self.tcp_gauges(TcpInfo::delivery_rate_app_limited)?;
        mean(&marks, "tcp_info.delivery_rate_app_limited")
    }

    /// Median of the window that the peer advertised, bytes.
    pub fn peer_window_bytes(&self) -> Result<f64, Missing> {
        self.tcp_median("tcp_info.snd_wnd", TcpInfo::snd_wnd_bytes)
    }

    /// Whether the peer's window has no room for a segment in most of the samples: nobody reads there.
    pub fn peer_window_is_shut(&self) -> bool {
        let shut = || Ok::<_, Missing>(self.peer_window_bytes()? < self.mss_bytes()?);
        shut().unwrap_or(false)
    }

    /// Whether the advertised windows stood still: almost never below half of the flow's median, and seldom lower than
    /// the previous one. The window of a reader that falls behind shrinks as its queue fills.
    pub fn peer_window_is_steady(&self) -> Result<bool, Missing> {
        if self.peer_window_falls()? {
            return Ok(false);
        }
        let (mut low, mut all) = (0, 0);
        for windows in self.peer_windows()? {
            let middle = median(windows.clone(), "tcp_info.snd_wnd")?;
            low += windows.iter().filter(|window| **window < middle / 2.0).count();
            all += windows.len();
        }
        Ok(low as f64 <= MAX_RARE_TIME_SHARE * all as f64)
    }

    /// Whether the advertised windows keep falling and rising. The window of a reader that is behind
    /// does, with the data in its queue; a reader that keeps up gives the same window each time.
    pub fn peer_window_falls(&self) -> Result<bool, Missing> {
        let (mut fell, mut steps) = (0.0, 0.0);
        for windows in self.peer_windows()? {
            let falls = |pair: &&[f64]| pair[1] < MAX_FALLING_WINDOW_RATIO * pair[0];
            fell += windows.windows(2).filter(falls).count() as f64;
            steps += windows.len().saturating_sub(1) as f64;
        }
        Ok(fell / positive(steps, "steps of the peer's window")? >= MIN_FALLING_STEPS_SHARE)
    }

    /// The windows that the peer advertised within the measured window, by flow, in the order of time.
    fn peer_windows(&self) -> Result<Vec<Vec<f64>>, Missing> {
        let mut flows: BTreeMap<u16, Vec<f64>> = BTreeMap::new();
        let mut reason = None;
        for flow in self.each()? {
            match flow.tcp.get().and_then(TcpInfo::snd_wnd_bytes) {
                Ok(bytes) => flows.entry(flow.flow).or_default().push(bytes as f64),
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        match reason {
            Some(why) if flows.is_empty() => Err(why),
            _ => Ok(flows.into_values().collect()),
        }
    }

    /// Median maximum segment size, bytes.
    pub fn mss_bytes(&self) -> Result<f64, Missing> {
        let mss = self.tcp_median("tcp_info.snd_mss", TcpInfo::snd_mss_bytes)?;
        positive(mss, "tcp_info.snd_mss")
    }

    /// Median path MTU, bytes.
    pub fn path_mtu_bytes(&self) -> Result<f64, Missing> {
        let mtu = self.tcp_median("tcp_info.pmtu", TcpInfo::pmtu_bytes)?;
        positive(mtu, "tcp_info.pmtu")
    }

    /// Options in use, `TCPI_OPT_*` bits; the same throughout a connection.
    pub fn tcp_options(&self) -> Result<u64, Missing> {
        Ok(self.tcp_median("tcp_info.options", TcpInfo::options)? as u64)
    }

    /// Whether both SYNs carried an option (`TCPI_OPT_*`, include/uapi/linux/tcp.h).
    pub fn has_option(&self, option: TcpOption) -> Result<bool, Missing> {
        Ok(self.tcp_options()? & option as u64 != 0)
    }

    /// Scale of the windows that the peer advertises, as a power of two.
    pub fn peer_window_scale(&self) -> Result<u32, Missing> {
        Ok(self.tcp_median("tcp_info.snd_wscale", TcpInfo::snd_wscale)? as u32)
    }

    /// Median congestion window, bytes.
    pub fn congestion_window_bytes(&self) -> Result<f64, Missing> {
        let segments = self.tcp_median("tcp_info.snd_cwnd", TcpInfo::snd_cwnd_segments)?;
        Ok(segments * self.mss_bytes()?)
    }

    /// First decile, median and ninth decile of the flows' congestion windows, segments.
    pub fn congestion_window_deciles(&self) -> Result<(f64, f64, f64), Missing> {
        deciles(self.tcp_gauges(TcpInfo::snd_cwnd_segments)?)
            .ok_or_else(|| Missing::because("tcp_info.snd_cwnd was not sampled in the window"))
    }

    /// First decile, median and ninth decile of the flows' slow start thresholds, segments: the window
    /// left at each loss.
    pub fn slow_start_threshold_deciles(&self) -> Result<(f64, f64, f64), Missing> {
        let all = self.tcp_gauges(TcpInfo::snd_ssthresh_segments)?;
        deciles(all.into_iter().filter(is_set).collect())
            .ok_or_else(|| Missing::because("no slow start threshold was set in the window"))
    }

    /// Median of the bytes in flight.
    pub fn in_flight_bytes(&self) -> Result<f64, Missing> {
        let segments = self.tcp_median("tcp_info.unacked", TcpInfo::unacked_segments)?;
        Ok(segments * self.mss_bytes()?)
    }

    /// Sum over the flows of the delivery rates' medians, bits per second.
    pub fn delivery_rate(&self) -> Result<f64, Missing> {
        let one = self.tcp_median("tcp_info.delivery_rate", TcpInfo::delivery_rate_bytes_per_s)?;
        Ok(one * 8.0 * self.flow_count()?)
    }

    /// Payload sent within the window, that of repeated segments included, bits per second.
    pub fn sent_rate(&self) -> Result<f64, Missing> {
        let sent = self.delta_sum("tcp_info.sent_bytes", |f| f.tcp.get()?.sent_bytes())?;
        Ok(sent * 8.0 / self.elapsed_s()?)
    }

    /// Retransmitted share of the bytes sent within the window.
    pub fn retransmitted_share(&self) -> Result<f64, Missing> {
        let again = self.delta_sum("tcp_info.retrans_bytes", |f| f.tcp.get()?.retrans_bytes())?;
        let sent = self.delta_sum("tcp_info.sent_bytes", |f| f.tcp.get()?.sent_bytes())?;
        Ok(again / positive(sent, "the bytes sent")?)
    }

    /// Segments retransmitted within the window.
    pub fn retransmitted_segments(&self) -> Result<f64, Missing> {
        self.delta_sum("tcp_info.total_retrans", |f| f.tcp.get()?.total_retrans_segments())
    }

    /// Segments retransmitted from the start to the end of the window, for comparison with the snapshots'
    /// counters, which include slow start.
    pub fn retransmitted_segments_in_all(&self) -> Result<f64, Missing> {
        let (_, last) = self.edges()?;
        let mine = last.flows.iter().filter(|f| f.role == self.role);
        mine.map(|f| Ok(f.tcp.get()?.total_retrans_segments()? as f64)).sum()
    }

    /// Data segments sent from the start to the end of the window.
    pub fn segments_sent(&self) -> Result<f64, Missing> {
        let (_, last) = self.edges()?;
        let mine = last.flows.iter().filter(|f| f.role == self.role);
        mine.map(|f| Ok(f.tcp.get()?.data_segs_out()? as f64)).sum()
    }

    /// Retransmitted share of the bytes sent over the whole measurement.
    pub fn retransmitted_share_in_all(&self) -> Result<f64, Missing> {
        let again = self.in_all(TcpInfo::retrans_bytes)?;
        Ok(again / positive(self.sent_in_all()?, "the bytes sent")?)
    }

    /// Retransmissions that the peer reported as needless, within the window.
    pub fn needless_retransmits(&self) -> Result<f64, Missing> {
        self.delta_sum("tcp_info.dsack_dups", |f| f.tcp.get()?.dsack_dups())
    }

    /// Share of the samples in which a flow waited for a time-out after at least two in a row: what the first one sent again, a
    /// single segment, was lost as well. Each doubles the time-out (RFC 6298, section 5.5; net/ipv4/tcp_timer.c,
    /// `tcp_retransmit_timer`), until something new arrives.
    pub fn repeated_timeouts_share(&self) -> Result<f64, Missing> {
        let repeated = |tcp: &TcpInfo| {
            let vary_us = tcp.rttvar_us.unwrap_or(0).saturating_mul(4).max(LEAST_TIMEOUT_US);
            let alone_us = tcp.rtt_us()?.saturating_add(vary_us);
            Ok(u64::from(tcp.rto_us()? / TWICE_DOUBLED_RATIO >= alone_us))
        };
        mean(&self.tcp_gauges(repeated)?, "tcp_info.rto")
    }

    /// Retransmission time-outs within the window.
    pub fn timeouts(&self) -> Result<f64, Missing> {
        self.delta_sum("tcp_info.total_rto", |f| f.tcp.get()?.total_rto())
    }
}

/// First decile, median and ninth decile, nearest rank.
fn deciles(mut all: Vec<f64>) -> Option<(f64, f64, f64)> {
    all.sort_by(f64::total_cmp);
    let last = all.len().saturating_sub(1) as f64;
    let at = |share: f64| all.get((share * last).round() as usize).copied();
    Some((at(0.1)?, at(0.5)?, at(0.9)?))
}

/// Whether a slow-start threshold, segments, was ever set.
fn is_set(ssthresh_segments: &f64) -> bool {
    *ssthresh_segments < TcpInfo::INFINITE_SSTHRESH as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use goodput_model::{FlowSample, Known};

    use crate::testing::Case;
    use crate::view::View;

    /// Each flow has its own window, and keeps it.
    #[test]
    fn unequal_windows_of_several_flows_are_steady() {
        let mut evidence = Case::receive_window().evidence();
        let Known::Value(near) = &mut evidence.near else { panic!("the case has both ends") };
        for sample in &mut Arc::make_mut(near).samples {
            let Some(one) = sample.flows.pop() else { continue };
            sample.flows = (0..4).map(|flow| FlowSample { flow, ..one.clone() }).collect();
            for (flow, bytes) in sample.flows.iter_mut().zip([400_000, 300_000, 100_000, 30_000]) {
                let Known::Value(tcp) = &mut flow.tcp else { panic!("it is TCP") };
                tcp.snd_wnd_bytes = Some(bytes);
            }
        }
        let view = View::new(&evidence);
        assert_eq!(view.sender.peer_window_falls(), Ok(false));
        assert_eq!(view.sender.peer_window_is_steady(), Ok(true));
    }
}
