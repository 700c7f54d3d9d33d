//! /proc/sys/net/ipv4/tcp_mem: memory limits of all TCP sockets together (tcp(7)).

use super::ParseError;

/// Limits, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpMem {
    /// Above this, TCP keeps its buffers small until it is below `low` again.
    pub pressure: u64,
    /// Above this, TCP gets no more memory.
    pub max: u64,
}

/// Reads the file: low, pressure, max.
pub fn parse(text: &str) -> Result<TcpMem, ParseError> {
    let numbers: Vec<u64> =
        text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [_low, pressure, max] => Ok(TcpMem { pressure: *pressure, max: *max }),
        _ => Err(ParseError::new("/proc/sys/net/ipv4/tcp_mem", format!("{text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_second_number_is_pressure_and_the_third_the_end() {
        assert_eq!(
            parse("287901\t383869\t575802\n"),
            Ok(TcpMem { pressure: 383_869, max: 575_802 })
        );
        assert!(parse("1 2\n").is_err() && parse("1 2 3 4\n").is_err() && parse("").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([0-9]{1,25}|\t|\n|x){0,9}") {
            let _ = parse(&text);
        }
    }
}
