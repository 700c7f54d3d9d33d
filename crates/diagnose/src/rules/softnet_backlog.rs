//! # What it means
//! The backlog of a CPU of the receiving host was full, and packets that should have waited in it
//! were dropped.
//!
//! # Why it limits
//! Receive packet steering (RPS), tunnels and virtual devices hand packets to a CPU's backlog of
//! `net.core.netdev_max_backlog` packets, 1000 by default: 12 ms at 1 Gbit/s and 1.2 ms at 10
//! Gbit/s. A longer burst is cut off, and the sender slows down as for any loss.
//!
//! # How it is seen
//! The second column of softnet_stat grew by at least half of what the flows lost, and that loss
//! explains the goodput or is at least 0.5 %.
//!
//! # What to try
//! A longer backlog, or steering to more CPUs.
//!
//! # When it is wrong
//! The counter is for the whole host, including network namespaces and other programs. If less than
//! a quarter of the packets that the CPUs handled were the measurement's, nobody can tell whose were
//! dropped. If there are far more drops than the flows lost, some belong to others, and the finding
//! is only possible. A
//! CPU with no time left overruns a backlog of any length; then softirq-saturation is reported.
//!
//! # Source
//! net/core/dev.c `enqueue_to_backlog`; net/core/net-procfs.c `softnet_seq_show`;
//! Documentation/networking/scaling.rst (RPS); Documentation/admin-guide/sysctl/net.rst.

use goodput_model::{Change, Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::change::{of_host, spread_packets};
use crate::finding::{Draft, percent};
use crate::lost_here::LostHere;
use crate::names::{SOFTNET_DROPPED, SOFTNET_PROCESSED};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "softnet-backlog",
    title: "A CPU's backlog of received packets runs over",
    refines: parts::LOSSES,
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "backlog_drops_per_million_packets",
    witness_words: ("packets dropped at the backlog per million", ""),
    source: include_str!("softnet_backlog.rs"),
};

/// Length of the backlog, packets.
const BACKLOG: &str = "sysctl.net.core.netdev_max_backlog";
/// The kernel's default.
const DEFAULT_PACKETS: f64 = 1000.0;
/// How much longer a backlog is proposed.
const BACKLOG_FACTOR: f64 = 8.0;
/// The most that is proposed, packets: 16 ms of full frames at 25 Gbit/s.
const MAX_BACKLOG_PACKETS: f64 = 32_768.0;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let side = &view.receiver;
    let drops = view.backlog_drops()?;
    let Some(lost) = LostHere::of(view, drops * segments_each(view))? else { return Ok(None) };
    // The host's count has other programs' packets in it, so that it is never beyond doubt.
    let confidence = match lost.confidence() {
        Confidence::Certain => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let place = side.place();
    let text = format!(
        "the CPUs' backlogs dropped {drops:.0} of {:.0} packets (softnet_stat, second column)",
        side.grown(SOFTNET_PROCESSED).unwrap_or(0) as f64 + drops
    );
    let summary = format!("the backlog of received packets of the {} end's CPUs", side.name);
    Draft::new(RULE.id, place, confidence, summary)
        .saw(place, SOFTNET_DROPPED, drops, text)
        .saw(view.sender.place(), "lost", lost.lost, lost.text(view))
        .saw_if(place, BACKLOG, backlog(side), |packets| {
            format!("net.core.netdev_max_backlog is {packets:.0} packets")
        })
        .saw_if(
            place,
            "busiest_part",
            side.largest_part(SOFTNET_DROPPED).map(|(_, part)| part),
            |part| format!("{} of them on one CPU", percent(part)),
        )
        .predicted(next_after(view, &[RULE.id]))
        .changes(longer(side))
        .advice(
            "the backlog belongs to the machine: in a network namespace, raise it outside of it",
        )
        // One flow stays on one CPU.
        .changes(spread_packets(side).filter(|_| view.plan().flows > 1))
        .permanent("/etc/sysctl.d/90-goodput.conf", "net.core.netdev_max_backlog = 8000")
        .permanent("/etc/sysctl.conf (FreeBSD)", "net.isr.defaultqlimit=4096")
        .found()
}

/// Segments in one packet as the backlog sees them: segmentation offload makes super-packets of them on
/// virtual devices, which are dropped as a whole.
fn segments_each(view: &View) -> f64 {
    let segments = || -> Result<f64, Missing> {
        let segments = view.sender.segments_sent()?;
        Ok(segments / view.receiver.grown("link.rx_packets")? as f64)
    };
    segments().ok().filter(|each| each.is_finite() && *each > 1.0).unwrap_or(1.0)
}

/// The length of the backlog; the setting is hidden in other network namespaces than the first.
fn backlog(side: &Side) -> Result<f64, Missing> {
    let text = side.words(BACKLOG);
    let number = text.and_then(|text| text.parse::<u64>().ok());
    number.map(|n| n as f64).ok_or_else(|| Missing::because("the backlog's length is unknown"))
}

fn longer(side: &Side) -> Option<Change> {
    let now = backlog(side).ok()?;
    let wanted = (BACKLOG_FACTOR * now.max(DEFAULT_PACKETS)).min(MAX_BACKLOG_PACKETS);
    let values = (Some(format!("{now:.0}")), format!("{wanted:.0}"));
    let why = "8 times as long; a longer queue adds delay only when it fills";
    (wanted > now).then(|| of_host(side, BACKLOG, None, values, why))
}

/// Packets that the receiving host's backlogs dropped, per million that its CPUs handled.
fn witness(view: &View) -> Result<f64, Missing> {
    view.receiver.per_million_processed(view.backlog_drops()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::Place;

    fn overrun() -> Case {
        Case::path_loss().fact(Far, BACKLOG, "1000").grows(Far, SOFTNET_DROPPED, 7)
    }

    #[test]
    fn fires_on_drops_that_are_the_flows_losses() {
        let finding = fires(&RULE, overrun());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Likely));
        let change = finding.changes[0].as_argument();
        assert_eq!(change, "far:sysctl.net.core.netdev_max_backlog=1000,8000");
    }

    #[test]
    fn far_more_drops_than_losses_are_only_possible() {
        let finding = fires(&RULE, overrun().grows(Far, SOFTNET_DROPPED, 5000));
        assert_eq!(finding.confidence, Confidence::Possible);
    }

    #[test]
    fn one_super_packet_dropped_is_many_segments_lost() {
        let case = Case::path_loss().tcp(|tcp, number| {
            tcp.data_segs_out = Some(10 + number * 200);
        });
        // 8000 segments in 200 packets: 40 each, 7 lost are a part of one.
        quiet(&RULE, case.grows(Far, SOFTNET_DROPPED, 0));
        let case = Case::path_loss().retransmitted(0.01).goodput(5e6).tcp(|tcp, number| {
            tcp.data_segs_out = Some(10 + number * 200);
        });
        let case = case.grows(Far, "link.rx_packets", 200).grows(Far, SOFTNET_DROPPED, 1);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Possible);
    }

    #[test]
    fn stays_quiet_beside_a_healthy_flow() {
        quiet(&RULE, Case::healthy().grows(Far, SOFTNET_DROPPED, 5000));
        quiet(&RULE, Case::path_loss());
    }

    #[test]
    fn datagrams_count_too() {
        // 5 % of about 285000 datagrams.
        let case = Case::healthy_udp().lost(0.05).grows(Far, SOFTNET_DROPPED, 15_000);
        assert_eq!(fires(&RULE, case).confidence, Confidence::Likely);
    }

    #[test]
    fn cannot_tell_without_softnet() {
        cannot_tell(&RULE, overrun().without(Far, "softnet"));
    }
}
