//! What a connection counted before its first sample. A sampler that comes late, or a busy host, leaves a part of the start
//! unseen, but the counters of a connection that carries nothing but this measurement began at nothing.

use std::sync::LazyLock;

use goodput_model::{FlowSample, Sample, TcpInfo};

use super::{Moment, Side};

/// Segments that a sender may send first (RFC 6928, section 2).
const INITIAL_WINDOW_SEGMENTS: u64 = 10;

/// A connection that has counted nothing yet, in slow start.
static NOTHING: LazyLock<TcpInfo> = LazyLock::new(|| {
    let nothing = Some(0);
    TcpInfo {
        ca_state: nothing,
        snd_cwnd_segments: Some(INITIAL_WINDOW_SEGMENTS),
        snd_ssthresh_segments: Some(TcpInfo::INFINITE_SSTHRESH),
        data_segs_out: nothing,
        total_retrans_segments: nothing,
        sent_bytes: nothing,
        retrans_bytes: nothing,
        acked_bytes: nothing,
        delivered_segments: nothing,
        dsack_dups: nothing,
        reord_seen: nothing,
        total_rto: nothing,
        ..TcpInfo::default()
    }
});

impl<'a> Side<'a> {
    /// When a connection had counted nothing yet, seconds, if it moved payload before this one, its first sample: then or
    /// later. `None` if the sample shows all that it lost, or if the connection may be older than the measurement.
    pub fn unseen_from_s(&self, first: &Sample, flow: &FlowSample) -> Option<f64> {
        if !self.is_fresh || !is_begun(flow, flow.tcp.value()?) {
            return None;
        }
        let times_s = self.end().ok()?.samples.iter().map(|sample| sample.at_s);
        let before_s = times_s.filter(|at_s| at_s.is_finite() && *at_s < first.at_s);
        Some(before_s.fold(first.at_s.min(0.0), f64::max))
    }

    /// The connection then.
    pub(super) fn unseen(&self, first: &Sample, flow: &FlowSample) -> Option<Moment<'a>> {
        let at_s = self.unseen_from_s(first, flow)?;
        Some(Moment { at_s, is_measured: false, tcp: &NOTHING })
    }
}

/// Whether a connection has sent payload, and this measurement's is most of what it sent. What is lost before any payload is a
/// handshake's, and no start of the flow.
fn is_begun(flow: &FlowSample, tcp: &TcpInfo) -> bool {
    let once = tcp.sent_bytes.zip(tcp.retrans_bytes).map(|(all, again)| all.saturating_sub(again));
    once.is_some_and(|once| once > 0 && once <= flow.bytes.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use goodput_model::{Evidence, Known, Plan};

    use crate::loss::loss;
    use crate::testing::Case;
    use crate::view::View;

    /// 100 segments in each sample; 20 of the first 200 turn out to be lost, and arrive at the sixth.
    fn overshoots() -> Case {
        let case = Case::path_loss().goodput(100.0 * 1448.0 * 80.0).wobble(0.0);
        case.tcp(|tcp, number| {
            let again = if number >= 3 { 20 } else { 0 };
            let arrived = if (3..6).contains(&number) { 180 } else { 100 * number };
            let sent = 100 * number + again;
            (tcp.data_segs_out, tcp.sent_bytes) = (Some(sent), Some(sent * 1448));
            (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(again), Some(again * 1448));
            (tcp.delivered_segments, tcp.acked_bytes) = (Some(arrived), Some(arrived * 1448));
            tcp.unacked_segments = Some(100 * number - arrived);
            (tcp.dsack_dups, tcp.reord_seen, tcp.rttvar_us) = (Some(0), Some(0), Some(500));
            tcp.ca_state = Some(if (3..6).contains(&number) { 3 } else { 0 });
        })
    }

    /// Without the first samples.
    fn sampled_late(case: &Case, late: usize) -> Evidence {
        let mut evidence = case.evidence();
        let Known::Value(near) = &mut evidence.near else { panic!("the case has both ends") };
        Arc::make_mut(near).samples.drain(..late);
        evidence
    }

    #[test]
    fn what_was_lost_before_the_first_sample_is_the_start_s() {
        for late in [0, 1, 4] {
            let evidence = sampled_late(&overshoots(), late);
            let view = View::new(&evidence);
            let episodes = view.sender.episodes().unwrap();
            let start = episodes.start().unwrap();
            assert_eq!((start.lost, start.sent), (20.0, 620.0), "{late}");
            assert_eq!((episodes.count(), episodes.since().unwrap().lost), (1, 0.0), "{late}");
            let lost = loss(&view).unwrap();
            assert_eq!((lost.sent_segments, lost.repeated_segments), (4020, 20), "{late}");
        }
    }

    #[test]
    fn what_a_connection_counted_before_the_measurement_is_not_its_own() {
        let lost = |evidence: &Evidence| {
            let view = View::new(evidence);
            let count = view.sender.episodes().unwrap().count();
            (count, loss(&view).unwrap().repeated_segments)
        };
        let watched = overshoots().plan(|plan: &mut Plan| plan.mover = Plan::WATCHING.into());
        assert_eq!(lost(&sampled_late(&watched, 7)), (0, 0));
        // One that had carried something else.
        let older = overshoots().tcp(|tcp, _| {
            tcp.sent_bytes = tcp.sent_bytes.map(|bytes| bytes + 1_000_000_000);
        });
        assert_eq!(lost(&sampled_late(&older, 7)), (0, 0));
    }

    #[test]
    fn what_a_handshake_lost_is_no_start() {
        let evidence = overshoots()
            .tcp(|tcp, _| {
                tcp.total_retrans_segments = tcp.total_retrans_segments.map(|again| again + 1);
                tcp.total_rto = Some(1);
            })
            .evidence();
        let start = View::new(&evidence).sender.episodes().unwrap().start().unwrap();
        assert_eq!((start.lost, start.sent), (20.0, 620.0));
    }

    /// A SYN was sent again before the first sample, and nothing else ever.
    #[test]
    fn what_a_handshake_lost_before_a_late_first_sample_is_no_episode() {
        let case =
            Case::path_loss().goodput(100.0 * 1448.0 * 80.0).wobble(0.0).tcp(|tcp, number| {
                (tcp.data_segs_out, tcp.sent_bytes) =
                    (Some(100 * number), Some(100 * number * 1448));
                (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(1), Some(0));
                (tcp.total_rto, tcp.ca_state) = (Some(1), Some(0));
                (tcp.acked_bytes, tcp.snd_ssthresh_segments) = (tcp.sent_bytes, None);
            });
        for late in [0, 1, 4] {
            let evidence = sampled_late(&case, late);
            assert_eq!(View::new(&evidence).sender.episodes().unwrap().count(), 0, "{late}");
        }
    }

    /// One segment that was sent again is a probe, unless something cut the window.
    #[test]
    fn a_threshold_that_was_never_set_was_not_cut() {
        let cuts = |threshold: Option<u64>| {
            let case = Case::path_loss().goodput(100.0 * 1448.0 * 80.0).wobble(0.0);
            let case = case.tcp(move |tcp, number| {
                let sent = 100 * number + 1;
                (tcp.data_segs_out, tcp.sent_bytes) = (Some(sent), Some(sent * 1448));
                (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(1), Some(1448));
                (tcp.total_rto, tcp.ca_state, tcp.dsack_dups) = (Some(0), Some(0), Some(0));
                tcp.snd_ssthresh_segments = threshold;
            });
            let evidence = sampled_late(&case, 4);
            View::new(&evidence).sender.episodes().unwrap().count()
        };
        assert_eq!((cuts(None), cuts(Some(70))), (0, 1));
    }
}
