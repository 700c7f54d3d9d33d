//! Requirements of a scenario that not every machine meets.

use std::fmt;

/// Something that not every machine or user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// To emulate links: the kernel's netem, or otherwise the right to create TUN devices.
    Emulation,
    /// To emulate links in ways that netem can't: the right to create TUN devices.
    Relay,
    /// To create groups of processes with a CPU quota.
    CpuGroup,
    /// The program nft, for loss by the packet filter.
    PacketFilter,
    /// The program tc.
    TrafficControl,
    /// To attach eBPF programs to a device: root, and Linux 6.6.
    Ebpf,
}

/// Why something is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// In words, with the remedy.
    pub why: String,
    /// Whether it is a permission that is missing.
    pub not_permitted: bool,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emulation => "netem in the kernel or a TUN device, for its emulated link",
            Self::Relay => "a TUN device, for its emulated link",
            Self::CpuGroup => "a CPU control group",
            Self::PacketFilter => "the packet filter's program",
            Self::TrafficControl => "the program for queueing disciplines",
            Self::Ebpf => "an eBPF program at a device",
        })
    }
}
