//! What the receiver alone shows about a rate of the path, if the sender reports nothing about itself.

use goodput_model::{Confidence, Missing};

use crate::elimination::{is_local, receiver_is_short};
use crate::thresholds::{
    LATE_S, MAX_PLATEAU_SPREAD_RATIO, MIN_FULL_QUEUE_RTT_RATIO, MIN_HEAVY_LOSS_SHARE,
};
use crate::view::{Plateau, View};

/// Part of a round trip up to which the time since payload arrived shows continuous arrivals. If a sender is
/// silent until the round trip is over, nine of ten samples lie within nine tenths of it.
const MAX_AGE_SHARE_OF_RTT: f64 = 0.5;

/// A rate at which payload arrives, with the evidence that the path sets it.
pub struct ArrivingRate {
    /// The rate and how steady it is.
    pub plateau: Plateau,
    /// Round-trip time seen in the arriving payload, seconds.
    pub rtt_s: f64,
    /// The shortest round trip, seconds.
    pub base_s: f64,
    /// Share of the segments that came out of order.
    pub early: f64,
    /// Confidence that the path sets the rate, not the server.
    pub confidence: Confidence,
}

/// The rate, if the path is seen to limit: payload comes steadily, this host is ready for more, and packets wait in
/// a queue or are lost. A server that sends slowly causes neither.
pub fn arriving_rate(view: &View) -> Result<Option<ArrivingRate>, Missing> {
    let side = &view.receiver;
    let plateau = side.plateau()?;
    let steady = plateau.spread < MAX_PLATEAU_SPREAD_RATIO;
    if !steady || receiver_is_short(view) || is_local(view)? || !view.receiver_has_room()? {
        return Ok(None);
    }
    let (rtt_s, base_s) = (side.arrival_rtt_s()?, side.min_rtt_s()?);
    let early = side.out_of_order_share()?;
    let longer = rtt_s >= MIN_FULL_QUEUE_RTT_RATIO * base_s && rtt_s - base_s >= 2.0 * LATE_S;
    let queue = longer && side.arrival_age_s()? < MAX_AGE_SHARE_OF_RTT * rtt_s;
    let confidence = match (queue, early >= MIN_HEAVY_LOSS_SHARE) {
        (true, _) => Confidence::Likely,
        (false, true) => Confidence::Possible,
        (false, false) => return Ok(None),
    };
    Ok(Some(ArrivingRate { plateau, rtt_s, base_s, early, confidence }))
}
