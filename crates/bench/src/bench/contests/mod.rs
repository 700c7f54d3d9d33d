//! The contests, in the order of the page.

mod at_rest;
mod best_method;
mod eight_flows;
mod fetch;
mod first_byte;
mod memory;
mod observing;
mod reference;
mod sixty_four_flows;
mod size;
mod small_writes;
mod tcp_copy;
mod thousand_flows;
mod two_hundred_clients;
mod udp_packets;
mod udp_rate;
mod udp_throughput;
mod unpaced;

use super::contest::{Against, Bound, Contest, Entry, Goal, Kind};
use super::measure::{CPU, Measure, RATE};
use super::place::Place;
use super::programs::{
    GOODPUT, IPERF, IPERF3, NEPER, NETPERF, NETPERF_SENDFILE, NUTTCP, Program, QPERF, SOCKPERF,
};

/// All contests.
pub const ALL: &[&Contest] = &[
    &tcp_copy::CONTEST,
    &best_method::CONTEST,
    &unpaced::CONTEST,
    &small_writes::CONTEST,
    &udp_packets::CONTEST,
    &udp_throughput::CONTEST,
    &eight_flows::CONTEST,
    &sixty_four_flows::CONTEST,
    &memory::CONTEST,
    &thousand_flows::CONTEST,
    &two_hundred_clients::CONTEST,
    &udp_rate::CONTEST,
    &observing::CONTEST,
    &at_rest::CONTEST,
    &first_byte::CONTEST,
    &fetch::HTTP,
    &fetch::HTTPS,
    &fetch::FTP,
    &fetch::NFS,
    &size::CONTEST,
];

const BOTH: &[Place] = &[Place::Veth, Place::Loopback];
const VETH: &[Place] = &[Place::Veth];
const ONE_CPU: &[Place] = &[Place::OneCpu];
const LOOPBACK: &[Place] = &[Place::Loopback];

/// A peer with its usual options.
const fn peer(program: &'static Program) -> Entry {
    Entry { name: program.name, kind: Kind::Runs(program, &[]) }
}

/// goodput, or a peer with further options.
const fn with(name: &'static str, program: &'static Program, extra: &'static [&str]) -> Entry {
    Entry { name, kind: Kind::Runs(program, extra) }
}

/// A peer with an option that Debian's version does not have: it takes part only if it is given.
const fn newest(name: &'static str, program: &'static Program, extra: &'static [&str]) -> Entry {
    Entry { name, kind: Kind::RunsIfGiven(program, extra) }
}

/// One TCP flow as most programs send it.
const COPY: &[&str] = &["--mover", "copy"];

/// Pages that are sent without a copy, to a receiver whose kernel drops the payload.
const UNTOUCHED: &[&str] = &["--mover", "splice", "--receive-mover", "discard"];

/// The throughput of a contestant relative to the best peer of the round.
const fn over_best_peer(of: &'static str, bound: Bound) -> Goal {
    Goal {
        what: "throughput / best peer",
        of,
        measure: &RATE,
        against: Against::BestPeer(&RATE),
        bound,
    }
}

/// The contestant's CPU time per byte, relative to this peer.
const fn cpu_over_that_peer(of: &'static str, bound: Bound) -> Goal {
    Goal {
        what: "CPU per byte / that peer",
        of,
        measure: &CPU,
        against: Against::BestPeer(&RATE),
        bound,
    }
}

/// What `auto` chose relative to the best of goodput's other entries: at most 5 % slower.
const fn auto_over_best_choice(of: &'static str, measure: &'static Measure) -> Goal {
    Goal {
        what: "auto / best single choice",
        of,
        measure,
        against: Against::BestChoice(measure),
        bound: Bound::AtLeast(0.95),
    }
}

/// At least as fast as the best peer of the round.
const AS_FAST: Goal = over_best_peer("goodput", Bound::AtLeast(1.0));

/// Faster than the best peer of the round, by a tenth.
const AHEAD: Goal = over_best_peer("goodput", Bound::AtLeast(1.1));

/// No more CPU time per byte than this peer.
const AS_CHEAP: Goal = cpu_over_that_peer("goodput", Bound::AtMost(1.0));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::contest::Against;
    use super::*;

    #[test]
    fn names_are_unique() {
        let ids: BTreeSet<_> = ALL.iter().map(|contest| contest.id).collect();
        assert_eq!(ids.len(), ALL.len());
        for contest in ALL {
            let names: BTreeSet<_> = contest.entries.iter().map(|entry| entry.name).collect();
            assert_eq!(names.len(), contest.entries.len(), "{}", contest.id);
        }
    }

    #[test]
    fn goals_are_of_entries_that_are_there() {
        for contest in ALL {
            for goal in contest.goals {
                let mut named = vec![goal.of];
                if let Against::Entry(name)
                | Against::PercentOf(name)
                | Against::PercentBelow(name)
                | Against::PercentAbove(name)
                | Against::EntryMinus(name) = goal.against
                {
                    named.push(name);
                }
                for name in named {
                    let known = contest.entries.iter().any(|entry| entry.name == name);
                    assert!(known, "{}: {name}", contest.id);
                }
            }
        }
    }

    #[test]
    fn a_choice_of_auto_is_compared_with_several() {
        for contest in ALL {
            for goal in contest.goals {
                let others = contest.entries.iter().filter(|e| e.is_ours() && e.name != goal.of);
                if let Against::BestChoice(by) = goal.against {
                    assert!(others.count() > 1, "{}", contest.id);
                    assert_eq!(by.id, goal.measure.id, "{}", contest.id);
                }
            }
        }
    }

    #[test]
    fn what_a_goal_is_about_is_shown() {
        for contest in ALL {
            let shown = |measure: &Measure| contest.columns.iter().any(|c| c.id == measure.id);
            for goal in contest.goals {
                assert!(shown(goal.measure), "{}: {}", contest.id, goal.what);
            }
        }
    }
}
