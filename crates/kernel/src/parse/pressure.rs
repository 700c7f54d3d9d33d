//! /proc/pressure/*: how long tasks waited for a resource (Documentation/accounting/psi.rst).

use super::ParseError;

/// Microseconds since boot in which tasks waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task waited.
    pub some_us: u64,
    /// No task could continue. Kernels before 5.13 do not report this for the CPU.
    pub full_us: Option<u64>,
}

/// Reads one of the files; `file` is for the error.
pub fn parse(file: &'static str, text: &str) -> Result<Pressure, ParseError> {
    let some_us = total(text, "some");
    let some_us = some_us.ok_or_else(|| ParseError::new(file, "no total of \"some\""))?;
    Ok(Pressure { some_us, full_us: total(text, "full") })
}

fn total(text: &str, kind: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(kind))
            .then(|| words.find_map(|word| word.strip_prefix("total=")?.parse().ok()))
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn totals_are_found_behind_the_averages() {
        let text = "some avg10=67.81 avg60=61.12 avg300=45.75 total=2187946064\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        let pressure = parse("t", text).unwrap();
        assert_eq!(pressure, Pressure { some_us: 2_187_946_064, full_us: Some(9) });
        assert_eq!(parse("t", "some total=1\n").unwrap().full_us, None);
        assert!(parse("t", "full total=1\n").is_err() && parse("t", "some avg10=1\n").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(some|full| |total=|[0-9]{1,25}|\n){0,20}") {
            let _ = parse("t", &text);
        }
    }
}
