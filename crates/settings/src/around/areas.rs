//! The list of areas, in the order in which they are written: queues exist before their masks are
//! set, devices are up before they have routes.

use super::devices::Part;
use super::host::{Host, Trouble};
use super::{Cells, drivers, features, interrupts, links, objects, queues, spreading, sysctls};

/// One kind of cells.
pub(super) struct Area {
    /// How the names of its cells begin.
    pub(super) id: &'static str,
    /// Adds the cells of a part of the namespace.
    pub(super) capture: fn(&mut Host, &Part, &mut Cells) -> Result<(), Trouble>,
    /// Writes the cell with this name, less the area's own: from the text now, to the one wanted.
    pub(super) write: fn(&mut Host, &str, Option<&str>, &str) -> Result<(), Trouble>,
}

/// All of them.
pub(super) static ALL: &[Area] = &[
    Area { id: drivers::ID, capture: drivers::capture, write: drivers::write },
    Area { id: spreading::ID, capture: spreading::capture, write: spreading::write },
    Area { id: features::ID, capture: features::capture, write: features::write },
    Area { id: links::ID, capture: links::capture, write: links::write },
    Area { id: queues::ID, capture: queues::capture, write: queues::write },
    Area { id: interrupts::ID, capture: interrupts::capture, write: interrupts::write },
    Area { id: sysctls::ID, capture: sysctls::capture, write: sysctls::write },
    Area { id: objects::ADDRESS, capture: objects::addresses, write: objects::write_address },
    Area { id: objects::NEIGHBOUR, capture: objects::neighbours, write: objects::write_neighbour },
    Area { id: objects::FDB, capture: objects::forwardings, write: objects::write_forwarding },
    Area { id: objects::NEXT_HOP, capture: objects::next_hops, write: objects::write_next_hop },
    Area { id: objects::RULE, capture: objects::rules, write: objects::write_rule },
    Area { id: objects::ROUTE, capture: objects::routes, write: objects::write_route },
    Area { id: objects::QDISC, capture: objects::qdiscs, write: objects::write_qdisc },
    Area { id: objects::CLASS, capture: objects::classes, write: objects::write_class },
    Area { id: objects::FILTER, capture: objects::filters, write: objects::write_filter },
];
