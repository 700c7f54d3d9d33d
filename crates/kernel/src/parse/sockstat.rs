//! /proc/net/sockstat: sockets in use and the memory they hold.

use super::ParseError;

const FILE: &str = "/proc/net/sockstat";

/// Pages of memory that all TCP sockets hold together, to be held against `tcp_mem`.
pub fn parse(text: &str) -> Result<u64, ParseError> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let mut words = line.ok_or_else(|| ParseError::new(FILE, "no TCP"))?.split_ascii_whitespace();
    words
        .by_ref()
        .find(|word| *word == "mem")
        .and_then(|_| words.next()?.parse().ok())
        .ok_or_else(|| ParseError::new(FILE, "no number after \"mem\" of TCP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_tcp_is_found_among_other_words() {
        let text = "sockets: used 16\nTCP: inuse 1 orphan 0 new 4 mem 37\nUDP: inuse 0 mem 5\n";
        assert_eq!(parse(text), Ok(37));
        assert!(parse("TCP: inuse 1 mem\n").is_err() && parse("UDP: mem 5\n").is_err());
    }
}
