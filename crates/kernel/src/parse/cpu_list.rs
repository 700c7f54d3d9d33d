//! Lists of CPUs as /sys writes them: "0-3,8" (cpuset(7), "List format").

use super::ParseError;

/// More CPUs than any kernel supports (x86: 8192), so that a wrong range costs nothing.
const MAX_CPUS: u32 = 65_536;

/// The CPUs of a list, in its order; `file` is for the error.
pub fn parse(file: &'static str, text: &str) -> Result<Vec<u32>, ParseError> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last && last < MAX_CPUS => cpus.extend(first..=last),
            _ => return Err(ParseError::new(file, format!("{part:?} is not a range of CPUs"))),
        }
        if cpus.len() > MAX_CPUS as usize {
            return Err(ParseError::new(file, "too many CPUs"));
        }
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_and_single_cpus_are_distinguished() {
        assert_eq!(parse("t", "0-2,8\n"), Ok(vec![0, 1, 2, 8]));
        assert_eq!(parse("t", "0\n"), Ok(vec![0]));
        for wrong in ["", "2-1", "0-", "a", "0-99999999", "0,,1"] {
            assert!(parse("t", wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9,\\-]{0,20}") {
            let _ = parse("t", &text);
        }
    }
}
