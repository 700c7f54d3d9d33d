//! What the log says about a measurement.

use goodput_model::{Direction, HeldTo, LostFlow, Plan, RateLimit, Role, Sample, Transport};

/// Smallest share of the time for which the log names the limit that held a measurement back.
const MIN_LOGGED_SHARE: f64 = 0.1;

/// The limit that held the flows of one role back longest, if the limits of that role together did so for a part of the
/// time that counts.
pub(super) fn held(held_to: &[HeldTo], plan: &Plan, last: &Sample) -> String {
    let all_us = f64::from(plan.flows.max(1)) * last.at_s * 1e6;
    let of = |role| {
        let own = held_to.iter().filter(move |held| held.role == role);
        let longest = own.clone().max_by_key(|held| held.held_us)?;
        Some((own.map(|held| held.held_us as f64).sum::<f64>() / all_us, longest))
    };
    let roles = [Role::Sender, Role::Receiver].into_iter().filter_map(of);
    match roles.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((share, longest)) if share.is_finite() && share >= MIN_LOGGED_SHARE => {
            let percent = share.min(1.0) * 100.0;
            format!("; {} held it for {percent:.0} % of the time", limit(longest))
        }
        _ => String::new(),
    }
}

/// The flows that were lost while the others went on, and why the first one was.
pub(super) fn lost(flows: &[LostFlow]) -> String {
    match flows {
        [] => String::new(),
        [one] => format!("; lost a flow: {}", one.why),
        [first, ..] => format!("; lost {} flows, such as: {}", flows.len(), first.why),
    }
}

/// The limit in the operator's words.
fn limit(held: &HeldTo) -> String {
    let rate = held.rate_bits_per_s;
    match held.limit {
        RateLimit::Client => format!("--max-rate {rate}"),
        RateLimit::ClientShare => format!("its share of --max-total-rate, {rate},"),
        RateLimit::NetworkShare => format!("its network's share of --max-total-rate, {rate},"),
        RateLimit::Total => format!("--max-total-rate {rate}"),
        RateLimit::Key => format!("max-rate {rate} of its key"),
        RateLimit::Other => format!("a limit of {rate}"),
    }
}

/// What a plan moves and where, for one log line.
pub(super) fn in_short(plan: &Plan) -> String {
    let direction = match plan.direction {
        Direction::Send => "to here",
        Direction::Reverse => "from here",
        Direction::Both => "both ways",
    };
    let transport = match plan.transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
    };
    let flows = plan.flow_plans().len();
    format!("{transport}, {flows} flow{}, {direction}", if flows == 1 { "" } else { "s" })
}

/// How many datagrams did not arrive, if this end received any.
pub(super) fn missed(last: &Sample) -> String {
    let received = last.flows.iter().filter(|flow| flow.role == Role::Receiver);
    let seen: Vec<_> = received.filter_map(|flow| flow.datagrams).collect();
    // The numbers are a peer's: all flows together may have more than one of them can.
    let lost: u128 = seen.iter().map(|seen| u128::from(seen.lost)).sum();
    match lost + seen.iter().map(|seen| u128::from(seen.received)).sum::<u128>() {
        0 => String::new(),
        all => format!(" and missed {lost} of {all} datagrams"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{BitRate, DatagramCounts, FlowSample};

    #[test]
    fn any_numbers_of_datagrams_that_did_not_come_are_logged() {
        let datagrams = DatagramCounts { received: 1, lost: u64::MAX, ..DatagramCounts::default() };
        let flow = |number| FlowSample {
            datagrams: Some(datagrams),
            ..FlowSample::unreported(number, Role::Receiver, 7, "not looked at")
        };
        let last = |flows| Sample { at_s: 1.0, sent_bytes: 0, received_bytes: 14, flows };
        let said = missed(&last(vec![flow(0), flow(1)]));
        assert_eq!(said, " and missed 36893488147419103230 of 36893488147419103232 datagrams");
        assert_eq!(missed(&last(Vec::new())), "");
    }

    #[test]
    fn the_log_names_the_limit_that_held_a_measurement() {
        let last =
            Sample { at_s: 2.0, sent_bytes: 0, received_bytes: 12_500_000, flows: Vec::new() };
        let by = |limit, held_us| HeldTo {
            role: Role::Receiver,
            rate_bits_per_s: BitRate(5e7),
            limit,
            held_us,
        };
        let plan = Plan { flows: 2, ..Plan::standard() };
        let said = |held_to: &[HeldTo]| held(held_to, &plan, &last);
        let both = [by(RateLimit::Client, 3_920_000), by(RateLimit::Total, 40)];
        assert_eq!(said(&both), "; --max-rate 50 Mbit/s held it for 98 % of the time");
        let key = said(&[by(RateLimit::Key, 3_000_000)]);
        assert_eq!(key, "; max-rate 50 Mbit/s of its key held it for 75 % of the time");
        assert_eq!(said(&[by(RateLimit::Client, 40_000)]), "", "not worth a word");
        assert_eq!(said(&[]), "");
        let in_turn = [by(RateLimit::Client, 200_000), by(RateLimit::Total, 300_000)];
        let total = "; --max-total-rate 50 Mbit/s held it for 12 % of the time";
        assert_eq!(said(&in_turn), total, "together");
        let long = said(&[by(RateLimit::Client, 4_040_000)]);
        assert_eq!(long, "; --max-rate 50 Mbit/s held it for 100 % of the time");
    }

    #[test]
    fn the_log_does_not_add_up_what_held_both_directions() {
        let last = Sample { at_s: 1.0, sent_bytes: 0, received_bytes: 0, flows: Vec::new() };
        let by = |role, held_us| HeldTo {
            role,
            rate_bits_per_s: BitRate(5e7),
            limit: RateLimit::Client,
            held_us,
        };
        let both = [by(Role::Sender, 600_000), by(Role::Receiver, 700_000)];
        let said = |last: &Sample| held(&both, &Plan { flows: 1, ..Plan::standard() }, last);
        assert_eq!(said(&last), "; --max-rate 50 Mbit/s held it for 70 % of the time");
        assert_eq!(said(&Sample { at_s: 0.0, ..last }), "", "no time, no share");
    }
}
