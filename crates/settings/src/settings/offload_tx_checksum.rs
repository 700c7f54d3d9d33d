//! `offload.tx-checksum`: checksums of sent packets by the device.

use goodput_netlink::Offload;

use crate::machine::OffloadSwitch;
use crate::permanent::offload;
use crate::setting::{Backend, Scope, Setting};

/// The setting.
pub static SETTING: Setting = Setting {
    id: "offload.tx-checksum",
    title: "checksums of sent packets by the device",
    why: "Without it the CPU sums every byte, and segmentation offload is off too; a device that computes checksums wrongly loses every packet.",
    scope: Scope::Device,
    values: "on or off",
    example: "offload.tx-checksum@eth1=on,off",
    unset: None,
    permanent: |setting, value| {
        offload(setting, value, &["TransmitChecksumOffload"], Some("txcsum"))
    },
    backend: Backend::Machine(&OffloadSwitch(Offload::TxChecksum)),
};
