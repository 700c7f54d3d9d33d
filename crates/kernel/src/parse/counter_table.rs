//! /proc/net/netstat and /proc/net/snmp: for each group a line of names and a line of values.

use super::ParseError;

const FILE: &str = "/proc/net/netstat or snmp";

/// One counter: group, name, value. The kernel writes some limits as -1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter<'a> {
    /// "TcpExt", "Ip", …
    pub group: &'a str,
    /// "TCPTimeouts", …
    pub name: &'a str,
    /// Its value.
    pub value: i128,
}

/// Reads either file. Names without a value are an error, because the file was then cut short.
pub fn parse(text: &str) -> Result<Vec<Counter<'_>>, ParseError> {
    let mut counters = Vec::new();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    while let Some(names) = lines.next() {
        let (group, names) = split(names)?;
        let values =
            lines.next().ok_or_else(|| ParseError::new(FILE, format!("{group} has no values")))?;
        let (same_group, values) = split(values)?;
        if group != same_group {
            return Err(ParseError::new(FILE, format!("{same_group} follows {group}")));
        }
        pair(group, names, values, &mut counters)?;
    }
    if counters.is_empty() { Err(ParseError::new(FILE, "no counters")) } else { Ok(counters) }
}

fn split(line: &str) -> Result<(&str, &str), ParseError> {
    line.split_once(':').ok_or_else(|| ParseError::new(FILE, format!("no group in {line:?}")))
}

fn pair<'a>(
    group: &'a str,
    names: &'a str,
    values: &str,
    counters: &mut Vec<Counter<'a>>,
) -> Result<(), ParseError> {
    let mut values = values.split_ascii_whitespace();
    for name in names.split_ascii_whitespace() {
        let value = values.next().and_then(|value| value.parse().ok());
        let value =
            value.ok_or_else(|| ParseError::new(FILE, format!("{group}.{name} has no number")))?;
        counters.push(Counter { group, name, value });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_paired_by_position() {
        let text = "Tcp: MaxConn InSegs\nTcp: -1 18446744073709551615\nUdp: InErrors\nUdp: 3\n";
        let counters = parse(text).unwrap();
        assert_eq!(counters[0], Counter { group: "Tcp", name: "MaxConn", value: -1 });
        assert_eq!(counters[1].value, i128::from(u64::MAX));
        assert_eq!(counters[2], Counter { group: "Udp", name: "InErrors", value: 3 });
    }

    #[test]
    fn names_without_values_are_an_error() {
        for text in ["", "Tcp: A B\n", "Tcp: A B\nTcp: 1\n", "Tcp: A\nUdp: 1\n", "A B\n1 2\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
