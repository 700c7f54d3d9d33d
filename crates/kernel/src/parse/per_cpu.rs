//! /proc/interrupts and /proc/softirqs: a line that names the CPUs, then lines with a name, one number for each CPU
//! and, for interrupts, words about the source (proc_interrupts(5)).

use super::ParseError;

/// One line: its name without the colon, each CPU's count, and the words after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// "24" or "NET_RX".
    pub name: &'a str,
    /// One number for each CPU of the table.
    pub counts: Vec<u64>,
    /// The rest of the line: "PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0".
    pub words: Vec<&'a str>,
}

/// The whole table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table<'a> {
    /// The CPUs by their numbers, in the order of the columns.
    pub cpus: Vec<u32>,
    /// The lines that have a number for each CPU, unlike "ERR: 0".
    pub rows: Vec<Row<'a>>,
}

/// Reads either table; `file` is for the error.
pub fn parse<'a>(file: &'static str, text: &'a str) -> Result<Table<'a>, ParseError> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let cpus: Option<Vec<u32>> = header.split_ascii_whitespace().map(cpu_number).collect();
    let cpus = cpus
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| ParseError::new(file, "its first line names no CPUs"))?;
    let rows = lines.filter_map(|line| row(line, cpus.len())).collect();
    Ok(Table { cpus, rows })
}

fn cpu_number(word: &str) -> Option<u32> {
    word.strip_prefix("CPU")?.parse().ok()
}

fn row(line: &str, cpus: usize) -> Option<Row<'_>> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace();
    let counts: Vec<u64> = words.by_ref().take(cpus).map_while(|word| word.parse().ok()).collect();
    (counts.len() == cpus).then(|| Row { name: name.trim(), counts, words: words.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_has_as_many_numbers_as_there_are_cpus_or_is_passed_over() {
        let text = "     CPU0  CPU2\n 24:  1  7  IO-APIC  5-edge  eth0\nERR:  0\nNET_RX: 3 4\n";
        let table = parse("t", text).unwrap();
        assert_eq!(table.cpus, [0, 2]);
        assert_eq!((table.rows[0].name, table.rows[0].counts.as_slice()), ("24", &[1, 7][..]));
        assert_eq!(table.rows[0].words, ["IO-APIC", "5-edge", "eth0"]);
        assert_eq!((table.rows[1].name, table.rows.len()), ("NET_RX", 2));
    }

    #[test]
    fn a_table_without_cpus_is_an_error() {
        assert!(parse("t", "").is_err() && parse("t", "24: 1 2\n").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(CPU[0-9]{1,3}|[0-9A-Z]{1,3}:|[a-z0-9:.@-]{1,9}| |\n){0,60}") {
            let _ = parse("t", &text);
        }
    }
}
