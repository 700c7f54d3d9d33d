//! How the two ends of a cable keep it free of errors and save power: forward error correction
//! (FEC) and energy-efficient Ethernet (EEE) (`ETHTOOL_MSG_FEC_GET`, `ETHTOOL_MSG_EEE_GET`; IEEE 802.3
//! clauses 78, 91, 108). No device at hand has either: the tests parse replies made according to
//! the headers.

use crate::NetlinkError;
use crate::ethtool_family::{self, ETHTOOL_FLAG_STATS};
use crate::generic::{HEADER_BYTES, number};
use crate::raw::{RawMessage, attributes};

const ETHTOOL_MSG_EEE_GET: u8 = 23;
const ETHTOOL_MSG_FEC_GET: u8 = 29;
/// `ETHTOOL_A_FEC_HEADER` and `ETHTOOL_A_EEE_HEADER`.
const HEADER: u16 = 1;
const ETHTOOL_A_FEC_ACTIVE: u16 = 4;
const ETHTOOL_A_FEC_STATS: u16 = 5;
const ETHTOOL_A_FEC_STAT_CORRECTED: u16 = 2;
const ETHTOOL_A_FEC_STAT_UNCORR: u16 = 3;
const ETHTOOL_A_EEE_ACTIVE: u16 = 4;
const ETHTOOL_A_EEE_ENABLED: u16 = 5;
const ETHTOOL_A_EEE_TX_LPI_TIMER: u16 = 7;
/// Link mode bits of the codes (`ETHTOOL_LINK_MODE_FEC_*_BIT`).
const CODES: [(u64, &str); 4] = [(49, "none"), (50, "RS"), (51, "BASER"), (74, "LLRS")];

/// Forward error correction of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fec {
    /// The code in use, "none" if there is none; `None` if the driver does not report or the code is new.
    pub code: Option<&'static str>,
    /// Blocks that were corrected.
    pub corrected_blocks: Option<u64>,
    /// Blocks that could not be corrected; their frames are lost.
    pub uncorrectable_blocks: Option<u64>,
}

/// Energy-efficient Ethernet of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Eee {
    /// Whether this end offers it.
    pub enabled: Option<bool>,
    /// Whether both ends agreed on it.
    pub active: Option<bool>,
    /// How long the transmitter idles before it goes to sleep, microseconds.
    pub tx_timer_us: Option<u64>,
}

/// The error correction of `device`.
pub fn fec(device: &str) -> Result<Fec, NetlinkError> {
    let operation = format!("read the error correction of {device}");
    let header = (HEADER, ETHTOOL_FLAG_STATS);
    let reply = ethtool_family::request(&operation, device, ETHTOOL_MSG_FEC_GET, header, &[])?;
    Ok(reply.as_ref().map(parse_fec).unwrap_or_default())
}

/// The energy-efficient Ethernet of `device`.
pub fn eee(device: &str) -> Result<Eee, NetlinkError> {
    let operation = format!("read the energy-efficient Ethernet of {device}");
    let reply = ethtool_family::request(&operation, device, ETHTOOL_MSG_EEE_GET, (HEADER, 0), &[])?;
    Ok(reply.as_ref().map(parse_eee).unwrap_or_default())
}

fn of(reply: &RawMessage, wanted: u16) -> Option<&[u8]> {
    reply.attributes(HEADER_BYTES).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

pub(crate) fn parse_fec(reply: &RawMessage) -> Fec {
    let active = of(reply, ETHTOOL_A_FEC_ACTIVE).and_then(number);
    let code = CODES.iter().find(|(bit, _)| Some(*bit) == active).map(|(_, name)| *name);
    let stats = of(reply, ETHTOOL_A_FEC_STATS).unwrap_or_default();
    // An array: the sum first, then the lanes if the driver reports them.
    let sum = |wanted| {
        let (_, values) = attributes(stats).find(|(kind, _)| *kind == wanted)?;
        values.first_chunk::<8>().map(|value| u64::from_ne_bytes(*value))
    };
    Fec {
        code,
        corrected_blocks: sum(ETHTOOL_A_FEC_STAT_CORRECTED),
        uncorrectable_blocks: sum(ETHTOOL_A_FEC_STAT_UNCORR),
    }
}

pub(crate) fn parse_eee(reply: &RawMessage) -> Eee {
    let flag = |kind| of(reply, kind).and_then(number).map(|value| value != 0);
    Eee {
        enabled: flag(ETHTOOL_A_EEE_ENABLED),
        active: flag(ETHTOOL_A_EEE_ACTIVE),
        tx_timer_us: of(reply, ETHTOOL_A_EEE_TX_LPI_TIMER).and_then(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netlink;
    use crate::generic::message;
    use crate::raw::{NLA_F_NESTED, attribute};
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    #[test]
    fn a_code_its_sums_and_the_absence_of_either_are_distinguished() {
        let lanes = [9u64, 4, 5].map(u64::to_ne_bytes).concat();
        let stats = attribute(ETHTOOL_A_FEC_STAT_CORRECTED, &lanes);
        let body = [
            attribute(ETHTOOL_A_FEC_ACTIVE, &50u32.to_ne_bytes()),
            attribute(ETHTOOL_A_FEC_STATS | NLA_F_NESTED, &stats),
        ];
        let fec = parse_fec(&message(20, 30, &body.concat()));
        let expected =
            Fec { code: Some("RS"), corrected_blocks: Some(9), uncorrectable_blocks: None };
        assert_eq!(fec, expected);
        assert_eq!(parse_fec(&message(20, 30, &[])), Fec::default());
    }

    #[test]
    fn flags_of_one_byte_are_read() {
        let body = [
            attribute(ETHTOOL_A_EEE_ACTIVE, &[1]),
            attribute(ETHTOOL_A_EEE_ENABLED, &[0]),
            attribute(ETHTOOL_A_EEE_TX_LPI_TIMER, &17u32.to_ne_bytes()),
        ];
        let eee = parse_eee(&message(20, 24, &body.concat()));
        let expected = Eee { enabled: Some(false), active: Some(true), tx_timer_us: Some(17) };
        assert_eq!(eee, expected);
    }

    #[test]
    fn a_veth_has_neither() {
        in_namespace(|| {
            Netlink::open().unwrap().create_veth("left", "right").unwrap();
            assert!(fec("left").unwrap_err().not_supported());
            assert!(eee("left").unwrap_err().not_supported());
        });
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..12, 0..80)) {
            let reply = RawMessage { kind: 20, body };
            let _ = (parse_fec(&reply), parse_eee(&reply));
        }
    }
}
