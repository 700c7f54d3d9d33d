//! Addresses, neighbours, bridge entries, next hops, rules, routes, queueing disciplines, classes and
//! filters.

use goodput_netlink::{Object, ObjectKind};

use super::devices::Part;
use super::host::{Host, Trouble};
use super::{Cells, from_hex, hex, lasting};

pub(super) const ADDRESS: &str = "address";
pub(super) const NEIGHBOUR: &str = "neighbour";
pub(super) const FDB: &str = "fdb";
pub(super) const NEXT_HOP: &str = "nexthop";
pub(super) const FILTER: &str = "filter";
pub(super) const RULE: &str = "rule";
pub(super) const ROUTE: &str = "route";
pub(super) const QDISC: &str = "qdisc";
pub(super) const CLASS: &str = "class";

macro_rules! area {
    ($kind:ident, $id:ident, $capture:ident, $write:ident) => {
        pub(super) fn $capture(h: &mut Host, p: &Part, cells: &mut Cells) -> Result<(), Trouble> {
            capture(h, p, cells, (ObjectKind::$kind, $id))
        }

        pub(super) fn $write(
            host: &mut Host,
            _path: &str,
            now: Option<&str>,
            wanted: &str,
        ) -> Result<(), Trouble> {
            write(host, ObjectKind::$kind, now, wanted)
        }
    };
}

area!(Address, ADDRESS, addresses, write_address);
area!(Neighbour, NEIGHBOUR, neighbours, write_neighbour);
area!(Forwarding, FDB, forwardings, write_forwarding);
area!(NextHop, NEXT_HOP, next_hops, write_next_hop);
area!(Filter, FILTER, filters, write_filter);
area!(Rule, RULE, rules, write_rule);
area!(Route, ROUTE, routes, write_route);
area!(Qdisc, QDISC, qdiscs, write_qdisc);
area!(Class, CLASS, classes, write_class);

fn capture(
    host: &mut Host,
    part: &Part,
    cells: &mut Cells,
    (kind, id): (ObjectKind, &str),
) -> Result<(), Trouble> {
    let queue = matches!(kind, ObjectKind::Qdisc | ObjectKind::Class | ObjectKind::Filter);
    if part.links.is_empty() && (queue || !part.routes) {
        return Ok(());
    }
    let links: Vec<u32> = part.links.iter().map(|link| link.index).collect();
    for object in host.netlink.objects(kind, &links)? {
        let of_a_link = object.links.iter().any(|index| part.has(*index));
        // Groups of next hops, and routes through them, name no link; they may disappear with any.
        let of_any = object.links.is_empty()
            && matches!(kind, ObjectKind::NextHop | ObjectKind::Route)
            && !part.links.is_empty();
        if of_a_link || of_any || part.routes && !queue {
            let name = host.links.iter().find(|link| object.links.contains(&link.index));
            let name = name.map_or("-", |link| &link.name);
            let text = lasting::written(hex(&object.body), object.lasting);
            cells.insert(format!("{id}/{name}/{}", hex(&object.key)), text);
        }
    }
    Ok(())
}

fn write(
    host: &mut Host,
    kind: ObjectKind,
    now: Option<&str>,
    wanted: &str,
) -> Result<(), Trouble> {
    let (body, lasting) = lasting::read(wanted);
    let body = from_hex(body).ok_or(Trouble::Unreadable)?;
    let object = Object::from_body(kind, body, lasting).ok_or(Trouble::Unreadable)?;
    Ok(host.netlink.make_object(&object, now.is_some())?)
}
