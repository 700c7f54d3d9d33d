//! What troubled the sender's TCP: time-outs, reordering, congestion marks, cuts of its window.

use goodput_model::{Missing, TcpInfo};

use super::{Side, positive};
use crate::names::RECEIVED_CE;

/// Share of the congestion window in flight at which the window holds the sender.
const MIN_INFLIGHT_SHARE_OF_CWND: f64 = 0.8;
impl Side<'_> {
    /// Share of the window that the flows spent waiting for a retransmission time-out and in the
    /// recovery after it (`tcp_info` total_rto_time), the mean of all flows.
    pub fn timeout_share(&self) -> Result<f64, Missing> {
        self.share("tcp_info.total_rto_time", |f| {
            Ok(f.tcp.get()?.total_rto_time_ms()?.saturating_mul(1000))
        })
    }

    /// Median of the retransmission time-out, seconds.
    pub fn timeout_s(&self) -> Result<f64, Missing> {
        positive(self.tcp_median("tcp_info.rto", TcpInfo::rto_us)? / 1e6, "tcp_info.rto")
    }

    /// How often segments were seen to arrive out of order, within the window.
    pub fn reorderings(&self) -> Result<f64, Missing> {
        self.delta_sum("tcp_info.reord_seen", |f| f.tcp.get()?.reord_seen())
    }

    /// Segments that arrived within the window.
    pub fn delivered_segments(&self) -> Result<f64, Missing> {
        self.delta_sum("tcp_info.delivered", |f| f.tcp.get()?.delivered_segments())
    }

    /// Segments whose acknowledgements reported a congestion mark, within the window. Until
    /// the sender has answered a mark, every acknowledgement carries it (RFC 3168 section 6.1.3), so
    /// this count exceeds the number of marked segments.
    pub fn marked_segments(&self) -> Result<f64, Missing> {
        self.delta_sum("tcp_info.delivered_ce", |f| f.tcp.get()?.delivered_ce_segments())
    }

    /// Marked packets that this host received, of any traffic.
    pub fn marks_received(&self) -> Result<f64, Missing> {
        Ok(self.grown(RECEIVED_CE)? as f64)
    }

    /// Payload bytes acknowledged over the whole measurement.
    pub fn acknowledged_in_all(&self) -> Result<f64, Missing> {
        self.in_all(|tcp| tcp.acked_bytes())
    }

    /// Retransmission time-outs over the whole measurement.
    pub fn timeouts_in_all(&self) -> Result<f64, Missing> {
        self.in_all(|tcp| tcp.total_rto())
    }

    /// Payload bytes sent over the whole measurement, retransmissions included.
    pub fn sent_in_all(&self) -> Result<f64, Missing> {
        self.in_all(|tcp| tcp.sent_bytes())
    }

    /// How far a counter moved from the first to the last sample, all flows together.
    pub(super) fn in_all(
        &self,
        read: impl Fn(&TcpInfo) -> Result<u64, Missing>,
    ) -> Result<f64, Missing> {
        let samples: Vec<_> = self.end()?.samples.iter().filter(|s| !s.flows.is_empty()).collect();
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return Err(Missing::because("no flow was sampled"));
        };
        let sum = |sample: &goodput_model::Sample| {
            let mine = sample.flows.iter().filter(|f| f.role == self.role);
            mine.map(|f| Ok(read(f.tcp.get()?)? as f64)).sum::<Result<f64, Missing>>()
        };
        Ok(sum(last)? - sum(first)?)
    }

    /// Share of the samples in which the congestion window was full after loss or a mark had cut
    /// it.
    pub fn cut_window_share(&self) -> Result<f64, Missing> {
        let samples = self.tcp_gauges(|tcp| {
            let (flight, window) =
                (tcp.unacked_segments()? as f64, tcp.snd_cwnd_segments()? as f64);
            let cut = tcp.snd_ssthresh_segments()? < TcpInfo::INFINITE_SSTHRESH;
            Ok(u64::from(cut && flight >= MIN_INFLIGHT_SHARE_OF_CWND * window))
        })?;
        let full: f64 = samples.iter().sum();
        Ok(full / positive(samples.len() as f64, "the number of samples")?)
    }
}
