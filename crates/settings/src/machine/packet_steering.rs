//! Reads and writes the steering of each queue of a device: masks of CPUs or of queues, and the length of its
//! flow table (Documentation/networking/scaling.rst).

use goodput_model::SettingRef;

use super::sysfs;
use crate::error::SettingError;
use crate::setting::Machine;
use crate::value::{self, bad};

/// The backend of one file of each queue: one value if all queues have the same, otherwise one per queue, separated
/// by spaces.
pub(crate) struct QueueFile {
    file: &'static str,
    /// Prefix of its queues' names.
    queues: &'static str,
    holds: Holds,
}

/// The content of a file.
enum Holds {
    /// A hexadecimal mask of CPUs.
    Cpus,
    /// A hexadecimal mask of receive queues.
    ReceiveQueues,
    /// Number of entries of a table, which the kernel rounds to a power of two (`store_rps_dev_flow_table_cnt`,
    /// net/core/net-sysfs.c).
    Entries,
}

/// RPS: the CPUs over which the packets of a receive queue are spread.
pub(crate) static RPS_CPUS: QueueFile =
    QueueFile { file: "rps_cpus", queues: "rx-", holds: Holds::Cpus };

/// RFS: flows of a receive queue whose reader's CPU is remembered.
pub(crate) static RPS_FLOW_CNT: QueueFile =
    QueueFile { file: "rps_flow_cnt", queues: "rx-", holds: Holds::Entries };

/// XPS: the CPUs that send through a queue.
pub(crate) static XPS_CPUS: QueueFile =
    QueueFile { file: "xps_cpus", queues: "tx-", holds: Holds::Cpus };

/// XPS: the receive queues whose flows are sent through a queue.
pub(crate) static XPS_RXQS: QueueFile =
    QueueFile { file: "xps_rxqs", queues: "tx-", holds: Holds::ReceiveQueues };

/// Most entries of a queue's flow table: at 16 bytes each the kernel allocates 256 MiB.
const MAX_ENTRIES: u64 = 1 << 24;

impl Machine for QueueFile {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let mut values = sysfs::queues(setting, self.queues)?
            .iter()
            .map(|queue| self.read_one(setting, queue))
            .collect::<Result<Vec<String>, _>>()?;
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            values.truncate(1);
        }
        Ok(values.join(" "))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        for (number, queue) in sysfs::queues(setting, self.queues)?.iter().enumerate() {
            if let Some(own) = of_queue(value, number) {
                #[cfg(test)]
                crate::testing::step();
                sysfs::write(setting, &self.path(queue), &self.written(own))?;
            }
        }
        Ok(())
    }

    fn is_between(&self, now: &str, values: &[&str]) -> bool {
        let queues = values.iter().chain([&now]).map(|value| value.split(' ').count()).max();
        (0..queues.unwrap_or(1))
            .all(|number| values.iter().any(|v| of_queue(v, number) == of_queue(now, number)))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        match self.holds {
            Holds::Cpus => {
                let all = std::fs::read_to_string("/sys/devices/system/cpu/possible");
                mask(setting, value, "CPU", highest(&all.unwrap_or_default()))
            }
            Holds::ReceiveQueues => {
                let last = sysfs::queues(setting, "rx-")?.len().checked_sub(1);
                mask(setting, value, "receive queue", last)
            }
            Holds::Entries => {
                let entries = value::number(setting, value, &(0..=MAX_ENTRIES))?;
                Ok(if entries == 0 { 0 } else { entries.next_power_of_two() }.to_string())
            }
        }
    }
}

impl QueueFile {
    fn path(&self, queue: &str) -> String {
        format!("queues/{queue}/{}", self.file)
    }

    fn read_one(&self, setting: &SettingRef, queue: &str) -> Result<String, SettingError> {
        let text = sysfs::read(setting, &self.path(queue)).map_err(|error| match error {
            // `netif_is_multiqueue` in the functions of these files, net/core/net-sysfs.c.
            SettingError::Gone { setting, .. } => {
                let cause = "the device has one queue of this kind, so there is nothing to choose";
                let operation = "read it".into();
                SettingError::Refused { operation, setting, cause: cause.into() }
            }
            other => other,
        })?;
        Ok(if matches!(self.holds, Holds::Entries) { text } else { joined(&text) })
    }

    fn written(&self, value: &str) -> String {
        if matches!(self.holds, Holds::Entries) { value.into() } else { split(value) }
    }
}

/// The part of `value` for the queue with this number.
fn of_queue(value: &str, number: usize) -> Option<&str> {
    let mut values = value.split(' ');
    let first = values.next();
    if value.contains(' ') { value.split(' ').nth(number) } else { first }
}

/// A mask as it reads back, if it has no bit above `last`.
fn mask(
    setting: &SettingRef,
    value: &str,
    of: &str,
    last: Option<usize>,
) -> Result<String, SettingError> {
    let digits = |mask: &str| mask.bytes().all(|b| b.is_ascii_hexdigit());
    if value.is_empty() || value.len() > 1024 || !digits(value) {
        let why = format!("it must be a hexadecimal mask of {of}s like f, or 0 for none");
        return Err(bad(setting, value, why));
    }
    let mask = joined(value);
    match last {
        Some(last) if bits(&mask) > last + 1 => {
            Err(bad(setting, value, format!("the last {of} here is {last}")))
        }
        _ => Ok(mask),
    }
}

/// A mask without the commas that the kernel writes after every 32 bits, and without leading
/// zeros.
fn joined(mask: &str) -> String {
    let digits = mask.replace(',', "").to_ascii_lowercase();
    let short = digits.trim_start_matches('0');
    if short.is_empty() { "0".into() } else { short.into() }
}

/// The mask with its commas, which the kernel expects (lib/bitmap-str.c `bitmap_parse`).
fn split(mask: &str) -> String {
    let mut words: Vec<&[u8]> = mask.as_bytes().rchunks(8).collect();
    words.reverse();
    let words: Vec<_> = words.into_iter().map(String::from_utf8_lossy).collect();
    words.join(",")
}

/// Number of bits up to the highest that is set, in a mask without leading zeros.
fn bits(mask: &str) -> usize {
    let first = mask.chars().next().and_then(|c| c.to_digit(16)).unwrap_or(0);
    (mask.len() - 1) * 4 + (u32::BITS - first.leading_zeros()) as usize
}

/// The highest number in a list like `0-3,8`.
fn highest(list: &str) -> Option<usize> {
    list.trim().split([',', '-']).filter_map(|number| number.parse().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_many_cpus_are_joined_and_split_again() {
        for (kernel, ours) in [
            ("00", "0"),
            ("03", "3"),
            ("00000001,00000000", "100000000"),
            ("ff,00000001", "ff00000001"),
        ] {
            assert_eq!(joined(kernel), ours);
            assert_eq!(joined(&split(ours)), ours);
        }
        assert_eq!(split("100000000"), "1,00000000");
    }

    #[test]
    fn one_value_is_for_all_queues_and_several_are_for_one_each() {
        assert_eq!([0, 5].map(|queue| of_queue("f", queue)), [Some("f"), Some("f")]);
        assert_eq!([0, 1, 2].map(|queue| of_queue("1 2", queue)), [Some("1"), Some("2"), None]);
    }

    #[test]
    fn the_highest_cpu_of_a_mask_is_known() {
        assert_eq!(["0", "1", "3", "f", "10", "8000"].map(bits), [0, 1, 2, 4, 5, 16]);
        assert_eq!((highest("0-3,8\n"), highest("0"), highest("")), (Some(8), Some(0), None));
    }
}
