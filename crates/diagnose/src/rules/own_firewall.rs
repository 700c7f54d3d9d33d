//! # What it means
//! The sending host refuses datagrams before they reach its device, as a firewall rule does.
//!
//! # Why it limits
//! A rule that limits a rate lets no more than that leave the host, whatever the path carries.
//!
//! # How it is seen
//! The kernel refuses such a datagram (EPERM), and the sender counts it. It refused at least 0.5 %
//! of the datagrams, or 0.01 % of those sent at a requested rate.
//!
//! # What to try
//! Raise the limit in the firewall's output hook, or send no faster than it lets pass.
//!
//! # When it is wrong
//! The count is of the test's own datagrams, so it is this host that refuses them. But a BPF program of
//! a cgroup and a full table of connection tracking refuse them with the same error. Which of these it is,
//! and which of several rules, does not show.
//!
//! # Source
//! net/netfilter/core.c (`nf_hook_slow`); nft(8), statement `limit`; kernel/bpf/cgroup.c
//! (`__cgroup_bpf_run_filter_skb`); net/netfilter/nf_conntrack_core.c (`nf_conntrack_in`).

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::finding::{Draft, percent, rate_argument};
use crate::parts;
use crate::remedy::Again;
use crate::rule::{Depth, Rule};
use crate::view::{View, positive};

/// The rule.
pub const RULE: Rule = Rule {
    id: "own-firewall",
    title: "The sending host refuses datagrams, as a firewall rule does",
    refines: parts::DROPPING_LIMIT,
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "refused_percent",
    witness_words: ("datagrams refused by the sender's kernel", " %"),
    source: include_str!("own_firewall.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.sender.flow_count()?;
    if view.is_tcp() {
        return Ok(None);
    }
    let (refused, sent) = (view.sender.datagrams_refused()?, view.sender.datagrams_sent()?);
    let share = witness(view)? / 100.0;
    if share < view.loss_that_matters() {
        return Ok(None);
    }
    let place = view.sender.place();
    let text = format!(
        "the kernel of the {place} host refused {refused:.0} of {sent:.0} datagrams, {} (EPERM)",
        percent(share)
    );
    let summary = format!("the {place} host refuses datagrams, most likely by a firewall rule");
    let draft = Draft::new(RULE.id, place, Confidence::Likely, summary)
        .share(share)
        .saw(place, RULE.witness_name, share * 100.0, text)
        .predicted(next_after(view, &[RULE.id]))
        .command(place, "nft list ruleset", "look for a limit in an output hook")
        .command(place, "bpftool cgroup tree", "whether an egress program of a cgroup drops them")
        .command(
            place,
            "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max",
            "whether the table of connection tracking is full",
        );
    match view.goodput() {
        Ok(passed) => draft
            .again(
                &Again::With(&format!("--rate {}", rate_argument(passed))),
                "no faster than the host lets pass",
            )
            .found(),
        Err(_) => draft.found(),
    }
}

/// Datagrams that the sender's kernel refused, of those handed to the kernel, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let sent = positive(view.sender.datagrams_sent()?, "the number of datagrams sent")?;
    Ok(view.sender.datagrams_refused()? / sent * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{path_loss, path_rate, policer};
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::Place;

    /// 2 MB a second pass of 8: `limit rate over 2000 kbytes/second drop` in the output hook.
    fn limited() -> Case {
        Case::healthy_udp()
            .goodput(16e6)
            .wobble(0.0)
            .lost(0.75)
            .datagrams_sent(23_000)
            .refused(0.75)
    }

    #[test]
    fn fires_if_the_senders_firewall_refused_them() {
        let finding = fires(&RULE, limited());
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Likely));
        assert!(finding.evidence[0].text.contains("refused"), "{finding:?}");
        for where_to_look in ["nft list ruleset", "bpftool cgroup tree", "nf_conntrack_count"] {
            assert!(finding.advice.iter().any(|text| text.contains(where_to_look)), "{finding:?}");
        }
    }

    #[test]
    fn nothing_on_the_path_is_blamed_for_it() {
        for rule in [&path_loss::RULE, &path_rate::RULE, &policer::RULE] {
            quiet(rule, limited());
        }
    }

    #[test]
    fn stays_quiet_if_few_or_none_were_refused() {
        quiet(&RULE, Case::healthy_udp().lost(0.3));
        quiet(&RULE, Case::healthy_udp().lost(0.3).refused(0.001));
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn cannot_tell_without_samples() {
        cannot_tell(&RULE, Case::empty());
    }
}
