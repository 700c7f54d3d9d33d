//! Whether the drops that a host counted are the flows' losses, and whether
//! these losses limit.

use goodput_model::{Confidence, Missing};

use crate::account::held_share;
use crate::ceiling::ceiling;
use crate::parts;
use crate::thresholds::{MIN_HEAVY_LOSS_SHARE, MIN_LIMITING_TIME_SHARE, MIN_SHARE_OF_CEILING};
use crate::view::View;

/// Share of the flows' losses that a count must explain.
const MIN_EXPLAINED_LOSS_SHARE: f64 = 0.5;
/// Drops over the flows' losses beyond which most drops were another program's.
const MAX_OWN_DROPS_RATIO: f64 = 2.0;
/// Round-trip time over the smallest at which a queue stands: 1.5, twice the stretch of
/// [`crate::thresholds::MIN_FULL_QUEUE_RTT_RATIO`].
const MIN_STANDING_QUEUE_RTT_RATIO: f64 = 1.5;
/// Least increase of the round-trip time, seconds: on short paths scheduling alone stretches it.
const MIN_QUEUE_S: f64 = 200e-6;
/// Fewer lost packets prove nothing.
const MIN_LOST_PACKETS: f64 = 3.0;

/// Counted drops compared with the flows' losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LostHere {
    /// Packets that the host dropped, in packets of the path.
    pub drops: f64,
    /// Packets that the flows lost.
    pub lost: f64,
    /// The flows' losses as a share of the packets sent.
    pub share: f64,
    /// Whether a queue stands in front of the dropping part, so that the part may merely be full.
    pub queued: bool,
}

impl LostHere {
    /// Compares `drops` at the receiving host, in packets of the path, with the flows' losses.
    /// `None` if they explain less than half of the losses, or if the loss does not limit.
    pub fn of(view: &View, drops: f64) -> Result<Option<Self>, Missing> {
        if drops == 0.0 {
            return Ok(None);
        }
        let (lost, share) = if view.is_tcp() {
            let side = &view.sender;
            (side.retransmitted_segments_in_all()?, side.retransmitted_share()?)
        } else {
            (view.receiver.datagrams_lost()?, view.receiver.lost_share()?)
        };
        let ours = lost >= MIN_LOST_PACKETS && drops >= MIN_EXPLAINED_LOSS_SHARE * lost;
        let limits = ours && limits(view, share)?;
        Ok(limits.then(|| Self { drops, lost, share, queued: queue_shows(view) }))
    }

    /// Confidence that these are the flows' packets: if drops far exceed losses, most drops are
    /// another program's.
    pub fn confidence(&self) -> Confidence {
        match self.drops <= MAX_OWN_DROPS_RATIO * self.lost {
            _ if self.queued => Confidence::Possible,
            true => Confidence::Certain,
            false => Confidence::Likely,
        }
    }

    /// The flows' losses, in words.
    pub fn text(&self, view: &View) -> String {
        let share = crate::finding::percent(self.share);
        match view.is_tcp() {
            true => format!(
                "the flows sent {:.0} segments again in total, {share} of the window's bytes \
                 (tcp_info total_retrans, bytes_retrans)",
                self.lost
            ),
            false => format!("{:.0} datagrams were lost, {share} of them", self.lost),
        }
    }
}

/// Whether a queue stands in front of the dropping part. Then the queue's service rate limits, and the drops
/// only show that the queue is full.
fn queue_shows(view: &View) -> bool {
    let side = &view.sender;
    let stands = || -> Result<bool, Missing> {
        let (loaded, base) = (side.rtt_s()?, side.min_rtt_s()?);
        Ok(loaded >= MIN_STANDING_QUEUE_RTT_RATIO * base && loaded - base >= MIN_QUEUE_S)
    };
    view.is_tcp() && stands().unwrap_or(false)
}

/// Whether a loss of this share holds the goodput back.
fn limits(view: &View, share: f64) -> Result<bool, Missing> {
    let goodput = view.goodput_or_zero();
    if ceiling(view).value().is_some_and(|ceiling| goodput >= MIN_SHARE_OF_CEILING * ceiling.0) {
        return Ok(false);
    }
    if !view.is_tcp() || share >= MIN_HEAVY_LOSS_SHARE {
        return Ok(share >= MIN_HEAVY_LOSS_SHARE);
    }
    Ok(held_share(view, parts::LOSSES)? >= MIN_LIMITING_TIME_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn of(case: Case, drops: f64) -> Option<LostHere> {
        LostHere::of(&View::new(&case.evidence()), drops).unwrap()
    }

    #[test]
    fn drops_that_are_the_flows_losses_limit() {
        // 22 Mbit/s for 4 s with 0.1 % lost: about 7 segments.
        let lost = of(Case::path_loss(), 7.0).unwrap();
        assert_eq!(lost.confidence(), Confidence::Certain);
        assert_eq!(of(Case::path_loss(), 70.0).unwrap().confidence(), Confidence::Likely);
    }

    #[test]
    fn drops_beside_a_healthy_flow_limit_nothing() {
        assert_eq!(of(Case::healthy(), 1e6), None);
        assert_eq!(of(Case::path_loss(), 2.0), None);
        assert_eq!(of(Case::healthy_udp().lost(0.001), 1e6), None);
        assert_eq!(of(Case::path_loss().goodput(935e6), 1e6), None);
    }

    #[test]
    fn drops_of_a_queue_that_stands_limit_nothing_unless_they_are_many() {
        // RPS to a busy CPU: 12 Gbit/s, 450 µs of 30 µs, 0.0023 % lost by CUBIC, as measured.
        let queued = || Case::path_loss().tcp(|tcp, _| tcp.rtt_us = Some(60_000));
        assert_eq!(of(queued(), 7.0), None);
        let lost = of(queued().retransmitted(0.02), 1000.0).unwrap();
        assert_eq!(lost.confidence(), Confidence::Possible);
    }

    #[test]
    fn datagrams_count_as_such() {
        assert!(of(Case::healthy_udp().lost(0.05), 20_000.0).is_some());
    }
}
