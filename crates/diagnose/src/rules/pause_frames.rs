//! # What it means
//! The other end of the sender's cable, a switch or the receiver itself, keeps stopping the sender
//! with pause frames.
//!
//! # Why it limits
//! A card that obeys a pause frame sends nothing for up to 65535 × 512 bit times: 33.6 ms at 1
//! Gbit/s. One slow receiver behind a switch stops the whole port and all its flows. Nothing is
//! lost, so no congestion control sees why it is slow.
//!
//! # How it is seen
//! The sender's card received at least 10 pause frames a second while the path held the flows,
//! almost nothing was lost, and the goodput stayed below what the link carries.
//!
//! # What to try
//! Find out who sends the pause frames. If it is the receiver's card, look at its ring and its CPU.
//! Or switch pause frames off, so that congestion control sees drops instead of a standstill.
//!
//! # When it is wrong
//! The kernel counts frames, not how long each stopped the card: a few frames can cover all of the
//! time, and many frames almost none. So the finding is likely only if even the shortest possible
//! pauses leave no other cause, or if the receiver reports that it paused. Drivers count priority
//! flow control (PFC) separately. The authors have not seen this on hardware.
//!
//! # Source
//! IEEE 802.3 annex 31B (pause quanta); Documentation/networking/ethtool-netlink.rst (PAUSE_GET);
//! ethtool(8) `-a`, `-A`, `-I`.

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::account::path_share;
use crate::bounds::next_after;
use crate::ceiling::ceiling;
use crate::change::of_host;
use crate::finding::{Draft, percent, time};
use crate::names::LINK_SPEED;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MIN_HEAVY_LOSS_SHARE, MIN_LIMITING_TIME_SHARE, MIN_SHARE_OF_CEILING};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "pause-frames",
    title: "Pause frames stop the sender's card",
    refines: &[parts::PATH_RATE],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "pauses_per_million_packets",
    witness_words: ("pause frames per million packets", ""),
    source: include_str!("pause_frames.rs"),
};

/// Pause frames a second from which they may matter.
const MANY_PER_S: f64 = 10.0;
/// The longest that one pause frame stops a card, bit times (IEEE 802.3 annex 31B).
const MAX_PAUSE_BIT_TIMES: f64 = 65_535.0 * 512.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.sender;
    if !side.on_hardware()? {
        return Ok(None);
    }
    let each_s = side.pauses_received()? / side.span_s()?;
    if each_s < MANY_PER_S || ignored(view) || !standstill(view)? {
        return Ok(None);
    }
    let paused_by_peer = view.receiver.pauses_sent().is_ok_and(|sent| sent / 2.0 >= MANY_PER_S);
    let confidence = if paused_by_peer { Confidence::Likely } else { Confidence::Possible };
    let (place, device) = (side.place(), side.device()?);
    let text = format!("{device} received {each_s:.0} pause frames a second (ethtool -I -a)");
    let longest = side.count(LINK_SPEED).map(|speed| MAX_PAUSE_BIT_TIMES / speed);
    Draft::new(RULE.id, place, confidence, format!("pause frames to {device}"))
        .saw(place, "pauses_per_s", each_s, text)
        .saw_if(place, "longest_pause_s", longest, |s| {
            format!("one pause lasts up to {} at this speed", time(s))
        })
        .saw_if(view.receiver.place(), "pauses_sent", view.receiver.pauses_sent(), |sent| {
            format!("the receiver's card sent {sent:.0} pause frames")
        })
        .saw_if(place, "path_share", path_share(view), |share| {
            format!(
                "the path held the sender {} of the time, and almost nothing was lost",
                percent(share)
            )
        })
        .predicted(next_after(view, &[RULE.id]))
        .changes(unheeded(view))
        .advice("find what can't keep up: the receiver's card or CPU, or a port of a switch")
        .found()
}

/// Pause frames off, if they are known to be on.
fn unheeded(view: &View) -> Option<Change> {
    let (side, values) = (&view.sender, (Some("on".into()), "off".into()));
    let on = side.text("pause.rx").is_ok_and(|heeds| heeds == "on");
    let why = "congestion control then sees drops instead of standstill";
    on.then(|| of_host(side, "pause.rx", side.device().ok(), values, why))
}

/// Whether the card is known not to heed pause frames.
fn ignored(view: &View) -> bool {
    view.sender.text("pause.rx").is_ok_and(|heeds| heeds == "off")
}

/// Whether the path holds the flows below what the link carries, and next to nothing is lost.
fn standstill(view: &View) -> Result<bool, Missing> {
    let goodput = view.goodput()?;
    if ceiling(view).value().is_some_and(|ceiling| goodput >= MIN_SHARE_OF_CEILING * ceiling.0) {
        return Ok(false);
    }
    let lost = if view.is_tcp() {
        view.sender.retransmitted_share()?
    } else {
        view.receiver.lost_share()?
    };
    Ok(lost < MIN_HEAVY_LOSS_SHARE && path_share(view)? >= MIN_LIMITING_TIME_SHARE)
}

/// Pause frames that the sender's card received, per million packets that it sent.
fn witness(view: &View) -> Result<f64, Missing> {
    view.sender.per_million_sent(view.sender.pauses_received()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};
    use goodput_model::Place;

    fn paused() -> Case {
        Case::healthy().goodput(400e6).grows(Near, "pause.rx_frames", 8000)
    }

    #[test]
    fn likely_where_the_receiver_says_that_it_paused() {
        let finding = fires(&RULE, paused().grows(Far, "pause.tx_frames", 8000));
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Likely));
        assert!(finding.evidence[1].text.contains("33.6 ms"), "{finding:?}");
        let finding = fires(&RULE, paused().fact(Near, "pause.rx", "on"));
        assert_eq!(finding.confidence, Confidence::Possible);
        assert_eq!(finding.changes[0].as_argument(), "pause.rx@eth0=on,off");
    }

    #[test]
    fn stays_quiet_where_pauses_are_few_ignored_or_cost_nothing() {
        quiet(&RULE, paused().grows(Near, "pause.rx_frames", 20));
        quiet(&RULE, paused().fact(Near, "pause.rx", "off"));
        quiet(&RULE, paused().goodput(935e6));
        quiet(&RULE, paused().retransmitted(0.01));
        quiet(&RULE, paused().without_links());
    }

    #[test]
    fn cannot_tell_without_the_count() {
        cannot_tell(&RULE, paused().without(Near, "pause"));
    }
}
