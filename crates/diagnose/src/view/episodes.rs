//! Episodes of loss: when each flow lost something, how much, what waited in a queue then, and in which phase it was.
//!
//! ```text
//! samples of a flow ──▶ the first that shows a loss ──▶ until all that was sent by then has arrived ──▶ the next
//! ```
//!
//! An episode is a recovery as in RFC 6675, as far as samples show it: it ends at the recovery point. Rules ask these episodes
//! only, so that "the start", "since" and "the end" mean the same times to all of them, however long a round trip takes. A
//! tail-loss probe (RFC 8985, section 7) is none: the sender doesn't know yet whether anything was lost.

use goodput_model::{Missing, TcpInfo};

use super::{LossStep, Moment, positive};

/// `TCP_CA_Open` of include/uapi/linux/tcp.h: nothing is missing.
const CA_OPEN: u64 = 0;
/// `TCP_CA_CWR`: the window is being cut. The states above are those of a recovery.
const CA_CWR: u64 = 2;
/// `TCP_CA_Recovery`; the only state above is `TCP_CA_Loss`.
const CA_RECOVERY: u64 = 3;
/// A probe sends this many segments again at most.
const MAX_PROBED_SEGMENTS: u64 = 1;

/// What a sender did when it lost something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It doubled its window in each round trip.
    SlowStart,
    /// It repaired earlier losses.
    Recovery,
    /// It sent at a rate that it knew, or slowly more.
    Probing,
}

/// One recovery of one flow.
#[derive(Debug, Clone, Copy)]
pub struct Episode<'a> {
    /// The last sample before it, or the begin of a connection that lost something before its first sample.
    before: Moment<'a>,
    /// The first sample that shows a loss.
    seen: Moment<'a>,
    /// The first sample at which all that had been sent until then has arrived; else the flow's last.
    end: Moment<'a>,
    is_over: bool,
}

impl Episode<'_> {
    /// Segments sent, and those of them sent again.
    pub fn lost(&self) -> Result<LossStep, Missing> {
        between(&self.before, &self.end)
    }

    /// By how much round trips exceeded the shortest, `base_s`, when it began: the shorter one before and after the loss,
    /// seconds.
    pub fn queue_s(&self, base_s: f64) -> Result<f64, Missing> {
        let seen_us = self.seen.tcp.rtt_us()?;
        // Before the first sample of a connection, no round trip is known.
        let least_us = self.before.tcp.rtt_us.map_or(seen_us, |before_us| before_us.min(seen_us));
        Ok(least_us as f64 / 1e6 - base_s)
    }

    /// What the flow did when it began. BBR sets a slow-start threshold when it has found the rate (net/ipv4/tcp_bbr.c,
    /// `bbr_check_drain`).
    pub fn phase(&self) -> Result<Phase, Missing> {
        let tcp = self.before.tcp;
        Ok(match tcp.snd_cwnd_segments()? < tcp.snd_ssthresh_segments()? {
            _ if tcp.ca_state()? >= CA_RECOVERY => Phase::Recovery,
            true => Phase::SlowStart,
            false => Phase::Probing,
        })
    }

    /// Slow-start threshold that its first loss left, segments: the size to which the window was cut. `None` if the threshold
    /// was there before (HyStart and saved metrics leave one, too), or was taken back.
    pub fn cut_to_segments(&self) -> Result<Option<f64>, Missing> {
        let before = self.before.tcp.snd_ssthresh_segments()?;
        let (left, end) =
            (self.seen.tcp.snd_ssthresh_segments()?, self.end.tcp.snd_ssthresh_segments()?);
        let was_cut = left < TcpInfo::INFINITE_SSTHRESH && left != before && end != before;
        Ok(was_cut.then_some(left as f64))
    }
}

/// The episodes of one flow.
#[derive(Debug, Clone)]
struct FlowEpisodes<'a> {
    moments: Vec<Moment<'a>>,
    episodes: Vec<Episode<'a>>,
}

impl<'a> FlowEpisodes<'a> {
    fn of(moments: Vec<Moment<'a>>) -> Result<Self, Missing> {
        let (mut episodes, mut at) = (Vec::new(), 0);
        while let Some(seen) = next_loss(&moments, at)? {
            let over = recovered(&moments, seen);
            at = over.unwrap_or(moments.len() - 1);
            let (before, end) = (moments[seen - 1], moments[at]);
            episodes.push(Episode { before, seen: moments[seen], end, is_over: over.is_some() });
        }
        Ok(Self { moments, episodes })
    }

    /// Its start: the first episode, if it ended. Until then a sender finds the rate of a path, at up to twice that rate, and
    /// what this costs says nothing about later. One that never ends costs all the time.
    fn start(&self) -> Option<&Episode<'a>> {
        self.episodes.first().filter(|first| first.is_over)
    }

    /// Until the first episode was over; until the last sample, if that never was. `None` if nothing was lost.
    fn first_losses(&self) -> Option<(Moment<'a>, Moment<'a>)> {
        self.episodes.first().map(|first| (self.moments[0], first.end))
    }

    /// The last sample at which more had been sent again.
    fn last_loss_s(&self) -> Result<Option<f64>, Missing> {
        let mut last_s = None;
        for pair in self.moments.windows(2) {
            if pair[1].tcp.total_retrans_segments()? > pair[0].tcp.total_retrans_segments()? {
                last_s = Some(pair[1].at_s);
            }
        }
        Ok(last_s)
    }

    /// From the end of the start to the last sample; from the first sample without such an end.
    fn since(&self) -> [Moment<'a>; 2] {
        let last = self.moments[self.moments.len() - 1];
        [self.start().map_or(self.moments[0], |start| start.end), last]
    }
}

/// The first sample after this one in which the sender has found something lost.
fn next_loss(moments: &[Moment], at: usize) -> Result<Option<usize>, Missing> {
    for later in at + 1..moments.len() {
        if finds_loss(moments[later - 1].tcp, moments[later].tcp)? {
            return Ok(Some(later));
        }
    }
    Ok(None)
}

/// Whether more has been sent again than a probe sends, or the sender recovers, cut its window or waited for a time-out. One
/// segment that BBR repairs between two samples can't be told from a probe. A handshake's segment that was sent again is no
/// payload.
fn finds_loss(before: &TcpInfo, after: &TcpInfo) -> Result<bool, Missing> {
    let again = after.total_retrans_segments()?.saturating_sub(before.total_retrans_segments()?);
    let grown = |read: fn(&TcpInfo) -> Option<u64>| {
        read(after).zip(read(before)).map_or(0, |(after, before)| after.saturating_sub(before))
    };
    let is_recovering = [before, after].iter().any(|tcp| tcp.ca_state.is_some_and(|s| s >= CA_CWR));
    // A record has no number for a threshold that was never set.
    let threshold = |tcp: &TcpInfo| tcp.snd_ssthresh_segments().ok();
    let is_cut = threshold(after).zip(threshold(before)).is_some_and(|(left, was)| left != was);
    let is_payload = after.retrans_bytes != Some(0);
    let needless = grown(|tcp| tcp.dsack_dups);
    Ok(again > 0
        && is_payload
        && (is_recovering
            || is_cut
            || grown(|tcp| tcp.total_rto) > 0
            || again.saturating_sub(needless) > MAX_PROBED_SEGMENTS))
}

/// The first sample, from the one that shows the loss on, at which the kernel misses nothing, or all that had been sent by then
/// has arrived.
fn recovered(moments: &[Moment], seen: usize) -> Option<usize> {
    let sent = |tcp: &TcpInfo| tcp.sent_bytes?.checked_sub(tcp.retrans_bytes?);
    let point = sent(moments[seen].tcp);
    let is_over = |moment: &Moment| {
        let arrived = point.zip(moment.tcp.acked_bytes);
        moment.tcp.ca_state == Some(CA_OPEN) || arrived.is_some_and(|(all, acked)| acked >= all)
    };
    moments[seen..].iter().position(is_over).map(|after| seen + after)
}

/// What one flow sent, and sent again, from one sample to another.
fn between(from: &Moment, to: &Moment) -> Result<LossStep, Missing> {
    let grown = |read: fn(&TcpInfo) -> Result<u64, Missing>| {
        Ok::<_, Missing>(read(to.tcp)?.saturating_sub(read(from.tcp)?) as f64)
    };
    Ok(LossStep {
        seconds: to.at_s - from.at_s,
        sent: grown(TcpInfo::data_segs_out)?,
        lost: grown(TcpInfo::total_retrans_segments)?,
    })
}

/// The episodes of all flows of one side, over the whole run.
#[derive(Debug, Clone)]
pub struct Episodes<'a> {
    flows: Vec<FlowEpisodes<'a>>,
}

impl<'a> Episodes<'a> {
    /// Of these connections, each in the order of time.
    pub(super) fn of(connections: Vec<Vec<Moment<'a>>>) -> Result<Self, Missing> {
        let flows = connections.into_iter().map(FlowEpisodes::of);
        Ok(Self { flows: flows.collect::<Result<_, _>>()? })
    }

    fn all(&self) -> impl Iterator<Item = &Episode<'a>> {
        self.flows.iter().flat_map(|flow| &flow.episodes)
    }

    /// When the start of each flow was over, in the order of the flows: with its first episode, seconds. At once, if it lost
    /// nothing or never recovered.
    pub fn starts_over_s(&self) -> Vec<f64> {
        self.flows.iter().map(|flow| flow.since()[0].at_s).collect()
    }

    /// How many there are, of all flows.
    pub fn count(&self) -> usize {
        self.all().count()
    }

    /// Segments sent and lost until each flow's first episode was over; the time is the longest. Nothing for a flow that lost
    /// nothing, or that never recovered.
    pub fn start(&self) -> Result<LossStep, Missing> {
        sum(self.flows.iter().filter_map(|flow| Some((flow.moments[0], flow.start()?.end))))
    }

    /// The same, and all that a flow sent and lost which never recovered: that is no start, but what it lost from the first
    /// window on.
    pub fn first_losses(&self) -> Result<LossStep, Missing> {
        sum(self.flows.iter().filter_map(FlowEpisodes::first_losses))
    }

    /// How many flows never recovered from their first losses.
    pub fn stuck_flows(&self) -> usize {
        let is_stuck = |flow: &&FlowEpisodes| flow.episodes.first().is_some_and(|e| !e.is_over);
        self.flows.iter().filter(is_stuck).count()
    }

    /// Segments sent and lost after that.
    pub fn since(&self) -> Result<LossStep, Missing> {
        sum(self.flows.iter().map(|flow| flow.since().into()))
    }

    /// Retransmitted share of the bytes sent after the start.
    pub fn lost_share_since(&self) -> Result<f64, Missing> {
        let (mut again, mut sent) = (0.0, 0.0);
        for [from, to] in self.flows.iter().map(FlowEpisodes::since) {
            let grown = |from: u64, to: u64| to.saturating_sub(from) as f64;
            again += grown(from.tcp.retrans_bytes()?, to.tcp.retrans_bytes()?);
            sent += grown(from.tcp.sent_bytes()?, to.tcp.sent_bytes()?);
        }
        Ok(again / positive(sent, "the bytes sent")?)
    }

    /// Whether most of what the start lost was lost in slow start.
    pub fn began_in_slow_start(&self) -> Result<bool, Missing> {
        let (mut all, mut slow) = (0.0, 0.0);
        for start in self.flows.iter().filter_map(FlowEpisodes::start) {
            let lost = start.lost()?.lost;
            all += lost;
            slow += if start.phase()? == Phase::SlowStart { lost } else { 0.0 };
        }
        Ok(2.0 * slow > all)
    }

    /// Slow-start threshold that the flows' starts left, segments: the median; `None` if they cut no window.
    pub fn start_cut_to_segments(&self) -> Result<Option<f64>, Missing> {
        let starts = self.flows.iter().filter_map(FlowEpisodes::start);
        let cuts = starts.map(Episode::cut_to_segments).collect::<Result<Vec<_>, _>>()?;
        Ok(goodput_model::median(cuts.into_iter().flatten()))
    }

    /// Slow-start thresholds that losses left, segments, for the flow with most of them; equal ones in a row count once. A
    /// full queue cuts a window at the same size each time, after the first; chance cuts at any size.
    pub fn cuts_segments(&self) -> Result<Vec<f64>, Missing> {
        let mut most = Vec::new();
        for flow in &self.flows {
            let cuts = flow.episodes.iter().map(Episode::cut_to_segments);
            let mut cuts: Vec<f64> =
                cuts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
            cuts.dedup();
            if cuts.len() > most.len() {
                most = cuts;
            }
        }
        Ok(most)
    }

    /// Whether most of what was lost was lost while so many seconds of queue stood, before the loss and after it; `base_s` is
    /// the round trip without a queue.
    pub fn lost_while(&self, base_s: f64, is_queue: impl Fn(f64) -> bool) -> Result<bool, Missing> {
        let (mut all, mut queued) = (0.0, 0.0);
        for episode in self.all() {
            let lost = episode.lost()?.lost;
            all += lost;
            queued += if is_queue(episode.queue_s(base_s)?) { lost } else { 0.0 };
        }
        Ok(2.0 * queued > all)
    }

    /// Share of all segments that had been sent when the last episode was over, and nothing more was sent again, 0 to 1.
    pub fn sent_share_at_end(&self) -> Result<f64, Missing> {
        let last_s: Vec<_> =
            self.flows.iter().map(FlowEpisodes::last_loss_s).collect::<Result<_, _>>()?;
        let ends_s = self.all().map(|episode| episode.end.at_s);
        let ended_s = ends_s.chain(last_s.into_iter().flatten()).fold(0.0, f64::max);
        let (mut by_then, mut all) = (0.0, 0.0);
        for flow in &self.flows {
            let (first, last) = (&flow.moments[0], &flow.moments[flow.moments.len() - 1]);
            let until = flow.moments.iter().rev().find(|moment| moment.at_s <= ended_s);
            by_then += until.map_or(Ok(0.0), |until| Ok(between(first, until)?.sent))?;
            all += between(first, last)?.sent;
        }
        Ok(by_then / positive(all, "the packets sent")?)
    }
}

/// All of these together; the time is the longest.
fn sum<'a>(parts: impl Iterator<Item = (Moment<'a>, Moment<'a>)>) -> Result<LossStep, Missing> {
    let mut sum = LossStep { seconds: 0.0, sent: 0.0, lost: 0.0 };
    for (from, to) in parts {
        let part = between(&from, &to)?;
        sum.seconds = sum.seconds.max(part.seconds);
        sum.sent += part.sent;
        sum.lost += part.lost;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use crate::view::View;

    /// What a sample counts: segments sent, sent again, and arrived in order.
    type Counts = [u64; 3];

    /// A flow that counts this. The kernel misses something from the first loss on.
    fn flow(count: impl Fn(u64) -> Counts + 'static) -> Case {
        Case::path_loss().tcp(move |tcp, number| {
            let [sent, again, arrived] = count(number);
            (tcp.data_segs_out, tcp.sent_bytes) = (Some(sent), Some(sent * 1448));
            (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(again), Some(again * 1448));
            tcp.acked_bytes = Some(arrived * 1448);
            tcp.ca_state = Some(if again > 0 { CA_RECOVERY } else { CA_OPEN });
            tcp.snd_ssthresh_segments = Some(TcpInfo::INFINITE_SSTHRESH);
        })
    }

    fn asked<T>(case: &Case, ask: impl Fn(&Episodes) -> Result<T, Missing>) -> T {
        let evidence = case.evidence();
        ask(View::new(&evidence).sender.episodes().unwrap()).unwrap()
    }

    /// 100 segments in each sample. At the third, 20 of the 200 before turn out to be lost; they arrive at the sixth, as does
    /// what follows. Two are lost at the tenth, and arrive at once.
    fn overshoots(number: u64) -> Counts {
        let again = if number >= 3 { 20 } else { 0 } + if number >= 10 { 2 } else { 0 };
        let arrived = if (3..6).contains(&number) { 180 } else { 100 * number };
        [100 * number + again, again, arrived]
    }

    #[test]
    fn an_episode_lasts_until_what_had_been_sent_by_then_has_arrived() {
        let case = flow(overshoots);
        let [start, since] = asked(&case, |of| Ok([of.start()?, of.since()?]));
        assert_eq!((start.lost, start.sent), (20.0, 620.0));
        assert!((start.seconds - 0.6).abs() < 1e-9, "{start:?}");
        assert_eq!((since.lost, since.sent), (2.0, 3402.0));
        assert_eq!(asked(&case, |of| Ok(of.count())), 2);
        let share = asked(&case, |of| of.lost_share_since());
        assert!((share - 2.0 / 3402.0).abs() < 1e-9, "{share}");
        let ended = asked(&case, |of| of.sent_share_at_end());
        assert!((ended - 1022.0 / 4022.0).abs() < 1e-9, "{ended}");
    }

    #[test]
    fn a_kernel_that_misses_nothing_has_recovered() {
        let case = flow(overshoots).tcp(|tcp, number| {
            tcp.ca_state = Some(if number == 3 { CA_RECOVERY } else { CA_OPEN });
        });
        assert!((asked(&case, |of| of.start()).seconds - 0.4).abs() < 1e-9);
    }

    #[test]
    fn what_never_recovers_is_no_start() {
        let stuck = |number: u64| [100 * number.min(3) + number, number, 10];
        let [start, since, first] =
            asked(&flow(stuck), |of| Ok([of.start()?, of.since()?, of.first_losses()?]));
        assert_eq!((start.lost, start.sent), (0.0, 0.0));
        assert_eq!((since.lost, since.sent), (40.0, 340.0));
        assert_eq!((first.lost, first.sent), (40.0, 340.0));
        assert_eq!(asked(&flow(stuck), |of| Ok(of.stuck_flows())), 1);
        assert_eq!(asked(&flow(overshoots), |of| Ok(of.stuck_flows())), 0);
        let nothing = flow(|number| [100 * number, 0, 100 * number]);
        let [start, since] = asked(&nothing, |of| Ok([of.start()?, of.since()?]));
        assert_eq!((start.sent, since.sent), (0.0, 4000.0));
    }

    /// The threshold that BBR sets when it has found the rate, or a window that chance cut.
    #[test]
    fn the_threshold_tells_slow_start_from_what_follows() {
        let slow = |threshold: u64| {
            let case = flow(overshoots).tcp(move |tcp, number| {
                let unset = number < 3 && threshold > 7;
                tcp.snd_ssthresh_segments =
                    Some(if unset { TcpInfo::INFINITE_SSTHRESH } else { threshold });
            });
            let cut = asked(&case, |of| of.start_cut_to_segments());
            // One that was there before is no loss's.
            assert_eq!(cut, (threshold > 7).then_some(threshold as f64));
            asked(&case, |of| of.began_in_slow_start())
        };
        assert!(slow(14) && !slow(7));
    }

    #[test]
    fn what_was_lost_beside_a_queue_is_told_from_what_was_not() {
        let while_queued = |from: u64, until: u64| {
            let case = flow(overshoots).tcp(move |tcp, number| {
                let queued = (from..=until).contains(&number);
                tcp.rtt_us = Some(if queued { 90_000 } else { 20_000 });
            });
            asked(&case, |of| of.lost_while(0.02, |queue_s| queue_s > 0.01))
        };
        assert!(while_queued(2, 4), "the 20 segments");
        assert!(!while_queued(9, 12), "the two");
        assert!(!while_queued(3, 40), "no queue before the loss");
    }

    #[test]
    fn equal_cuts_in_a_row_are_one() {
        let cuts = |first: u64, lost: u64| {
            let count = move |number: u64| [(100 + lost) * number, lost * number, 100 * number];
            let case = flow(count).tcp(move |tcp, number| {
                tcp.ca_state = Some(CA_OPEN);
                let each = [70, 70, 40, 70][number as usize / 10 % 4];
                tcp.snd_ssthresh_segments = Some(if number == 0 { first } else { each });
            });
            asked(&case, |of| of.cuts_segments())
        };
        assert_eq!(cuts(TcpInfo::INFINITE_SSTHRESH, 2), [70.0, 40.0, 70.0]);
        assert_eq!(cuts(70, 2), [40.0, 70.0], "the first was there before anything was lost");
        assert_eq!(cuts(TcpInfo::INFINITE_SSTHRESH, 0), [0.0; 0], "nothing was lost");
    }

    /// Before the 20 segments of [`overshoots`] are found lost, and long after, one is sent again.
    fn probes(number: u64) -> Counts {
        let [sent, again, arrived] = overshoots(number);
        let probes = u64::from(number >= 2) + u64::from(number >= 30);
        [sent + probes, again + probes, arrived]
    }

    #[test]
    fn a_tail_loss_probe_is_no_loss_and_ends_no_start() {
        let case = flow(probes).tcp(|tcp, number| {
            let recovers = (3..6).contains(&number) || number == 10;
            tcp.ca_state = Some(if recovers { CA_RECOVERY } else { CA_OPEN });
        });
        assert_eq!(asked(&case, |of| Ok(of.count())), 2);
        let start = asked(&case, |of| of.start());
        assert_eq!((start.lost, start.sent), (21.0, 621.0));
        assert!((start.seconds - 0.6).abs() < 1e-9, "{start:?}");
        // Whatever it was, nothing says that losses had ended before.
        let ended = asked(&case, |of| of.sent_share_at_end());
        assert!((ended - 3024.0 / 4024.0).abs() < 1e-9, "{ended}");
    }

    /// A connection whose samples have these counts, state and slow-start threshold, with a window of 50 segments.
    fn moments(infos: &[(Counts, u64, u64)]) -> Vec<TcpInfo> {
        let info = |([sent, again, arrived], state, threshold): &(Counts, u64, u64)| TcpInfo {
            data_segs_out: Some(*sent),
            sent_bytes: Some(*sent * 1448),
            total_retrans_segments: Some(*again),
            retrans_bytes: Some(*again * 1448),
            acked_bytes: Some(*arrived * 1448),
            ca_state: Some(*state),
            snd_cwnd_segments: Some(50),
            snd_ssthresh_segments: Some(*threshold),
            ..TcpInfo::default()
        };
        infos.iter().map(info).collect()
    }

    #[test]
    fn all_that_is_asked_of_the_start_is_about_the_same_flows() {
        let none = TcpInfo::INFINITE_SSTHRESH;
        let recovers =
            moments(&[([0, 0, 0], 0, none), ([110, 10, 90], 3, 35), ([210, 10, 200], 0, 35)]);
        let never = moments(&[([0, 0, 0], 0, 30), ([140, 40, 60], 3, 20), ([150, 50, 60], 4, 10)]);
        let moment = |(at, tcp)| Moment { at_s: f64::from(at), is_measured: true, tcp };
        let flow = |infos| (0..).zip(infos).map(moment).collect::<Vec<_>>();
        let of = Episodes::of(vec![flow(&recovers), flow(&never)]).unwrap();
        assert_eq!(of.start().unwrap().lost, 10.0);
        assert!(of.began_in_slow_start().unwrap());
        assert_eq!(of.start_cut_to_segments(), Ok(Some(35.0)));
        assert_eq!(of.first_losses().unwrap().lost, 60.0);
    }
}
