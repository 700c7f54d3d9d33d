//! Parsers of kernel files: text in, numbers out. They skip what they do not know.

pub mod cgroup;
pub mod conntrack;
pub mod counter_table;
pub mod cpu_list;
pub mod cpu_mask;
pub mod driver_counters;
pub mod meminfo;
pub mod mountinfo;
pub mod mountstats;
pub mod pcie;
pub mod per_cpu;
pub mod pressure;
pub mod process;
pub mod schedstat;
pub mod sockstat;
pub mod softnet;
pub mod stat;
pub mod tcp_mem;
pub mod vectors;
pub mod wireless;

use goodput_model::Missing;

/// Text in a form that the kernel does not write to this file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} not understood: {why}; please report this kernel's version")]
pub struct ParseError {
    /// The file's name on a real host.
    pub file: &'static str,
    /// What is wrong.
    pub why: String,
}

impl ParseError {
    pub(crate) fn new(file: &'static str, why: impl Into<String>) -> Self {
        Self { file, why: why.into() }
    }
}

impl From<ParseError> for Missing {
    fn from(error: ParseError) -> Self {
        Self::because(error.to_string())
    }
}

/// The number after `key` in lines of "key value", as in cpu.stat of a cgroup.
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(key)).then(|| words.next()?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_a_whole_word_and_its_value_a_number() {
        let text = "nr_periods 7\nnr_throttled x\nthrottled_time 9 ns\n";
        assert_eq!(keyed(text, "nr_periods"), Some(7));
        assert_eq!(keyed(text, "nr"), None);
        assert_eq!(keyed(text, "nr_throttled"), None);
        assert_eq!(keyed(text, "throttled_time"), Some(9));
    }

    proptest! {
        #[test]
        fn no_parser_panics(text in "[\\x00-\\x7f]{0,200}", word in "[a-z]{0,4}") {
            let _ = keyed(&text, &word);
            let _ = process::parse_parent(&text);
            let _ = cgroup::parse_membership(&text);
            let _ = cgroup::parse_max(&text);
            let _ = counter_table::parse(&text);
            let _ = meminfo::parse(&text);
            let _ = mountinfo::parse(&text);
            let _ = sockstat::parse(&text, "TCP");
            let _ = softnet::parse(&text);
            let _ = stat::parse(&text);
        }

        #[test]
        fn no_parser_panics_on_what_looks_right(
            lines in prop::collection::vec("(cpu[0-9]{0,25}|ctxt|TCP:|Tcp:|[0-9]:cpu:/|MemTotal:)( [a-z0-9/-]{1,25}){0,12}", 0..8)
        ) {
            let text = lines.join("\n");
            let _ = cgroup::parse_membership(&text);
            let _ = counter_table::parse(&text);
            let _ = meminfo::parse(&text);
            let _ = mountinfo::parse(&text);
            let _ = sockstat::parse(&text, "TCP");
            let _ = softnet::parse(&text);
            let _ = stat::parse(&text);
        }
    }
}
