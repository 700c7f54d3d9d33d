//! A burst that slow start lost at a window that passes if it grows slowly.

use goodput_model::Missing;

use crate::thresholds::MIN_LIMITING_TIME_SHARE;
use crate::view::{LossStep, View};

/// Packets lost at once, and their share of those sent by then, that chance does not explain. At 1 % chance
/// takes 8 of 200 once in 3000 times. Measured: 11 of 253 and 17 of 203 at queues of 10 packets.
const MIN_BURST_PACKETS: f64 = 8.0;
const MIN_BURST_LOSS_SHARE: f64 = 0.03;
/// The burst's loss share over the share lost since. Chance gives 1; queues met again were measured to give 50.
const MIN_BURST_LOSS_RATIO: f64 = 20.0;
/// Ninth decile of the window since, over the window at which the burst was lost. A queue that overflows
/// at one window overflows at any larger one.
const MIN_LATER_WINDOW_RATIO: f64 = 1.25;
/// Share of the window left after a loss: CUBIC (RFC 9438 section 4.6) and Reno (RFC 5681).
const CUBIC_KEPT_WINDOW_SHARE: f64 = 0.7;
const RENO_KEPT_WINDOW_SHARE: f64 = 0.5;

/// The losses of slow start, and what has passed since.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurstLoss {
    /// Packets sent and lost until the first losses were repaired.
    pub start: LossStep,
    /// Packets sent and lost since then.
    pub since: LossStep,
    /// Congestion window at which the burst was lost, segments.
    pub window: f64,
    /// Congestion window that has passed since, segments: the ninth decile.
    pub passed: f64,
    /// Whether `passed` is clearly more than `window`. If not, it is only known that the window, cut for the burst, has
    /// been too small ever since, so that the queue holds less than the cut takes away.
    pub outgrown: bool,
}

impl BurstLoss {
    /// The burst, for a congestion control that backs off; `None` if there was none.
    pub fn of(view: &View) -> Result<Option<Self>, Missing> {
        if !view.backs_off_at_loss()? || view.needs_start().is_err() {
            return Ok(None);
        }
        let episodes = view.sender.episodes()?;
        let (start, since) = (episodes.start()?, episodes.since()?);
        let Some(left) = episodes.start_cut_to_segments()? else { return Ok(None) };
        let reno = view.congestion()? == "reno";
        let leaves = if reno { RENO_KEPT_WINDOW_SHARE } else { CUBIC_KEPT_WINDOW_SHARE };
        let (window, (_, _, passed)) = (left / leaves, view.sender.congestion_window_deciles()?);
        let lost = start.lost >= MIN_BURST_PACKETS
            && start.share() >= MIN_BURST_LOSS_SHARE
            && start.share() >= MIN_BURST_LOSS_RATIO * since.share();
        let outgrown = passed >= MIN_LATER_WINDOW_RATIO * window;
        let burst = Self { start, since, window, passed, outgrown };
        // Reno takes half away; few queues make up for that.
        let stays_cut = || Ok(!reno && view.sender.cut_window_share()? >= MIN_LIMITING_TIME_SHARE);
        Ok((lost && (outgrown || stays_cut()?)).then_some(burst))
    }
}

/// Losses in fewer steps show no level, and neither do losses in more than half of the steps.
const MIN_LOSS_STEPS: usize = 4;
/// Ninth over first decile of the window left at each loss, up to which the window meets one level.
/// Measured: 1.0 at a queue of 20 packets; chance gave 1.7 to 4.
const MAX_ONE_LEVEL_DECILE_RATIO: f64 = 1.15;
/// Smaller windows stay at one level whatever limits them, segments.
const MIN_WINDOW_SEGMENTS: f64 = 10.0;
/// Mean rate over the best steps' rate, below which the queue empties at each loss.
const MAX_EMPTYING_QUEUE_RATE_RATIO: f64 = 0.95;

/// A level that the window meets repeatedly. This happens if an overflowing queue is too short
/// to keep the link busy while the window is small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Steps in which something was lost.
    pub losses: usize,
    /// Congestion window left each time, segments.
    pub left: f64,
    /// Mean rate over the rate of the best steps.
    pub used: f64,
}

impl Level {
    /// The level, for a congestion control that backs off; `None` if there is none.
    pub fn of(view: &View) -> Result<Option<Self>, Missing> {
        let Ok(losses) = view.sender.losses() else { return Ok(None) };
        let Ok((low, left, high)) = view.sender.slow_start_threshold_deciles() else {
            return Ok(None);
        };
        let used = losses.passed_on_average() / losses.passed_at_best();
        let meets = (MIN_LOSS_STEPS..=losses.count() / 2).contains(&losses.events())
            && left >= MIN_WINDOW_SEGMENTS
            && high <= MAX_ONE_LEVEL_DECILE_RATIO * low;
        let level = Self { losses: losses.events(), left, used };
        Ok((view.backs_off_at_loss()? && meets && used < MAX_EMPTYING_QUEUE_RATE_RATIO)
            .then_some(level))
    }
}

/// Index of dispersion above which losses come in clusters. Measured: 0.6 to 1.4 by chance, 5 to 9 at
/// queues of 8 to 30 packets, but also 2 to 6 by bursts of chance.
const MIN_CLUSTERED_DISPERSION: f64 = 3.0;

/// The same without the step that lost most, above which no bursts of chance explain it. Measured: up
/// to 5.4 by bursts of chance, 6.6 to 41 at queues of 5 to 36 packets.
const MIN_CLEAR_DISPERSION: f64 = 6.5;

/// Losses that come in clusters, each time the window is full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clusters {
    /// Packets lost in all.
    pub lost: f64,
    /// Steps in which something was lost.
    pub events: usize,
    /// Index of dispersion: 1 by chance.
    pub dispersion: f64,
    /// Whether the dispersion exceeds what bursts of chance leave.
    pub by_far: bool,
}

impl Clusters {
    /// The clusters, for a congestion control that backs off; `None` if there are none.
    pub fn of(view: &View) -> Result<Option<Self>, Missing> {
        let Ok(losses) = view.sender.losses() else { return Ok(None) };
        let (lost, events, dispersion) = (losses.lost(), losses.events(), losses.clustering());
        let several = lost >= MIN_BURST_PACKETS
            && dispersion >= MIN_CLUSTERED_DISPERSION
            && events <= losses.count() / 2;
        let cut = several && view.sender.cut_window_share()? >= MIN_LIMITING_TIME_SHARE;
        let by_far = losses.clustering_without_worst() >= MIN_CLEAR_DISPERSION;
        let clusters = Self { lost, events, dispersion, by_far };
        Ok((cut && view.backs_off_at_loss()?).then_some(clusters))
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::TcpInfo;

    use super::*;
    use crate::testing::Case;

    /// 11 of 253 packets lost at 36 segments, then 26 to 126 segments without loss, as measured.
    fn burst(lost: u64, last: u64) -> Option<BurstLoss> {
        let case = Case::path_loss().retransmitted(0.0).tcp(move |tcp, number| {
            let again = lost * u64::from(number > 1);
            (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(again), Some(again * 1448));
            tcp.data_segs_out = Some(126 * number);
            tcp.snd_ssthresh_segments =
                Some(if number > 1 { 26 } else { TcpInfo::INFINITE_SSTHRESH });
            tcp.snd_cwnd_segments = Some(26 + (last - 26) * number / 40);
            tcp.unacked_segments = tcp.snd_cwnd_segments;
        });
        BurstLoss::of(&View::new(&case.evidence())).unwrap()
    }

    #[test]
    fn a_burst_lost_at_a_window_that_passes_later() {
        let found = burst(11, 126).unwrap();
        assert!((found.window - 37.0).abs() < 1.0 && found.passed > 100.0, "{found:?}");
    }

    /// One packet lost every eighth sample, at 100 segments, from 7000 to 8400 packets a second.
    fn level(spread: u64) -> Option<Level> {
        let case = Case::path_loss().tcp(move |tcp, number| {
            tcp.total_retrans_segments = Some(number / 8);
            tcp.data_segs_out = Some((0..number).map(|n| 700 + 20 * (n % 8)).sum());
            tcp.snd_ssthresh_segments = Some(72 + spread * (number / 8));
        });
        Level::of(&View::new(&case.evidence())).unwrap()
    }

    #[test]
    fn losses_that_come_several_at_once() {
        let every_eighth = |lost: u64| {
            let case = Case::path_loss().tcp(move |tcp, number| {
                tcp.total_retrans_segments = Some(lost * (number / 8));
                tcp.data_segs_out = Some(800 * number);
                tcp.snd_ssthresh_segments = Some(72);
                (tcp.snd_cwnd_segments, tcp.unacked_segments) = (Some(90), Some(90));
            });
            Clusters::of(&View::new(&case.evidence())).unwrap()
        };
        assert!(every_eighth(10).unwrap().dispersion > 5.0);
        assert_eq!(every_eighth(1), None);
    }

    #[test]
    fn losses_at_one_level() {
        let found = level(0).unwrap();
        assert!(found.losses >= 4 && found.used < 0.95, "{found:?}");
        assert_eq!(level(10), None);
    }

    #[test]
    fn few_losses_are_none_and_a_window_that_never_returns_is_reported() {
        assert_eq!(burst(3, 126), None);
        assert!(!burst(11, 40).unwrap().outgrown);
        assert_eq!(burst(0, 126), None);
    }
}
