//! The settable properties of a link: MTU, queue, segment sizes, flags, master.

use super::devices::Part;
use super::host::{Host, Trouble};
use super::{Cells, from_hex, hex};

pub(super) const ID: &str = "link";
const FLAGS: &str = "flags";

pub(super) fn capture(host: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    for link in host.netlink.link_attributes()? {
        if !part.has(link.index) {
            continue;
        }
        let flags = hex(&link.flags.to_be_bytes());
        cells.insert(format!("{ID}/{}/{FLAGS}", link.name), flags);
        for (name, value) in link.attributes {
            cells.insert(format!("{ID}/{}/{name}", link.name), hex(&value));
        }
    }
    Ok(())
}

pub(super) fn write(
    host: &mut Host,
    device: &str,
    name: &str,
    wanted: &str,
) -> Result<(), Trouble> {
    let index = host.link(device)?.index;
    let value = from_hex(wanted).ok_or(Trouble::Unreadable)?;
    match (name, value.first_chunk()) {
        (FLAGS, Some(flags)) => {
            Ok(host.netlink.set_link_flags(index, u32::from_be_bytes(*flags))?)
        }
        (FLAGS, None) => Err(Trouble::Unreadable),
        _ => Ok(host.netlink.set_link_attribute(index, name, &value)?),
    }
}
