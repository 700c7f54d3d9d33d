//! # What it means
//! The server's operator limits the rate, and the server keeps to that limit.
//!
//! # Why it limits
//! At its limit the server stops reading or sending faster. A TCP sender then waits for the
//! receiver's window. With UDP, whatever exceeds the limit is lost. All flows that share the limit
//! get no more than the limit together.
//!
//! # How it is seen
//! The server reports how long its flows waited for each of its limits. The rule fires if this is
//! at least half of the time. The finding is certain if the goodput is near the limit, and likely
//! if it is lower. A test of a fleet keeps to the `--max-rate` of both agents: the plan then names
//! the agent, and the rule fires if the goodput reaches that rate.
//!
//! # What to try
//! Ask the server's operator to raise the limit: `--max-rate`, `--max-total-rate`, `--client-share`, or
//! `max-rate=` of the client's key in the list of authorized keys. Or measure with another server. In a fleet, raise
//! `--max-rate` of the agent.
//!
//! # When it is wrong
//! If the goodput reaches the plan's own `--rate`, that rate is the limit, and this rule stays
//! quiet. All limits are shared: with other measurements of the client or its key, or with other
//! clients. If the goodput is below the limit, either these take the rest, or the server waited
//! while nothing more arrived; the server can't tell which. Just below a limit that other clients
//! share, it depends on them who waits longest. A private server and a server of an older version
//! do not report their limits, which then look like receiver-application.
//!
//! # Source
//! goodput's own count at the server (`held_to` of its report, docs/protocol.md section 5).

use goodput_model::{Confidence, Finding, HeldTo, Missing, Place, RateLimit};

use crate::bounds::next_after;
use crate::finding::{Draft, percent};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_LIMITING_TIME_SHARE;
use crate::view::{HeldToLimits, Side, View, first_of};

/// Share of a rate from which the goodput reaches it: a receiver misses what was lost, and the first and the last
/// piece.
const MIN_SHARE_OF_RATE: f64 = 0.95;

/// The rule.
pub const RULE: Rule = Rule {
    id: "server-limit",
    title: "The server's own limit holds the rate",
    refines: &[parts::SENDING_PROGRAM, parts::RECEIVING_PROGRAM],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "held_by_limit_percent",
    witness_words: ("time held by the server's limit", " %"),
    source: include_str!("server_limit.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    match of_agent(view) {
        Some(draft) => draft.found(),
        None => first_of(view, |side| at(view, side)),
    }
}

/// The limit of a fleet's agent, to which the sender kept.
fn of_agent(view: &View) -> Option<Draft> {
    let (end, limit) = view.kept_limit()?;
    let place = Place::from(end);
    let summary = format!("the {place} agent's own limit: --max-rate {limit}");
    let reached = percent(view.goodput_or_zero() / limit.0);
    let text =
        format!("the agent takes part in tests of at most {limit}; the goodput is {reached} of it");
    let draft = Draft::new(RULE.id, place, Confidence::Certain, summary)
        .saw(place, "limit_bits_per_s", limit.0, text)
        .predicted(next_after(view, &[RULE.id, "sender-application", "server-stalls"]));
    Some(draft.advice("raise --max-rate of this agent, if its line may carry more"))
}

fn at(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    let Some(held) =
        side.held_to(view.plan().flows)?.filter(|held| held.share >= MIN_LIMITING_TIME_SHARE)
    else {
        return Ok(None);
    };
    let goodput = view.goodput_or_zero();
    let limit = held.longest.rate_bits_per_s.0;
    let asked = view.plan().rate_bits_per_s.filter(|asked| asked.0 <= limit);
    if asked.is_some_and(|asked| goodput >= MIN_SHARE_OF_RATE * asked.0) {
        return Ok(None);
    }
    let (place, option) = (side.place(), option(held.longest));
    let near_limit = goodput >= MIN_SHARE_OF_RATE * limit;
    let confidence = if near_limit { Confidence::Certain } else { Confidence::Likely };
    let summary = format!("the server's own limit: {option}");
    let sharers = format!("the limit is for {}", sharers(held.longest.limit));
    let draft = Draft::new(RULE.id, place, confidence, summary)
        .share(held.share)
        .saw(place, RULE.witness_name, held.share * 100.0, waited(&held, &option))
        .saw(place, "limit_bits_per_s", limit, sharers)
        .advice(format!("ask the server's operator to raise {}", remedy(held.longest.limit)));
    // What more datagrams would do was not seen: the limit lost them.
    let draft = if view.is_tcp() { draft.predicted(next_after(view, &[RULE.id])) } else { draft };
    draft.found()
}

/// How long it waited, in words.
fn waited(held: &HeldToLimits, option: &str) -> String {
    let share = percent(held.share);
    match held.limits {
        1 => format!("the server waited {share} of the time to keep to {option}"),
        limits => format!(
            "the server waited {share} of the time to keep to {limits} limits, longest to {option}"
        ),
    }
}

/// The limit as its operator has set it.
fn option(held: &HeldTo) -> String {
    let rate = held.rate_bits_per_s;
    match held.limit {
        RateLimit::Client => format!("--max-rate {rate}"),
        RateLimit::ClientShare => format!("{rate}, one client's share of --max-total-rate"),
        RateLimit::NetworkShare => format!("{rate}, a network's share of --max-total-rate"),
        RateLimit::Total => format!("--max-total-rate {rate}"),
        RateLimit::Key => format!("max-rate {rate} of this client's key"),
        RateLimit::Other => rate.to_string(),
    }
}

/// Who shares it.
fn sharers(limit: RateLimit) -> &'static str {
    match limit {
        RateLimit::Client | RateLimit::ClientShare => "all measurements of this client together",
        RateLimit::NetworkShare => "all clients of this network together",
        RateLimit::Total => "all clients together",
        RateLimit::Key => "all measurements with this key together",
        RateLimit::Other => "flows of this server",
    }
}

fn remedy(limit: RateLimit) -> &'static str {
    match limit {
        RateLimit::Client => "--max-rate of goodput serve",
        RateLimit::ClientShare => "--client-share or --max-total-rate of goodput serve",
        RateLimit::NetworkShare | RateLimit::Total => "--max-total-rate of goodput serve",
        RateLimit::Key => "max-rate= of your key in --authorized-keys",
        RateLimit::Other => "it",
    }
}

/// Share of the time in which a limit held the flows, percent, at the end with the larger share.
fn witness(view: &View) -> Result<f64, Missing> {
    let flows = view.plan().flows;
    let share = |side: &Side| Ok(side.held_to(flows)?.map_or(0.0, |held| held.share));
    let (sender, receiver) = (share(&view.sender)?, share(&view.receiver)?);
    Ok(sender.max(receiver) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};
    use goodput_model::{BitRate, Place, Role};

    /// 50 Mbit/s, of a reader that waits for its turn nearly all the time.
    fn held() -> Case {
        let case = Case::healthy().without_links().goodput(49.8e6).shares(1.0, 0.98, 0.0);
        let case = case.writer(0.97, 0.0, 0.01).reader(0.01, 0.97, 0.02).queued(900_000);
        case.held_to(Far, Role::Receiver, 50e6, 0.97)
    }

    fn limits(case: Case) -> Vec<String> {
        diagnose(&case.evidence()).findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn the_limit_is_named_with_its_option_and_nothing_else() {
        let finding = fires(&RULE, held());
        assert_eq!((finding.end, finding.confidence), (Place::Far, Confidence::Certain));
        assert_eq!(finding.summary, "the server's own limit: --max-rate 50 Mbit/s");
        assert!(finding.advice[0].contains("--max-rate"), "{:?}", finding.advice);
        assert_eq!(limits(held()), ["server-limit"]);
        assert_eq!(limits(held().not_held(Far)), ["receiver-application"], "what it looks like");
    }

    /// A test of a fleet at this agent's `--max-rate` of 50 Mbit/s, and as this case otherwise.
    fn capped(case: Case, end: goodput_model::EndName) -> Case {
        case.goodput(49.8e6).plan(move |plan| {
            plan.rate_bits_per_s = Some(BitRate(50e6));
            plan.rate_limit_of = Some(end);
        })
    }

    #[test]
    fn an_agent_s_limit_is_named_and_not_what_the_sender_looks_like_meanwhile() {
        let paced = || Case::healthy().without_links().writer(0.0, 0.97, 0.02);
        for (end, place) in [(Near, Place::Near), (Far, Place::Far)] {
            let finding = fires(&RULE, capped(paced(), end));
            assert_eq!((finding.end, finding.confidence), (place, Confidence::Certain));
            assert!(finding.summary.contains("--max-rate 50 Mbit/s"), "{}", finding.summary);
            assert_eq!(limits(capped(paced(), end)), ["server-limit"]);
        }
        // A server that reports nothing of itself, such as iperf3.
        let silent = Case::healthy().without_links().silent_sender(|tcp, _| {
            (tcp.min_rtt_us, tcp.rcv_rtt_us) = (Some(900), Some(1000));
            tcp.last_data_recv_ms = Some(90);
        });
        assert_eq!(limits(capped(silent, Near))[..1], ["server-limit"]);
        // Paced segments can look like a window that is full.
        let windowed = Case::receive_window().without_links();
        assert_eq!(limits(capped(windowed, Near)), ["server-limit"]);
        let slower = capped(paced(), Far).goodput(30e6);
        assert_eq!(limits(slower)[..1], ["sender-application"], "the limit was not reached");
    }

    #[test]
    fn a_server_that_sends_is_held_as_well() {
        let case = Case::sender_application().writer(0.0, 0.97, 0.02).goodput(49.5e6);
        let case = case.held_to(Near, Role::Sender, 50e6, 0.97);
        assert_eq!(fires(&RULE, case).end, Place::Near);
    }

    #[test]
    fn datagrams_beyond_the_limit_are_lost_because_of_it() {
        let case = Case::healthy_udp().without_links().goodput(50e6).lost(0.9).dropped(0.9);
        let case = case.reader(0.0, 0.99, 0.01).held_to(Far, Role::Receiver, 50e6, 0.99);
        assert_eq!(limits(case), ["server-limit"]);
    }

    #[test]
    fn a_limit_that_holds_nothing_or_is_above_the_plans_rate_is_quiet() {
        quiet(&RULE, Case::healthy());
        quiet(&RULE, held().held_to(Far, Role::Receiver, 50e6, 0.2));
        quiet(&RULE, held().held_to(Far, Role::Sender, 50e6, 0.97));
        quiet(&RULE, held().plan(|plan| plan.rate_bits_per_s = Some(BitRate(50e6))));
    }

    /// Other clients take the rest of `--max-total-rate`.
    #[test]
    fn a_limit_that_others_share_holds_a_plan_with_a_lower_rate() {
        let case = held().plan(|plan| plan.rate_bits_per_s = Some(BitRate(40e6)));
        let case = case.goodput(25e6).limited_by(Far, RateLimit::Total);
        let finding = fires(&RULE, case);
        assert_eq!(finding.summary, "the server's own limit: --max-total-rate 50 Mbit/s");
        assert_eq!(finding.confidence, Confidence::Likely);
    }

    #[test]
    fn a_wait_far_below_the_limit_is_no_certainty() {
        let finding = fires(&RULE, held().goodput(20e6));
        assert_eq!(finding.confidence, Confidence::Likely);
    }

    #[test]
    fn limits_that_hold_in_turn_count_together() {
        let case = held().held_to(Far, Role::Receiver, 50e6, 0.45);
        let finding = fires(&RULE, case.also_held_to(Far, RateLimit::Total, 50e6, 0.4));
        assert_eq!(finding.summary, "the server's own limit: --max-rate 50 Mbit/s");
        assert_eq!(finding.share_percent.value().map(|share| share.round()), Some(85.0));
        let text = &finding.evidence[0].text;
        assert!(text.contains("85 %") && text.contains("2 limits, longest"), "{text}");
        quiet(&RULE, held().held_to(Far, Role::Receiver, 50e6, 0.4));
    }

    #[test]
    fn a_report_that_cannot_be_is_not_believed() {
        let why = cannot_tell(&RULE, held().held_to(Far, Role::Receiver, 50e6, 1.2));
        assert!(why.contains("more than its flows had"), "{why}");
        let why = cannot_tell(&RULE, held().held_to(Far, Role::Receiver, -1.0, 0.9));
        assert_eq!(why, "a limit is -1");
        let rounded = fires(&RULE, held().held_to(Far, Role::Receiver, 50e6, 1.03));
        assert_eq!(rounded.share_percent.value(), Some(&100.0));
        assert!(rounded.evidence[0].text.contains("100 %"), "{:?}", rounded.evidence);
    }

    #[test]
    fn a_server_that_does_not_report_limits_leaves_it_open() {
        assert_eq!(cannot_tell(&RULE, held().without_far()), "the peer does not report");
        let why = cannot_tell(&RULE, held().silent_on_limits(Far));
        assert_eq!(why, "the far end does not report its limits");
    }
}
