//! Which rules' witnesses count events, and among how many. One run of a comparison may see few of them or none.

use std::collections::BTreeMap;

use goodput_model::{Missing, WitnessCount};

use crate::names::{LINK_RX_PACKETS, LINK_TX_PACKETS, QDISC_PACKETS, SOFTNET_PROCESSED};
use crate::view::View;

/// A witness that counts.
struct Counted {
    rule: &'static str,
    /// The number of chances to which the witness refers.
    per: f64,
    /// How many chances for such an event a measurement had whose witness has this value.
    of: fn(&View, f64) -> Result<f64, Missing>,
}

const MILLION: f64 = 1e6;
const PERCENT: f64 = 100.0;
const RUN: f64 = 1.0;

const COUNTED: [Counted; 11] = [
    Counted { rule: "ecn-marking", per: PERCENT, of: delivered },
    Counted { rule: "frame-errors", per: MILLION, of: arrived },
    Counted { rule: "host-interconnect", per: MILLION, of: arrived },
    Counted { rule: "link-flap", per: RUN, of: run },
    Counted { rule: "local-drop", per: PERCENT, of: handed_over },
    Counted { rule: "napi-budget", per: MILLION, of: processed },
    Counted { rule: "pause-frames", per: MILLION, of: sent },
    Counted { rule: "queue-too-short", per: PERCENT, of: handed_to_queue },
    Counted { rule: "receive-prune", per: RUN, of: run },
    Counted { rule: "ring-overrun", per: MILLION, of: arrived },
    Counted { rule: "softnet-backlog", per: MILLION, of: processed },
];

fn delivered(view: &View, _witness: f64) -> Result<f64, Missing> {
    view.sender.delivered_segments()
}

fn arrived(view: &View, _witness: f64) -> Result<f64, Missing> {
    Ok(view.receiver.grown(LINK_RX_PACKETS)? as f64)
}

fn processed(view: &View, _witness: f64) -> Result<f64, Missing> {
    Ok(view.receiver.grown(SOFTNET_PROCESSED)? as f64)
}

fn sent(view: &View, _witness: f64) -> Result<f64, Missing> {
    Ok(view.sender.grown(LINK_TX_PACKETS)? as f64)
}

fn handed_over(view: &View, _witness: f64) -> Result<f64, Missing> {
    view.sender.departures()
}

/// What the sender's queue passed on and dropped. If it dropped nothing, the rule reads losses on the path, which are among
/// other packets.
fn handed_to_queue(view: &View, witness: f64) -> Result<f64, Missing> {
    let dropped = view.sender.queue_drops()?;
    if witness > 0.0 && dropped == 0.0 {
        return Err(Missing::because("the queue dropped nothing, and losses are on the path"));
    }
    Ok(view.sender.grown(QDISC_PACKETS)? as f64 + dropped)
}

fn run(_view: &View, _witness: f64) -> Result<f64, Missing> {
    Ok(1.0)
}

/// The events behind these witnesses, of those that count.
pub(crate) fn of(view: &View, witnesses: &BTreeMap<String, f64>) -> BTreeMap<String, WitnessCount> {
    let count = |Counted { rule, per, of }: &Counted| {
        let witness = *witnesses.get(*rule)?;
        let of = of(view, witness).ok().filter(|of| *of > 0.0)?;
        let events = (witness * of / per).round();
        Some(((*rule).to_owned(), WitnessCount { events, of, per: *per }))
    };
    COUNTED.iter().filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use goodput_model::EndName::Near;

    use super::*;
    use crate::names::LINK_TX_DROPPED;
    use crate::testing::Case;
    use crate::{diagnose, rules};

    fn counted(case: Case) -> BTreeMap<String, WitnessCount> {
        diagnose(&case.evidence()).witness_counts
    }

    #[test]
    fn each_is_the_witness_of_a_rule_in_its_unit() {
        for Counted { rule, per, .. } in &COUNTED {
            let rule = rules::find(rule).unwrap();
            let says = |word| rule.witness_name.contains(word);
            assert_eq!(says("percent"), *per == PERCENT, "{}", rule.id);
            assert_eq!(says("per_million"), *per == MILLION, "{}", rule.id);
        }
    }

    #[test]
    fn drops_of_a_device_without_a_queue_are_counted_among_what_tcp_sent() {
        let case = Case::path_loss().grows(Near, QDISC_PACKETS, 0);
        let count = counted(case.grows(Near, LINK_TX_DROPPED, 300))["local-drop"];
        assert_eq!(count.events, 300.0, "{count:?}");
        assert!(count.of > 600.0, "{count:?}");
    }

    #[test]
    fn drops_of_a_queue_are_counted_among_the_packets_handed_to_it() {
        let case = |drops| {
            let case = Case::path_loss().grows(Near, QDISC_PACKETS, 99_998);
            case.grows(Near, "qdisc.drops", drops)
        };
        let few = counted(case(2))["queue-too-short"];
        assert_eq!(few, WitnessCount { events: 2.0, of: 100_000.0, per: 100.0 });
        let none = counted(case(0)).get("queue-too-short").copied();
        assert!(
            none.is_none_or(|none| none.events == 0.0),
            "losses on the path are no drops: {none:?}"
        );
    }
}
