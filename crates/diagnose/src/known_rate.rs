//! Whether the path is known to give all that it can: then it drops what exceeds its rate.

use goodput_model::Confidence;

use crate::arriving_rate::arriving_rate;
use crate::datagram_rate::datagram_rate;
use crate::standing_rate::StandingRate;
use crate::view::View;

/// Whether it does: by the rate that TCP met, by what arrives of a sender that reports nothing, or by the datagrams that
/// come through.
pub fn path_is_full(view: &View) -> bool {
    let confidence = match (view.is_tcp(), view.is_sender_silent()) {
        (false, _) => datagram_rate(view).ok().flatten().map(|seen| seen.confidence),
        (true, true) => arriving_rate(view).ok().flatten().map(|seen| seen.confidence),
        (true, false) => StandingRate::of(view).ok().flatten().map(|seen| seen.confidence),
    };
    confidence > Some(Confidence::Possible)
}
