//! The traces of a limit that drops packets at once: a policer, or a queue of a few packets.

use goodput_model::{Confidence, LossModel, Missing};

use crate::account::{Part, held};
use crate::dropping_rate::DroppingRate;
use crate::elimination::is_local;
use crate::fitted::Fitted;
use crate::fitted_limit::FittedLimit;
use crate::loss::loss;
use crate::lost_elsewhere::lost_elsewhere;
use crate::parts;
use crate::thresholds::{MAX_PLATEAU_SPREAD_RATIO, MIN_HEAVY_LOSS_SHARE};
use crate::token_bucket::TokenBucket;
use crate::view::{Bursts, LossStep, Losses, View};

/// Packets lost for each additional packet sent, from which a limit and not chance drops them, and the
/// correlation from which this is no accident. Measured: 0.97 with 0.87 for BBR at a policer, the lost share
/// itself by chance; if something else holds the rate, chance gives 1 too, but no clusters.
const MIN_LOST_PER_EXTRA_SENT: f64 = 0.5;
const MIN_LOSS_CORRELATION: f64 = 0.6;
/// Lost packets of slow start from which it overshot a limit, and the least ratio to the share lost since; the least share
/// of what it sent is fitted.
const MIN_OVERSHOOT_PACKETS: f64 = 10.0;
const MIN_OVERSHOOT_LOSS_RATIO: f64 = 2.0;
/// Lost share from which slow start alone shows the limit.
const MIN_CLEAR_OVERSHOOT_SHARE: f64 = 0.1;
/// A smaller lost share shows the limit too, with more lost packets and a larger ratio to the share lost since.
const MIN_FAINT_OVERSHOOT_SHARE: f64 = 0.02;
const MIN_FAINT_OVERSHOOT_PACKETS: f64 = 25.0;
const MIN_FAINT_OVERSHOOT_LOSS_RATIO: f64 = 20.0;
/// Congestion window since, over the level that slow start ended at, below which something else than
/// that limit holds it: chance on a path that slow start had filled.
const MIN_SAME_LEVEL_CWND_RATIO: f64 = 0.25;
/// Ninth over first decile of the congestion window below which the window reaches the same level again and
/// again if losses came in clusters (without them, it is fitted), in at least the number of steps below. Chance
/// then gives 2.1 and more, and no clusters.
const MAX_CLUSTERED_CWND_DECILE_RATIO: f64 = 1.9;
const MIN_CLUSTERED_LOSS_STEPS: usize = 15;
/// Fewer segments lost since the first recovery have no pattern.
const MIN_LASTING_SEGMENTS: f64 = 3.0;
/// Smaller windows are regular whatever limits them, segments.
const MIN_CWND_SEGMENTS: f64 = 8.0;
/// Losses in fewer steps show no level.
const MIN_LOSS_STEPS: usize = 5;
/// Index of dispersion from which losses come in clusters. Chance gives 1 ± 0.4.
const MIN_CLUSTERED_DISPERSION: f64 = 2.0;
/// Index of dispersion below which losses come too evenly for chance, and the least number of lost packets: a
/// bucket that fills at its rate drops packets at equal distances. Measured: 0.1 to 0.2, by chance 0.6 and more.
const MAX_EVEN_DISPERSION: f64 = 0.35;
const MIN_EVEN_LOST_PACKETS: f64 = 60.0;
/// Loss for each additional packet over the lost share, from which there is a limit, with the least correlation.
const MIN_EXCESS_LOSS_RATIO: f64 = 2.5;
const MIN_EXCESS_LOSS_CORRELATION: f64 = 0.25;
/// Correlation of lost with sent packets that chance does not reach. Measured: 0.92 for BBR at a
/// policer with a bucket of 12 packets.
const MIN_CLOSE_CORRELATION: f64 = 0.8;
/// Pairs of lost share and dispersion from which clusters of losses show a limit without a steady rate. Random
/// loss of whole batches of segmentation offload gives a dispersion of up to 45.
const SEVERE_SHARES_AND_DISPERSIONS: [(f64, f64); 2] = [(0.15, 10.0), (0.03, 100.0)];
/// Spread of the bytes that pass between time-outs, below which a bucket metered them, and time-outs per burst.
/// Measured: 0.02 to 0.1 and 1 at policers that save up tokens for a second, 0.5 and more by chance.
const MAX_METERED_BURST_SPREAD_RATIO: f64 = 0.15;
const MIN_TIMEOUTS_PER_BURST: f64 = 0.7;
/// Loss below which a limit costs nothing.
const MIN_LOSS_SHARE: f64 = 0.0005;
/// What may wait though no queue does: the pacing's own bursts, late scheduling and the wait for a
/// second segment to acknowledge. Bytes and seconds; either explains it, as does a share of the
/// smallest round-trip time. If that is shorter than the hosts take, they are more of it. On hosts whose timers and wake-ups are
/// later it is what round trips vary by on the idle path.
const UNQUEUED_BYTES: f64 = 12_000.0;
const UNQUEUED_S: f64 = 0.0004;
const UNQUEUED_NEARBY_S: f64 = 0.001;
const NEARBY_S: f64 = 0.0005;
const UNQUEUED_SHARE: f64 = 0.03;

/// A limit on the path that drops packets at once instead of queueing them.
pub struct Policing {
    /// What shows it.
    pub marks: Marks,
    /// How sure it is.
    pub confidence: Confidence,
}

impl Policing {
    /// The limit that TCP met, if it met one.
    ///
    /// # Errors
    /// If the sender does not report what it lost, or its round trips.
    pub fn of(view: &View) -> Result<Option<Self>, Missing> {
        if view.sender.retransmitted_segments_in_all()? < MIN_OVERSHOOT_PACKETS
            || lost_elsewhere(view)?
            || is_local(view)?
        {
            return Ok(None);
        }
        // A queue may stand before a bucket, of a link that is faster; it holds the flows, but the bucket drops.
        let has_bucket = TokenBucket::of(view).is_some();
        let held = held(view, if has_bucket { parts::DROPPING_LIMIT } else { dropping(view)? })?;
        let is_queue =
            !has_bucket && (queue_shows(view)? || queue_explains(view) || queue_dropped(view)?);
        if held.is_nothing() || is_queue {
            return Ok(None);
        }
        let marks = Marks::of(view)?;
        Ok(marks.confidence().map(|confidence| Self { marks, confidence }))
    }
}

/// Whether packets wait on the path longer than without any queue.
fn queue_shows(view: &View) -> Result<bool, Missing> {
    let base = view.sender.min_rtt_s()?;
    Ok(WaitBound::of(view)?.is_queue(view.sender.rtt_s()? - base))
}

/// How long packets may wait without a queue.
struct WaitBound {
    seconds: f64,
}

impl WaitBound {
    fn of(view: &View) -> Result<Self, Missing> {
        let base = view.sender.min_rtt_s()?;
        let least = if base < NEARBY_S { UNQUEUED_NEARBY_S } else { UNQUEUED_S };
        let least = least.max(view.idle_jitter_s().unwrap_or(0.0));
        let bytes_s = UNQUEUED_BYTES * 8.0 / view.goodput()?;
        Ok(Self { seconds: least.max(bytes_s).max(UNQUEUED_SHARE * base) })
    }

    /// Whether a wait of this many seconds is longer.
    fn is_queue(&self, waits_s: f64) -> bool {
        waits_s > self.seconds
    }
}

/// Whether most packets were lost while others waited: at a limit without a queue nothing waits, also when slow start meets
/// it, and the mean round trip says little of that time.
fn queue_dropped(view: &View) -> Result<bool, Missing> {
    let least = WaitBound::of(view)?;
    let episodes = view.sender.episodes()?;
    episodes.lost_while(view.sender.min_rtt_s()?, |waits_s| least.is_queue(waits_s))
}

/// What a limit without a queue leaves behind.
pub struct Marks {
    /// What was lost in equal steps since slow start, if enough was.
    pub losses: Option<Losses>,
    /// What slow start lost.
    pub startup: LossStep,
    /// What is sent above a constant rate is lost.
    pub elastic: bool,
    /// Slow start lost a large part of its last window.
    pub overshot: bool,
    /// The same beyond doubt.
    pub overshot_by_far: bool,
    /// The window met the same level again and again.
    pub regular: bool,
    /// The same by losses in clusters.
    pub level: bool,
    /// Losses came more evenly than chance allows.
    pub even: bool,
    /// Losses came in clusters at a constant rate.
    pub clustered: bool,
    /// Heavy losses came in clusters.
    pub severe: bool,
    /// Nothing was lost since slow start.
    pub ended: bool,
    /// Bursts between time-outs in which the same amount passed.
    pub metered: Option<Bursts>,
    /// A token bucket that explains the losses clearly better than a full queue and chance.
    pub bucket: Option<TokenBucket>,
    /// A limit that explains the losses clearly better than chance, if nothing waited before it was lost.
    pub fitted: Option<FittedLimit>,
    /// As much of what all flows sent passed each time.
    pub drops: Option<DroppingRate>,
}

impl Marks {
    fn of(view: &View) -> Result<Self, Missing> {
        let backs_off = view.backs_off_at_loss()?;
        let episodes = view.sender.episodes()?;
        let (startup, since) = (episodes.start()?, episodes.since()?);
        // One that does not back off finds the rate of any path by losses, and these show no pattern of what is lost since.
        let lasts = backs_off || since.lost >= MIN_LASTING_SEGMENTS;
        let losses = view.sender.losses().ok().filter(|_| lasts);
        let overshot = view.needs_start().is_ok()
            && overshoots(&startup, &since)
            && episodes.began_in_slow_start()?
            && same_level(view)?;
        let slope = losses.as_ref().and_then(Losses::elasticity);
        // What is lost follows what is sent too closely for chance, though a little less passes at times.
        let follows = slope.is_some_and(|(_, r)| r >= MIN_CLOSE_CORRELATION);
        let still = if follows { 2.0 * MAX_PLATEAU_SPREAD_RATIO } else { MAX_PLATEAU_SPREAD_RATIO };
        let steady = losses.as_ref().is_some_and(|l| l.passed_spread() < still);
        let share = losses.as_ref().map_or(0.0, |losses| losses.share);
        let clustering = losses.as_ref().map_or(0.0, Losses::clustering);
        Ok(Self {
            elastic: losses
                .as_ref()
                .is_some_and(|l| l.passed_spread() < 2.0 * MAX_PLATEAU_SPREAD_RATIO)
                && share >= MIN_HEAVY_LOSS_SHARE
                && clustering >= MIN_CLUSTERED_DISPERSION
                && slope.is_some_and(|(slope, r)| {
                    slope >= MIN_LOST_PER_EXTRA_SENT && r >= MIN_LOSS_CORRELATION
                }),
            clustered: steady
                && clustering >= MIN_CLUSTERED_DISPERSION
                && slope.is_some_and(|(slope, r)| {
                    slope >= MIN_EXCESS_LOSS_RATIO * share && r >= MIN_EXCESS_LOSS_CORRELATION
                }),
            severe: SEVERE_SHARES_AND_DISPERSIONS
                .iter()
                .any(|(least, apart)| share >= *least && clustering >= *apart),
            regular: backs_off
                && share >= MIN_LOSS_SHARE
                && losses.as_ref().is_some_and(|losses| losses.events() >= MIN_LOSS_STEPS)
                && is_regular(view, Fitted::WindowSpread.value())?,
            level: backs_off
                && share >= MIN_LOSS_SHARE
                && clustering >= MIN_CLUSTERED_DISPERSION
                && losses
                    .as_ref()
                    .is_some_and(|losses| losses.events() >= MIN_CLUSTERED_LOSS_STEPS)
                && is_regular(view, MAX_CLUSTERED_CWND_DECILE_RATIO)?,
            even: losses.as_ref().is_some_and(|l| l.lost() >= MIN_EVEN_LOST_PACKETS)
                && clustering < MAX_EVEN_DISPERSION,
            overshot_by_far: overshot
                && (startup.share() >= MIN_CLEAR_OVERSHOOT_SHARE || by_far(&startup, &since)),
            overshot,
            ended: since.lost == 0.0,
            metered: metered(view),
            bucket: TokenBucket::of(view),
            fitted: FittedLimit::of(view).filter(|limit| !limit.is_queue()),
            drops: DroppingRate::of(view),
            startup,
            losses,
        })
    }

    /// One mark alone may be an accident, but for those that nothing else leaves.
    fn confidence(&self) -> Option<Confidence> {
        let marks = [self.overshot, self.regular];
        match marks.into_iter().filter(|mark| *mark).count() {
            _ if self.bucket.is_some() => Some(Confidence::Likely),
            // What is lost once and never again may be the end of a queue that has drained since.
            _ if self.ended => self.overshot.then_some(Confidence::Possible),
            _ if self.elastic || self.overshot_by_far || self.severe => Some(Confidence::Likely),
            _ if self.clustered || self.level || self.even => Some(Confidence::Likely),
            _ if self.metered.is_some() || self.drops.is_some() => Some(Confidence::Likely),
            2.. => Some(Confidence::Likely),
            _ if self.overshot => {
                Some(self.fitted.map_or(Confidence::Possible, |_| Confidence::Likely))
            }
            _ => self.fitted.map(|limit| limit.confidence()),
        }
    }
}

/// The bursts that time-outs keep apart, if as much passes in each: what a bucket has saved up meanwhile.
/// What chance lets through until the next time-out is as much as it happens to be.
fn metered(view: &View) -> Option<Bursts> {
    let bursts = view.receiver.bursts().or_else(|_| view.sender.bursts()).ok()?;
    let timeouts = view.sender.timeouts_in_all().ok()?;
    let alike = bursts.spread < MAX_METERED_BURST_SPREAD_RATIO
        && timeouts >= MIN_TIMEOUTS_PER_BURST * bursts.count as f64;
    alike.then_some(bursts)
}

/// Whether slow start lost what chance does not take.
fn overshoots(startup: &LossStep, since: &LossStep) -> bool {
    let much = startup.share() >= Fitted::StartupLostShare.value()
        && startup.lost >= MIN_OVERSHOOT_PACKETS
        && startup.share() >= MIN_OVERSHOOT_LOSS_RATIO * since.share();
    much || by_far(startup, since)
}

fn by_far(startup: &LossStep, since: &LossStep) -> bool {
    startup.share() >= MIN_FAINT_OVERSHOOT_SHARE
        && startup.lost >= MIN_FAINT_OVERSHOOT_PACKETS
        && startup.share() >= MIN_FAINT_OVERSHOOT_LOSS_RATIO * since.share()
}

/// Whether the congestion window meets about the same level all the time.
fn is_regular(view: &View, most: f64) -> Result<bool, Missing> {
    let (low, middle, high) = view.sender.congestion_window_deciles()?;
    Ok(middle >= MIN_CWND_SEGMENTS && high <= most * low)
}

/// What a run shows of the quantities that numbers are fitted to: how much its window varied, and what slow start lost.
pub fn measured(view: &View) -> Vec<(Fitted, f64)> {
    let spread = || -> Result<f64, Missing> {
        let (low, middle, high) = view.sender.congestion_window_deciles()?;
        let shows = view.backs_off_at_loss()? && middle >= MIN_CWND_SEGMENTS;
        Ok(if shows { high / low } else { f64::NAN })
    };
    let startup = || -> Result<f64, Missing> {
        let episodes = view.sender.episodes()?;
        let start = episodes.start()?;
        let shows = start.lost >= MIN_OVERSHOOT_PACKETS && episodes.began_in_slow_start()?;
        Ok(if shows { start.share() } else { f64::NAN })
    };
    let both = [(Fitted::WindowSpread, spread()), (Fitted::StartupLostShare, startup())];
    both.into_iter().filter_map(|(fitted, value)| Some((fitted, value.ok()?))).collect()
}

/// Whether the congestion window still is where slow start ended.
fn same_level(view: &View) -> Result<bool, Missing> {
    let (_, middle, _) = view.sender.congestion_window_deciles()?;
    let ended = view.sender.episodes()?.start_cut_to_segments()?;
    Ok(ended.is_none_or(|segments| middle >= MIN_SAME_LEVEL_CWND_RATIO * segments))
}

/// Parts of the account that a limit which drops packets can have held. One that backs off at losses waits for nothing else
/// there: if a queue holds it, or the path gives all it can, that is no policer's doing.
fn dropping(view: &View) -> Result<&'static [Part], Missing> {
    Ok(if view.backs_off_at_loss()? { parts::LOSSES } else { parts::PATH })
}

/// Whether the losses are best explained by what waited in a queue. A policer lets nothing wait.
fn queue_explains(view: &View) -> bool {
    loss(view).is_ok_and(|loss| loss.explanation.value() == Some(&LossModel::Queue))
}
