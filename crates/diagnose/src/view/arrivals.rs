//! How payload arrives, judged by the receiver's kernel alone if the sender reports nothing about itself.

use goodput_model::{FlowSample, Missing, TcpInfo};

use super::{Side, View, median, positive};
use crate::thresholds::MAX_WAIT_SHARE_OF_SLOW_THREAD;

/// Shortest time-out of a delayed acknowledgement, seconds (`TCP_DELACK_MIN`, include/net/tcp.h). It is also at least
/// four jiffies, the unit in which the kernel counts the time since payload arrived.
const DELAYED_ACK_S: f64 = 0.04;
/// Round trips within which a sender hears of its data: one, and part of another that the following payload takes.
const ROUND_TRIPS_UNTIL_HEARD: f64 = 2.0;
/// How far a window must exceed the goodput to be no limit: the two come this near if only the window limits. Measured:
/// within 3 %, and up to 14 % on a busy machine.
pub const MIN_OPEN_WINDOW_RATIO: f64 = 1.25;
/// One window in each round trip over the goodput, where the window is all that limits. A window that tunes itself is twice
/// what comes in a round trip (net/ipv4/tcp_input.c, `tcp_rcv_space_adjust`).
pub const WINDOW_IS_ALL_RATIOS: std::ops::Range<f64> = 0.9..MIN_OPEN_WINDOW_RATIO;

impl View<'_> {
    /// Whether only the receiver reports how TCP's payload was sent: the sender is a server of files, or another
    /// program's server that counts nothing.
    pub fn is_sender_silent(&self) -> bool {
        self.is_tcp() && !self.sender.is_sampled()
    }

    /// Whether the receiver is known to be ready for more: its thread waits for data, and its window would allow
    /// more than arrived.
    pub fn receiver_has_room(&self) -> Result<bool, Missing> {
        let allowed = self.receiver.own_window_rate()?;
        Ok(self.receiver.blocked_share()? >= MAX_WAIT_SHARE_OF_SLOW_THREAD
            && allowed >= MIN_OPEN_WINDOW_RATIO * self.goodput()?)
    }
}

impl Side<'_> {
    /// Median round-trip time seen in the arriving payload, seconds (tcp_info rcv_rtt; net/ipv4/tcp_input.c,
    /// `tcp_rcv_rtt_measure_ts`). A sender that pauses lengthens it too.
    pub fn arrival_rtt_s(&self) -> Result<f64, Missing> {
        let all = self.tcp_gauges(TcpInfo::rcv_rtt_us)?;
        let measured = all.into_iter().filter(|us| *us > 0.0).collect();
        let rtt_us = positive(median(measured, "tcp_info.rcv_rtt")?, "tcp_info.rcv_rtt")?;
        Ok((rtt_us / 1e6).max(self.min_rtt_s()?))
    }

    /// Median payload of the segments that arrive, bytes.
    pub fn arriving_segment_bytes(&self) -> Result<f64, Missing> {
        let segment = self.tcp_median("tcp_info.rcv_mss", TcpInfo::rcv_mss_bytes)?;
        positive(segment, "tcp_info.rcv_mss")
    }

    /// Goodput that this end's own window allows in each round trip, all flows together, bits per second.
    pub fn own_window_rate(&self) -> Result<f64, Missing> {
        Ok(self.own_window_bytes()? * 8.0 / self.arrival_rtt_s()? * self.flow_count()?)
    }

    /// Median of the window that this end advertised, bytes.
    pub fn own_window_bytes(&self) -> Result<f64, Missing> {
        self.tcp_median("tcp_info.rcv_wnd", TcpInfo::rcv_wnd_bytes)
    }

    /// Share of the arriving payload segments that came out of order: some segments before them were lost or overtaken.
    pub fn out_of_order_share(&self) -> Result<f64, Missing> {
        let early = |f: &FlowSample| f.tcp.get()?.rcv_ooo_segments();
        let all = |f: &FlowSample| f.tcp.get()?.data_segs_in();
        let early = self.delta_sum("tcp_info.rcv_ooopack", early)?;
        let all = self.delta_sum("tcp_info.data_segs_in", all)?;
        Ok(early / positive(all, "the segments that arrived")?)
    }

    /// Silence after which a sender with data to send, room in both windows and no loss must have sent some, seconds:
    /// by then everything it had sent has been acknowledged.
    pub fn long_silence_s(&self) -> Result<f64, Missing> {
        Ok(ROUND_TRIPS_UNTIL_HEARD * self.arrival_rtt_s()? + DELAYED_ACK_S)
    }

    /// Share of the window that is known to belong to silences longer than `beyond_s`, the mean of all flows:
    /// a sample showed that nothing had arrived for longer than this, though nothing waited for the reader. This is a
    /// lower bound: silences between samples are not seen.
    pub fn silent_share(&self, beyond_s: f64) -> Result<f64, Missing> {
        let (from_s, to_s) = self.window_s();
        let (mut silent_s, mut flows) = (0.0, 0);
        for flow in 0..self.flow_count()? as u16 {
            let mut counted_to_s = from_s;
            for sample in self.samples()? {
                let own = sample.flows.iter().find(|f| f.flow == flow && f.role == self.role);
                let Some(own) = own else { continue };
                let age_s = own.tcp.get()?.last_data_recv_ms()? as f64 / 1e3;
                if age_s > beyond_s && *own.queued_bytes.get()? == 0 {
                    silent_s += (sample.at_s - counted_to_s.max(sample.at_s - age_s)).max(0.0);
                }
                counted_to_s = sample.at_s;
            }
            flows += 1;
        }
        let all_s = positive((to_s - from_s) * f64::from(flows), "the measured window")?;
        Ok((silent_s / all_s).min(1.0))
    }

    /// Time since payload arrived that nine of ten samples do not exceed, seconds: it shows how evenly payload comes.
    pub fn arrival_age_s(&self) -> Result<f64, Missing> {
        let mut ages = self.tcp_gauges(TcpInfo::last_data_recv_ms)?;
        ages.sort_by(f64::total_cmp);
        let place = (0.9 * ages.len().saturating_sub(1) as f64).round() as usize;
        let age = ages.get(place).map(|ms| ms / 1e3);
        age.ok_or_else(|| Missing::because("tcp_info.last_data_recv was not sampled in the window"))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::View;

    fn silent(age_ms: fn(u64) -> u64) -> f64 {
        let case = Case::healthy()
            .silent_sender(move |tcp, number| tcp.last_data_recv_ms = Some(age_ms(number)));
        let evidence = case.evidence();
        View::new(&evidence).receiver.silent_share(0.05).unwrap()
    }

    #[test]
    fn a_silence_counts_once_however_many_samples_fall_into_it() {
        assert_eq!(silent(|_| 0), 0.0);
        assert_eq!(silent(|_| 50), 0.0);
        // 80 of each 100 ms.
        assert!((silent(|_| 80) - 0.8).abs() < 0.05);
        // Silent from the first sample to the last.
        assert!((silent(|number| number * 100) - 1.0).abs() < 0.05);
    }

    #[test]
    fn what_waits_for_the_reader_is_no_silence() {
        let case = Case::healthy().queued(100_000);
        let case = case.silent_sender(|tcp, _| tcp.last_data_recv_ms = Some(90));
        let evidence = case.evidence();
        assert_eq!(View::new(&evidence).receiver.silent_share(0.05), Ok(0.0));
    }
}
