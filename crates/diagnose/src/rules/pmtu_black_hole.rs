//! # What it means
//! A link behind a router carries smaller packets than the hosts send, and the message that says so
//! never comes back. Full-sized packets vanish.
//!
//! # Why it limits
//! TCP sends the same packets again and again, each time-out twice as long as the one before.
//! Greetings and short requests work, so everything looks connected.
//!
//! # How it is seen
//! The handshake, each flow's short greeting and the control connection, whose segments are kept
//! small, pass the same path. No full-sized packet does: TCP has at least two time-outs and no
//! acknowledgement; with UDP at least 20 datagrams were sent and none arrived. Neither host dropped
//! them.
//!
//! # What to try
//! Let ICMP "fragmentation needed" and "packet too big" pass. `net.ipv4.tcp_mtu_probing=2` lets TCP
//! begin small and find the size without ICMP; with 1 it does so only after time-outs, which cost
//! each connection some seconds. Or clamp the segment size at a router, or set the right mtu on a
//! route.
//!
//! # When it is wrong
//! If both hosts are on one link, there is no router to answer: see mtu-mismatch. A firewall that
//! lets a connection begin and then drops all of its data looks the same; `ping -M do -s SIZE`
//! shows the difference.
//!
//! # Source
//! RFC 2923 section 2.1 (black holes); RFC 4821 (probing); RFC 1191; ip-sysctl (tcp_mtu_probing).

use goodput_model::{Change, Confidence, Finding, Missing, Place};

use crate::change::{of_host, of_plan};
use crate::finding::Draft;
use crate::names::{ROUTE_GATEWAY, TCP_MTU_PROBING};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::vanishing::{
    DATAGRAM_HEADERS_BYTES, shares_a_link, tried, unanswered_percent, vanishing,
};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "pmtu-black-hole",
    title: "Full-sized packets vanish without a report",
    refines: parts::LOSSES,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness: unanswered_percent,
    witness_name: "unanswered_percent",
    witness_words: ("large packets without an answer", " %"),
    source: include_str!("pmtu_black_hole.rs"),
};

/// IPv6 runs over nothing smaller (RFC 8200 section 5), so nearly every tunnel carries it, bytes.
const NEARLY_ALWAYS_CARRIED_BYTES: u64 = 1280;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(found) = vanishing(view)? else { return Ok(None) };
    if shares_a_link(view) {
        return Ok(None);
    }
    let place = view.sender.place();
    let mut draft =
        Draft::new(RULE.id, Place::Path, Confidence::Likely, "a black hole for full-sized packets")
            .share(1.0)
            .saw(place, "tries", found.tries, tried(view, found))
            .saw(
                Place::Path,
                "packet_bytes",
                found.packet_bytes,
                "short packets pass in both directions: the handshake and the control connection",
            );
    if let Some(gateway) = view.sender.words(ROUTE_GATEWAY) {
        let text = format!(
            "the path leads over a router, {gateway}, that could have reported the size (ICMP)"
        );
        draft = draft.saw(place, "route.gateway", 1.0, text);
    }
    draft
        .changes(change(view))
        .advice("find the size that passes, with ping -M do -s and sizes around 1372 bytes")
        .advice(
            "on the routers and firewalls of the path, let ICMP type 3 code 4 and ICMPv6 type 2 pass",
        )
        .command(
            Place::Path,
            "nft add rule inet filter forward tcp flags syn tcp option maxseg size set rt mtu",
            "on a router, instead",
        )
        .permanent(
            "/etc/nftables.conf (the router)",
            "chain forward { type filter hook forward priority 0; tcp flags syn tcp option maxseg size set rt mtu }",
        )
        .found()
}

fn change(view: &View) -> Option<Change> {
    if !view.is_tcp() {
        let chunk = NEARLY_ALWAYS_CARRIED_BYTES - DATAGRAM_HEADERS_BYTES - 20;
        let why = "a size that nearly every path carries";
        let now = view.plan().chunk_bytes.0;
        return (now > chunk)
            .then(|| of_plan("chunk", Some(now.to_string()), &chunk.to_string(), why));
    }
    let now = view.sender.words(TCP_MTU_PROBING).filter(|now| now != "2")?;
    let why = "TCP begins with packets that nearly every path carries, then probes for larger ones";
    Some(of_host(&view.sender, TCP_MTU_PROBING, None, (Some(now), "2".into()), why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Near;

    #[test]
    fn fires_where_nothing_of_full_size_is_answered() {
        let finding = fires(&RULE, Case::black_hole());
        assert_eq!((finding.end, finding.confidence), (Place::Path, Confidence::Likely));
        assert_eq!(
            finding.changes[0].as_argument(),
            "near:sysctl.net.ipv4.tcp_mtu_probing=0,2".trim_start_matches("near:")
        );
    }

    #[test]
    fn fires_for_datagrams() {
        let case = Case::black_hole().plan(|plan| {
            plan.transport = goodput_model::Transport::Udp;
            plan.chunk_bytes = goodput_model::Bytes(1472);
        });
        let finding = fires(&RULE, case.datagrams_sent(1000));
        assert_eq!(finding.changes[0].as_argument(), "chunk=1472,1232");
    }

    #[test]
    fn look_alikes_stay_quiet() {
        quiet(&RULE, Case::black_hole().grows(Near, "qdisc.drops", 10));
        quiet(&RULE, Case::black_hole().tcp(|tcp, n| tcp.acked_bytes = Some(1448 * n)));
        quiet(&RULE, Case::black_hole().tcp(|tcp, _| tcp.total_rto = Some(0)));
        quiet(&RULE, Case::black_hole().tcp(|tcp, _| tcp.pmtu_bytes = Some(552)));
        quiet(&RULE, Case::black_hole().on_one_link());
        quiet(&RULE, Case::path_loss());
    }

    #[test]
    fn cannot_tell_without_time_outs() {
        cannot_tell(&RULE, Case::black_hole().tcp(|tcp, _| tcp.total_rto = None));
    }
}
