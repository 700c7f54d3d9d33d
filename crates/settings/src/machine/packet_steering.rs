//! Reads and writes the steering of each queue of a device: masks of CPUs or of queues, and the length of its
//! flow table (Documentation/networking/scaling.rst).

use goodput_model::SettingRef;

use super::sysfs;
use crate::error::SettingError;
use crate::setting::Machine;
use crate::{cpus, each, steering};

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
    /// Number of entries of a table.
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

impl Machine for QueueFile {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let queues = sysfs::queues(setting, self.queues)?;
        let values = queues.iter().map(|queue| self.read_one(setting, queue));
        Ok(each::joined(values.collect::<Result<_, _>>()?))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        for (number, queue) in sysfs::queues(setting, self.queues)?.iter().enumerate() {
            if let Some(own) = each::own(value, number) {
                #[cfg(test)]
                crate::testing::step();
                sysfs::write(setting, &self.path(queue), &self.written(own))?;
            }
        }
        Ok(())
    }

    fn is_between(&self, now: &str, values: &[&str]) -> bool {
        each::is_between(now, values)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        match self.holds {
            Holds::Cpus => {
                let all = std::fs::read_to_string("/sys/devices/system/cpu/possible");
                let all = cpus::parse(&all.unwrap_or_default()).unwrap_or_default();
                let last = all.last().and_then(|last| usize::try_from(*last).ok());
                steering::mask(setting, value, "CPU", last)
            }
            Holds::ReceiveQueues => {
                let last = sysfs::queues(setting, "rx-")?.len().checked_sub(1);
                steering::mask(setting, value, "receive queue", last)
            }
            Holds::Entries => steering::entries(setting, value),
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
        Ok(if matches!(self.holds, Holds::Entries) { text } else { steering::joined(&text) })
    }

    fn written(&self, value: &str) -> String {
        if matches!(self.holds, Holds::Entries) { value.into() } else { steering::split(value) }
    }
}
