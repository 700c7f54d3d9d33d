//! The list of areas, in the order in which they are written: queues exist before their masks are
//! set, devices are up before they have routes.

use super::devices::Part;
use super::host::{Host, Trouble};
use super::{
    Cells, drivers, features, interrupts, links, napis, objects, queues, spreading, sysctls,
};

/// Writes a cell of a device: takes the device's name, the cell's name in it, and the wanted text.
type WriteOfDevice = fn(&mut Host, &str, &str, &str) -> Result<(), Trouble>;
/// Writes any other cell: takes its name without the area's prefix, the present text, and the wanted text.
type WriteAny = fn(&mut Host, &str, Option<&str>, &str) -> Result<(), Trouble>;

/// How the cells of an area are written.
pub(super) enum Write {
    /// Their names are `DEVICE/NAME`.
    OfDevice(WriteOfDevice),
    /// Only the area knows the form of their names.
    Any(WriteAny),
}

impl Write {
    /// Writes the cell with this name, without the area's prefix.
    pub(super) fn cell(
        &self,
        host: &mut Host,
        path: &str,
        now: Option<&str>,
        wanted: &str,
    ) -> Result<(), Trouble> {
        match self {
            Self::OfDevice(write) => {
                let (device, name) = path.split_once('/').ok_or(Trouble::Unreadable)?;
                write(host, device, name, wanted)
            }
            Self::Any(write) => write(host, path, now, wanted),
        }
    }
}

/// One kind of cells.
pub(super) struct Area {
    /// Prefix of its cells' names.
    pub(super) id: &'static str,
    /// Adds the cells of a part of the namespace.
    pub(super) capture: fn(&mut Host, &Part, &mut Cells) -> Result<(), Trouble>,
    /// Writes one of its cells.
    pub(super) write: Write,
}

/// All of them.
pub(super) static ALL: &[Area] = &[
    Area { id: drivers::ID, capture: drivers::capture, write: Write::OfDevice(drivers::write) },
    Area {
        id: spreading::ID,
        capture: spreading::capture,
        write: Write::OfDevice(spreading::write),
    },
    Area { id: features::ID, capture: features::capture, write: Write::OfDevice(features::write) },
    Area { id: links::ID, capture: links::capture, write: Write::OfDevice(links::write) },
    Area { id: queues::ID, capture: queues::capture, write: Write::OfDevice(queues::write) },
    Area { id: napis::ID, capture: napis::capture, write: Write::OfDevice(napis::write) },
    Area {
        id: interrupts::ID,
        capture: interrupts::capture,
        write: Write::OfDevice(interrupts::write),
    },
    Area { id: sysctls::ID, capture: sysctls::capture, write: Write::Any(sysctls::write) },
    Area {
        id: objects::ADDRESS,
        capture: objects::addresses,
        write: Write::Any(objects::write_address),
    },
    Area {
        id: objects::NEIGHBOUR,
        capture: objects::neighbours,
        write: Write::Any(objects::write_neighbour),
    },
    Area {
        id: objects::FDB,
        capture: objects::forwardings,
        write: Write::Any(objects::write_forwarding),
    },
    Area {
        id: objects::NEXT_HOP,
        capture: objects::next_hops,
        write: Write::Any(objects::write_next_hop),
    },
    Area { id: objects::RULE, capture: objects::rules, write: Write::Any(objects::write_rule) },
    Area { id: objects::ROUTE, capture: objects::routes, write: Write::Any(objects::write_route) },
    Area { id: objects::QDISC, capture: objects::qdiscs, write: Write::Any(objects::write_qdisc) },
    Area { id: objects::CLASS, capture: objects::classes, write: Write::Any(objects::write_class) },
    Area {
        id: objects::FILTER,
        capture: objects::filters,
        write: Write::Any(objects::write_filter),
    },
];
