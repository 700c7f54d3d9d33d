//! Headers from captures of the real programs, and their meaning.

use super::header::{Extent, PayloadDirection, extent};
use super::*;
use crate::direct::ClientRequest;
use crate::pair::{origin, server_config};
use crate::session::{Action, First, FirstDatagram, Input, Output, ServerConfig};
use crate::ticket::FlowSetup;
use goodput_model::{BitRate, Bytes, Length};
use proptest::prelude::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// `iperf -c 127.0.0.1 -n 4K -l 1K` of 2.1.8.
const NORMAL: &str = "40010078 00000001 00001389 00000400 00000000 00001000
    00000000 00000000 00000000 00020001 00080003 00000000 00000000 00000000 00000000";
/// `iperf -c 127.0.0.1 -R -t 1` of 2.1.8.
const REVERSED: &str = "44010078 00000001 00001389 00020000 00000000 ffffff9c
    00000000 00000000 04000000 00020001 00080003 00000000 00000000 00000000 00000000";
/// `iperf -c 127.0.0.1 -d -L 5002` of 2.1.8.
const DUAL: &str = "c0010079 00000001 0000138a 00020000 00000000 fffffc18
    00000000 00000000 00000000 00020001 00080003 00000000 00000000 00000000 00000000";
/// `iperf -u -c 127.0.0.1 -n 2K -l 512 -b 1M` of 2.1.8, without the rest of the payload.
const DATAGRAM: &str = "00000001 6b01ed19 000d660f 00000000
    48010098 00000001 00001389 00000200 00000000 00000800
    00000000 00000000 00000000 00020001 00080003 00000000 00100000 00000000 00000000";
/// `-X --trip-times` of 2.1.8.
const TIMED_BYTES: &str = "460100a0 00000001 00001389 00020000 00000000 ffffff9c
    00000000 00000000 00100000 00020001 00080003 00000000 00000000 00000000 00000000
    00000000 6b01ed8f 000d0af8 00000000 00000000";

/// `iperf -u -c 127.0.0.1 -d -L 5009 -b 5m -n 3000 -l 1000` of 2.0.10: the pattern follows its header, and the window
/// is part of the pattern too.
const OLD_DUAL: &str = "00000000 6b02bcfa 000dd595 32333435
    c0000001 00000001 00001391 000003e8 32333435 00000bb8
    00000001 0000001c 00000000 00020000 000a0000 00000000 004c4b40 38393031 32333435";

fn read(config: &ServerConfig, first: &[u8]) -> ClientRequest {
    order::read(origin(), config, first).unwrap()
}

/// The plan, the meeting and the answer of a client that opens with `first`.
fn asked(config: &ServerConfig, first: &[u8]) -> (Vec<(Plan, FlowSetup)>, Vec<u8>, Vec<String>) {
    let ClientRequest::Measure { answer, orders, notes, .. } = read(config, first) else {
        panic!()
    };
    (orders.into_iter().map(|o| (o.plan, o.flow_setup)).collect(), answer, notes)
}

fn udp(unproven_udp: bool) -> ServerConfig {
    let mut config = server_config(None);
    config.transport = Transport::Udp;
    config.limits.unproven_udp = unproven_udp;
    config
}

#[test]
fn a_normal_test_is_received_and_answered_with_28_bytes() {
    let (orders, answer, _) = asked(&server_config(None), &bytes(NORMAL));
    let [(plan, flow_setup)] = &orders[..] else { panic!() };
    assert_eq!((plan.direction, plan.length), (Direction::Send, Length::Bytes(Bytes(4096))));
    assert_eq!(*flow_setup, FlowSetup::ThisConnection { taken_bytes: 60, back: None });
    let expected = "00000002 0000001c 00000000 00020001 00080003 00000000 00000000";
    assert_eq!(answer, bytes(expected));
}

#[test]
fn reverse_is_sent_for_the_time_that_is_asked_without_an_answer() {
    let (orders, answer, _) = asked(&server_config(None), &bytes(REVERSED));
    let [(plan, _)] = &orders[..] else { panic!() };
    assert_eq!((plan.direction, plan.length), (Direction::Reverse, Length::Seconds(1.0)));
    assert_eq!(plan.chunk_bytes, Bytes(128 * 1024));
    assert!(answer.is_empty());
}

#[test]
fn dual_connects_back_to_the_port_that_the_client_names() {
    let (orders, answer, _) = asked(&server_config(None), &bytes(DUAL));
    let [(plan, flow_setup)] = &orders[..] else { panic!() };
    assert_eq!((plan.direction, plan.length), (Direction::Both, Length::Seconds(10.0)));
    assert_eq!(*flow_setup, FlowSetup::ThisConnection { taken_bytes: 60, back: Some(5002) });
    assert_eq!(answer.len(), 28);
    let mut trade_off = bytes(DUAL);
    trade_off[3] = 0x78;
    let (orders, ..) = asked(&server_config(None), &trade_off);
    let directions: Vec<_> = orders.iter().map(|(plan, _)| plan.direction).collect();
    assert_eq!(directions, [Direction::Send, Direction::Reverse]);
    assert_eq!(orders[1].1, FlowSetup::Connect { port: Some(5002), apart: 0 });
}

#[test]
fn trip_times_are_answered_with_52_bytes() {
    let (orders, answer, _) = asked(&server_config(None), &bytes(TIMED_BYTES));
    assert_eq!(orders[0].1, FlowSetup::ThisConnection { taken_bytes: 80, back: None });
    assert_eq!(answer.len(), 52);
    assert_eq!(answer[..8], bytes("00000002 00000034"));
    assert_eq!(answer[28..36], bytes("6b01ed8f 000d0af8"));
}

#[test]
fn datagrams_are_received_and_reported() {
    let first = bytes(DATAGRAM);
    assert_eq!(detect::recognises_datagram(&first), FirstDatagram::Begins);
    let ClientRequest::Measure { orders, answer, .. } = read(&udp(false), &first) else { panic!() };
    assert!(answer.is_empty());
    assert_eq!(orders[0].flow_setup, FlowSetup::ThisConnection { taken_bytes: 0, back: None });
    assert_eq!(orders[0].plan.chunk_bytes, Bytes(512));
    assert!(orders[0].tickets[0].framing.answers_streams());
}

#[test]
fn datagrams_are_sent_only_where_the_operator_allows_it() {
    let mut first = bytes(DATAGRAM);
    first[16] = 0x6c;
    first[48] = 0x04;
    let (orders, end, notes) = asked(&udp(false), &first);
    assert!(orders.is_empty(), "a client that only receives has nothing to be measured");
    assert_eq!(end, bytes("ffffffff 6b01ed19 000d660f ffffffff"), "so that it does not wait");
    assert!(notes[0].contains("--allow-unproven-udp"), "{notes:?}");
    let (orders, _, notes) = asked(&udp(true), &first);
    assert_eq!(orders[0].0.direction, Direction::Reverse);
    assert_eq!(orders[0].0.rate_bits_per_s, Some(BitRate(1_048_576.0)));
    assert!(notes.is_empty());
}

#[test]
fn trip_times_are_reported_where_this_end_sends() {
    let mut first = bytes(TIMED_BYTES);
    first[32..36].copy_from_slice(&bytes("04100000"));
    let ClientRequest::Measure { orders, answer, .. } = read(&server_config(None), &first) else {
        panic!()
    };
    assert_eq!(orders[0].plan.direction, Direction::Reverse);
    let opening = &answer[52..];
    assert_eq!(opening[..24], bytes("400100a0 00000001 00001389 00020000 00000000 ffffff9c"));
    assert_eq!((opening.len(), &opening[32..36]), (80, &bytes("00100000")[..]));
    assert!(orders[0].tickets[0].framing.chunk_header().is_some());
    first[32..36].copy_from_slice(&bytes("04000000"));
    let ClientRequest::Measure { orders, .. } = read(&server_config(None), &first) else {
        panic!()
    };
    assert!(orders[0].tickets[0].framing.chunk_header().is_none());
}

#[test]
fn a_header_of_2_0_10_ends_before_the_upper_half_of_the_rate() {
    let (orders, ..) = asked(&udp(true), &bytes(OLD_DUAL));
    let [(plan, flow_setup)] = &orders[..] else { panic!() };
    assert_eq!(*flow_setup, FlowSetup::ThisConnection { taken_bytes: 0, back: Some(5009) });
    assert_eq!((plan.direction, plan.length), (Direction::Both, Length::Bytes(Bytes(3000))));
    assert_eq!(plan.rate_bits_per_s, Some(BitRate(5e6)));
    let stream = &bytes(OLD_DUAL)[16..];
    let (orders, ..) = asked(&server_config(None), stream);
    assert_eq!(orders[0].0.socket.sndbuf_bytes, None);
}

#[test]
fn old_clients_without_a_header_are_known_by_their_pattern() {
    let old = bytes("00000000 34353637 38393031");
    let base = bytes("00000000 00000001 00001389 00000000 00000000 fffffc18");
    for first in [&old[..], &base, b"01234567890123"] {
        assert_eq!(detect::recognises(first), First::Control, "{first:?}");
        let (orders, answer, _) = asked(&server_config(None), first);
        assert_eq!(orders[0].0.direction, Direction::Send);
        assert!(answer.is_empty());
    }
    let patterned = |word: &str| {
        let mut datagram = bytes(&format!("00000000 6b01ed19 000d660f {word}"));
        datagram.extend(b"6789012345678901234567890123");
        datagram
    };
    assert_eq!(detect::recognises_datagram(&patterned("32333435")), FirstDatagram::Begins);
    let mut legacy = bytes("00000000 6b01ed19 000d660f");
    legacy.extend(&base);
    assert_eq!(detect::settings_at(&legacy), Some(12));
    assert_eq!(detect::recognises_datagram(&legacy), FirstDatagram::Begins);
}

#[test]
fn the_last_datagram_again_begins_nothing() {
    let mut last = bytes(DATAGRAM);
    last[..4].copy_from_slice(&[0xff, 0xff, 0xff, 0xfb]);
    last[12..16].copy_from_slice(&[0xff; 4]);
    assert_eq!(detect::recognises_datagram(&last), FirstDatagram::Foreign);
}

#[test]
fn what_others_say_is_not_taken_for_a_header() {
    let cookie = [vec![b'a'; 36], vec![0]].concat();
    for first in [
        &b"HELO nuttcp v8.2.2\n"[..],
        b"buflen = 65536, ",
        b" !\"#$%&'()*+,-./",
        b"goodputc",
        b"POST / HTTP/1.1",
        &cookie,
        &[0; 64],
        &[0xff; 64],
        &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        assert_eq!(detect::recognises(first), First::Foreign, "{}", first.escape_ascii());
    }
}

#[test]
fn no_more_than_the_header_is_asked_for() {
    for whole in [NORMAL, REVERSED, DUAL, TIMED_BYTES].map(bytes) {
        for length in 0..whole.len() {
            let First::Short { needs } = detect::recognises(&whole[..length]) else { panic!() };
            assert!((length + 1..=whole.len()).contains(&needs), "{length}: {needs}");
        }
        assert_eq!(detect::recognises(&whole), First::Control);
    }
}

#[test]
fn a_permit_key_belongs_to_the_header() {
    let mut keyed = bytes(NORMAL);
    keyed[..4].copy_from_slice(&bytes("5001007c"));
    keyed.extend(b"\0\x08abcdefgh");
    assert_eq!(extent(&keyed[..40], 0), Extent::Needs(62));
    assert_eq!(extent(&keyed[..62], 0), Extent::Needs(70));
    assert_eq!(extent(&keyed, 0), Extent::Whole(70));
}

/// `iperf -c 127.0.0.1 -R -n 1000003` of Debian 11, 2.0.14a.
const OLD_REVERSED: &str = "2c010078 00000001 00001389 00000000 00000000 000f4243 00000000 00000000 \
    04000000 00020000 000e0000 00000000 00000000 00000000 00000000";

#[test]
fn a_header_of_2_0_14_is_one_though_no_flag_says_that_it_is_extended() {
    let first = bytes(OLD_REVERSED);
    assert_eq!(detect::recognises(&first), First::Control);
    for cut in 1..first.len() {
        assert!(matches!(detect::recognises(&first[..cut]), First::Short { .. }), "{cut}");
    }
    let header = header::read(&first).unwrap();
    assert_eq!(header.direction, PayloadDirection::Reverse);
    assert_eq!(header.length, Some(Length::Bytes(Bytes(1_000_003))));
    assert_eq!(header.version, Some((0x0002_0000, 0x000e_0000)));
}

#[test]
fn our_header_is_what_2_1_8_writes() {
    let plan =
        Plan { length: Length::Bytes(Bytes(4096)), chunk_bytes: Bytes(1024), ..Plan::standard() };
    assert_eq!(ticket::tickets(&plan).unwrap()[0].proof.0, bytes(NORMAL));
    let plan =
        Plan { direction: Direction::Reverse, length: Length::Seconds(1.0), ..Plan::standard() };
    assert_eq!(ticket::tickets(&plan).unwrap()[0].proof.0, bytes(REVERSED));
    let plan = Plan {
        transport: Transport::Udp,
        length: Length::Bytes(Bytes(2048)),
        chunk_bytes: Bytes(512),
        rate_bits_per_s: Some(BitRate(1_048_576.0)),
        ..Plan::standard()
    };
    let tickets = ticket::tickets(&plan).unwrap();
    let settings = bytes(DATAGRAM)[16..].to_vec();
    assert_eq!(tickets[0].framing, goodput_framing::iperf2(settings, true, false));
}

#[test]
fn both_ways_share_their_connections() {
    let plan = Plan { direction: Direction::Both, flows: 2, ..Plan::standard() };
    let tickets = ticket::tickets(&plan).unwrap();
    let shares: Vec<_> = tickets.iter().map(|t| (t.shares, t.proof.0.len())).collect();
    assert_eq!(shares, [(None, 60), (None, 60), (Some(0), 0), (Some(1), 0)]);
    assert_eq!(header::read(&tickets[0].proof.0).unwrap().direction, PayloadDirection::FullDuplex);
}

#[test]
fn what_iperf2_cannot_express_is_refused_by_name() {
    let mut plan = Plan { direction: Direction::Reverse, ..Plan::standard() };
    plan.socket.congestion = Some("bbr".into());
    assert!(ticket::tickets(&plan).unwrap_err().contains("--congestion"));
    let large = Length::Bytes(Bytes(1 << 32));
    let plan = Plan { direction: Direction::Reverse, length: large, ..Plan::standard() };
    assert!(ticket::tickets(&plan).unwrap_err().contains("2147483647"));
    let sent = Plan { length: large, ..Plan::standard() };
    let proof = &ticket::tickets(&sent).unwrap()[0].proof;
    assert_eq!(header::read(&proof.0).unwrap().length, None);
}

#[test]
fn messages_are_sent_back_with_the_servers_times_until_the_client_stops() {
    let mut message = bytes("00800000 00000064 00000001 80005a5a 00000000 6b01ed8c 000a7d13");
    message.resize(100, b'x');
    message[44..48].fill(0);
    let mut stop = message.clone();
    stop[12] |= 0x10;
    assert_eq!(detect::recognises(&message[..12]), First::Control);
    let mut session = (PROTOCOL.server)(origin(), server_config(None));
    for piece in [&message[..12], &message[12..], &stop] {
        session.handle(origin(), Input::Received(piece.to_vec())).unwrap();
    }
    let actions: Vec<_> = std::iter::from_fn(|| session.poll()).collect();
    assert!(
        matches!(actions[..], [Output::Do(Action::Greeted { .. }), Output::Do(Action::Converse)]),
        "{actions:?}: nothing is sent before the host agrees"
    );
    session.handle(origin(), Input::Expecting { data_port: None }).unwrap();
    session.handle_timeout(session.next_timeout().unwrap()).unwrap();
    let (mut sent, mut closed) = (Vec::new(), false);
    while let Some(output) = session.poll() {
        match output {
            Output::Send(bytes) => sent.push(bytes),
            Output::EndSending => panic!("it goes on to listen"),
            Output::Close => closed = true,
            Output::Do(action) => panic!("{action:?}"),
        }
    }
    let [reply] = &sent[..] else { panic!("{} replies", sent.len()) };
    assert!(closed);
    assert_eq!((&reply[..28], &reply[44..]), (&message[..28], &message[44..]));
    assert_ne!(reply[28..36], message[28..36]);
}

#[test]
fn many_small_messages_cannot_ask_for_many_large_replies_at_once() {
    let mut message = bytes("00800000 00000040 00000001 80005a5a 00000000 6b01ed8c 000a7d13");
    message.resize(64, 0);
    message[12..16].copy_from_slice(&bounceback::REPLY_SIZE.to_be_bytes());
    message[60..].copy_from_slice(&(1u32 << 20).to_be_bytes());
    let mut session = (PROTOCOL.server)(origin(), server_config(None));
    session.handle(origin(), Input::Received(message.repeat(256))).unwrap();
    session.handle(origin(), Input::Expecting { data_port: None }).unwrap();
    let replies = std::iter::from_fn(|| session.poll());
    let sizes = replies.filter_map(|output| match output {
        Output::Send(bytes) => Some(bytes.len()),
        _ => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [1 << 20]);
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(first in proptest::collection::vec(any::<u8>(), 0..200)) {
        detect::recognises(&first);
        detect::recognises_datagram(&first);
        for config in [server_config(None), udp(true)] {
            let _ = order::read(origin(), &config, &first);
        }
    }

    #[test]
    fn no_change_of_a_header_makes_a_reader_panic(at in 0usize..76, byte: u8) {
        for hex in [NORMAL, DUAL, TIMED_BYTES, DATAGRAM] {
            let mut first = bytes(hex);
            let at = at % first.len();
            first[at] = byte;
            detect::recognises(&first);
            for config in [server_config(None), udp(true)] {
                let _ = order::read(origin(), &config, &first);
            }
        }
    }
}
