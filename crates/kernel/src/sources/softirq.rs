//! How often each CPU ran the network's soft interrupts (/proc/softirqs).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::ParseError;
use crate::parse::per_cpu::{self, Table};

const FILE: &str = "proc/softirqs";
/// Most CPUs that are recorded individually, so that a record is not all about CPUs.
pub(super) const MAX_CPUS: usize = 64;

pub(super) struct Softirq;

impl Source for Softirq {
    fn id(&self) -> &'static str {
        "softirq"
    }

    fn summary(&self) -> &'static str {
        "runs of the network softirqs: receive on each CPU, and transmit"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let text = context.root.read(FILE)?;
        let table = per_cpu::parse("/proc/softirqs", &text)?;
        let (rx, tx) = (counts(&table, "NET_RX")?, counts(&table, "NET_TX")?);
        snapshot.put("softirq.net_rx", total(rx));
        snapshot.put("softirq.net_tx", total(tx));
        put_per_cpu(snapshot, "softirq.net_rx", &table.cpus, rx);
        Ok(())
    }
}

/// Records one number for each CPU as `prefix.NUMBER`.
pub(super) fn put_per_cpu(snapshot: &mut Snapshot, prefix: &str, cpus: &[u32], counts: &[u64]) {
    for (cpu, count) in cpus.iter().zip(counts).take(MAX_CPUS) {
        snapshot.put(format!("{prefix}.{cpu}"), *count);
    }
    if let Some(next) = cpus.get(MAX_CPUS) {
        let why = format!("only the first {MAX_CPUS} of {} CPUs are listed separately", cpus.len());
        snapshot.lacks(format!("{prefix}.{next}"), why);
    }
}

/// All CPUs together.
pub(super) fn total(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

fn counts<'a>(table: &'a Table<'_>, name: &str) -> Result<&'a [u64], ParseError> {
    let row = table.rows.iter().find(|row| row.name == name);
    row.map(|row| row.counts.as_slice())
        .ok_or_else(|| ParseError::new("/proc/softirqs", format!("no line {name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_beyond_the_most_are_left_out_with_a_reason() {
        let cpus: Vec<u32> = (0..70).collect();
        let mut snapshot = Snapshot::default();
        put_per_cpu(&mut snapshot, "softirq.net_rx", &cpus, &[1; 70]);
        assert_eq!(snapshot.count("softirq.net_rx.63"), Ok(1));
        let why = snapshot.count("softirq.net_rx.64").unwrap_err().to_string();
        assert!(why.contains("first 64 of 70"), "{why}");
    }
}
