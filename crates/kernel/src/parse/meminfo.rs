//! /proc/meminfo: the size of the machine.

use super::{ParseError, keyed};

/// Usable memory, bytes. The file's "kB" means units of 1024 bytes (proc_meminfo(5)).
pub fn parse(text: &str) -> Result<u64, ParseError> {
    keyed(text, "MemTotal:")
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| ParseError::new("/proc/meminfo", "no number after \"MemTotal:\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_in_bytes() {
        assert_eq!(parse("MemFree: 1 kB\nMemTotal:        8 kB\n"), Ok(8192));
        assert!(parse("MemFree: 1 kB\n").is_err());
    }
}
