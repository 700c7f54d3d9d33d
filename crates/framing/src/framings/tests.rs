//! What every framing must satisfy.

use super::*;
use crate::{MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES, Read, Sent};

#[test]
fn the_list_is_the_folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/framings");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_str().unwrap().trim_end_matches(".rs").to_owned());
    let mut files: Vec<_> = names.filter(|name| name != "mod" && name != "tests").collect();
    files.sort();
    let mut listed: Vec<_> = ALL.iter().map(|kind| kind.id.replace('-', "_")).collect();
    listed.sort();
    assert_eq!(listed, files);
}

#[test]
fn payload_that_is_written_is_read_as_payload() {
    for framing in examples() {
        let mut datagrams = framing.datagrams(3, 100);
        let least = datagrams.least();
        assert!((MIN_DATAGRAM_BYTES..=100).contains(&least), "{framing:?}: {least}");
        assert!((100..=MAX_DATAGRAM_BYTES).contains(&datagrams.longest(100)), "{framing:?}");
        for marker in datagrams.opening() {
            assert_eq!(datagrams.read(marker.datagram), Read::Begin, "{framing:?}");
        }
        let mut room = [0; 100];
        for number in 0..3 {
            datagrams.prepare(&mut room);
            let sent = Sent { number, bytes: 100 * (number + 1), at_ns: 1_000_000 * number };
            datagrams.write(&mut room, sent);
            let Read::Payload { number: read, sent_ns } = datagrams.read(&room) else {
                panic!("{framing:?}: {number} is not read as payload");
            };
            assert_eq!(read, framing.numbers_datagrams().then_some(number), "{framing:?}");
            let expected = framing.times_datagrams().then_some(sent.at_ns);
            assert_eq!(sent_ns, expected, "{framing:?}");
        }
    }
}

#[test]
fn an_end_that_is_sent_is_heard_and_sent_a_bounded_number_of_times() {
    for framing in examples() {
        let mut datagrams = framing.datagrams(3, 100);
        let (mut room, sent) = ([0; 100], Sent { number: 0, bytes: 0, at_ns: 0 });
        let mut ends = 0;
        let mut heard = false;
        datagrams.opening().iter().for_each(|marker| _ = datagrams.read(marker.datagram));
        while let Some(closing) = datagrams.closing(ends, sent, &mut room) {
            heard |= matches!(datagrams.read(&room[..closing.len]), Read::End { .. });
            ends += 1;
            assert!(ends < 1000, "{framing:?}");
        }
        assert_eq!(heard, !framing.ends_elsewhere(), "{framing:?}");
    }
}

#[test]
fn anything_may_come() {
    for framing in examples() {
        let mut datagrams = framing.datagrams(0, 100);
        for len in 0..200 {
            let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
            datagrams.read(&bytes);
            datagrams.hear(0, &bytes);
        }
    }
}

#[test]
fn framings_are_equal_by_their_options() {
    assert_eq!(iperf3(true), iperf3(true));
    assert_ne!(iperf3(true), iperf3(false));
    assert_ne!(goodput(), ttcp());
}
