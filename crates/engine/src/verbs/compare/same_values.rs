//! Arms of which a kernel made the same, though they were written differently and read back as they were written. The
//! warm-up shows it: what limits both has the same amount.

use std::collections::{BTreeMap, BTreeSet};

use goodput_experiment::Alike;
use goodput_model::{BitRate, Bytes, LimitAmount, Trial};

/// One sentence for each amount: `the kernel makes the same of 4K, 8K and 32K (receive window 65.5 kB): only 4K runs`.
pub fn in_words(values: &[Vec<String>], alike: &[Alike]) -> Vec<String> {
    let mut groups: BTreeMap<usize, Vec<&Alike>> = BTreeMap::new();
    alike.iter().for_each(|one| groups.entry(one.like).or_default().push(one));
    let name = |arm: usize| values.get(arm).map_or(String::new(), |values| values.join(" "));
    let sentence = |(like, group): (usize, Vec<&Alike>)| {
        let (last, others) = group.split_last()?;
        let kept = name(like);
        let all: Vec<String> =
            std::iter::once(kept.clone()).chain(others.iter().map(|one| name(one.arm))).collect();
        Some(format!(
            "the kernel makes the same of {} and {} ({}): only {kept} runs",
            all.join(", "),
            name(last.arm),
            amount(&last.amount)
        ))
    };
    groups.into_iter().filter_map(sentence).collect()
}

fn amount(LimitAmount { name, value, .. }: &LimitAmount) -> String {
    let words = |name: &str| name.replace('_', " ");
    if let Some(bytes) = name.strip_suffix("_bytes") {
        return format!("{} {}", words(bytes), Bytes(value.round() as u64));
    }
    match name.strip_suffix("_bits_per_s") {
        Some(rate) => format!("{} {}", words(rate), BitRate(*value)),
        None => format!("{} {value:.1}", words(name)),
    }
}

/// The runs of the other arms, which get the numbers that those `gone` leave.
pub fn without(trials: Vec<Trial>, gone: &BTreeSet<usize>) -> Vec<Trial> {
    let kept = trials.into_iter().filter_map(|trial| Some((number(trial.arm, gone)?, trial)));
    kept.map(|(arm, trial)| Trial { arm, ..trial }).collect()
}

/// The same for what is known of each arm.
pub fn of_others<T>(by_arm: BTreeMap<usize, T>, gone: &BTreeSet<usize>) -> BTreeMap<usize, T> {
    by_arm.into_iter().filter_map(|(arm, known)| Some((number(arm, gone)?, known))).collect()
}

/// The number that an arm gets; `None` if it is gone.
fn number(arm: usize, gone: &BTreeSet<usize>) -> Option<usize> {
    (!gone.contains(&arm)).then(|| arm - gone.range(..arm).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Known;

    #[test]
    fn values_that_became_the_same_are_named_with_what_they_became() {
        let values = ["4K", "8K", "64K", "32K"].map(|value| vec![value.to_owned()]);
        let like = |arm| Alike {
            arm,
            like: 0,
            amount: LimitAmount {
                name: "receive_window_bytes".into(),
                value: 65_535.0,
                is_proportional: true,
            },
        };
        let said =
            "the kernel makes the same of 4K, 8K and 32K (receive window 65.5 kB): only 4K runs";
        assert_eq!(in_words(&values, &[like(1), like(3)]), [said]);
        assert!(in_words(&values, &[]).is_empty());
    }

    #[test]
    fn the_arms_that_stay_get_the_numbers_that_others_leave() {
        let gone = BTreeSet::from([1, 3]);
        let run = |arm| Trial::new(0, arm, Known::missing("none"));
        let left = without((0..5).map(run).collect(), &gone);
        assert_eq!(left.iter().map(|trial| trial.arm).collect::<Vec<_>>(), [0, 1, 2]);
        let names = BTreeMap::from([(0, 'a'), (1, 'b'), (4, 'e')]);
        assert_eq!(of_others(names, &gone), BTreeMap::from([(0, 'a'), (2, 'e')]));
    }
}
