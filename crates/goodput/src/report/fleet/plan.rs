//! The report of `goodput fleet plan`: rounds, time, what each site pays, and what is left out.

use std::collections::BTreeMap;

use goodput_fleet::{EACH_DIRECTION, FleetPlan, LeftOut, Reason, span};
use goodput_model::{BitRate, Bytes, Known};

use crate::report::labelled::{line, lines};
use crate::report::style;
use crate::report::table::Table;

/// More pairs in one line say no more.
const SHOWN_PAIRS: usize = 6;

/// The whole report, with at most `most` rounds.
pub fn text(plan: &FleetPlan, most: u32) -> String {
    let mut out = String::new();
    line(&mut out, "mesh", &style::strong(mesh(plan)));
    line(&mut out, "time", &time(plan));
    lines(&mut out, "rate", plan.rates_bits_per_s.map(rate));
    lines(&mut out, "left out", left_out(plan));
    lines(&mut out, "doubts", plan.doubts.clone());
    out += &format!("\n{}\n", costs(plan));
    for (number, round) in (1..=most).zip(&plan.rounds) {
        let pairs: Vec<_> = round.iter().map(|sites| pair(plan, sites)).collect();
        // Wide gaps keep a pair on one line.
        line(&mut out, &format!("round {number}"), &pairs.join("   "));
    }
    let more = plan.rounds.len().saturating_sub(most as usize);
    if more > 0 {
        let more = number(more, "more round");
        line(&mut out, "", &format!("and {more} (--rounds, or --json for all)"));
    }
    out
}

/// `a ↔ b` are two pairs, `a → b` is one.
fn pair(plan: &FleetPlan, [one, two]: &[&str; 2]) -> String {
    let arrow = if plan.both_directions { "↔" } else { "→" };
    format!("{one} {arrow} {two}")
}

/// Pairs between so many pairs of sites.
fn directed(plan: &FleetPlan, sites: usize) -> usize {
    if plan.both_directions { 2 * sites } else { sites }
}

/// `12 sites, 132 pairs (each direction is a pair), in 11 rounds (no fewer are possible)`
fn mesh(plan: &FleetPlan) -> String {
    let pairs = directed(plan, plan.rounds.iter().map(Vec::len).sum());
    let fewest = match plan.fewest_rounds {
        fewest if fewest == plan.rounds.len() => "no fewer are possible".into(),
        fewest => format!("at least {fewest} are needed"),
    };
    let sites = plan.sites.len();
    let (pairs, rounds) = (number(pairs, "pair"), number(plan.rounds.len(), "round"));
    format!("{sites} sites, {pairs} ({EACH_DIRECTION}), in {rounds} ({fewest})")
}

fn number(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `4.4 min from the first round to the end of the last; a round takes 24 s; every 6 h, at most 4 times a day (528 tests)`
fn time(plan: &FleetPlan) -> String {
    let whole = match &plan.mesh_s {
        Known::Value(seconds) => {
            format!("{} from the first round to the end of the last", span(*seconds))
        }
        Known::Missing(why) => format!("unknown: {why}"),
    };
    let often = match plan.every_s {
        None => "once".into(),
        Some(every) => format!(
            "every {}, at most {} a day ({})",
            span(every),
            number(plan.meshes_per_day as usize, "time"),
            number(plan.tests_per_day as usize, "test")
        ),
    };
    format!("{whole}; a round takes {}; {often}", span(plan.round_s))
}

/// The costs stand or fall with it.
fn rate([lowest, highest]: [BitRate; 2]) -> String {
    let rates = match lowest == highest {
        true => lowest.to_string(),
        false => format!("{lowest} to {highest}"),
    };
    format!("{rates}, which the file expects of a test: the costs below follow from it")
}

fn costs(plan: &FleetPlan) -> String {
    let mut table = Table::new(&["site", "uplink", "pairs", "per mesh", "per day", "budget"]);
    for site in &plan.sites {
        let [mesh, day] = match &site.costs {
            Known::Value(costs) => [costs.mesh_bytes, costs.day_bytes].map(|b| b.to_string()),
            Known::Missing(_) => ["unknown"; 2].map(String::from),
        };
        let budget = site.budget_bytes.map_or_else(String::new, per_day);
        let pairs = site.pairs.to_string();
        table.row(&[site.name, site.uplink.unwrap_or_default(), &pairs, &mesh, &day, &budget]);
    }
    let unknown = plan.sites.iter().find_map(|site| site.costs.get().err());
    let why = unknown.map_or_else(String::new, |why| format!("The costs are unknown: {why}.\n"));
    table.text() + &why
}

fn per_day(bytes: Bytes) -> String {
    format!("{bytes}/day")
}

/// A sentence for each budget that is used up.
fn left_out(plan: &FleetPlan) -> Vec<String> {
    let mut by_budget: BTreeMap<Reason, Vec<&LeftOut>> = BTreeMap::new();
    for left in &plan.left_out {
        by_budget.entry(left.because).or_default().push(left);
    }
    by_budget.into_iter().flat_map(|(budget, left)| of_budget(plan, budget, left)).collect()
}

fn of_budget(plan: &FleetPlan, reason: Reason, left: Vec<&LeftOut>) -> Vec<String> {
    let amount = match reason {
        Reason::BudgetOfAll => plan.budget_bytes,
        Reason::BudgetOf(name) => {
            plan.sites.iter().find(|site| site.name == name).and_then(|site| site.budget_bytes)
        }
    };
    let amount = amount.map_or_else(String::new, |amount| format!(" ({})", per_day(amount)));
    let budget = match reason {
        Reason::BudgetOfAll => format!("the budget of all tests{amount}"),
        Reason::BudgetOf(name) => format!("the budget of {name}{amount}"),
    };
    let (never, rarer): (Vec<&LeftOut>, Vec<&LeftOut>) =
        left.into_iter().partition(|left| left.per_day == 0);
    let never = (!never.is_empty()).then(|| {
        let names = named(never.iter().map(|left| pair(plan, &left.sites)));
        let pairs = number(directed(plan, never.len()), "pair");
        format!("{budget} does not pay for {pairs}: {names}")
    });
    let rarer = (!rarer.is_empty()).then(|| {
        let often = |left: &&LeftOut| format!("{} ({})", pair(plan, &left.sites), left.per_day);
        let names = named(rarer.iter().map(often));
        let pairs = number(directed(plan, rarer.len()), "pair");
        let times = number(plan.meshes_per_day as usize, "time");
        format!("{budget} pays for {pairs} less often than {times} a day: {names}")
    });
    never.into_iter().chain(rarer).collect()
}

/// The first of these texts, and how many others there are.
pub(super) fn named(texts: impl ExactSizeIterator<Item = String>) -> String {
    let more = texts.len().saturating_sub(SHOWN_PAIRS);
    let shown = texts.take(SHOWN_PAIRS).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {}", number(more, "other")) } else { shown }
}

#[cfg(test)]
mod tests {
    use goodput_fleet::Mesh;

    fn shown(text: &str, most: u32) -> String {
        let mesh = Mesh::parse("x", text).unwrap();
        let report = super::text(&goodput_fleet::plan(&mesh), most);
        anstream::adapter::strip_str(&report).to_string()
    }

    const FOUR: &str = r#"
[test]
every = "6h"
rate = "1gbit"
[site.a]
target = "a"
[site.b]
target = "b"
[site.c]
target = "c"
[site.poor]
budget = "12GB/day"
"#;

    #[test]
    fn rounds_time_costs_and_what_is_left_out_are_shown() {
        let text = shown(FOUR, 20);
        for words in [
            "4 sites, 12 pairs (each direction is a pair), in 3 rounds (no fewer are possible)",
            "72 s from the first round to the end of the last; a round takes 24 s; every 6 h, at most 4 times a day",
            "times a day (32 tests)",
            "1 Gbit/s, which the file expects",
            "the budget of poor (12 GB/day) pays for 6 pairs less often than 4 times a day",
            "round 3",
            "↔ poor (1)",
            "12 GB/day",
        ] {
            assert!(text.contains(words), "{words:?} in {text}");
        }
        assert!(shown(FOUR, 1).contains("and 2 more rounds"));
    }

    #[test]
    fn pairs_without_a_test_are_named() {
        let text = shown(&FOUR.replace("12GB", "3GB"), 20);
        assert!(text.contains("does not pay for 4 pairs: "), "{text}");
    }

    #[test]
    fn without_a_rate_the_costs_are_unknown() {
        let text = shown("[site.a]\ntarget = \"a\"\n[site.b]\n", 20);
        assert!(text.contains("The costs are unknown: the file has no rate"), "{text}");
        assert!(text.contains("once"), "{text}");
        assert!(text.contains("2 sites, 2 pairs (each direction is a pair), in 1 round"), "{text}");
        let one = shown("[test]\ndirections = \"one\"\n[site.a]\n[site.b]\ntarget = \"b\"\n", 20);
        assert!(one.contains("2 sites, 1 pair (each direction is a pair)"), "{one}");
        assert!(one.contains("a → b"), "{one}");
    }
}
