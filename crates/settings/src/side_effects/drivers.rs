//! Queues, rings, coalescing, pause frames and the header split of a driver.

use goodput_netlink::header_split::{header_split, set_header_split, set_header_split_threshold};
use goodput_netlink::parameters::{Group, get_group, set_group};

use super::Cells;
use super::devices::Part;
use super::host::{Host, Trouble};

pub(super) const ID: &str = "driver";
/// Cells of the header split.
const SPLIT: &str = "HeaderSplit";
const THRESHOLD: &str = "HeaderSplitThreshold";

pub(super) fn capture(_: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    for link in &part.links {
        for group in Group::ALL {
            // A driver without such parameters can't lose them.
            let Ok(words) = get_group(&link.name, group) else { continue };
            let words: Vec<String> = words.iter().map(u32::to_string).collect();
            cells.insert(format!("{ID}/{}/{group:?}", link.name), words.join(" "));
        }
        let split = header_split(&link.name).unwrap_or_default();
        let on = split.on.map(|on| (SPLIT, u32::from(on)));
        for (name, number) in on.into_iter().chain(split.threshold.map(|bytes| (THRESHOLD, bytes)))
        {
            cells.insert(format!("{ID}/{}/{name}", link.name), number.to_string());
        }
    }
    Ok(())
}

pub(super) fn write(_: &mut Host, device: &str, name: &str, wanted: &str) -> Result<(), Trouble> {
    let group = Group::ALL.into_iter().find(|group| format!("{group:?}") == name);
    let words = wanted.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>();
    match (name, words.as_deref()) {
        (SPLIT, Some([on])) => return Ok(set_header_split(device, *on != 0)?),
        (THRESHOLD, Some([bytes])) => return Ok(set_header_split_threshold(device, *bytes)?),
        _ => {}
    }
    match (group, words) {
        (Some(group), Some(words)) => Ok(set_group(device, group, &words)?),
        _ => Err(Trouble::Unreadable),
    }
}
