//! The queue of the sender's own device, if it is too short for what the sender hands to it.

use goodput_ceiling::bucket::queue_bytes;
use goodput_model::{Confidence, Missing};

use crate::account::path_share;
use crate::names::QDISC_LIMIT;
use crate::shaper::{BATCH_BYTES, Shaper};
use crate::thresholds::{MIN_HEAVY_LOSS_SHARE, MIN_LIMITING_TIME_SHARE, MIN_SHARE_OF_SHAPER_RATE};
use crate::view::View;

/// Part of the lost packets that the queue must have dropped for its drops to be what cut the window.
const MIN_DROPPED_HERE_SHARE: f64 = 0.5;

/// A queue of the sender's device that drops so much that it holds TCP back.
pub struct ShortQueue<'a> {
    /// Packets that it dropped of those handed to it, as a share.
    pub dropped_share: f64,
    /// Part of the time in which the path, of which it is the first part, held the sender.
    pub held_share: f64,
    /// What it holds at most, bytes.
    pub limit_bytes: Result<f64, Missing>,
    /// The shaper in front of which it is, if there is one.
    pub shaper: Option<Shaper<'a>>,
    /// Confidence that its length is the reason.
    pub confidence: Confidence,
}

impl<'a> ShortQueue<'a> {
    /// The sender's queue, if its drops hold TCP back.
    pub fn of(view: &'a View) -> Result<Option<Self>, Missing> {
        view.needs_tcp()?;
        let dropped_share = view.sender.queue_drop_share()?;
        view.goodput()?;
        let held_share = path_share(view)?;
        let shaper = Shaper::of(view)?;
        let gives =
            shaper.as_ref().is_some_and(|s| s.passed(view) >= MIN_SHARE_OF_SHAPER_RATE * s.ceiling);
        if !(dropped_share >= MIN_HEAVY_LOSS_SHARE || drops_cut_the_window(view)?)
            || held_share < MIN_LIMITING_TIME_SHARE
            || gives
        {
            return Ok(None);
        }
        let limit_bytes = view.sender.count(QDISC_LIMIT);
        let confidence = match (&limit_bytes, &shaper) {
            (Ok(limit), _) if *limit < BATCH_BYTES => Confidence::Certain,
            (Ok(limit), Some(shaper)) if *limit < needed_bytes(view, shaper) => Confidence::Likely,
            _ => Confidence::Possible,
        };
        Ok(Some(Self { dropped_share, held_share, limit_bytes, shaper, confidence }))
    }
}

/// Whether what the local queue dropped, little as it is, keeps the window down: the kernel cuts it for
/// a drop at home as for any other, though nothing may have to be sent again.
fn drops_cut_the_window(view: &View) -> Result<bool, Missing> {
    let drops = view.sender.queue_drops()?;
    let again = view.sender.retransmitted_segments_in_all()?;
    Ok(drops >= 1.0
        && drops >= MIN_DROPPED_HERE_SHARE * again
        && Shaper::of(view)?.is_some()
        && view.backs_off_at_loss()?
        && view.sender.cut_window_share()? >= MIN_LIMITING_TIME_SHARE
        && !view.sender.queue_stands()?)
}

/// Bytes that the queue of a shaper should hold.
pub fn needed_bytes(view: &View, shaper: &Shaper) -> f64 {
    needed_bytes_at(view, shaper.rate)
}

/// Bytes that a queue before this rate, bits per second, should hold.
pub fn needed_bytes_at(view: &View, rate: f64) -> f64 {
    let round_trip = view.sender.min_rtt_s().unwrap_or(0.0);
    queue_bytes(rate, round_trip)
}
