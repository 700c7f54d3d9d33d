//! What only the mover `zerocopy-receive` does.

use goodput_model::{SocketOptions, Transport};
use goodput_mover::find;

use crate::common::{Ended, Pair, streams};

/// Whole pages, sent in whole chunks.
const LIMIT: u64 = 28_672 * 400;

/// Sends `LIMIT` bytes in segments whose payload is `payload` bytes, and 12 bytes of timestamps.
fn run(sender: &str, payload: u32) -> Ended {
    let options = SocketOptions { mss_bytes: Some(payload + 12), ..SocketOptions::default() };
    let movers = [sender, "zerocopy-receive"].map(|id| find(id).expect("it is in the list"));
    let pair = Pair::start_between(None, streams(&options), movers, Transport::Tcp, |config| {
        (config.chunk, config.limit_bytes) = (28_672, Some(LIMIT));
    });
    pair.gate.open();
    let (sent, received) = pair.join();
    sent.result.expect("sent");
    received
}

/// On loopback a zero-copy send is copied by the kernel into pages of their own (`skb_copy_ubufs`,
/// net/core/skbuff.c), which then can be mapped; those of plain sends are parts of larger ones, which
/// can't (`can_map_frag`, net/ipv4/tcp.c).
#[test]
fn whole_pages_are_mapped_and_the_rest_is_copied_and_both_are_counted() {
    for (sender, payload) in [("zerocopy", 28_672), ("zerocopy", 28_000), ("copy", 28_672)] {
        let received = run(sender, payload);
        received.result.expect("received");
        let mapped = received.counters.mapped_bytes().expect("this mover counts them");
        assert_eq!(received.counters.bytes(), LIMIT, "{sender} {payload}");
        assert!(mapped <= LIMIT && mapped.is_multiple_of(4096), "{mapped}");
        assert!(mapped > 0 || sender == "copy", "{sender} {payload}");
    }
}
