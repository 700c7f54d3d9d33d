//! Filters where packets enter or leave a device, and the drops of their actions
//! (`RTM_GETTFILTER`; include/uapi/linux/rtnetlink.h, pkt_cls.h, gen_stats.h).

use crate::raw::{RawMessage, attributes};
use crate::{Netlink, NetlinkError};

const RTM_NEWTFILTER: u16 = 44;
const RTM_GETTFILTER: u16 = 46;
/// `struct tcmsg`: family and padding, link, handle, parent, info.
const HEADER_BYTES: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_STATS: u16 = 4;
const TCA_STATS_QUEUE: u16 = 3;
/// Offset of `drops` in `struct gnet_stats_queue`.
const DROPS_AT: usize = 8;
/// u32 also lists its hash tables; their handles have no node number (`TC_U32_NODE`).
const U32_NODE: u32 = 0xfff;

/// Where filters are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Packets that come in, before anything else sees them.
    Ingress,
    /// Packets that go out, before the queueing discipline.
    Egress,
}

impl Hook {
    /// `TC_H_MIN_INGRESS` and `TC_H_MIN_EGRESS` of `TC_H_CLSACT`. An ingress queueing discipline
    /// also answers to the first.
    fn parent(self) -> u32 {
        match self {
            Self::Ingress => 0xffff_fff2,
            Self::Egress => 0xffff_fff3,
        }
    }
}

/// The totals of the filters at one hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filters {
    /// Number of filters.
    pub count: u64,
    /// Number of policers among their actions.
    pub policers: u64,
    /// Packets that their actions dropped.
    pub drops: u64,
}

impl Netlink {
    /// The filters at `hook` of the link with number `index`. If the link has no queueing
    /// discipline with that hook, the kernel refuses or lists none, depending on its version.
    pub fn filters(&mut self, index: u32, hook: Hook) -> Result<Filters, NetlinkError> {
        self.filters_at(index, hook.parent())
    }

    /// The filters below the handle `parent`.
    pub(crate) fn filters_at(&mut self, index: u32, parent: u32) -> Result<Filters, NetlinkError> {
        let operation = format!("list the filters of link {index}");
        let mut body = vec![0u8; HEADER_BYTES];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[12..16].copy_from_slice(&parent.to_ne_bytes());
        let replies = self.dump_raw(&operation, RawMessage { kind: RTM_GETTFILTER, body })?;
        Ok(replies.iter().filter_map(filter).fold(Filters::default(), Filters::with))
    }
}

impl Filters {
    fn with(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            policers: self.policers + other.policers,
            drops: self.drops.saturating_add(other.drops),
        }
    }
}

/// One filter. The kernel also lists each priority, with handle 0 and without options.
pub(crate) fn filter(message: &RawMessage) -> Option<Filters> {
    let handle = u32::from_ne_bytes(*message.body.get(8..12)?.first_chunk()?);
    let find = |wanted: u16| {
        message.attributes(HEADER_BYTES).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    };
    let is_u32 = find(TCA_KIND).is_some_and(|kind| kind == b"u32\0");
    if message.kind != RTM_NEWTFILTER || handle == 0 || (is_u32 && handle & U32_NODE == 0) {
        return None;
    }
    let mut found = Filters { count: 1, ..Filters::default() };
    for action in find(TCA_OPTIONS).into_iter().flat_map(actions) {
        found.policers += u64::from(action.policer);
        found.drops = found.drops.saturating_add(action.drops);
    }
    Some(found)
}

struct Action {
    policer: bool,
    drops: u64,
}

/// Each kind of filter has its own attribute number for its actions. All kinds contain
/// a list of entries, each with a name and counters.
fn actions(options: &[u8]) -> impl Iterator<Item = Action> {
    attributes(options)
        .flat_map(|(_, list)| attributes(list))
        .filter_map(|(_, entry)| action(entry))
}

fn action(entry: &[u8]) -> Option<Action> {
    let find = |bytes, wanted| attributes(bytes).find(|(kind, _)| *kind == wanted);
    let (_, name) = find(entry, TCA_ACT_KIND)?;
    let is_name = name.len() > 1
        && name.ends_with(b"\0")
        && name[..name.len() - 1].iter().all(u8::is_ascii_alphanumeric);
    let (_, stats) = find(entry, TCA_ACT_STATS).filter(|_| is_name)?;
    let queue = find(stats, TCA_STATS_QUEUE).and_then(|(_, queue)| queue.get(DROPS_AT..));
    let drops = queue.and_then(|drops| drops.first_chunk()).map(|drops| u32::from_ne_bytes(*drops));
    Some(Action { policer: name == b"police\0", drops: drops.unwrap_or(0).into() })
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::NLM_F_CREATE;
    use netlink_sys::protocols::NETLINK_ROUTE;

    use super::*;
    use crate::raw::attribute;
    use crate::socket::NetlinkSocket;
    use crate::{Qdisc, QdiscOptions, QdiscStats};
    use goodput_testing::in_namespace;
    use proptest::prelude::*;

    /// As `tc filter add ... matchall action police` is listed: this kernel has no policer to try.
    fn policed(handle: u32) -> RawMessage {
        let mut queue = [0u8; 20];
        queue[DROPS_AT] = 7;
        let stats = attribute(TCA_ACT_STATS, &attribute(TCA_STATS_QUEUE, &queue));
        let entry = [attribute(TCA_ACT_KIND, b"police\0"), stats].concat();
        let options = attribute(3, &attribute(1, &entry));
        let mut body = vec![0u8; HEADER_BYTES];
        body[8..12].copy_from_slice(&handle.to_ne_bytes());
        body.extend(attribute(TCA_KIND, b"matchall\0"));
        body.extend(attribute(TCA_OPTIONS, &options));
        RawMessage { kind: RTM_NEWTFILTER, body }
    }

    #[test]
    fn a_policer_and_what_it_dropped_are_found() {
        let expected = Filters { count: 1, policers: 1, drops: 7 };
        assert_eq!(filter(&policed(1)), Some(expected));
        assert_eq!(filter(&policed(0)), None);
    }

    #[test]
    fn a_link_without_the_hook_has_no_filters() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            let found = netlink.filters(index, Hook::Ingress);
            assert!(found.is_err() || found.unwrap() == Filters::default());
        });
    }

    /// A u32 filter (`struct tc_u32_sel`) with one key that every packet matches.
    fn match_all(index: u32) -> RawMessage {
        const EVERY_PROTOCOL: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;
        const TCA_U32_SEL: u16 = 5;
        let mut selector = [0u8; 32];
        selector[2] = 1;
        let mut body = vec![0u8; HEADER_BYTES];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[12..16].copy_from_slice(&Hook::Egress.parent().to_ne_bytes());
        body[16..20].copy_from_slice(&(1 << 16 | EVERY_PROTOCOL).to_ne_bytes());
        body.extend(attribute(TCA_KIND, b"u32\0"));
        body.extend(attribute(TCA_OPTIONS, &attribute(TCA_U32_SEL, &selector)));
        RawMessage { kind: RTM_NEWTFILTER, body }
    }

    #[test]
    fn a_filter_is_counted_at_its_hook_only() {
        in_namespace(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.create_veth("left", "right").unwrap();
            let index = netlink.link("left").unwrap().index;
            let hooks = Qdisc {
                index,
                handle: 0xffff_0000,
                parent: 0xffff_fff1,
                kind: "clsact".into(),
                options: QdiscOptions::Other(Vec::new()),
                stats: QdiscStats::default(),
            };
            netlink.replace_qdisc(&hooks).unwrap();
            assert_eq!(netlink.filters(index, Hook::Egress).unwrap(), Filters::default());
            let mut socket = NetlinkSocket::open(NETLINK_ROUTE).unwrap();
            socket.request("add a filter", match_all(index), NLM_F_CREATE).unwrap();
            let one = Filters { count: 1, ..Filters::default() };
            assert_eq!(netlink.filters(index, Hook::Egress).unwrap(), one);
            assert_eq!(netlink.filters(index, Hook::Ingress).unwrap(), Filters::default());
        });
    }

    proptest! {
        #[test]
        fn no_reply_makes_it_panic(body in prop::collection::vec(0u8..12, 0..160)) {
            let _ = filter(&RawMessage { kind: RTM_NEWTFILTER, body });
        }
    }
}
