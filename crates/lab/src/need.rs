//! What not every machine has for a scenario.

use std::fmt;

/// Something that not every machine or user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// To emulate links: the kernel's netem, or else the right to make TUN devices.
    Emulation,
    /// To emulate links as netem cannot: the right to make TUN devices.
    Relay,
    /// To make groups of processes with a CPU quota.
    CpuGroup,
    /// The program nft, for loss by the packet filter.
    PacketFilter,
}

/// Why something is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// In words, with what would give it.
    pub why: String,
    /// Whether a permission is what lacks.
    pub not_permitted: bool,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emulation => "netem in the kernel or a TUN device, for its emulated link",
            Self::Relay => "a TUN device, for its emulated link",
            Self::CpuGroup => "a CPU control group",
            Self::PacketFilter => "the packet filter's program",
        })
    }
}
