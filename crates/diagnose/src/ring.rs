//! The receive ring of a card.

use crate::finding::time;
use crate::names::{RING_RX, RING_RX_MAX};
use crate::view::Side;

/// The ring in words: frames, how long they last, and how many there could be.
pub fn ring(side: &Side, frames: f64) -> String {
    let lasts = side.ring_s().map(|s| format!(" = {} at line rate", time(s))).unwrap_or_default();
    let most = side.count(RING_RX_MAX).map(|most| format!("; the card supports {most:.0}"));
    format!(
        "the receive ring has {frames:.0} frames{lasts}{} (ethtool -g)",
        most.unwrap_or_default()
    )
}

/// Whether the ring is known to be as large as the card takes.
pub fn is_at_most(side: &Side) -> bool {
    matches!((side.count(RING_RX), side.count(RING_RX_MAX)), (Ok(now), Ok(most)) if now >= most)
}
