//! # What it means
//! Datagrams are larger than the path's packets: each is sent in several fragments, and is lost if
//! one of them is.
//!
//! # Why it limits
//! With k fragments a packet loss of p becomes 1 - (1 - p)^k: a loss of 1 % costs 6 % of 8 KiB
//! datagrams. Fragments also come in a burst that short queues can't hold, and some firewalls drop
//! them all.
//!
//! # How it is seen
//! Counted: the sender's host cut datagrams into fragments, and at least 0.5 % of the datagrams
//! never arrived.
//!
//! # What to try
//! Datagrams that fit the path: MTU minus 28 bytes of headers, 48 with IPv6.
//!
//! # When it is wrong
//! If the receiver's socket dropped the datagrams, fragments are not the reason, and this rule
//! stays quiet.
//!
//! # Source
//! RFC 8900 (fragmentation considered fragile); RFC 4293 (ipFragCreates); Kent, Mogul 1987.

use goodput_model::{Confidence, Finding, Missing, Place};

use crate::bounds::next_after;
use crate::change::of_plan;
use crate::finding::{Draft, percent};
use crate::names::{FRAGMENTED, FRAGMENTS_MADE, FRAGMENTS_RECEIVED, LINK_MTU};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_HEAVY_LOSS_SHARE;
use crate::vanishing::DATAGRAM_HEADERS_BYTES;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "fragmentation",
    title: "Datagrams are fragmented, and lost with any fragment",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "fragments_per_datagram",
    witness_words: ("fragments per datagram", ""),
    source: include_str!("fragmentation.rs"),
};

/// Part of the lost datagrams that the hosts themselves must have dropped to acquit the fragments.
const MIN_DROPPED_BY_HOSTS_SHARE: f64 = 0.5;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let made = view.sender.grown(FRAGMENTS_MADE)? as f64;
    if view.is_tcp() {
        return Ok(None);
    }
    // Of the whole host and the whole measurement, like the fragments.
    let sent = view.sender.grown(FRAGMENTED)? as f64;
    if sent < 1.0 || made < sent {
        return Ok(None);
    }
    let arrived = view.goodput_or_zero() > 0.0;
    let lost = if arrived { view.receiver.lost_share()? } else { 1.0 };
    let dropped = view.datagrams_dropped_at_hosts();
    if lost < MIN_HEAVY_LOSS_SHARE
        || (arrived && dropped >= MIN_DROPPED_BY_HOSTS_SHARE * view.receiver.datagrams_lost()?)
    {
        return Ok(None);
    }
    let pieces = (made / sent).round().max(2.0);
    let each = 1.0 - (1.0 - lost).powf(1.0 / pieces);
    Draft::new(RULE.id, Place::Path, Confidence::Likely, "datagrams in fragments")
        .share(lost)
        .saw(
            view.sender.place(),
            FRAGMENTS_MADE,
            made,
            format!(
                "{sent:.0} datagrams left in {made:.0} fragments, {pieces:.0} each (IpFragCreates)"
            ),
        )
        .saw(
            view.receiver.place(),
            "lost_percent",
            lost * 100.0,
            format!(
                "{} of the datagrams never arrived; a loss of {} of the fragments explains this",
                percent(lost),
                percent(each)
            ),
        )
        .saw_if(
            view.receiver.place(),
            FRAGMENTS_RECEIVED,
            view.receiver.grown(FRAGMENTS_RECEIVED).map(|n| n as f64),
            |n| format!("{n:.0} fragments arrived (IpReasmReqds)"),
        )
        .predicted(next_after(view, &[RULE.id]))
        .changes(fitting(view))
        .advice("send datagrams that fit the path: its MTU minus 28 bytes, 48 with IPv6")
        .found()
}

fn fitting(view: &View) -> Option<goodput_model::Change> {
    let mtu = view.sender.count(LINK_MTU).ok()? as u64;
    let fits = mtu.checked_sub(DATAGRAM_HEADERS_BYTES)?;
    let now = view.plan().chunk_bytes.0;
    let why = "a datagram in one packet";
    (now > fits).then(|| of_plan("chunk", Some(now.to_string()), &fits.to_string(), why))
}

/// Fragments made for each datagram sent.
fn witness(view: &View) -> Result<f64, Missing> {
    let made = view.sender.grown(FRAGMENTS_MADE)? as f64;
    if view.is_tcp() {
        return Ok(0.0);
    }
    Ok(made / (view.sender.grown(FRAGMENTED)? as f64).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::Bytes;
    use goodput_model::EndName::{Far, Near};

    fn large() -> Case {
        let case = Case::healthy_udp().plan(|plan| plan.chunk_bytes = Bytes(8192));
        case.lost(0.06).grows(Near, FRAGMENTS_MADE, 600_000).grows(Near, FRAGMENTED, 100_000)
    }

    #[test]
    fn fires_where_fragments_multiply_the_loss() {
        let finding = fires(&RULE, large());
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        assert_eq!(finding.changes[0].as_argument(), "chunk=8192,1472");
    }

    #[test]
    fn stays_quiet_without_loss_without_fragments_and_where_a_host_drops() {
        quiet(&RULE, large().lost(0.0));
        quiet(&RULE, Case::path_loss().grows(Near, FRAGMENTS_MADE, 5000));
        quiet(&RULE, large().grows(Near, FRAGMENTS_MADE, 0).grows(Near, FRAGMENTED, 0));
        quiet(&RULE, large().grows(Far, "link.rx_dropped", 9_000_000));
    }

    #[test]
    fn cannot_tell_without_the_counter() {
        cannot_tell(&RULE, large().without(Near, "snmp"));
    }
}
