//! /proc/PID/task/TID/schedstat: the scheduler's statistics of a thread (Documentation/scheduler/sched-stats.rst).

use super::ParseError;

/// One thread since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Ready to run but waiting for a CPU, nanoseconds.
    pub waiting_ns: u64,
    /// How often it was put on a CPU.
    pub slices: u64,
}

/// Reads the file.
pub fn parse(text: &str) -> Result<Schedstat, ParseError> {
    let numbers: Vec<u64> =
        text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    match numbers.first_chunk() {
        Some([_running_ns, waiting_ns, slices]) => {
            Ok(Schedstat { waiting_ns: *waiting_ns, slices: *slices })
        }
        None => Err(ParseError::new("/proc/self/task/*/schedstat", format!("{text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_numbers_are_needed() {
        let stat = Schedstat { waiting_ns: 2_011_711, slices: 120 };
        assert_eq!(parse("1378190 2011711 120\n"), Ok(stat));
        assert!(parse("").is_err() && parse("1 2\n").is_err() && parse("1 x 3\n").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([0-9]{1,25}| |\n|x){0,9}") {
            let _ = parse(&text);
        }
    }
}
