//! /proc/net/stat/nf_conntrack: a line of names, then a line of hexadecimal numbers for each CPU
//! (net/netfilter/nf_conntrack_standalone.c `ct_cpu_seq_show`).

use super::ParseError;

const FILE: &str = "/proc/net/stat/nf_conntrack";

/// The sum of the columns `names` over all CPUs; each is `None` if this kernel has no such column.
pub fn parse<const N: usize>(text: &str, names: [&str; N]) -> Result<[Option<u64>; N], ParseError> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let places = names.map(|name| header.iter().position(|column| *column == name));
    let mut sums = places.map(|place| place.map(|_| 0u64));
    let mut cpus = 0;
    for line in lines {
        let row: Option<Vec<u64>> =
            line.split_ascii_whitespace().map(|word| u64::from_str_radix(word, 16).ok()).collect();
        let row = row
            .filter(|row| row.len() == header.len())
            .ok_or_else(|| ParseError::new(FILE, format!("{line:?}")))?;
        for (sum, place) in sums.iter_mut().zip(places) {
            let value = place.and_then(|place| row.get(place));
            *sum = sum.zip(value).map(|(sum, value)| sum.saturating_add(*value));
        }
        cpus += 1;
    }
    if cpus == 0 { Err(ParseError::new(FILE, "no CPU")) } else { Ok(sums) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_found_by_name_and_cpus_add_up() {
        let text = "entries  clashres drop\n0000000a  00000000 00000010\n0000000a  00000000 1\n";
        assert_eq!(parse(text, ["drop", "novel"]), Ok([Some(17), None]));
        assert!(parse("entries drop\n", ["drop"]).is_err());
        assert!(parse("entries drop\n1\n", ["drop"]).is_err());
        assert!(parse("", ["drop"]).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(drop|entries|[0-9a-f]{1,18}| |\n){0,40}") {
            let _ = parse(&text, ["drop", "entries"]);
        }
    }
}
