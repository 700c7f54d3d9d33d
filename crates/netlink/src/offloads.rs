//! Offloads of a device: work on whole batches, done by the device or by the stack on its behalf.

use std::fmt;
use std::str::FromStr;

use crate::NetlinkError;
use crate::features::Features;

/// A part of TSO that is not switched with it: hardware has it off by default, and once on, it would stay on.
const MANGLE_ID: &str = "tx-tcp-mangleid-segmentation";

/// One offload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offload {
    /// TCP segmentation by the device.
    Tso,
    /// Segmentation by the stack, as late as possible.
    Gso,
    /// Merging received segments in the stack.
    Gro,
    /// Merging received segments in the device.
    Lro,
    /// Checksums of sent packets by the device.
    TxChecksum,
    /// Checksums of received packets by the device.
    RxChecksum,
    /// Sending from scattered memory.
    ScatterGather,
    /// Segmentation of UDP datagrams (`UDP_SEGMENT`, udp(7)) by the device.
    UdpSegmentation,
    /// Merging received datagrams that are forwarded, in the stack.
    UdpGroForwarding,
    /// Merging received packets into a list instead of one packet.
    GroList,
    /// Merging received segments in the device, reversibly.
    GroHardware,
    /// Segmentation of tunnelled traffic by the device.
    TunnelSegmentation,
    /// The hash over the addresses of received packets by the device.
    RxHash,
    /// Rules that send certain received packets to certain queues of the device (ntuple filters).
    Ntuple,
}

impl Offload {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Tso,
        Self::Gso,
        Self::Gro,
        Self::Lro,
        Self::TxChecksum,
        Self::RxChecksum,
        Self::ScatterGather,
        Self::UdpSegmentation,
        Self::UdpGroForwarding,
        Self::GroList,
        Self::GroHardware,
        Self::TunnelSegmentation,
        Self::RxHash,
        Self::Ntuple,
    ];

    /// Its name in goodput, such as "tso" or "tx-checksum".
    pub fn name(self) -> &'static str {
        match self {
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::TxChecksum => "tx-checksum",
            Self::RxChecksum => "rx-checksum",
            Self::ScatterGather => "sg",
            Self::UdpSegmentation => "tx-udp-segmentation",
            Self::UdpGroForwarding => "rx-udp-gro-forwarding",
            Self::GroList => "rx-gro-list",
            Self::GroHardware => "rx-gro-hw",
            Self::TunnelSegmentation => "tx-tunnel-segmentation",
            Self::RxHash => "rx-hash",
            Self::Ntuple => "ntuple",
        }
    }

    /// The kernel's features that it stands for (net/ethtool/common.c `netdev_features_strings`
    /// and `__ethtool_get_flags`, net/ethtool/ioctl.c `ethtool_get_feature_mask`).
    pub fn features(self) -> &'static [&'static str] {
        match self {
            Self::Tso => &[
                "tx-tcp-segmentation",
                "tx-tcp-ecn-segmentation",
                MANGLE_ID,
                "tx-tcp6-segmentation",
            ],
            Self::Gso => &["tx-generic-segmentation"],
            Self::Gro => &["rx-gro"],
            Self::Lro => &["rx-lro"],
            Self::TxChecksum => &[
                "tx-checksum-ipv4",
                "tx-checksum-ip-generic",
                "tx-checksum-ipv6",
                "tx-checksum-fcoe-crc",
                "tx-checksum-sctp",
            ],
            Self::RxChecksum => &["rx-checksum"],
            Self::ScatterGather => &["tx-scatter-gather", "tx-scatter-gather-fraglist"],
            Self::UdpSegmentation => &["tx-udp-segmentation"],
            Self::UdpGroForwarding => &["rx-udp-gro-forwarding"],
            Self::GroList => &["rx-gro-list"],
            Self::GroHardware => &["rx-gro-hw"],
            Self::TunnelSegmentation => &[
                "tx-udp_tnl-segmentation",
                "tx-udp_tnl-csum-segmentation",
                "tx-gre-segmentation",
                "tx-gre-csum-segmentation",
                "tx-ipxip4-segmentation",
                "tx-ipxip6-segmentation",
            ],
            Self::RxHash => &["rx-hashing"],
            Self::Ntuple => &["rx-ntuple-filter"],
        }
    }
}

impl fmt::Display for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Offload {
    type Err = NetlinkError;

    fn from_str(text: &str) -> Result<Self, NetlinkError> {
        Self::ALL.into_iter().find(|offload| offload.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            NetlinkError::impossible(
                format!("use offload {text:?}"),
                format!("it is one of {names}"),
            )
        })
    }
}

impl Features {
    /// Whether an offload is on: any of its features is active, as in the kernel's own older
    /// commands (net/ethtool/ioctl.c `ethtool_get_one_feature`).
    pub fn has(&self, offload: Offload) -> bool {
        self.any_active(offload.features())
    }
}

/// Whether `offload` is on at `device` in the calling thread's namespace.
pub fn get_offload(device: &str, offload: Offload) -> Result<bool, NetlinkError> {
    let operation = format!("read offload {offload} of {device}");
    Ok(Features::read(&operation, device)?.has(offload))
}

/// Switches `offload` at `device`. Read it afterwards: the kernel silently accepts a request that another setting
/// forbids (tso without sg).
pub fn set_offload(device: &str, offload: Offload, on: bool) -> Result<(), NetlinkError> {
    let state = if on { "on" } else { "off" };
    let operation = format!("switch offload {offload} of {device} {state}");
    let names: Vec<&str> =
        offload.features().iter().copied().filter(|name| *name != MANGLE_ID).collect();
    Features::read(&operation, device)?.request(&operation, device, &names, on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use goodput_testing::in_namespace;

    #[test]
    fn offloads_of_a_veth_go_off_and_on_again() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            for offload in [Offload::Tso, Offload::Gso, Offload::Gro, Offload::TxChecksum] {
                let before = get_offload("left", offload).unwrap();
                set_offload("left", offload, !before).unwrap();
                assert_eq!(get_offload("left", offload).unwrap(), !before, "{offload}");
                set_offload("left", offload, before).unwrap();
                assert_eq!(get_offload("left", offload).unwrap(), before, "{offload}");
            }
        });
    }

    #[test]
    fn an_offload_the_device_does_not_have_is_not_supported() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            assert!(!get_offload("left", Offload::Lro).unwrap());
            let error = set_offload("left", Offload::Lro, true).unwrap_err();
            assert!(error.not_supported(), "{error}");
        });
    }

    #[test]
    fn names_are_read_back_and_others_are_refused_with_the_list() {
        for offload in Offload::ALL {
            assert_eq!(offload.name().parse::<Offload>().unwrap(), offload);
        }
        let error = "tos".parse::<Offload>().unwrap_err().to_string();
        assert!(error.contains("tso, gso"), "{error}");
    }
}
