//! The filter that the kernel runs on each packet of the device (Documentation/networking/filter.rst): TCP and UDP of one
//! port of one host.

use std::net::IpAddr;

use socket2::SockFilter;

use crate::SNAP_BYTES;

// Codes (linux/bpf_common.h).
const LD_WORD: u16 = 0x20;
const LD_HALF: u16 = 0x28;
const LD_BYTE: u16 = 0x30;
const LD_HALF_X: u16 = 0x48;
const LDX_HEADER: u16 = 0xb1;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Where the kernel has a packet's EtherType instead of its bytes (`SKF_AD_PROTOCOL`).
const ETHER_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
/// Numbers of protocols (IANA).
const TCP: u32 = 6;
const UDP: u32 = 17;
const V6_FRAGMENT: u32 = 44;
/// The offset of an IPv4 fragment, in the half word at byte 6 (RFC 791).
const V4_OFFSET_MASK: u32 = 0x1fff;

/// Where a comparison goes on.
#[derive(Clone, Copy)]
enum To {
    Next,
    /// The step of this number.
    Step(usize),
    Accept,
    Drop,
}

/// An instruction.
#[derive(Clone, Copy)]
enum Step {
    Load { code: u16, from: u32 },
    Compare { code: u16, with: u32, yes: To, no: To },
}

/// The filter for packets from or to `port` of `peer`. Bytes are counted from the IP header on, as sockets of the kind
/// `SOCK_DGRAM` have them (packet(7)). Later fragments have no port; all of the peer's pass.
pub(crate) fn of(peer: IpAddr, port: u16) -> Vec<SockFilter> {
    let steps = match peer.to_canonical() {
        IpAddr::V4(peer) => v4(u32::from(peer), u32::from(port)),
        IpAddr::V6(peer) => v6(u128::from(peer), u32::from(port)),
    };
    assembled(&steps)
}

const fn load(code: u16, from: u32) -> Step {
    Step::Load { code, from }
}

const fn equal(with: u32, yes: To, no: To) -> Step {
    Step::Compare { code: JUMP_EQUAL, with, yes, no }
}

fn v4(peer: u32, port: u32) -> Vec<Step> {
    vec![
        load(LD_WORD, ETHER_TYPE),
        equal(libc::ETH_P_IP as u32, To::Next, To::Drop),
        load(LD_WORD, 12),
        equal(peer, To::Step(6), To::Next),
        load(LD_WORD, 16),
        equal(peer, To::Next, To::Drop),
        load(LD_BYTE, 9),
        equal(TCP, To::Step(9), To::Next),
        equal(UDP, To::Next, To::Drop),
        load(LD_HALF, 6),
        Step::Compare { code: JUMP_SET, with: V4_OFFSET_MASK, yes: To::Accept, no: To::Next },
        load(LDX_HEADER, 0),
        load(LD_HALF_X, 0),
        equal(port, To::Accept, To::Next),
        load(LD_HALF_X, 2),
        equal(port, To::Accept, To::Drop),
    ]
}

fn v6(peer: u128, port: u32) -> Vec<Step> {
    let mut steps =
        vec![load(LD_WORD, ETHER_TYPE), equal(libc::ETH_P_IPV6 as u32, To::Next, To::Drop)];
    let word = |n: u32| (peer >> (96 - 32 * n)) as u32;
    // After both addresses of four words each, a load and a comparison for each word.
    let (other, found) = (steps.len() + 8, steps.len() + 16);
    for n in 0..4 {
        steps.push(load(LD_WORD, 8 + 4 * n));
        steps.push(equal(
            word(n),
            if n == 3 { To::Step(found) } else { To::Next },
            To::Step(other),
        ));
    }
    for n in 0..4 {
        steps.push(load(LD_WORD, 24 + 4 * n));
        steps.push(equal(word(n), To::Next, To::Drop));
    }
    steps.extend([
        load(LD_BYTE, 6),
        equal(V6_FRAGMENT, To::Accept, To::Next),
        equal(TCP, To::Step(found + 4), To::Next),
        equal(UDP, To::Next, To::Drop),
        load(LD_HALF, 40),
        equal(port, To::Accept, To::Next),
        load(LD_HALF, 42),
        equal(port, To::Accept, To::Drop),
    ]);
    steps
}

/// The steps with both endings behind them: to keep the head of a packet, and to keep nothing.
fn assembled(steps: &[Step]) -> Vec<SockFilter> {
    let jump = |from: usize, to: To| {
        let target = match to {
            To::Next => from + 1,
            To::Step(step) => step,
            To::Accept => steps.len(),
            To::Drop => steps.len() + 1,
        };
        // Jumps count from the next instruction; programs here have fewer than 40.
        (target - from - 1) as u8
    };
    let each = steps.iter().enumerate().map(|(at, step)| match *step {
        Step::Load { code, from } => SockFilter::new(code, 0, 0, from),
        Step::Compare { code, with, yes, no } => {
            SockFilter::new(code, jump(at, yes), jump(at, no), with)
        }
    });
    let endings = [SNAP_BYTES, 0].map(|bytes| SockFilter::new(RETURN, 0, 0, bytes));
    each.chain(endings).collect()
}
