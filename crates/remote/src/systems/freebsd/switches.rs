//! The capabilities that ifconfig(8) switches on an interface, one row each.

/// One capability of an interface (`IFCAP_*`, sys/net/if.h).
#[derive(Debug)]
pub(crate) struct Switch {
    /// Name of the setting.
    pub setting: &'static str,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// The word that switches it on; with a `-` before it, off.
    pub word: &'static str,
    /// Its name in `options=` and `capabilities=`.
    pub flag: &'static str,
    /// The flags that drivers switch off along with it, because they need it.
    pub drags: &'static [&'static str],
}

/// Name of the setting that polls instead of using interrupts.
pub(crate) const POLLING: &str = "polling";

/// All of them.
pub(crate) static SWITCHES: [Switch; 8] = [
    row(
        [POLLING, "poll at every clock tick instead of using interrupts", "polling", "POLLING"],
        &[],
    ),
    row(
        ["offload.rxcsum", "checksums of received packets by the card", "rxcsum", "RXCSUM"],
        &["LRO"],
    ),
    row(["offload.txcsum", "checksums of sent packets by the card", "txcsum", "TXCSUM"], &["TSO4"]),
    row(
        ["offload.rxcsum6", "the same of received IPv6 packets", "rxcsum6", "RXCSUM_IPV6"],
        &["LRO"],
    ),
    row(["offload.txcsum6", "the same of sent IPv6 packets", "txcsum6", "TXCSUM_IPV6"], &["TSO6"]),
    row(["offload.tso4", "TCP segmentation by the card, IPv4", "tso4", "TSO4"], &[]),
    row(["offload.tso6", "TCP segmentation by the card, IPv6", "tso6", "TSO6"], &[]),
    row(["offload.lro", "joining of received segments", "lro", "LRO"], &[]),
];

/// The row with this setting.
pub(crate) fn find(setting: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|switch| switch.setting == setting)
}

/// The row with this flag.
pub(crate) fn of_flag(flag: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|switch| switch.flag == flag)
}

const fn row(
    [setting, meaning, word, flag]: [&'static str; 4],
    drags: &'static [&'static str],
) -> Switch {
    Switch { setting, meaning, word, flag, drags }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_switch_drags_along_can_be_put_back() {
        for switch in &SWITCHES {
            assert!(std::ptr::eq(find(switch.setting).unwrap(), switch));
            assert!(switch.drags.iter().all(|flag| of_flag(flag).is_some()), "{}", switch.setting);
        }
    }
}
