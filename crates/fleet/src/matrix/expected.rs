//! The rates that a mesh file expects of its tests. The plan counts the costs by them, so a faster pair costs more than it says.

use std::collections::{BTreeMap, HashMap};

use goodput_model::BitRate;

use crate::mesh::Mesh;

/// The rate that is expected of each pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Expected {
    /// Of most pairs; none: any.
    most: Option<BitRate>,
    /// Of the others, by the numbers of their sites, the smaller one first.
    others: BTreeMap<[u32; 2], Option<BitRate>>,
}

impl Expected {
    /// As the file of this mesh says.
    pub fn of(mesh: &Mesh) -> Self {
        let mut counts: HashMap<Option<u64>, usize> = HashMap::new();
        let bits = |rate: Option<BitRate>| rate.map(|rate| rate.0.to_bits());
        mesh.pairs.iter().for_each(|pair| *counts.entry(bits(pair.rate)).or_default() += 1);
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let most = most.and_then(|(rate, _)| rate).map(|bits| BitRate(f64::from_bits(bits)));
        let others = mesh.pairs.iter().filter(|pair| pair.rate != most);
        let others = others.map(|pair| (ordered(pair.sites.map(|site| site as u32)), pair.rate));
        Self { most, others: others.collect() }
    }

    /// Whether a rate is expected of any pair.
    pub fn is_known(&self) -> bool {
        self.most.is_some() || self.others.values().any(Option::is_some)
    }

    /// Whether a pair is faster than expected. The rate has headers and goodput has none: what is faster by any amount costs more.
    pub fn is_exceeded(&self, pair: [u32; 2], goodput: BitRate) -> bool {
        let of_pair = self.others.get(&ordered(pair)).copied().unwrap_or(self.most);
        of_pair.is_some_and(|expected| goodput > expected)
    }
}

fn ordered(mut pair: [u32; 2]) -> [u32; 2] {
    pair.sort_unstable();
    pair
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_compared_with_its_own_rate_in_both_directions() {
        let text = "[test]\nrate = \"1gbit\"\n[site.a]\ntarget = \"a\"\n[site.b]\ntarget = \"b\"\n[site.c]\n\
                    [[pair]]\nsites = [\"c\", \"a\"]\nrate = \"100mbit\"\n";
        let expected = Expected::of(&Mesh::parse("x", text).unwrap());
        let exceeded = |pair, rate| expected.is_exceeded(pair, BitRate(rate));
        assert!(expected.is_known());
        assert!(exceeded([0, 2], 2e8) && exceeded([2, 0], 2e8) && !exceeded([2, 0], 9e7));
        assert!(!exceeded([0, 1], 9e8) && exceeded([1, 2], 2e9));
        let none = Expected::of(&Mesh::parse("x", "[site.a]\n[site.b]\ntarget = \"b\"\n").unwrap());
        assert!(!none.is_known() && !none.is_exceeded([0, 1], BitRate(1e12)));
    }
}
