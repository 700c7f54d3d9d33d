//! The rate at which datagrams come through, if more was sent than the path carries.

use goodput_model::{Confidence, Missing};

use crate::elimination::{is_local, receiver_is_short};
use crate::round_rate::{RoundRate, round_rate};
use crate::thresholds::{MAX_PLATEAU_SPREAD_RATIO, MIN_HEAVY_LOSS_SHARE};
use crate::view::{Losses, Plateau, View};

/// Share of the datagrams lost from which too many may have been sent, rather than some lost by
/// chance. Below it a round rate reports nothing: the rate that was sent is round too.
const MIN_OVERLOAD_LOSS_SHARE: f64 = 0.05;
/// The same without a round rate to show for it.
const MIN_CERTAIN_OVERLOAD_LOSS_SHARE: f64 = 0.2;

/// A rate that more datagrams met than it lets through.
pub struct DatagramRate {
    /// Where it stands.
    pub plateau: Plateau,
    /// The same in round numbers, if it is one.
    pub round: Option<RoundRate>,
    /// Share of the datagrams that never arrived.
    pub lost: f64,
    /// How sure it is.
    pub confidence: Confidence,
}

/// The rate of the path, if more came than went through: what is left is steady, whatever was sent, and the rest was
/// dropped by neither host.
///
/// # Errors
/// If the receiver does not report what it lost.
pub fn datagram_rate(view: &View) -> Result<Option<DatagramRate>, Missing> {
    let share = view.receiver.lost_share()?;
    let mut plateau = view.receiver.plateau()?;
    let losses = view.receiver.datagram_losses().ok();
    let by_limit = losses.as_ref().and_then(Losses::by_limit);
    if let Some(losses) =
        losses.filter(|_| by_limit == Some(true) && plateau.spread >= MAX_PLATEAU_SPREAD_RATIO)
    {
        // What the limit lets through; a sender that is slow at times offers less.
        plateau.rate = losses.passed_at_worst() * view.plan().chunk_bytes.0 as f64 * 8.0;
    }
    let at_hosts = view.datagrams_dropped_at_hosts() >= view.receiver.datagrams_lost()? / 2.0;
    let steady = plateau.spread < MAX_PLATEAU_SPREAD_RATIO || by_limit == Some(true);
    if share < MIN_HEAVY_LOSS_SHARE
        || at_hosts
        || !steady
        || is_local(view)?
        || receiver_is_short(view)
    {
        return Ok(None);
    }
    let round = round_rate(view, plateau.rate)?;
    let confidence = match (by_limit, share) {
        (Some(true), _) => Confidence::Likely,
        (Some(false), _) => return Ok(None),
        (None, share) if share < MIN_OVERLOAD_LOSS_SHARE => return Ok(None),
        (None, share) if share < MIN_CERTAIN_OVERLOAD_LOSS_SHARE && round.is_none() => {
            Confidence::Possible
        }
        (None, _) => Confidence::Likely,
    };
    Ok(Some(DatagramRate { plateau, round, lost: share, confidence }))
}
