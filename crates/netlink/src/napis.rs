//! The polled contexts of a device (NAPI instances), usually one per queue, and how each is polled
//! (`NETDEV_CMD_NAPI_GET` and `NETDEV_CMD_NAPI_SET` of the generic netlink family "netdev"; Linux 6.13 and
//! later; Documentation/netlink/specs/netdev.yaml, Documentation/networking/napi.rst).

use crate::NetlinkError;
use crate::generic::{Family, HEADER_BYTES, number};
use crate::raw::{RawMessage, attribute};

const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_CMD_NAPI_SET: u8 = 14;
const IFINDEX: u16 = 1;
const ID: u16 = 2;

/// One number of a NAPI instance, by its attribute (`NETDEV_A_NAPI_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum NapiNumber {
    /// Polls without a packet before interrupts are enabled again, 0 to 2^31 - 1.
    DeferHardIrqs = 5,
    /// Nanoseconds until a timer polls again.
    GroFlushTimeoutNs = 6,
    /// Nanoseconds for which a polling program may keep interrupts off (epoll with
    /// `SO_PREFER_BUSY_POLL`); Linux 6.13 and later.
    IrqSuspendTimeoutNs = 7,
    /// Whether a dedicated kernel thread polls: 0 or 1 (`enum netdev_napi_threaded`); Linux 6.17 and later.
    Threaded = 8,
}

/// One NAPI instance. `None`: this kernel does not report it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Napi {
    /// Its number, valid until its device is taken down.
    pub id: u32,
    /// See [`NapiNumber::DeferHardIrqs`].
    pub defer_hard_irqs: Option<u64>,
    /// See [`NapiNumber::GroFlushTimeoutNs`].
    pub gro_flush_timeout_ns: Option<u64>,
    /// See [`NapiNumber::IrqSuspendTimeoutNs`].
    pub irq_suspend_timeout_ns: Option<u64>,
    /// See [`NapiNumber::Threaded`].
    pub threaded: Option<u64>,
}

/// The NAPI instances of the device with number `index`, in the order of creation. A device that is down,
/// or not polled at all, has none.
pub fn napis(index: u32) -> Result<Vec<Napi>, NetlinkError> {
    let operation = format!("read how link {index} is polled");
    let mut family = Family::open(&operation, "netdev")?;
    let wanted = attribute(IFINDEX, &index.to_ne_bytes());
    let replies = family.dump(&operation, NETDEV_CMD_NAPI_GET, &wanted)?;
    let mut found: Vec<_> = replies.iter().filter_map(|reply| napi(reply, index)).collect();
    found.sort_by_key(|napi| napi.id);
    Ok(found)
}

/// Sets one number of the NAPI instance `id`.
pub fn set_napi(id: u32, what: NapiNumber, value: u64) -> Result<(), NetlinkError> {
    let operation = format!("set how NAPI {id} is polled");
    let mut family = Family::open(&operation, "netdev")?;
    let number = match (what, u32::try_from(value)) {
        (NapiNumber::DeferHardIrqs | NapiNumber::Threaded, Ok(value)) => {
            value.to_ne_bytes().to_vec()
        }
        (NapiNumber::DeferHardIrqs, Err(_)) => {
            return Err(NetlinkError::impossible(operation, "it has 31 bits"));
        }
        (NapiNumber::Threaded, Err(_)) => {
            return Err(NetlinkError::impossible(operation, "it is 0 or 1"));
        }
        _ => value.to_ne_bytes().to_vec(),
    };
    let wanted = [attribute(ID, &id.to_ne_bytes()), attribute(what as u16, &number)];
    family.request(&operation, NETDEV_CMD_NAPI_SET, &wanted.concat()).map(drop)
}

fn napi(reply: &RawMessage, index: u32) -> Option<Napi> {
    let (mut napi, mut ours) = (Napi::default(), false);
    for (kind, value) in reply.attributes(HEADER_BYTES) {
        let Some(value) = number(value) else { continue };
        match kind {
            IFINDEX => ours = value == u64::from(index),
            ID => napi.id = u32::try_from(value).ok()?,
            _ if kind == NapiNumber::DeferHardIrqs as u16 => napi.defer_hard_irqs = Some(value),
            _ if kind == NapiNumber::GroFlushTimeoutNs as u16 => {
                napi.gro_flush_timeout_ns = Some(value);
            }
            _ if kind == NapiNumber::IrqSuspendTimeoutNs as u16 => {
                napi.irq_suspend_timeout_ns = Some(value);
            }
            _ if kind == NapiNumber::Threaded as u16 => napi.threaded = Some(value),
            _ => {}
        }
    }
    (ours && napi.id > 0).then_some(napi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generic::message;
    use crate::{Netlink, Offload, set_offload};
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    #[test]
    fn what_a_kernel_does_not_report_is_missing() {
        let body = [
            attribute(IFINDEX, &4u32.to_ne_bytes()),
            attribute(ID, &8200u32.to_ne_bytes()),
            attribute(5, &2u32.to_ne_bytes()),
            attribute(6, &20_000u32.to_ne_bytes()),
        ];
        let reply = message(30, NETDEV_CMD_NAPI_GET, &body.concat());
        let read = napi(&reply, 4).unwrap();
        assert_eq!((read.id, read.defer_hard_irqs), (8200, Some(2)));
        assert_eq!((read.gro_flush_timeout_ns, read.irq_suspend_timeout_ns), (Some(20_000), None));
        assert_eq!(napi(&reply, 5), None);
    }

    #[test]
    fn each_queue_of_a_polled_veth_is_set_on_its_own() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth_with_queues("left", "right", 2).unwrap();
            // Without GRO a veth is not polled at all.
            set_offload("left", Offload::Gro, true).unwrap();
            let index = netlink.link("left").unwrap().index;
            netlink.set_up(index).unwrap();
            let first = match napis(index) {
                Ok(found) => found.first().cloned().unwrap(),
                Err(error) => {
                    assert!(error.not_supported() || error.not_found(), "{error}");
                    return goodput_testing::skip("a kernel that reports NAPI instances");
                }
            };
            if first.irq_suspend_timeout_ns.is_none() {
                return goodput_testing::skip("a kernel that sets NAPI instances");
            }
            set_napi(first.id, NapiNumber::IrqSuspendTimeoutNs, 7_000_000).unwrap();
            set_napi(first.id, NapiNumber::DeferHardIrqs, 3).unwrap();
            let now = napis(index).unwrap();
            assert_eq!(now[0].irq_suspend_timeout_ns, Some(7_000_000));
            assert_eq!(now[0].defer_hard_irqs, Some(3));
            assert!(now[1..].iter().all(|other| other.defer_hard_irqs == Some(0)), "{now:?}");
            if first.threaded.is_some() {
                set_napi(first.id, NapiNumber::Threaded, 1).unwrap();
                let now: Vec<_> = napis(index).unwrap().iter().map(|napi| napi.threaded).collect();
                assert_eq!(now[0], Some(1));
                assert!(now[1..].iter().all(|other| *other == Some(0)), "{now:?}");
            }
            let error = set_napi(first.id, NapiNumber::DeferHardIrqs, 1 << 40).unwrap_err();
            assert!(error.to_string().contains("31 bits"), "{error}");
        });
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..40, 0..120)) {
            let _ = napi(&RawMessage { kind: 30, body }, 4);
        }
    }
}
