//! Which causes the lab plants, by the scenarios that expect them, and why it can't plant the others.

use std::fmt::Write;

/// Rules that no scenario expects, each with what keeps a lab of network namespaces from planting it.
const UNPLANTED: &[(&str, &str)] = &[
    (
        "cached-metrics",
        "`net.ipv4.tcp_no_metrics_save` is on in a new network namespace, and nothing but a bad connection before fills the cache",
    ),
    (
        "cpu-contention",
        "what other programs take is the machine's, not a host's: it shows where the machine is busy",
    ),
    ("cpu-frequency", "a virtual machine does not see the clock of its CPUs"),
    ("cpu-placement", "virtual devices interrupt no CPU"),
    ("cpu-steal", "only the hypervisor takes CPUs away"),
    ("duplex-mismatch", "virtual devices have no duplex"),
    ("frame-errors", "virtual links corrupt no frame"),
    (
        "gro-off",
        "the segments of one machine are never cut up, so there is nothing to join; it is seen as a second cause where a shaper cuts them",
    ),
    ("host-interconnect", "it takes a card that counts what its bus did not take"),
    ("interrupt-coalescing", "virtual devices coalesce nothing"),
    ("legacy-bus", "it takes a card on such a bus"),
    ("line-rate", "virtual devices have no speed"),
    ("link-speed", "virtual devices negotiate nothing"),
    ("napi-budget", "`net.core.netdev_budget` is the machine's, not a host's"),
    ("notsent-lowat", "it costs nothing while the writer gets a CPU as soon as it is woken"),
    ("pause-frames", "virtual devices send none"),
    ("pcie-link", "it takes a card on PCI Express"),
    ("queue-imbalance", "it takes a card with several receive queues"),
    (
        "queue-too-long",
        "it costs delay, not goodput: where it is planted, the limit is path-rate, and it is expected beside that",
    ),
    ("receive-prune", "the kernel grows the buffer before it prunes what is in it"),
    (
        "receiver-cpu",
        "nothing need be planted: the healthy scenarios on a cable expect it or nothing",
    ),
    ("ring-overrun", "virtual devices have no ring"),
    (
        "sender-cpu",
        "nothing need be planted: the healthy scenarios on a cable expect it or nothing",
    ),
    ("softirq-saturation", "it takes a flood on one CPU that the other ends do not share"),
    ("softnet-backlog", "`net.core.netdev_max_backlog` is the machine's, not a host's"),
    ("storage-read", "it takes a disk slower than the network; tested with made-up files"),
    ("storage-write", "it takes a disk slower than the network; tested with made-up files"),
    ("tcp-memory", "`net.ipv4.tcp_mem` is the machine's, not a host's"),
];

/// Causes of the field's catalogue that goodput has no rule for, and why a lab could not show one either.
const UNNAMED: &[(&str, &str)] = &[
    ("per-flow-limit", "needs several flows beside one: `--probe` runs four, and tells then"),
    ("incast", "needs many senders to one receiver at the same moment; goodput has two ends"),
    ("hash-imbalance", "needs several links or queues that flows are spread over by a hash"),
    ("packet-tap", "a tap's cost is CPU time in the receiver's softirq, seen as receiver-cpu"),
];

/// A line for the page of a rule: the scenarios that plant it, or why none does.
pub fn line(rule: &str) -> String {
    let scenarios = scenarios(rule);
    match UNPLANTED.iter().find(|(id, _)| *id == rule) {
        Some((_, why)) => format!("Not planted in the lab: {why}."),
        None => format!("Planted in the lab by {}.", scenarios.join(", ")),
    }
}

/// What the page of all rules ends with.
pub fn unnamed() -> String {
    let mut text = String::from(
        "\n## Causes without a rule\n\n| cause | why neither rule nor scenario |\n|---|---|\n",
    );
    for (cause, why) in UNNAMED {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{cause}` | {why} |");
    }
    text
}

/// The built-in scenarios that expect the rule.
fn scenarios(rule: &str) -> Vec<String> {
    let (id, expects) = (format!("\"{rule}\""), ["limit", "both"]);
    let names = |line: &&str| expects.iter().any(|key| line.starts_with(key)) && line.contains(&id);
    let healthy = |toml: &str| toml.lines().any(|line| line == "healthy = true");
    goodput_lab::builtin()
        .iter()
        .filter(|scenario| !healthy(scenario.toml) && scenario.toml.lines().any(|l| names(&l)))
        .map(|scenario| format!("`{}`", scenario.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_diagnose::rules;

    #[test]
    fn every_rule_has_a_scenario_or_a_reason_and_not_both() {
        for rule in rules::ALL {
            let reason = UNPLANTED.iter().any(|(id, _)| *id == rule.id);
            let planted = !scenarios(rule.id).is_empty();
            assert!(reason != planted, "{}: reason {reason}, planted {planted}", rule.id);
        }
        for (id, _) in UNPLANTED {
            assert!(rules::find(id).is_some(), "{id} is no rule");
        }
        for (id, _) in UNNAMED {
            assert!(rules::find(id).is_none(), "{id} is a rule");
        }
    }
}
