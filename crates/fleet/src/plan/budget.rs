//! Which tests the budgets pay for.
//!
//! A day's tests are bought one after the other: the pairs of the highest priority first, and within a priority each pair
//! once before any pair twice. So a short budget makes the tests of all equal pairs rarer, before a pair has none.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use goodput_model::Bytes;

/// A day's tests of a pair that someone pays for: one run is a test in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    /// Indexes of the two sites.
    pub sites: [usize; 2],
    /// Higher comes first.
    pub priority: i32,
    /// What one run costs each of the two sites.
    pub cost: Bytes,
}

/// Whose budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payer {
    /// That of a site.
    Site(usize),
    /// That of all tests.
    All,
}

/// The runs of each pair that are paid for, and who could not pay for more.
pub(crate) struct Bought {
    /// Runs a day, by pair.
    pub runs: Vec<u32>,
    /// Who could not pay for another run, by pair; absent if all were paid for.
    pub short: Vec<Option<Payer>>,
}

/// Buys `wanted` runs of each wish, in the given order of equal wishes, from the sites' budgets and that of all.
pub(super) fn buy(
    wishes: &[Wish],
    wanted: u32,
    sites: &[Option<Bytes>],
    all: Option<Bytes>,
) -> Bought {
    let mut bought = Bought { runs: vec![0; wishes.len()], short: vec![None; wishes.len()] };
    if all.is_none() && sites.iter().all(Option::is_none) {
        bought.runs.fill(wanted);
        return bought;
    }
    let mut purse = Purse { sites: sites.to_vec(), all };
    let mut classes: BTreeMap<Reverse<i32>, Vec<usize>> = BTreeMap::new();
    for (number, wish) in wishes.iter().enumerate() {
        classes.entry(Reverse(wish.priority)).or_default().push(number);
    }
    for mut open in classes.into_values() {
        for _ in 0..wanted {
            open.retain(|wish| match purse.pay(wishes[*wish]) {
                Ok(()) => {
                    bought.runs[*wish] += 1;
                    true
                }
                Err(payer) => {
                    bought.short[*wish] = Some(payer);
                    false
                }
            });
        }
    }
    bought
}

/// What is left of the budgets.
struct Purse {
    sites: Vec<Option<Bytes>>,
    all: Option<Bytes>,
}

impl Purse {
    /// Pays for one run, or says who can't.
    fn pay(&mut self, wish: Wish) -> Result<(), Payer> {
        let Bytes(cost) = wish.cost;
        let lacks = |left: Option<Bytes>| left.is_some_and(|Bytes(left)| left < cost);
        if let Some(poor) = wish.sites.into_iter().find(|site| lacks(self.sites[*site])) {
            return Err(Payer::Site(poor));
        }
        // What one end sends the other receives: the bytes are on the network once.
        if lacks(self.all) {
            return Err(Payer::All);
        }
        for site in wish.sites {
            spend(&mut self.sites[site], cost);
        }
        spend(&mut self.all, cost);
        Ok(())
    }
}

fn spend(purse: &mut Option<Bytes>, cost: u64) {
    if let Some(Bytes(left)) = purse {
        *left -= cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wish(one: usize, two: usize, priority: i32) -> Wish {
        Wish { sites: [one, two], priority, cost: Bytes(10) }
    }

    #[test]
    fn without_budgets_all_is_paid_for() {
        let bought = buy(&[wish(0, 1, 0)], 4, &[None, None], None);
        assert_eq!((bought.runs, bought.short), (vec![4], vec![None]));
    }

    #[test]
    fn equal_pairs_get_rarer_together_and_a_priority_keeps_its_tests() {
        let wishes = [wish(0, 1, 0), wish(0, 2, 0), wish(0, 3, 5)];
        let budgets = [Some(Bytes(89)), None, None, None];
        let bought = buy(&wishes, 4, &budgets, None);
        assert_eq!(bought.runs, [2, 2, 4]);
        assert_eq!(bought.short, [Some(Payer::Site(0)), Some(Payer::Site(0)), None]);
        let all = buy(&wishes, 4, &[None; 4], Some(Bytes(45)));
        assert_eq!((all.runs, all.short[0]), (vec![0, 0, 4], Some(Payer::All)));
    }

    proptest! {
        #[test]
        fn no_budget_is_exceeded_and_what_is_short_could_not_pay(
            pairs in prop::collection::vec((0usize..6, 0usize..6, -2i32..3, 1u64..50), 0..30),
            budgets in prop::collection::vec(prop::option::of(0u64..600), 6),
            all in prop::option::of(0u64..900),
            wanted in 1u32..6,
        ) {
            let wishes: Vec<_> = pairs
                .into_iter()
                .filter(|(one, two, ..)| one != two)
                .map(|(one, two, priority, cost)| Wish { sites: [one, two], priority, cost: Bytes(cost) })
                .collect();
            let budgets: Vec<_> = budgets.into_iter().map(|left| left.map(Bytes)).collect();
            let bought = buy(&wishes, wanted, &budgets, all.map(Bytes));
            let cost = |mine: &dyn Fn(&Wish) -> bool| -> u64 {
                let runs = wishes.iter().zip(&bought.runs).filter(|(wish, _)| mine(wish));
                runs.map(|(wish, runs)| wish.cost.0 * u64::from(*runs)).sum()
            };
            let left = |payer| match payer {
                Payer::All => all.map(|all| all - cost(&|_| true)),
                Payer::Site(site) => {
                    budgets[site].map(|Bytes(left)| left - cost(&|wish| wish.sites.contains(&site)))
                }
            };
            (0..6).map(Payer::Site).chain([Payer::All]).for_each(|payer| { left(payer); });
            for ((wish, runs), short) in wishes.iter().zip(&bought.runs).zip(&bought.short) {
                prop_assert_eq!(*runs < wanted, short.is_some());
                if let Some(payer) = short {
                    prop_assert!(left(*payer).is_some_and(|left| left < wish.cost.0));
                }
            }
        }
    }
}
