//! How each NAPI instance of a device is polled: writing a value for the whole device replaces it
//! (`netdev_set_defer_hard_irqs`, net/core/dev.h; `netif_set_threaded`, net/core/dev.c).
//!
//! An instance is identified by its place, because its number changes when the device was down.

use goodput_netlink::napis::{Napi, NapiNumber, napis, set_napi};

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};

pub(super) const ID: &str = "napi";

/// Reads a number of an instance.
type Read = fn(&Napi) -> Option<u64>;

/// In the order of the kernels that introduced them, so that the last is missing on an older kernel.
const NUMBERS: [(NapiNumber, Read); 4] = [
    (NapiNumber::DeferHardIrqs, |napi| napi.defer_hard_irqs),
    (NapiNumber::GroFlushTimeoutNs, |napi| napi.gro_flush_timeout_ns),
    (NapiNumber::IrqSuspendTimeoutNs, |napi| napi.irq_suspend_timeout_ns),
    (NapiNumber::Threaded, |napi| napi.threaded),
];

pub(super) fn capture(_: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    for link in &part.links {
        // A kernel before 6.13 has these numbers for the whole device only.
        for (place, napi) in napis(link.index).unwrap_or_default().iter().enumerate() {
            if napi.irq_suspend_timeout_ns.is_some() {
                cells.insert(format!("{ID}/{}/{place}", link.name), text(napi));
            }
        }
    }
    Ok(())
}

pub(super) fn write(
    host: &mut Host,
    device: &str,
    place: &str,
    wanted: &str,
) -> Result<(), Trouble> {
    let place: usize = place.parse().map_err(|_| Trouble::Unreadable)?;
    let found = napis(host.link(device)?.index)?;
    let napi = found.get(place).ok_or(Trouble::Gone)?;
    for ((what, read), number) in NUMBERS.iter().zip(wanted.split(' ')) {
        let number: u64 = number.parse().map_err(|_| Trouble::Unreadable)?;
        if read(napi) != Some(number) {
            set_napi(napi.id, *what, number)?;
        }
    }
    Ok(())
}

fn text(napi: &Napi) -> String {
    let numbers = NUMBERS.iter().map_while(|(_, read)| read(napi));
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}
