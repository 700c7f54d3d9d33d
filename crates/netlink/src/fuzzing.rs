//! Feeds bytes that no kernel sent to every parser of the kernel's answers, for the fuzz target and
//! for this crate's tests.

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;

use crate::raw::RawMessage;
use crate::{
    addresses, cake, classes, ethtool, filters, line_care, links, packet_filter, pause_statistics,
    qdiscs, queue_statistics, routes, size_table, sock_diag, standard_statistics, tbf,
};

/// `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;

/// Reads `bytes`, a type and a body, as a reply of each kind.
pub fn replies(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first_chunk::<2>() else { return };
    let message = RawMessage { kind: u16::from_ne_bytes(*kind), body: body.to_vec() };
    let _ = (filters::filter(&message), sock_diag::socket(&message));
    let _ = (line_care::parse_fec(&message), line_care::parse_eee(&message));
    let _ = (pause_statistics::statistics(&message), standard_statistics::counters(&message));
    let _ = (queue_statistics::queue(&message, 1), packet_filter::sum(&[message]));
    let _ = size_table::SizeTable::parse(body);
    let _ = (ethtool::parse_settings(body), tbf::Tbf::parse(body), cake::Cake::parse(body));
    route(*kind, body);
}

/// Parses a routing message by the library, and its result by our own code.
fn route(kind: [u8; 2], body: &[u8]) {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let rest = [0u8; HEADER_BYTES - 6];
    let bytes = [&length.to_ne_bytes()[..], &kind, &rest, body].concat();
    let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes) else { return };
    if let NetlinkPayload::InnerMessage(message) = message.payload {
        let _ = (links::link(&message), addresses::address(&message));
        let _ = (qdiscs::qdisc(&message), classes::class(&message));
        let _ = routes::route(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_reply_makes_any_parser_panic(
            kind in prop::sample::select(vec![16u16, 20, 24, 28, 36, 40, 44, 10 << 8 | 6]),
            body in prop::collection::vec(0u8..40, 0..200),
        ) {
            replies(&[&kind.to_ne_bytes()[..], &body].concat());
        }
    }
}
