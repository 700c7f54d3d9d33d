//! # What it means
//! Frames arrive broken at the receiver's card, which discards them. The cable, a plug, an optic or
//! a port is bad.
//!
//! # Why it limits
//! Each broken frame is a lost packet, and the sender slows down for it. A flow with a window of W
//! packets needs runs of about W² × 3/2 packets without loss: with a window of a thousand, one loss
//! in a million already costs goodput.
//!
//! # How it is seen
//! The receiver's card counted wrong checksums or alignment errors, at least half as many as the
//! flows lost, and this loss explains the goodput or is at least 0.5 %.
//!
//! # What to try
//! Replace the cable, the plug, the optic and the port, one after the other, until the counter
//! stops rising.
//!
//! # When it is wrong
//! Two ends that disagree on duplex also break frames; then duplex-mismatch is reported. Only
//! errors on the receiver's own cable can be seen here; switches on the path count the errors of
//! their ports. The authors have not seen this on a real cable: the counters are the ones that the
//! kernel documents.
//!
//! # Source
//! IEEE 802.3 clause 5.2.2.1 (aFrameCheckSequenceErrors, aAlignmentErrors); Documentation/networking/
//! statistics.rst; include/uapi/linux/if_link.h (`rx_crc_errors`, `rx_frame_errors`); RFC 8337.

use goodput_model::{Finding, Missing};

use crate::bounds::next_after;
use crate::finding::Draft;
use crate::lost_here::LostHere;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "frame-errors",
    title: "Frames arrive broken",
    refines: parts::LOSSES,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "broken_frames_per_million_packets",
    witness_words: ("broken frames per million packets", ""),
    source: include_str!("frame_errors.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let broken = side.broken_frames()?;
    let Some(lost) = LostHere::of(view, broken)? else { return Ok(None) };
    let (place, device, counter) = (side.place(), side.device()?, side.broken_counter());
    let text = format!("{broken:.0} frames arrived broken at {device} ({counter})");
    let packets = side.grown("link.rx_packets").map(|n| broken / n as f64);
    Draft::new(RULE.id, place, lost.confidence(), format!("broken frames on the cable of {device}"))
        .saw(place, counter, broken, text)
        .saw_if(place, "broken_share", packets, |share| format!("{share:.1e} of the frames"))
        .saw(view.sender.place(), "lost", lost.lost, lost.text(view))
        .saw_if(place, "link.speed_bits_per_s", side.count("link.speed_bits_per_s"), |speed| {
            format!("the link runs at {}", crate::finding::rate(speed))
        })
        .predicted(next_after(view, &[RULE.id]))
        .command(
            place,
            format!("ethtool -S {device}"),
            "watch the counter while you replace cable, optic and port",
        )
        .command(place, format!("ethtool -m {device}"), "the optic's light and temperature")
        .found()
}

/// Broken frames per million that arrived.
fn witness(view: &View) -> Result<f64, Missing> {
    view.receiver.per_million_arrived(view.receiver.broken_frames()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::{Confidence, Place};

    fn bad_cable() -> Case {
        Case::path_loss().grows(Far, "link.rx_crc_errors", 7).grows(Far, "link.rx_packets", 7600)
    }

    #[test]
    fn fires_on_broken_frames_and_names_the_cable_not_the_path() {
        let finding = fires(&RULE, bad_cable());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
        assert_eq!(crate::diagnose(&bad_cable().evidence()).verdict.limit, "frame-errors");
    }

    #[test]
    fn a_few_broken_frames_beside_a_healthy_flow_are_quiet() {
        quiet(&RULE, Case::healthy().grows(Far, "link.rx_crc_errors", 3));
        quiet(&RULE, bad_cable().grows(Far, "link.rx_crc_errors", 2));
    }

    #[test]
    fn cannot_tell_without_counters() {
        cannot_tell(&RULE, bad_cable().without(Far, "link"));
    }
}
