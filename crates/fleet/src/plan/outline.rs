//! The plan of a mesh: its rounds, how long they take, what each site pays, and what the budgets leave out.

use goodput_model::{BitRate, Bytes, Known};
use serde::Serialize;

use super::budget::{Bought, Payer};
use super::schedule::{Schedule, cost, schedule};
use crate::mesh::{Mesh, Pair};
use crate::span::span;

/// How a mesh will be tested.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetPlan<'a> {
    /// The sites, as the file orders them.
    pub sites: Vec<SiteShare<'a>>,
    /// The pairs of each round; the first site of a pair sends first. Rounds with pairs of a higher priority come first.
    pub rounds: Vec<Vec<[&'a str; 2]>>,
    /// With fewer rounds, a host or an uplink would be in two tests at once.
    pub fewest_rounds: usize,
    /// Length of a round, seconds: a test in each direction, and the pauses.
    pub round_s: f64,
    /// Tests that begin within 24 hours, at most: what windows and budgets leave out is not counted.
    pub tests_per_day: u64,
    /// Whether both sites of a pair send, one after the other.
    pub both_directions: bool,
    /// Time from the beginning of the first round to the end of the last one, seconds, the time between windows included.
    pub mesh_s: Known<f64>,
    /// How often the mesh is tested, seconds; absent: once.
    pub every_s: Option<f64>,
    /// Meshes that begin within 24 hours, at most.
    pub meshes_per_day: u32,
    /// The lowest and the highest rate that tests are expected to reach, headers included; the costs are counted with the
    /// rate of each pair.
    pub rates_bits_per_s: Option<[BitRate; 2]>,
    /// What all tests together may cost in any 24 hours.
    pub budget_bytes: Option<Bytes>,
    /// Pairs that the budgets don't pay for, or not each time.
    pub left_out: Vec<LeftOut<'a>>,
    /// What does not fit together, in words.
    pub doubts: Vec<String>,
}

/// What a site takes part in, and what it pays.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteShare<'a> {
    /// Its name.
    pub name: &'a str,
    /// What `goodput test` calls it; absent: it calls the others.
    pub target: Option<&'a str>,
    /// The uplink that it shares.
    pub uplink: Option<&'a str>,
    /// Pairs of a mesh that it is in: as sender or as receiver.
    pub pairs: usize,
    /// Bytes that it sends and receives, headers included.
    pub costs: Known<Costs>,
    /// What its tests may cost in any 24 hours.
    pub budget_bytes: Option<Bytes>,
}

/// What tests move over a site's line, at the rates of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// In one mesh.
    pub mesh_bytes: Bytes,
    /// In 24 hours, at most.
    pub day_bytes: Bytes,
}

/// Two sites whose tests are made less often than wanted, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LeftOut<'a> {
    /// Its sites.
    pub sites: [&'a str; 2],
    /// In how many meshes of a day it is tested.
    pub per_day: u32,
    /// Which budget is used up.
    pub because: Reason<'a>,
}

/// A budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason<'a> {
    /// That of this site.
    BudgetOf(&'a str),
    /// That of all tests.
    BudgetOfAll,
}

/// Plans a mesh.
pub fn plan(mesh: &Mesh) -> FleetPlan<'_> {
    let Schedule { rounds, fewest_rounds, mesh_s, per_day, bought } = schedule(mesh);
    let name = |pair: &usize| names(mesh, mesh.pairs[*pair]);
    let runs: u64 = bought.runs.iter().copied().map(u64::from).sum();
    FleetPlan {
        sites: shares(mesh, &bought.runs),
        tests_per_day: runs * u64::from(mesh.directions()),
        rounds: rounds.iter().map(|round| round.iter().map(name).collect()).collect(),
        fewest_rounds,
        round_s: mesh.round_s(),
        both_directions: mesh.both_directions,
        mesh_s: mesh_s.map_or(Known::missing("no window has room for a round"), Known::Value),
        every_s: mesh.every_s,
        meshes_per_day: per_day,
        rates_bits_per_s: rates(mesh),
        budget_bytes: mesh.budget,
        left_out: left_out(mesh, &bought, per_day),
        doubts: doubts(mesh, mesh_s),
    }
}

fn names(mesh: &Mesh, pair: Pair) -> [&str; 2] {
    pair.sites.map(|site| mesh.sites[site].name.as_str())
}

fn rates(mesh: &Mesh) -> Option<[BitRate; 2]> {
    let rates = || mesh.pairs.iter().filter_map(|pair| pair.rate);
    let lowest = rates().reduce(|one, two| if two < one { two } else { one })?;
    let highest = rates().reduce(|one, two| if two > one { two } else { one })?;
    Some([lowest, highest])
}

fn shares<'a>(mesh: &'a Mesh, runs: &[u32]) -> Vec<SiteShare<'a>> {
    let mut mine: Vec<Vec<usize>> = vec![Vec::new(); mesh.sites.len()];
    for (number, pair) in mesh.pairs.iter().enumerate().filter(|(number, _)| runs[*number] > 0) {
        pair.sites.iter().for_each(|site| mine[*site].push(number));
    }
    let share = |(site, pairs): (&'a crate::mesh::Site, Vec<usize>)| SiteShare {
        name: &site.name,
        target: site.target.as_deref(),
        uplink: site.uplink.map(|uplink| mesh.uplinks[uplink].as_str()),
        costs: costs(mesh, runs, &pairs),
        pairs: pairs.len() * mesh.directions() as usize,
        budget_bytes: site.budget,
    };
    mesh.sites.iter().zip(mine).map(share).collect()
}

fn costs(mesh: &Mesh, runs: &[u32], pairs: &[usize]) -> Known<Costs> {
    let mut costs = Costs { mesh_bytes: Bytes(0), day_bytes: Bytes(0) };
    for pair in pairs {
        let Some(Bytes(cost)) = cost(mesh, mesh.pairs[*pair]) else {
            return Known::missing("the file has no rate, so what a test moves is unknown");
        };
        let day = cost.saturating_mul(runs[*pair].into());
        costs.mesh_bytes.0 = costs.mesh_bytes.0.saturating_add(cost);
        costs.day_bytes.0 = costs.day_bytes.0.saturating_add(day);
    }
    Known::Value(costs)
}

fn left_out<'a>(mesh: &'a Mesh, bought: &Bought, per_day: u32) -> Vec<LeftOut<'a>> {
    let each = mesh.pairs.iter().zip(bought.runs.iter().zip(&bought.short));
    let short = each.filter(|(_, (runs, _))| **runs < per_day);
    short
        .filter_map(|(pair, (runs, payer))| {
            let because = match (*payer)? {
                Payer::Site(site) => Reason::BudgetOf(&mesh.sites[site].name),
                Payer::All => Reason::BudgetOfAll,
            };
            Some(LeftOut { sites: names(mesh, *pair), per_day: *runs, because })
        })
        .collect()
}

fn doubts(mesh: &Mesh, mesh_s: Option<f64>) -> Vec<String> {
    let (Some(every_s), Some(mesh_s)) = (mesh.every_s, mesh_s) else { return Vec::new() };
    if mesh_s <= every_s {
        return Vec::new();
    }
    let [mesh, every, more] = [mesh_s, every_s, mesh_s - every_s].map(span);
    // Both may be the same when they are rounded.
    let longer = if mesh == every { format!("{more} longer") } else { "longer".into() };
    vec![format!(
        "a mesh takes {mesh}, {longer} than `every` ({every}): the next one begins when the last one ends"
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mesh(head: &str, sites: usize, more: &str) -> Mesh {
        let tables: String =
            (0..sites).map(|n| format!("[site.s{n}]\ntarget = \"s{n}\"\n")).collect();
        Mesh::parse("x", &format!("{head}\n{tables}\n{more}")).unwrap()
    }

    #[test]
    fn a_mesh_of_four_has_three_rounds_and_everyone_pays_the_same() {
        let mesh = mesh("[test]\nevery = \"6h\"\nrate = \"1gbit\"", 4, "");
        let plan = plan(&mesh);
        assert_eq!((plan.rounds.len(), plan.fewest_rounds), (3, 3));
        assert_eq!((plan.round_s, &plan.mesh_s), (24.0, &Known::Value(72.0)));
        // Three partners, two directions, 10 s at 125 MB/s; four meshes a day.
        let costs = Costs { mesh_bytes: Bytes(7_500_000_000), day_bytes: Bytes(30_000_000_000) };
        assert!(plan.sites.iter().all(|site| site.costs == Known::Value(costs)));
        assert!(plan.left_out.is_empty() && plan.doubts.is_empty());
        assert_eq!(plan.rates_bits_per_s, Some([BitRate(1e9); 2]));
    }

    #[test]
    fn without_a_rate_costs_are_unknown_and_not_zero() {
        let mesh = mesh("", 3, "");
        let plan = plan(&mesh);
        assert!(matches!(plan.sites[0].costs, Known::Missing(_)));
        assert_eq!(plan.meshes_per_day, 1);
    }

    #[test]
    fn a_pair_that_no_budget_pays_for_is_in_no_round_and_named() {
        let more = "[site.poor]\ntarget = \"p\"\nbudget = \"3GB/day\"\n[[pair]]\nsites = [\"poor\", \"s1\"]\npriority = 9";
        let mesh = mesh("[test]\nrate = \"1gbit\"", 3, more);
        let plan = plan(&mesh);
        let tested: Vec<_> = plan.rounds.iter().flatten().filter(|p| p.contains(&"poor")).collect();
        assert_eq!(tested, [&["poor", "s1"]]);
        let left: Vec<_> = plan.left_out.iter().map(|left| left.sites).collect();
        assert_eq!(left, [["s0", "poor"], ["s2", "poor"]]);
        assert_eq!(plan.left_out[0].because, Reason::BudgetOf("poor"));
        assert!(plan.rounds[0].contains(&["poor", "s1"]), "a priority comes first");
    }

    #[test]
    fn a_shared_uplink_is_in_one_test_at_a_time() {
        let more =
            "[site.x]\ntarget = \"x\"\nuplink = \"u\"\n[site.y]\ntarget = \"y\"\nuplink = \"u\"";
        let mesh = mesh("uplinks = [\"u\"]", 2, more);
        let plan = plan(&mesh);
        // x and y with both others, and with each other: five tests over one line.
        assert_eq!((plan.rounds.len(), plan.fewest_rounds), (5, 5));
        for round in &plan.rounds {
            let over = round.iter().filter(|pair| pair.contains(&"x") || pair.contains(&"y"));
            assert!(over.count() <= 1, "{round:?}");
        }
    }

    #[test]
    fn tests_of_a_day_are_those_that_windows_and_budgets_leave() {
        let of = |head: &str, more: &str| {
            let mesh = mesh(&format!("[test]\nevery = \"6h\"\nrate = \"1gbit\"\n{head}"), 3, more);
            let plan = plan(&mesh);
            (plan.meshes_per_day, plan.tests_per_day)
        };
        assert_eq!(of("", ""), (4, 24), "three pairs of sites, both directions");
        let night = "windows = [\"22:00-06:00\"]";
        assert_eq!(of(night, ""), (3, 18), "23:00, 05:00 and 22:00");
        // Each test of 10 s costs 1.25 GB: two of the sites' pairs once, one twice.
        assert_eq!(of(&format!("{night}\nbudget = \"10GB/day\""), ""), (3, 8));
        assert_eq!(of("directions = \"one\"", ""), (4, 12));
    }

    #[test]
    fn a_mesh_that_takes_too_long_is_doubted() {
        let mesh = mesh("[test]\nevery = \"1m\"\nwindows = [\"22:00-22:01\"]", 4, "");
        let plan = plan(&mesh);
        assert!(
            plan.doubts[0].contains("takes 24 h, longer than `every` (60 s)"),
            "{:?}",
            plan.doubts
        );
        assert_eq!(plan.meshes_per_day, 1);
    }

    #[test]
    fn a_mesh_that_takes_a_little_too_long_is_doubted_with_by_how_much() {
        let doubt = |mesh_s, every: &str| {
            let mesh = mesh(&format!("[test]\nevery = \"{every}\""), 2, "");
            doubts(&mesh, Some(mesh_s)).join("")
        };
        assert!(doubt(21_630.0, "6h").contains("takes 6 h, 30 s longer than `every` (6 h)"));
        assert!(doubt(24.0, "20s").contains("takes 24 s, longer than `every` (20 s)"));
        assert_eq!(doubt(24.0, "24s"), "");
    }

    proptest! {
        /// Any sites, uplinks and pairs: each pair is in one round, and no host and no uplink twice in a round.
        #[test]
        fn every_pair_has_one_round_and_every_host_and_uplink_one_test(
            uplinks in prop::collection::vec(prop::option::of(0usize..3), 2..12),
            pairs in prop::collection::btree_set((0usize..12, 0usize..12), 1..40),
        ) {
            let count = uplinks.len();
            let mut text = String::from("uplinks = [\"u0\", \"u1\", \"u2\"]\n[test]\npairs = \"named\"\n");
            for (n, uplink) in uplinks.iter().enumerate() {
                text += &format!("[site.s{n}]\ntarget = \"t\"\n");
                text += &uplink.map_or_else(String::new, |uplink| format!("uplink = \"u{uplink}\"\n"));
            }
            let pairs: Vec<_> = pairs.into_iter().filter(|(a, b)| a < b && *b < count).collect();
            prop_assume!(!pairs.is_empty());
            for (a, b) in &pairs {
                text += &format!("[[pair]]\nsites = [\"s{a}\", \"s{b}\"]\npriority = {}\n", a % 2);
            }
            let mesh = Mesh::parse("x", &text).unwrap();
            let plan = plan(&mesh);
            prop_assert_eq!(plan.rounds.iter().map(Vec::len).sum::<usize>(), pairs.len());
            prop_assert!(plan.rounds.len() >= plan.fewest_rounds);
            let uplink = |name: &&str| uplinks[name[1..].parse::<usize>().unwrap()];
            for round in &plan.rounds {
                let mut hosts: Vec<_> = round.iter().flatten().collect();
                let busy = |line: usize| {
                    let over = |pair: &&[&str; 2]| pair.iter().any(|name| uplink(name) == Some(line));
                    round.iter().filter(over).count()
                };
                prop_assert!((0..3).all(|line| busy(line) <= 1));
                let all = hosts.len();
                hosts.sort_unstable();
                hosts.dedup();
                prop_assert_eq!(hosts.len(), all);
            }
        }
    }
}
