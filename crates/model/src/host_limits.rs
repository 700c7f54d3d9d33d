//! What single kinds of work would allow on one CPU of this host, and where the CPU time of this end's threads went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::{Known, Missing};
use crate::units::{BitRate, Bytes};

/// What this host could carry at best, beside the goodput of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostLimits {
    /// Copying memory, and nothing else: from a buffer of one write into 4 MiB that are used in turn. This is the
    /// default greatest size of a send buffer (`net.ipv4.tcp_wmem`, tcp(7)).
    pub copying: Known<WorkLimit>,
    /// Passing references to pages, and nothing else: vmsplice(2) into a pipe, splice(2) from there to /dev/null.
    pub page_references: Known<WorkLimit>,
    /// System calls that do nothing (getppid(2)), each for the bytes that a call of the run moved, or for one write of the
    /// plan if nothing was counted.
    pub empty_calls: Known<WorkLimit>,
    /// The kind of work that this end can't do without in its way of moving payload, or why none of these is.
    pub bounded_by: Known<HostWork>,
    /// CPUs that this end's flows can use at once: one for each flow, at most those that goodput may run on.
    pub cpus: u32,
    /// Where the CPU time of this end's threads went, or why nobody could look.
    pub profile: Known<CpuProfile>,
}

/// A kind of work that moves payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostWork {
    /// Each byte is copied between the program and the kernel.
    Copying,
    /// The kernel passes references to pages.
    PageReferences,
    /// Nothing is done for a byte, only system calls are made.
    EmptyCalls,
}

/// What one CPU could carry if one kind of work were its only work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkLimit {
    /// The goodput that one CPU could carry, bits per second.
    pub bits_per_s: BitRate,
    /// Bytes moved at a time.
    pub piece_bytes: Bytes,
    /// Time for one such piece, nanoseconds, the median of many repetitions.
    pub piece_ns: f64,
}

impl WorkLimit {
    /// The limit if each piece of `piece_bytes` takes `piece_ns`; `None` without a time.
    pub fn of(piece_bytes: Bytes, piece_ns: f64) -> Option<Self> {
        let bits_per_s = BitRate(piece_bytes.0 as f64 * 8e9 / piece_ns);
        (piece_ns > 0.0 && bits_per_s.0.is_finite()).then_some(Self {
            bits_per_s,
            piece_bytes,
            piece_ns,
        })
    }
}

/// Where the threads of a process spent their CPU time, by samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuProfile {
    /// What triggered the samples.
    pub clock: ProfileClock,
    /// Samples requested for each second of a thread's CPU time.
    pub samples_per_s: u32,
    /// Samples taken.
    pub samples: u64,
    /// Samples that the kernel dropped because its buffer was full.
    pub lost_samples: u64,
    /// Threads that were sampled.
    pub threads: u32,
    /// Threads that were not sampled, because there were too many or the kernel refused.
    pub unsampled_threads: u32,
    /// Why functions of the kernel have no names, if they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<Missing>,
    /// Shares of CPU time, the largest first. They add up to 100 percent.
    pub groups: Vec<CpuShare>,
}

/// What triggers the samples of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileClock {
    /// A number of CPU cycles, counted by the processor.
    Cycles,
    /// A timer, because the processor's counters can't be used, as in most virtual machines. What the kernel does with
    /// interrupts off counts for the function that allows them again.
    CpuClock,
}

/// A share of CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuShare {
    /// What the CPU did.
    pub group: CpuGroup,
    /// Share of all samples, percent.
    pub percent: f64,
    /// Functions with the most samples of this group, the largest first; only functions of the kernel have names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionShare>,
}

/// The share of one function of the kernel, without those that it called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionShare {
    /// Its name in /proc/kallsyms.
    pub name: String,
    /// Share of all samples of the profile, percent.
    pub percent: f64,
}

/// What a CPU did. A function that serves all groups, such as a lock, counts for the function that called it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CpuGroup {
    /// Copying payload between the program and the kernel.
    Copying,
    /// Sockets, TCP, UDP, IP and packet filters.
    Stack,
    /// Queueing disciplines, devices, interrupts and soft interrupts.
    Device,
    /// Entering and leaving the kernel, and finding the file of a descriptor.
    Calls,
    /// Allocating, freeing and counting memory.
    Memory,
    /// Sleeping, waking and choosing who runs.
    Scheduling,
    /// goodput itself.
    Program,
    /// Functions of the kernel that belong to no group.
    OtherKernel,
    /// The kernel, whose functions have no names here.
    UnnamedKernel,
}

impl CpuGroup {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::Stack => "TCP/IP stack",
            Self::Device => "devices and softirqs",
            Self::Calls => "system call entry",
            Self::Memory => "memory management",
            Self::Scheduling => "scheduling",
            Self::Program => "goodput itself",
            Self::OtherKernel => "other kernel functions",
            Self::UnnamedKernel => "kernel",
        }
    }
}

impl HostWork {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::PageReferences => "passing page references",
            Self::EmptyCalls => "empty system calls",
        }
    }

    /// The group of a profile that holds this work. Passing references to pages is mostly counting their users.
    pub fn group(self) -> CpuGroup {
        match self {
            Self::Copying => CpuGroup::Copying,
            Self::PageReferences => CpuGroup::Memory,
            Self::EmptyCalls => CpuGroup::Calls,
        }
    }
}

impl HostLimits {
    /// The limit of one kind of work.
    pub fn of(&self, work: HostWork) -> &Known<WorkLimit> {
        match work {
            HostWork::Copying => &self.copying,
            HostWork::PageReferences => &self.page_references,
            HostWork::EmptyCalls => &self.empty_calls,
        }
    }

    /// What the bounding work would allow on the CPUs that the flows can use, bits per second.
    pub fn bound(&self) -> Result<BitRate, Missing> {
        let limit = self.of(*self.bounded_by.get()?).get()?;
        Ok(BitRate(limit.bits_per_s.0 * f64::from(self.cpus)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_its_piece_by_its_time_and_nothing_without_a_time() {
        let limit = WorkLimit::of(Bytes(1000), 4000.0).unwrap();
        assert_eq!(limit.bits_per_s, BitRate(2e9));
        assert_eq!(WorkLimit::of(Bytes(1000), 0.0), None);
        assert_eq!(WorkLimit::of(Bytes(1000), f64::NAN), None);
    }

    #[test]
    fn the_bound_is_that_of_all_cpus_or_the_reason_for_none() {
        let missing = || Known::missing("not measured");
        let mut limits = HostLimits {
            copying: WorkLimit::of(Bytes(1000), 4000.0).map(Known::Value).unwrap(),
            page_references: missing(),
            empty_calls: missing(),
            bounded_by: Known::Value(HostWork::Copying),
            cpus: 3,
            profile: Known::missing("not permitted"),
        };
        assert_eq!(limits.bound(), Ok(BitRate(6e9)));
        limits.bounded_by = Known::Value(HostWork::PageReferences);
        assert_eq!(limits.bound(), Err(Missing::because("not measured")));
    }
}
