//! Rules by which a card sends certain packets to certain queues (ntuple filters): `struct
//! ethtool_rxnfc` of include/uapi/linux/ethtool.h, as bytes that can be compared and written again.

use crate::NetlinkError;
use crate::ethtool::call;
use crate::ethtool_ioctl::MAX_TABLE_BYTES;
use crate::raw::word_or_zero;

const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
const ETHTOOL_GRXCLSRULE: u32 = 0x2f;
const ETHTOOL_GRXCLSRLALL: u32 = 0x30;
const ETHTOOL_SRXCLSRLINS: u32 = 0x32;
/// `struct ethtool_rxnfc`: command, kind of flow, data, a rule, a number of rules, their places.
const WHOLE_BYTES: usize = 192;
/// `struct ethtool_rx_flow_spec` in it, followed by the context.
const RULE_AT: usize = 16;
const RULE_BYTES: usize = 168 + 4;
/// Offset of the rule's place.
const PLACE_AT: usize = RULE_AT + 160;
const COUNT_AT: usize = 184;
const PLACES_AT: usize = 188;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiveRule {
    /// Its place; the first matching rule counts.
    pub place: u32,
    /// `struct ethtool_rx_flow_spec` and the context of its queues.
    pub bytes: Vec<u8>,
}

/// The rules of `device`. A device that has no such rules refuses.
pub fn receive_rules(device: &str) -> Result<Vec<ReceiveRule>, NetlinkError> {
    let operation = format!("read the receive rules of {device}");
    list(&operation, &mut |command, data| call(&operation, device, command, data))
}

/// Adds a rule at its place.
pub fn add_receive_rule(device: &str, rule: &ReceiveRule) -> Result<(), NetlinkError> {
    let operation = format!("add a receive rule to {device}");
    add(&operation, rule, &mut |command, data| call(&operation, device, command, data))
}

type Card<'a> = &'a mut dyn FnMut(u32, &mut [u8]) -> Result<(), NetlinkError>;

fn list(operation: &str, card: Card<'_>) -> Result<Vec<ReceiveRule>, NetlinkError> {
    let mut head = [0u8; WHOLE_BYTES];
    card(ETHTOOL_GRXCLSRLCNT, &mut head)?;
    let count = word_or_zero(&head, COUNT_AT) as usize;
    let bytes = count.saturating_mul(4).saturating_add(WHOLE_BYTES);
    if bytes > MAX_TABLE_BYTES {
        return Err(NetlinkError::malformed(operation, "there are too many"));
    }
    let mut all = vec![0u8; bytes];
    all[COUNT_AT..PLACES_AT].copy_from_slice(&(count as u32).to_ne_bytes());
    if count > 0 {
        card(ETHTOOL_GRXCLSRLALL, &mut all)?;
    }
    // There may be fewer rules by now.
    let filled = (word_or_zero(&all, COUNT_AT) as usize).min(count);
    let places = all[PLACES_AT..].as_chunks().0.iter().take(filled);
    let mut rules = Vec::new();
    for place in places.map(|place| u32::from_ne_bytes(*place)) {
        let mut whole = [0u8; WHOLE_BYTES];
        whole[PLACE_AT..PLACE_AT + 4].copy_from_slice(&place.to_ne_bytes());
        card(ETHTOOL_GRXCLSRULE, &mut whole)?;
        rules.push(ReceiveRule { place, bytes: whole[RULE_AT..RULE_AT + RULE_BYTES].into() });
    }
    Ok(rules)
}

fn add(operation: &str, rule: &ReceiveRule, card: Card<'_>) -> Result<(), NetlinkError> {
    if rule.bytes.len() != RULE_BYTES {
        return Err(NetlinkError::impossible(operation, "it has another length than a rule"));
    }
    let mut whole = [0u8; WHOLE_BYTES];
    whole[RULE_AT..RULE_AT + RULE_BYTES].copy_from_slice(&rule.bytes);
    whole[PLACE_AT..PLACE_AT + 4].copy_from_slice(&rule.place.to_ne_bytes());
    card(ETHTOOL_SRXCLSRLINS, &mut whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use goodput_testing::in_namespace;
    use std::collections::BTreeMap;

    /// Answers as net/ethtool/ioctl.c and a driver do.
    fn card(rules: &mut BTreeMap<u32, Vec<u8>>, command: u32, data: &mut [u8]) {
        let place = word_or_zero(data, PLACE_AT);
        match command {
            ETHTOOL_GRXCLSRLCNT => {
                data[COUNT_AT..PLACES_AT].copy_from_slice(&(rules.len() as u32).to_ne_bytes());
            }
            ETHTOOL_GRXCLSRLALL => {
                assert_eq!(word_or_zero(data, COUNT_AT) as usize, rules.len());
                let places = rules.keys().flat_map(|place| place.to_ne_bytes());
                for (byte, place) in data[PLACES_AT..].iter_mut().zip(places) {
                    *byte = place;
                }
            }
            ETHTOOL_GRXCLSRULE => {
                data[RULE_AT..RULE_AT + RULE_BYTES].copy_from_slice(&rules[&place]);
            }
            ETHTOOL_SRXCLSRLINS => {
                rules.insert(place, data[RULE_AT..RULE_AT + RULE_BYTES].to_vec());
            }
            other => panic!("{other:#x}"),
        }
    }

    #[test]
    fn rules_come_back_as_they_were() {
        let rule = |place: u32| {
            let mut bytes: Vec<u8> = (0..RULE_BYTES).map(|at| (at as u32 + place) as u8).collect();
            bytes[160..164].copy_from_slice(&place.to_ne_bytes());
            (place, bytes)
        };
        let mut rules = BTreeMap::from([rule(3), rule(1023)]);
        let before = rules.clone();
        let listed = list("x", &mut |command, data| {
            card(&mut rules, command, data);
            Ok(())
        });
        let listed = listed.unwrap();
        assert_eq!(listed.iter().map(|rule| rule.place).collect::<Vec<_>>(), [3, 1023]);
        let mut empty = BTreeMap::new();
        for rule in &listed {
            add("x", rule, &mut |command, data| {
                card(&mut empty, command, data);
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(empty, before);
        let short = ReceiveRule { place: 1, bytes: vec![0; 4] };
        assert!(add("x", &short, &mut |_, _| Ok(())).is_err());
    }

    #[test]
    fn a_card_that_reports_too_much_is_not_believed() {
        let listed = list("x", &mut |_, data| {
            data[COUNT_AT..PLACES_AT].copy_from_slice(&u32::MAX.to_ne_bytes());
            Ok(())
        });
        assert!(listed.is_err());
    }

    #[test]
    fn a_device_without_rules_says_so() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            assert!(receive_rules("left").map_or(true, |rules| rules.is_empty()));
        });
    }
}
