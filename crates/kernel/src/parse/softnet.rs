//! /proc/net/softnet_stat: one line of hexadecimal columns for each CPU
//! (net/core/net-procfs.c `softnet_seq_show`).

use super::ParseError;

const FILE: &str = "/proc/net/softnet_stat";

/// The sums over all CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Packets taken in.
    pub processed: u64,
    /// Packets dropped because a CPU's backlog was full.
    pub dropped: u64,
    /// Times that a CPU ran out of budget or time with packets left.
    pub squeezed: u64,
}

/// Reads the file. Every kernel has at least the three columns.
pub fn parse(text: &str) -> Result<Softnet, ParseError> {
    let mut sum = Softnet::default();
    let mut lines = 0;
    for line in text.lines() {
        let columns: Vec<u64> = line
            .split_ascii_whitespace()
            .map_while(|word| u64::from_str_radix(word, 16).ok())
            .collect();
        let Some([processed, dropped, squeezed]) = columns.first_chunk() else {
            return Err(ParseError::new(FILE, format!("{line:?} has not three columns")));
        };
        sum.processed = sum.processed.saturating_add(*processed);
        sum.dropped = sum.dropped.saturating_add(*dropped);
        sum.squeezed = sum.squeezed.saturating_add(*squeezed);
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
        assert_eq!(sum, Softnet { processed: 0xd + 0x129e, dropped: 1, squeezed: 5 });
    }

    #[test]
    fn too_few_columns_are_an_error() {
        assert!(parse("").is_err() && parse("0000000d 00000001\n").is_err());
    }
}
