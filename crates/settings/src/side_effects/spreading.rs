//! How a card spreads received packets over its queues: the table and the key of its hash, and its
//! rules for single flows. Drivers reset them when the number of queues changes.

use goodput_netlink::NetlinkError;
use goodput_netlink::receive_hash::{
    HashPart, receive_hash, receive_queues, reset_receive_table, set_receive_hash,
};
use goodput_netlink::receive_rules::{ReceiveRule, add_receive_rule, receive_rules};
use goodput_netlink::receive_table::default_receive_table;

use super::devices::Part;
use super::host::{Host, Trouble};
use super::{Cells, from_hex, hex};

pub(super) const ID: &str = "spreading";
const TABLE: &str = "table";
const KEY: &str = "key";
const RULE: &str = "rule-";

pub(super) fn capture(_: &mut Host, part: &Part, cells: &mut Cells) -> Result<(), Trouble> {
    for link in &part.links {
        let name = &link.name;
        let mut keep = |what: &str, bytes: &[u8]| {
            if !bytes.is_empty() {
                cells.insert(format!("{ID}/{name}/{what}"), hex(bytes));
            }
        };
        // A device without a hash, or without rules, can't lose them.
        if let Ok(hash) = receive_hash(name) {
            keep(TABLE, &bytes_of(&hash.table));
            keep(KEY, &hash.key);
        }
        for rule in receive_rules(name).into_iter().flatten() {
            keep(&format!("{RULE}{}", rule.place), &rule.bytes);
        }
    }
    Ok(())
}

pub(super) fn write(_: &mut Host, device: &str, name: &str, wanted: &str) -> Result<(), Trouble> {
    let bytes = from_hex(wanted).ok_or(Trouble::Unreadable)?;
    match (name, name.strip_prefix(RULE).and_then(|place| place.parse().ok())) {
        (TABLE, _) => Ok(write_table(device, &bytes)?),
        (KEY, _) => Ok(set_receive_hash(device, HashPart::Key, &bytes)?),
        (_, Some(place)) => Ok(add_receive_rule(device, &ReceiveRule { place, bytes })?),
        _ => Err(Trouble::Unreadable),
    }
}

/// Restores the table. If a table is set, the kernel refuses to remove a channel in it
/// (net/ethtool/channels.c), so a table that nobody had set is reset instead.
///
/// The kernel does not report which one it was. A table that equals the kernel's default for these queues counts as
/// nobody's: had someone set the same one, the kernel would have refused to lower the channels below it, and
/// there would be nothing to put back.
fn write_table(device: &str, wanted: &[u8]) -> Result<(), NetlinkError> {
    let is_default = receive_queues(device)
        .is_ok_and(|queues| bytes_of(&default_receive_table(wanted.len() / 4, queues)) == wanted);
    let is_back = || receive_hash(device).is_ok_and(|hash| bytes_of(&hash.table) == wanted);
    if is_default && reset_receive_table(device).is_ok() && is_back() {
        return Ok(());
    }
    set_receive_hash(device, HashPart::Table, wanted)
}

fn bytes_of(table: &[u32]) -> Vec<u8> {
    table.iter().flat_map(|queue| queue.to_ne_bytes()).collect()
}
