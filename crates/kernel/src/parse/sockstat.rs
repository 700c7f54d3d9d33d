//! /proc/net/sockstat: sockets in use and the memory they hold.

use super::ParseError;

const FILE: &str = "/proc/net/sockstat";

/// Pages of memory that all sockets of `protocol` ("TCP", "UDP") hold together, to compare with `tcp_mem` or `udp_mem`.
pub fn parse(text: &str, protocol: &str) -> Result<u64, ParseError> {
    let of = |line: &'_ str| Some(line.strip_prefix(protocol)?.strip_prefix(':')?.to_owned());
    let line = text.lines().find_map(of);
    let line = line.ok_or_else(|| ParseError::new(FILE, format!("no {protocol}")))?;
    let mut words = line.split_ascii_whitespace();
    words
        .by_ref()
        .find(|word| *word == "mem")
        .and_then(|_| words.next()?.parse().ok())
        .ok_or_else(|| ParseError::new(FILE, format!("no number after \"mem\" of {protocol}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_tcp_is_found_among_other_words() {
        let text = "sockets: used 16\nTCP: inuse 1 orphan 0 new 4 mem 37\nUDP: inuse 0 mem 5\n";
        assert_eq!((parse(text, "TCP"), parse(text, "UDP")), (Ok(37), Ok(5)));
        assert!(parse("TCP: inuse 1 mem\n", "TCP").is_err());
        assert!(parse("UDP: mem 5\n", "TCP").is_err());
    }
}
