//! # What it means
//! One of the two hosts does not offer selective acknowledgements, so neither may use them.
//!
//! # Why it limits
//! Without them the sender learns of one lost segment in each round trip. If a window loses many
//! segments, as at the end of slow start or in a short queue, recovery takes as many round trips,
//! or a time-out.
//!
//! # How it is seen
//! The connection runs without the option (tcp_info options), and the sender was recovering lost
//! segments (tcp_info ca_state) for at least half of the time since the first loss. One host has
//! `net.ipv4.tcp_sack` = 0.
//!
//! # What to try
//! `net.ipv4.tcp_sack` = 1 at that host. The losses then cost less; they don't go away.
//!
//! # When it is wrong
//! If losses are rare and single, recovery takes a round trip with or without the option; then
//! path-loss remains. If both hosts offer the option, something on the path removes it; that is
//! left to middlebox.
//!
//! # Source
//! RFC 2018; RFC 6582 (one segment in a round trip); tcp(7).

use goodput_model::{Confidence, Finding, Missing};

use crate::change::of_host;
use crate::finding::Draft;
use crate::names::TCP_SACK;
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::unselective::{Unselective, WITNESS_NAME};
use crate::view::{Side, TcpOption, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "sack-off",
    title: "A host does not offer selective acknowledgements",
    refines: &[parts::CUT_WINDOW, parts::RECOVERY, parts::RECEIVE_WINDOW, parts::SEND_BUFFER],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: WITNESS_NAME,
    witness_words: ("time repairing losses without SACK", " %"),
    source: include_str!("sack_off.rs"),
};

/// Share of the time in recovery from which nothing else can be what limits.
const MIN_RECOVERY_TIME_SHARE: f64 = 0.8;
fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let Some(seen) = Unselective::of(view)? else { return Ok(None) };
    let (side, known) = match culprit(view) {
        Some(side) => (side, true),
        // The end that can't be asked, because the other one offers it.
        None => match view.sides().into_iter().find(|side| side.text(TCP_SACK).is_err()) {
            Some(side) => (side, false),
            None => return Ok(None),
        },
    };
    let confidence = match (known, seen.share >= MIN_RECOVERY_TIME_SHARE) {
        (true, true) => Confidence::Certain,
        (true, false) => Confidence::Likely,
        (false, _) => Confidence::Possible,
    };
    let summary = "losses without selective acknowledgements";
    let draft = Draft::new(RULE.id, side.place(), confidence, summary);
    let draft = seen.describe(view, draft);
    if !known {
        let ask = "check if that host offers selective acknowledgements: sysctl net.ipv4.tcp_sack";
        return draft.advice(ask).found();
    }
    let values = (Some("0".into()), "1".into());
    let why = "reports all lost segments to the sender at once";
    draft.changes([of_host(side, TCP_SACK, None, values, why)]).found()
}

/// The host that does not offer it.
fn culprit<'v, 'a>(view: &'v View<'a>) -> Option<&'v Side<'a>> {
    view.sides().into_iter().find(|side| side.words(TCP_SACK).as_deref() == Some("0"))
}

/// Share of the time that the sender recovered from losses without the option, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let selective = view.sender.has_option(TcpOption::Sack)?;
    Ok(if selective { 0.0 } else { view.sender.recovering_share()? * 100.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};
    use goodput_model::Place;

    /// CUBIC through 100 Mbit/s with a short queue at 40 ms, as measured: 1.8 Mbit/s, but 79 go
    /// with the option. Of ten samples `recovering` see a recovery.
    fn slow(recovering: u64) -> Case {
        let case = Case::path_loss().goodput(1.8e6).retransmitted(0.1).tcp(move |tcp, n| {
            tcp.options = Some(5);
            tcp.ca_state = Some(if n % 10 < recovering { 3 } else { 0 });
        });
        case.fact(Far, TCP_SACK, "1").fact(Near, TCP_SACK, "1")
    }

    #[test]
    fn the_host_that_does_not_offer_it_is_named() {
        let finding = fires(&RULE, slow(10).fact(Far, TCP_SACK, "0"));
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
        assert_eq!(finding.changes[0].as_argument(), "far:sysctl.net.ipv4.tcp_sack=0,1");
        let finding = fires(&RULE, slow(6).fact(Near, TCP_SACK, "0"));
        assert_eq!((finding.end, finding.confidence), (Place::Near, Confidence::Likely));
    }

    #[test]
    fn it_explains_the_losses_and_the_window_that_fills_behind_them() {
        let case = slow(10).fact(Near, TCP_SACK, "0").shares(1.0, 0.86, 0.0);
        let found = diagnose(&case.evidence()).findings;
        assert_eq!(found.iter().map(|f| f.rule.as_str()).collect::<Vec<_>>(), ["sack-off"]);
    }

    #[test]
    fn rare_losses_cost_no_more_without_it() {
        // 1 % of random loss, CUBIC at 20 ms: 4.9 Mbit/s with and without, as measured.
        quiet(&RULE, slow(3).fact(Near, TCP_SACK, "0"));
        quiet(&RULE, slow(10).fact(Near, TCP_SACK, "0").retransmitted(0.0));
    }

    #[test]
    fn with_the_option_or_offered_by_both_it_is_another() {
        quiet(&RULE, slow(10).tcp(|tcp, _| tcp.options = Some(7)));
        quiet(&RULE, slow(10));
    }

    #[test]
    fn a_silent_peer_is_asked_to_look() {
        let finding = fires(&RULE, slow(10).without_far());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Possible));
    }

    #[test]
    fn cannot_tell_for_datagrams_or_without_options() {
        cannot_tell(&RULE, Case::healthy_udp());
        cannot_tell(&RULE, slow(10).tcp(|tcp, _| tcp.options = None));
    }
}
