//! Which causes the lab plants, by the scenarios that expect them, and why it can't plant the others.

use std::fmt::Write;

/// Rules that no scenario expects, each with the reason why a lab of network namespaces can't plant it.
const UNPLANTED: &[(&str, &str)] = &[
    (
        "cached-metrics",
        "`net.ipv4.tcp_no_metrics_save` is on in a new network namespace, and only an earlier bad connection fills the cache",
    ),
    (
        "calls-in-flight",
        "needs an NFS server, which a lab does not run; seen with nfs-ganesha on a path with delay",
    ),
    (
        "connection-breaks",
        "needs an NFS server, which a lab does not run; seen with a server that resets its connections",
    ),
    (
        "cpu-contention",
        "other programs use the machine's CPUs, not one lab host's; it shows on a busy machine",
    ),
    ("cpu-frequency", "a virtual machine does not see the clock of its CPUs"),
    ("cpu-placement", "virtual devices interrupt no CPU"),
    ("cpu-steal", "only the hypervisor takes CPUs away"),
    ("duplex-mismatch", "virtual devices have no duplex"),
    ("frame-errors", "virtual links corrupt no frame"),
    (
        "gro-off",
        "the segments of one machine are never cut up, so there is nothing to join; it shows as a second cause if a shaper cuts them",
    ),
    ("host-interconnect", "needs a card that counts what its bus did not accept"),
    ("interrupt-coalescing", "virtual devices coalesce nothing"),
    ("legacy-bus", "needs a card on such a bus"),
    ("line-rate", "virtual devices have no speed"),
    ("link-speed", "virtual devices negotiate nothing"),
    ("napi-budget", "`net.core.netdev_budget` is one setting for the machine, not per lab host"),
    ("notsent-lowat", "it costs nothing while a woken writer gets a CPU at once"),
    (
        "own-firewall",
        "scenarios test TCP, and a firewall refuses datagrams; `shaping::a_limit_in_its_own_firewall_is_named` plants it",
    ),
    ("pause-frames", "virtual devices send none"),
    ("pcie-link", "needs a card on PCI Express"),
    ("queue-imbalance", "needs a card with several receive queues"),
    (
        "queue-too-long",
        "it costs delay, not goodput: scenarios that plant it expect path-rate as the limit, with queue-too-long beside it",
    ),
    ("receive-prune", "the kernel grows the buffer before it prunes it"),
    (
        "receiver-cpu",
        "nothing needs to be planted: healthy scenarios on a cable expect this limit or none",
    ),
    ("ring-overrun", "virtual devices have no ring"),
    ("rpc-queue", "needs the kernel's NFS client, and a server; tested with made-up counts"),
    (
        "sender-cpu",
        "nothing needs to be planted: healthy scenarios on a cable expect this limit or none",
    ),
    (
        "server-or-path",
        "needs a server of files, which a lab does not run; seen with servers that write steadily",
    ),
    (
        "server-stalls",
        "needs a server of files, which a lab does not run; seen with servers that pause",
    ),
    (
        "server-storage",
        "needs a server of files, which a lab does not run; seen with a slow first fetch",
    ),
    ("softirq-saturation", "needs a flood on a CPU that the other ends do not share"),
    (
        "softnet-backlog",
        "`net.core.netdev_max_backlog` is one setting for the machine, not per lab host",
    ),
    ("storage-read", "needs a disk slower than the network; tested with synthetic files"),
    ("storage-write", "needs a disk slower than the network; tested with synthetic files"),
    ("tcp-memory", "`net.ipv4.tcp_mem` is one setting for the machine, not per lab host"),
    (
        "waiting-for-answers",
        "needs a server of files, which a lab does not run; seen with nginx and vsftpd",
    ),
];

/// Causes in the catalogue for which goodput has no rule, and why a lab could not show them either.
const UNNAMED: &[(&str, &str)] = &[
    (
        "per-flow-limit",
        "needs several flows to compare with one; `--probe` runs four and then reports it",
    ),
    ("incast", "needs many senders to one receiver at the same moment; goodput has two ends"),
    ("hash-imbalance", "needs several links or queues, with flows spread over them by a hash"),
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

/// The end of the page of all rules.
pub fn unnamed() -> String {
    let mut text = String::from(
        "\n## Causes without a rule\n\n| cause | why neither rule nor scenario |\n|---|---|\n",
    );
    for (cause, why) in UNNAMED {
        // Writing to a String can't fail.
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
