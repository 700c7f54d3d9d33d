//! /proc/net/softnet_stat: one line of hexadecimal columns for each CPU
//! (net/core/net-procfs.c `softnet_seq_show`).

use super::ParseError;

const FILE: &str = "/proc/net/softnet_stat";

/// One CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OneCpu {
    /// Its number, if the kernel reports it (Linux 5.10 and later), otherwise the number of the line: offline CPUs have
    /// no line.
    pub cpu: u64,
    /// Packets dropped because its backlog was full.
    pub dropped: u64,
    /// How often it ran out of budget or time with packets left.
    pub squeezed: u64,
}

/// The sums over all CPUs, and the values of each CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Packets taken in.
    pub processed: u64,
    /// Packets dropped because a CPU's backlog was full.
    pub dropped: u64,
    /// How often a CPU ran out of budget or time with packets left.
    pub squeezed: u64,
    /// Packets that a CPU handed to another CPU (RPS); `None` if the kernel does not report it.
    pub steered: Option<u64>,
    /// Each CPU.
    pub cpus: Vec<OneCpu>,
}

/// Columns, counted from 0 (net/core/net-procfs.c).
const STEERED_COLUMN: usize = 9;
const CPU_COLUMN: usize = 12;

/// Reads the file. Every kernel has at least the first three columns.
pub fn parse(text: &str) -> Result<Softnet, ParseError> {
    let mut sum = Softnet::default();
    let mut lines = 0;
    for line in text.lines() {
        let columns: Vec<u64> = line
            .split_ascii_whitespace()
            .map_while(|word| u64::from_str_radix(word, 16).ok())
            .collect();
        let Some([processed, dropped, squeezed]) = columns.first_chunk() else {
            return Err(ParseError::new(FILE, format!("{line:?} doesn't have three columns")));
        };
        sum.processed = sum.processed.saturating_add(*processed);
        sum.dropped = sum.dropped.saturating_add(*dropped);
        sum.squeezed = sum.squeezed.saturating_add(*squeezed);
        if let Some(steered) = columns.get(STEERED_COLUMN) {
            sum.steered = Some(sum.steered.unwrap_or(0).saturating_add(*steered));
        }
        let cpu = columns.get(CPU_COLUMN).copied().unwrap_or(lines);
        sum.cpus.push(OneCpu { cpu, dropped: *dropped, squeezed: *squeezed });
        lines += 1;
    }
    if lines == 0 { Err(ParseError::new(FILE, "no CPU")) } else { Ok(sum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_hexadecimal_and_cpus_add_up() {
        let sum = parse("0000000d 00000001 00000002 0\n0000129e 00000000 00000003 0 0\n").unwrap();
        assert_eq!((sum.processed, sum.dropped, sum.squeezed), (0xd + 0x129e, 1, 5));
        assert_eq!((sum.cpus[1].cpu, sum.cpus[1].squeezed, sum.steered), (1, 3, None));
    }

    #[test]
    fn a_newer_kernel_reports_steering_and_the_number_of_the_cpu() {
        let line = "1 2 3 0 0 0 0 0 0 9 0 0 5 0 0\n";
        let sum = parse(line).unwrap();
        assert_eq!(sum.steered, Some(9));
        assert_eq!(sum.cpus, [OneCpu { cpu: 5, dropped: 2, squeezed: 3 }]);
    }

    #[test]
    fn too_few_columns_are_an_error() {
        assert!(parse("").is_err() && parse("0000000d 00000001\n").is_err());
    }
}
