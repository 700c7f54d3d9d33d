//! The requested features, one by one.

use goodput_netlink::Features;

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};

pub(super) const ID: &str = "feature";

pub(super) fn capture(_: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    for link in &part.links {
        // A device that vanishes meanwhile has none.
        let Ok(features) = Features::of(&link.name) else { continue };
        for (name, on) in features.requested() {
            let text = if on { "on" } else { "off" };
            cells.insert(format!("{ID}/{}/{name}", link.name), text.into());
        }
    }
    Ok(())
}

pub(super) fn write(_: &mut Host, device: &str, name: &str, wanted: &str) -> Result<(), Trouble> {
    let on: &[&str] = if wanted == "on" { &[name] } else { &[] };
    Ok(Features::of(device)?.request_exactly(device, &[name], on)?)
}
