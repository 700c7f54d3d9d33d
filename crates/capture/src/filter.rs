//! The filter that the kernel runs on each packet of the device (Documentation/networking/filter.rst): packets of one host.

use std::net::IpAddr;

use socket2::SockFilter;

use crate::SNAP_BYTES;

// Codes (linux/bpf_common.h).
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Where the kernel has a packet's EtherType instead of its bytes (`SKF_AD_PROTOCOL`).
const ETHER_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;

/// Where the header of an IP version has its addresses, bytes from its beginning.
struct Addresses {
    ether_type: i32,
    source: u32,
    destination: u32,
    /// The address to look for, in words.
    words: Vec<u32>,
}

/// The filter for packets from and to `peer`. Bytes are counted from the IP header on, as sockets of the kind `SOCK_DGRAM`
/// have them (packet(7)).
///
/// It looks at no port: which ports a test's flows have is known only later, a fragment has none, and extension headers of
/// IPv6 hide them.
pub(crate) fn of(peer: IpAddr) -> Vec<SockFilter> {
    let Addresses { ether_type, source, destination, words } = addresses(peer);
    // Two instructions compare a word. The kind of packet comes first, then the source, the destination and two endings.
    let of_source = 2;
    let of_destination = of_source + 2 * words.len();
    let accept = of_destination + 2 * words.len();
    let drop = accept + 1;
    let mut program = Vec::with_capacity(drop + 1);
    compare(&mut program, ETHER_TYPE, ether_type as u32, of_source, drop);
    for (from, missed) in [(source, of_destination), (destination, drop)] {
        for (n, word) in words.iter().enumerate() {
            let is_last = n + 1 == words.len();
            let equal = if is_last { accept } else { program.len() + 2 };
            compare(&mut program, from + 4 * n as u32, *word, equal, missed);
        }
    }
    program.extend([SNAP_BYTES, 0].map(|bytes| SockFilter::new(RETURN, 0, 0, bytes)));
    program
}

fn addresses(peer: IpAddr) -> Addresses {
    match peer.to_canonical() {
        // RFC 791, section 3.1.
        IpAddr::V4(peer) => Addresses {
            ether_type: libc::ETH_P_IP,
            source: 12,
            destination: 16,
            words: vec![u32::from(peer)],
        },
        // RFC 8200, section 3.
        IpAddr::V6(peer) => Addresses {
            ether_type: libc::ETH_P_IPV6,
            source: 8,
            destination: 24,
            words: (0..4).map(|n| (u128::from(peer) >> (96 - 32 * n)) as u32).collect(),
        },
    }
}

/// Compares the word at `offset` of a packet, and goes on at the instruction `equal` or `unequal`.
fn compare(program: &mut Vec<SockFilter>, offset: u32, with: u32, equal: usize, unequal: usize) {
    program.push(SockFilter::new(LOAD_WORD, 0, 0, offset));
    let next = program.len() + 1;
    // Jumps count from the next instruction; programs here have 20 at most.
    let jump = |to: usize| (to - next) as u8;
    program.push(SockFilter::new(JUMP_IF_EQUAL, jump(equal), jump(unequal), with));
}
