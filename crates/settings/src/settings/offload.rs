//! `offload.*`: what the device, or the stack on its behalf, does on whole batches; one row each.

use goodput_netlink::Offload;

use crate::machine::OffloadSwitch;
use crate::permanent::{AT_BOOT, Form, offload};
use crate::setting::{Backend, Scope, Setting};

/// TCP segmentation by the device.
pub static TSO: Setting = switch(
    ["offload.tso", "TCP segmentation by the device", "offload.tso@eth0=on,off"],
    "The stack hands the device up to 64 KiB at once, which saves CPU but arrives as a burst that a small token bucket drops.",
    |s, v| offload(s, v, &["TCPSegmentationOffload", "TCP6SegmentationOffload"]),
    &OffloadSwitch(Offload::Tso),
);

/// Segmentation by the stack just before the device.
pub static GSO: Setting = switch(
    ["offload.gso", "segmentation by the stack just before the device", "offload.gso@eth0=on,off"],
    "The stack carries up to 64 KiB as one packet, which saves CPU but reaches queues and token buckets as a burst.",
    |s, v| offload(s, v, &["GenericSegmentationOffload"]),
    &OffloadSwitch(Offload::Gso),
);

/// Joining of received segments.
pub static GRO: Setting = switch(
    ["offload.gro", "joining of received segments", "offload.gro@eth0=off,on"],
    "The stack handles received segments of one stream as one packet, which saves CPU at the receiver.",
    |s, v| offload(s, v, &["GenericReceiveOffload"]),
    &OffloadSwitch(Offload::Gro),
);

/// Joining of received segments by the device.
pub static LRO: Setting = switch(
    ["offload.lro", "joining of received segments by the device", "offload.lro@eth0=off,on"],
    "It saves CPU at the receiver, but breaks forwarded packets.",
    |s, v| offload(s, v, &["LargeReceiveOffload"]),
    &OffloadSwitch(Offload::Lro),
);

/// Checksums of sent packets by the device.
pub static TX_CHECKSUM: Setting = switch(
    [
        "offload.tx-checksum",
        "checksums of sent packets by the device",
        "offload.tx-checksum@eth1=on,off",
    ],
    "Without this offload the CPU sums every byte, and segmentation offload is off too; a device that computes checksums \
     wrongly loses every packet.",
    |s, v| offload(s, v, &["TransmitChecksumOffload"]),
    &OffloadSwitch(Offload::TxChecksum),
);

/// Checksums of received packets by the device.
pub static RX_CHECKSUM: Setting = switch(
    [
        "offload.rx-checksum",
        "checksums of received packets by the device",
        "offload.rx-checksum@eth1=on,off",
    ],
    "Without this offload the CPU sums every received byte; a device that judges checksums wrongly makes the stack drop \
     good packets.",
    |s, v| offload(s, v, &["ReceiveChecksumOffload"]),
    &OffloadSwitch(Offload::RxChecksum),
);

/// Sending from scattered memory.
pub static SG: Setting = switch(
    ["offload.sg", "sending from scattered memory", "offload.sg@eth1=on,off"],
    "Without scatter-gather every packet is first copied into one piece, and segmentation offload is off too.",
    AT_BOOT,
    &OffloadSwitch(Offload::ScatterGather),
);

/// Segmentation of UDP datagrams by the device.
pub static UDP_SEGMENTATION: Setting = switch(
    [
        "offload.tx-udp-segmentation",
        "segmentation of UDP datagrams by the device",
        "offload.tx-udp-segmentation@eth3=on,off",
    ],
    "A program hands over many datagrams as one (UDP_SEGMENT), as QUIC does, and the device rather than the CPU takes them apart.",
    AT_BOOT,
    &OffloadSwitch(Offload::UdpSegmentation),
);

/// Joining of received datagrams that are forwarded.
pub static UDP_GRO_FORWARDING: Setting = switch(
    [
        "offload.rx-udp-gro-forwarding",
        "joining of received datagrams that are forwarded",
        "offload.rx-udp-gro-forwarding@eth3=off,on",
    ],
    "A router handles many datagrams of one flow as one packet, which saves CPU and delays them a little.",
    AT_BOOT,
    &OffloadSwitch(Offload::UdpGroForwarding),
);

/// Joining of received packets into lists.
pub static GRO_LIST: Setting = switch(
    [
        "offload.rx-gro-list",
        "joining of received packets into lists",
        "offload.rx-gro-list@eth3=off,on",
    ],
    "A router or bridge passes a list of packets on as cheaply as one, and can take it apart without looking at payload.",
    AT_BOOT,
    &OffloadSwitch(Offload::GroList),
);

/// Joining of received segments by the device, as the stack does.
pub static GRO_HARDWARE: Setting = switch(
    [
        "offload.rx-gro-hw",
        "joining of received segments by the device, as the stack does",
        "offload.rx-gro-hw@eth0=off,on",
    ],
    "It saves CPU at the receiver and, unlike LRO, can be taken apart again for forwarding.",
    AT_BOOT,
    &OffloadSwitch(Offload::GroHardware),
);

/// Segmentation inside of tunnels by the device.
pub static TUNNEL_SEGMENTATION: Setting = switch(
    [
        "offload.tx-tunnel-segmentation",
        "segmentation inside of tunnels by the device",
        "offload.tx-tunnel-segmentation@eth3=on,off",
    ],
    "Without this offload every packet in a VXLAN, GRE or IP tunnel costs its own way through the stack; some devices \
     segment tunnels wrongly.",
    AT_BOOT,
    &OffloadSwitch(Offload::TunnelSegmentation),
);

/// Hashes of received packets by the device.
pub static RX_HASH: Setting = switch(
    ["offload.rx-hash", "hashes of received packets by the device", "offload.rx-hash@eth0=off,on"],
    "RPS and RFS take the hash from the device; otherwise the CPU computes a hash for each packet.",
    AT_BOOT,
    &OffloadSwitch(Offload::RxHash),
);

/// Rules that send certain received packets to certain queues.
pub static NTUPLE: Setting = switch(
    [
        "offload.ntuple",
        "rules that send certain received flows to certain queues",
        "offload.ntuple@eth0=off,on",
    ],
    "A flow can then have a queue of its own, and accelerated RFS follows programs; many drivers drop all rules when it is \
     switched off, and goodput puts the rules back.",
    AT_BOOT,
    &OffloadSwitch(Offload::Ntuple),
);

/// The row of an offload: its id, its title and an example, and why one would switch it.
const fn switch(
    [id, title, example]: [&'static str; 3],
    why: &'static str,
    permanent: Form,
    backend: &'static OffloadSwitch,
) -> Setting {
    Setting {
        id,
        title,
        why,
        scope: Scope::Device,
        values: "on or off",
        example,
        unset: None,
        permanent,
        backend: Backend::Machine(backend),
    }
}
