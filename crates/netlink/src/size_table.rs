//! The table by which a queueing discipline counts the sizes of packets otherwise than they are (tc-stab(8)).

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcMessage};

use crate::qdiscs::message_for;
use crate::{Netlink, NetlinkError, Qdisc};

/// `TCA_STAB_BASE`.
const BASE: u16 = 1;
/// Bytes of `struct nlattr`.
const HEADER_BYTES: usize = 4;
/// `TC_LINKLAYER_ATM`.
const LINK_LAYER_ATM: u32 = 2;

/// What a table of sizes is made from (`struct tc_sizespec`, include/uapi/linux/pkt_sched.h). The discipline, its classes and its
/// counters see the sizes of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeTable {
    /// Bytes that are added to each packet; negative if they are taken away.
    pub overhead_bytes: i32,
    /// The fewest bytes that count for a packet.
    pub least_bytes: u32,
    /// Whether sizes are those of ATM cells: 53 bytes for each 48.
    pub counts_cells: bool,
}

impl SizeTable {
    /// Reads the content of `TCA_STAB`; `None` if its layout is unknown.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let spec: &[u8; 24] = rest.first_chunk()?;
        let word = |at: usize| spec[at..].first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        (u16::from_ne_bytes([head[2], head[3]]) == BASE).then_some(())?;
        Some(Self {
            overhead_bytes: i32::from_ne_bytes(word(4)?.to_ne_bytes()),
            least_bytes: word(12)?,
            counts_cells: word(8)? == LINK_LAYER_ATM,
        })
    }
}

/// How a queueing discipline counts the sizes of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeCount {
    /// As they are.
    AsTheyAre,
    /// By a table.
    ByTable(SizeTable),
    /// By a table that the kernel reports in an unknown layout.
    ByUnknownTable,
}

impl Netlink {
    /// How a queueing discipline counts the sizes of packets.
    ///
    /// # Errors
    /// If the kernel does not list the disciplines of its link.
    pub fn size_count(&mut self, qdisc: &Qdisc) -> Result<SizeCount, NetlinkError> {
        let operation = format!("read the table of sizes of link {}", qdisc.index);
        let message = message_for(&operation, qdisc.index)?;
        let replies = self.dump(&operation, RouteNetlinkMessage::GetQueueDiscipline(message))?;
        let is_same = |message: &&TcMessage| {
            u32::from(message.header.handle) == qdisc.handle
                && u32::from(message.header.parent) == qdisc.parent
                && u32::try_from(message.header.index) == Ok(qdisc.index)
        };
        let own = replies.iter().filter_map(|reply| match reply {
            RouteNetlinkMessage::NewQueueDiscipline(message) => Some(message),
            _ => None,
        });
        Ok(counted(own.filter(is_same).flat_map(|message| &message.attributes)))
    }
}

/// How a discipline with these attributes counts.
fn counted<'a>(mut attributes: impl Iterator<Item = &'a TcAttribute>) -> SizeCount {
    let table = attributes.find_map(|attribute| match attribute {
        TcAttribute::Stab(bytes) => Some(SizeTable::parse(bytes)),
        _ => None,
    });
    match table {
        None => SizeCount::AsTheyAre,
        Some(Some(table)) => SizeCount::ByTable(table),
        Some(None) => SizeCount::ByUnknownTable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QdiscOptions, Tbf};
    use goodput_testing::in_namespace;

    /// As the kernel reports `stab overhead 18 linklayer atm`, and what no kernel reports.
    #[test]
    fn a_table_is_read_and_nothing_else_is() {
        let spec = |kind: u16| {
            let words = [18u32, 2, 64, 2047, 512].map(u32::to_ne_bytes).concat();
            [&28u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &[2, 0, 0xff, 0xff], &words].concat()
        };
        let read = SizeTable { overhead_bytes: 18, least_bytes: 64, counts_cells: true };
        assert_eq!(SizeTable::parse(&spec(1)), Some(read));
        assert_eq!(SizeTable::parse(&spec(2)), None);
        for length in 0..28 {
            assert_eq!(SizeTable::parse(&spec(1)[..length]), None, "{length}");
        }
        let kind = || TcAttribute::Kind("tbf".into());
        let of = |bytes: &[u8]| counted([kind(), TcAttribute::Stab(bytes.to_vec())].iter());
        assert_eq!(of(&spec(1)), SizeCount::ByTable(read));
        assert_eq!(of(&spec(2)), SizeCount::ByUnknownTable, "there is a table");
        assert_eq!(of(&[]), SizeCount::ByUnknownTable);
        assert_eq!(counted([kind()].iter()), SizeCount::AsTheyAre);
    }

    #[test]
    fn a_discipline_without_a_table_has_none() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            let tbf = Tbf::new(12_500_000, 5000, 300_000);
            netlink.replace_qdisc(&Qdisc::root_tbf(index, tbf)).unwrap();
            let root = netlink.qdiscs(index).unwrap().into_iter().find(Qdisc::is_root).unwrap();
            assert!(matches!(root.options, QdiscOptions::Tbf(_)));
            assert_eq!(netlink.size_count(&root).unwrap(), SizeCount::AsTheyAre);
        });
    }
}
