//! CPU time that the hypervisor gave to others while this machine wanted it (`steal`, proc_stat(5)).

use std::fs;

/// The machine's CPU time so far, in ticks; what a guest of ours uses is part of `user` and not counted twice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTime {
    all: u64,
    stolen: u64,
}

impl CpuTime {
    /// Reads it; `None` if the kernel does not count it.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> =
            line.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        // user, nice, system, idle, iowait, irq, softirq, steal
        let counted = ticks.get(..8)?;
        Some(Self { all: counted.iter().sum(), stolen: counted[7] })
    }

    /// The percentage that was stolen since `earlier`; `None` if no time has passed.
    pub fn stolen_percent_since(self, earlier: Self) -> Option<f64> {
        let (all, stolen) =
            (self.all.checked_sub(earlier.all)?, self.stolen.checked_sub(earlier.stolen)?);
        (all > 0).then(|| 100.0 * stolen as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_the_hypervisor_is_found() {
        let of = |line: &str| CpuTime::parse(&format!("{line}\ncpu0 1 2\n")).unwrap();
        let (early, late) =
            (of("cpu  10 0 10 70 0 0 5 5 9 0"), of("cpu  40 0 20 120 0 0 5 15 30 0"));
        assert_eq!(late.stolen_percent_since(early), Some(10.0));
        assert_eq!(early.stolen_percent_since(early), None);
        assert_eq!(CpuTime::parse("cpu  1 2 3 4"), None, "an old kernel");
        assert_eq!(CpuTime::parse("intr 1"), None);
    }
}
