//! The samples of all threads together, counted by group and by function.

use std::collections::HashMap;

use goodput_model::{CpuGroup, CpuShare, FunctionShare, Missing};

use super::groups;
use super::sample::Sample;
use super::symbols::Symbols;

/// Most functions that a profile names in each group.
const MAX_FUNCTIONS: usize = 8;

/// Counts so far.
pub struct Counts {
    symbols: Result<Symbols, Missing>,
    counted: HashMap<(CpuGroup, Option<Box<str>>), u64>,
    samples: u64,
    lost: u64,
}

/// Functions by their names, and how many samples each has.
type Functions = Vec<(Box<str>, u64)>;

impl Counts {
    /// Nothing yet; `symbols` name the functions of the kernel.
    pub fn new(symbols: Result<Symbols, Missing>) -> Self {
        Self { symbols, counted: HashMap::new(), samples: 0, lost: 0 }
    }

    /// Counts a sample, or what was lost.
    pub fn add(&mut self, sample: &Sample) {
        let of = match (sample, &self.symbols) {
            (Sample::Lost(more), _) => {
                self.lost = self.lost.saturating_add(*more);
                return;
            }
            (Sample::Program, _) => (CpuGroup::Program, None),
            (Sample::Kernel(_), Err(_)) => (CpuGroup::UnnamedKernel, None),
            (Sample::Kernel(chain), Ok(symbols)) => {
                let found = chain.iter().enumerate().map(|(depth, address)| {
                    // A caller's address is the one after its call, which may be the next function's first.
                    symbols.at(address.saturating_sub(u64::from(depth > 0)))
                });
                let innermost = found.clone().next().flatten();
                (groups::of_chain(found), innermost.map(|symbol| symbol.name.clone()))
            }
        };
        *self.counted.entry(of).or_default() += 1;
        self.samples += 1;
    }

    /// How many samples were counted.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// How many samples were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The share of each group, the largest first, and why the kernel's functions have no names, if they have none.
    pub fn shares(self) -> (Vec<CpuShare>, Option<Missing>) {
        let percent = |count: u64| count as f64 / self.samples as f64 * 100.0;
        let mut groups = HashMap::<CpuGroup, (u64, Functions)>::new();
        for ((group, name), count) in self.counted {
            let (all, functions) = groups.entry(group).or_default();
            *all += count;
            functions.extend(name.map(|name| (name, count)));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(group, (count, _))| (std::cmp::Reverse(*count), *group));
        let shares = groups.into_iter().map(|(group, (count, mut functions))| {
            functions.sort_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
            let functions = functions.into_iter().take(MAX_FUNCTIONS);
            let functions = functions
                .map(|(name, count)| FunctionShare { name: name.into(), percent: percent(count) });
            CpuShare { group, percent: percent(count), functions: functions.collect() }
        });
        (shares.collect(), self.symbols.err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Root;

    fn symbols() -> Result<Symbols, Missing> {
        let host = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(host.path().join("proc")).unwrap();
        let text = "1000 T tcp_push\n2000 T _copy_from_iter\n3000 T _raw_spin_lock\n";
        std::fs::write(host.path().join("proc/kallsyms"), text).unwrap();
        Symbols::read(&Root::at(host.path()))
    }

    #[test]
    fn shares_add_up_and_functions_are_those_that_ran() {
        let mut counts = Counts::new(symbols());
        let mut add = |sample: Sample, times| (0..times).for_each(|_| counts.add(&sample));
        add(Sample::Kernel(vec![0x2005]), 4);
        // The caller ends with the call: the address behind it is another function's.
        add(Sample::Kernel(vec![0x3001, 0x2000]), 3);
        add(Sample::Kernel(vec![0x1001]), 1);
        add(Sample::Program, 2);
        add(Sample::Lost(9), 1);
        assert_eq!((counts.samples(), counts.lost()), (10, 9));
        let (shares, unnamed) = counts.shares();
        let seen: Vec<_> = shares.iter().map(|share| (share.group, share.percent)).collect();
        let expected =
            [(CpuGroup::Copying, 40.0), (CpuGroup::Stack, 40.0), (CpuGroup::Program, 20.0)];
        assert_eq!((&seen[..], unnamed), (&expected[..], None));
        let functions: Vec<_> = shares[1].functions.iter().map(|f| (&*f.name, f.percent)).collect();
        assert_eq!(functions, [("_raw_spin_lock", 30.0), ("tcp_push", 10.0)]);
    }

    #[test]
    fn without_names_the_kernel_is_one_group_with_the_reason() {
        let mut counts = Counts::new(Err(Missing::because("hidden")));
        counts.add(&Sample::Kernel(vec![0x1000]));
        let (shares, unnamed) = counts.shares();
        assert_eq!((shares[0].group, shares[0].percent), (CpuGroup::UnnamedKernel, 100.0));
        assert_eq!(unnamed, Some(Missing::because("hidden")));
    }
}
