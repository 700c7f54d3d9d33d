//! How a card spreads what it receives over its queues: the table and the key of its hash, and its
//! rules for single flows. Drivers make them anew when the number of queues changes.

use goodput_netlink::receive_hash::{HashPart, receive_hash, set_receive_hash};
use goodput_netlink::receive_rules::{ReceiveRule, add_receive_rule, receive_rules};

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
            keep(
                TABLE,
                hash.table.iter().flat_map(|e| e.to_ne_bytes()).collect::<Vec<_>>().as_slice(),
            );
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
        (TABLE, _) => Ok(set_receive_hash(device, HashPart::Table, &bytes)?),
        (KEY, _) => Ok(set_receive_hash(device, HashPart::Key, &bytes)?),
        (_, Some(place)) => Ok(add_receive_rule(device, &ReceiveRule { place, bytes })?),
        _ => Err(Trouble::Unreadable),
    }
}
