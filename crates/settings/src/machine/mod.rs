//! The backends that read and write this machine.

pub(crate) mod device;
mod device_parameter;
pub(crate) mod fifo;
mod htb;
mod jam;
mod link_number;
mod napi;
pub(crate) mod offload;
mod packet_steering;
mod qdisc_kind;
pub(crate) mod queue_bytes;
pub(crate) mod route;
mod shaped;
mod sysctl;
mod sysctl_couplings;
pub(crate) mod sysctl_name;
mod sysctl_rules;
pub(crate) mod sysfs;
mod token_bucket;
mod upper_mtu;

pub(crate) use device_parameter::{DeviceNumber, DeviceSwitch};
pub(crate) use fifo::FifoLimit;
pub(crate) use htb::{CLASS_BURST, CLASS_CBURST, CLASS_CEIL, CLASS_RATE, ClassBursts};
pub(crate) use link_number::{GSO_PACKETS, GSO_SIZE, Mtu, TX_QUEUE};
pub(crate) use napi::{DEFER_HARD_IRQS, GRO_FLUSH_TIMEOUT, Threaded};
pub(crate) use offload::OffloadSwitch;
pub(crate) use packet_steering::PacketSteering;
pub(crate) use qdisc_kind::QdiscKind;
pub(crate) use sysctl::Sysctl;
pub(crate) use token_bucket::{BURST, BucketRate, LIMIT};
