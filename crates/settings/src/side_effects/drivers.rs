//! Queues, rings, coalescing and pause frames of a driver.

use goodput_netlink::parameters::{Group, get_group, set_group};

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};

pub(super) const ID: &str = "driver";

pub(super) fn capture(_: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    for link in &part.links {
        for group in Group::ALL {
            // A driver without such parameters can't lose them.
            let Ok(words) = get_group(&link.name, group) else { continue };
            let words: Vec<String> = words.iter().map(u32::to_string).collect();
            cells.insert(format!("{ID}/{}/{group:?}", link.name), words.join(" "));
        }
    }
    Ok(())
}

pub(super) fn write(_: &mut Host, device: &str, name: &str, wanted: &str) -> Result<(), Trouble> {
    let group = Group::ALL.into_iter().find(|group| format!("{group:?}") == name);
    let words = wanted.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>();
    match (group, words) {
        (Some(group), Some(words)) => Ok(set_group(device, group, &words)?),
        _ => Err(Trouble::Unreadable),
    }
}
