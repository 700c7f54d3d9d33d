//! A pipeline's requests, and its handling of answers that are good, bad, cut and out of order.

use std::time::Duration;

use proptest::prelude::*;

use super::super::rpc::LAST_FRAGMENT_BIT;
use super::super::xdr::{Reader, put, put_opaque, put_u64};
use super::answers::HEAD_BYTES;
use super::*;

const FILE: u64 = 1000;

fn pipeline(call_bytes: u32, slots: u16) -> Pipeline {
    let file = Handle(vec![1, 2, 3]);
    let reads = Reads { file, file_bytes: FILE, call_bytes, slots, wanted: u64::MAX };
    Pipeline::new(reads, Credential::own(), Arc::default(), u32::MAX)
}

#[test]
fn no_more_is_asked_for_than_is_wanted() {
    for (wanted, asked) in
        [(0, vec![]), (250, vec![(0, 100), (100, 100), (200, 50)]), (1050, vec![])]
    {
        let mut pipeline = pipeline(100, 64);
        pipeline.reads.wanted = wanted;
        let mut out = Vec::new();
        pipeline.ask(&mut out, Instant::now());
        let calls = calls_in(&out);
        assert_eq!(calls.iter().map(|call| u64::from(call.bytes)).sum::<u64>(), wanted);
        let ranges: Vec<_> = calls.iter().map(|call| (call.offset, call.bytes)).collect();
        assert!(wanted > FILE || ranges == asked, "{ranges:?}");
    }
}

/// The range that a call requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    xid: u32,
    offset: u64,
    bytes: u32,
}

fn calls_in(mut bytes: &[u8]) -> Vec<Call> {
    let mut calls = Vec::new();
    while let Some((used, record)) = rpc::record(bytes) {
        let mut reader = Reader::new(&record[record.len() - 12..]);
        let (offset, asked) = (reader.u64().unwrap(), reader.u32().unwrap());
        let xid = Reader::new(&record).u32().unwrap();
        calls.push(Call { xid, offset, bytes: asked });
        bytes = &bytes[used..];
    }
    assert!(bytes.is_empty(), "only whole calls are made");
    calls
}

fn byte_at(offset: u64) -> u8 {
    (offset * 7 % 251) as u8
}

/// The head of an accepted answer.
fn accepted(xid: u32) -> Vec<u8> {
    let mut out = Vec::new();
    [xid, 1, 0, 0, 0, 0].into_iter().for_each(|word| put(&mut out, word));
    out
}

/// An answer of `bytes` of the file, with attributes or without.
fn answer(call: Call, bytes: u32, attributes: bool) -> Vec<u8> {
    let mut out = accepted(call.xid);
    put(&mut out, 0);
    put(&mut out, u32::from(attributes));
    if attributes {
        (0..10).for_each(|_| put_u64(&mut out, 1));
        put(&mut out, 1);
    }
    let end = call.offset + u64::from(bytes);
    [bytes, u32::from(end == FILE)].into_iter().for_each(|word| put(&mut out, word));
    let payload: Vec<u8> = (call.offset..end).map(byte_at).collect();
    put_opaque(&mut out, &payload);
    out
}

/// A record in fragments of `most` bytes.
fn in_fragments(record: &[u8], most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut pieces = record.chunks(most).peekable();
    while let Some(piece) = pieces.next() {
        let last = if pieces.peek().is_none() { LAST_FRAGMENT_BIT } else { 0 };
        put(&mut out, piece.len() as u32 | last);
        out.extend(piece);
    }
    out
}

/// Passes bytes to a pipeline as they arrive, and returns their payload.
fn feed(pipeline: &mut Pipeline, mut bytes: &[u8], now: Instant) -> Result<Vec<u8>, FileError> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let payload = pipeline.payload().min(bytes.len());
        let used = if payload == 0 {
            pipeline.take(bytes, now)?
        } else {
            all.extend(&bytes[..payload]);
            pipeline.took(payload, now)?;
            payload
        };
        assert!(used > 0, "it goes on");
        bytes = &bytes[used..];
    }
    Ok(all)
}

fn ask(pipeline: &mut Pipeline, now: Instant) -> Vec<Call> {
    let mut out = Vec::new();
    pipeline.ask(&mut out, now);
    calls_in(&out)
}

#[test]
fn the_file_is_asked_for_in_pieces_and_again() {
    let now = Instant::now();
    let mut pipeline = pipeline(400, 4);
    let asked: Vec<_> = ask(&mut pipeline, now).iter().map(|c| (c.offset, c.bytes)).collect();
    assert_eq!(asked, [(0, 400), (400, 400), (800, 200), (0, 400)]);
    assert_eq!(ask(&mut pipeline, now), [], "all slots are taken");
    assert_eq!((pipeline.next_pass(), pipeline.next_pass()), (Some(now), Some(now)));
    assert_eq!(pipeline.next_pass(), None);
}

#[test]
fn calls_are_no_longer_than_the_file() {
    for (call_bytes, reported) in [(400, 400), (1 << 20, FILE as u32)] {
        assert_eq!(pipeline(call_bytes, 4).log.so_far().call_bytes, reported);
    }
}

#[test]
fn a_slot_is_free_when_its_answer_is_whole() {
    let now = Instant::now();
    let mut pipeline = pipeline(400, 1);
    let call = ask(&mut pipeline, now)[0];
    let bytes = in_fragments(&answer(call, 400, true), 5000);
    let later = now + Duration::from_millis(3);
    feed(&mut pipeline, &bytes[..bytes.len() - 1], later).unwrap();
    assert_eq!(ask(&mut pipeline, later), []);
    feed(&mut pipeline, &bytes[bytes.len() - 1..], later).unwrap();
    assert_eq!(ask(&mut pipeline, later)[0].offset, 400);
    let log = pipeline.log.so_far();
    assert_eq!((log.answered, log.short, log.round_trips_us), (1, 0, vec![3000.0]));
}

#[test]
fn time_between_answers_is_idle_and_time_within_them_is_not() {
    let now = Instant::now();
    let at = |ms| now + Duration::from_millis(ms);
    let mut pipeline = pipeline(400, 2);
    let calls = ask(&mut pipeline, now);
    let bytes = |call: Call| in_fragments(&answer(call, call.bytes, true), 5000);
    let (first, second) = (bytes(calls[0]), bytes(calls[1]));
    feed(&mut pipeline, &first[..100], at(10)).unwrap();
    feed(&mut pipeline, &first[100..], at(20)).unwrap();
    assert_eq!(pipeline.log.so_far().idle, None, "there was one answer");
    feed(&mut pipeline, &second, at(27)).unwrap();
    let log = pipeline.log.so_far();
    assert_eq!(log.idle, Some(Duration::from_millis(7)));
    assert_eq!((log.shortest_us, log.longest_us), (Some(20_000.0), 27_000.0));
}

#[test]
fn a_new_connection_goes_on_where_the_old_one_ended() {
    let now = Instant::now();
    let mut pipeline = pipeline(400, 2);
    let calls = ask(&mut pipeline, now);
    let bytes = in_fragments(&answer(calls[0], 400, true), 5000);
    let got = feed(&mut pipeline, &bytes[..bytes.len() - 150], now).unwrap();
    let mut out = Vec::new();
    pipeline.ask_again(&mut out, now).unwrap();
    assert_eq!(calls_in(&out), calls[1..], "by the same number");
    let rest = ask(&mut pipeline, now)[0];
    assert_eq!((rest.offset, rest.bytes), (250, 150));
    let rest = in_fragments(&answer(rest, 150, true), 5000);
    let got = [got, feed(&mut pipeline, &rest, now).unwrap()].concat();
    assert_eq!(got, (0..400).map(byte_at).collect::<Vec<_>>());
    let log = pipeline.log.so_far();
    assert_eq!((log.reconnects, log.retransmitted, log.answered), (1, 2, 1));
}

#[test]
fn a_call_that_stays_without_an_answer_is_not_sent_for_ever() {
    let (now, patience) = (Instant::now(), Duration::from_secs(5));
    let mut pipeline = pipeline(400, 2);
    let mut answered = ask(&mut pipeline, now)[1];
    let mut later = now;
    for _ in 1..MAX_TRIES {
        later += patience * 2;
        for _ in 0..4 {
            assert!(!pipeline.is_overdue(patience, later), "it may only be slow");
            let bytes = answer(answered, answered.bytes, false);
            feed(&mut pipeline, &in_fragments(&bytes, 5000), later).unwrap();
            answered = ask(&mut pipeline, later)[0];
        }
        assert!(!pipeline.is_overdue(patience, later - patience), "it is not late yet");
        assert!(pipeline.is_overdue(patience, later), "others passed it by");
        pipeline.ask_again(&mut Vec::new(), later).unwrap();
        assert!(!pipeline.is_overdue(patience, later + patience * 2));
    }
    let why = pipeline.ask_again(&mut Vec::new(), later).unwrap_err().to_string();
    assert!(why.contains("READ of 400 bytes at 0, which was sent 4 times"), "{why}");
}

#[test]
fn what_a_short_answer_left_out_is_asked_for_next() {
    let now = Instant::now();
    let mut pipeline = pipeline(400, 1);
    let call = ask(&mut pipeline, now)[0];
    feed(&mut pipeline, &in_fragments(&answer(call, 13, false), 5000), now).unwrap();
    let rest = ask(&mut pipeline, now)[0];
    assert_eq!((rest.offset, rest.bytes), (13, 387));
    assert_eq!(pipeline.log.so_far().short, 1);
}

/// Why a pipeline gives up after this answer to its single call for 400 bytes.
fn why(reply: impl Fn(Call) -> Vec<u8>) -> String {
    let now = Instant::now();
    let mut pipeline = pipeline(400, 1);
    let call = ask(&mut pipeline, now)[0];
    feed(&mut pipeline, &reply(call), now).unwrap_err().to_string()
}

#[test]
fn a_server_that_lies_is_found_out() {
    let whole = |record: Vec<u8>| in_fragments(&record, 5000);
    let longer = why(|call| whole(answer(call, 401, true)));
    assert!(longer.contains("401 bytes, but 400"), "{longer}");
    let nothing = why(|call| whole(answer(call, 0, true)));
    assert!(nothing.contains("with nothing"), "{nothing}");
    let strange = why(|call| whole(answer(Call { xid: 5, ..call }, 400, true)));
    assert!(strange.contains("not made"), "{strange}");
    let twice = why(|call| whole(answer(call, 400, true)).repeat(2));
    assert!(twice.contains("had answered"), "{twice}");
    let more = why(|call| whole([answer(call, 400, true), vec![0; 4]].concat()));
    assert!(more.contains("longer than it says"), "{more}");
    let cut = why(|call| whole(answer(call, 400, true)[..200].to_vec()));
    assert!(cut.contains("shorter than it says"), "{cut}");
    let empty = why(|_| vec![0x80, 0, 0, 0]);
    assert!(empty.contains("shorter than it says"), "{empty}");
    let stale = why(|call| {
        let mut out = accepted(call.xid);
        [70, 0].into_iter().for_each(|word| put(&mut out, word));
        whole(out)
    });
    assert!(stale.contains("stale"), "{stale}");
}

#[test]
fn a_file_that_became_shorter_is_not_read_on() {
    let why = why(|call| {
        let mut record = answer(call, 4, false);
        let end = record.len() - 12;
        record[end..end + 4].copy_from_slice(&1u32.to_be_bytes());
        in_fragments(&record, 5000)
    });
    assert!(why.contains("ends after 4 bytes"), "{why}");
}

proptest! {
    /// For any order, fragments and pieces of answers, and any length of them, the whole file arrives.
    #[test]
    fn every_byte_of_the_file_comes_once(
        call_bytes in 1u32..1200,
        slots in 1u16..9,
        fragment in 1usize..300,
        piece in 1usize..500,
        choices in prop::collection::vec((any::<prop::sample::Index>(), 1u32..1200, any::<bool>()), 1..40),
    ) {
        let now = Instant::now();
        let mut pipeline = pipeline(call_bytes, slots);
        let (mut open, mut expected, mut got) = (Vec::new(), Vec::new(), Vec::new());
        for (which, bytes, attributes) in choices {
            open.extend(ask(&mut pipeline, now));
            prop_assert_eq!(open.len(), usize::from(slots));
            let call: Call = open.remove(which.index(open.len()));
            let bytes = bytes.min(call.bytes);
            expected.extend((call.offset..call.offset + u64::from(bytes)).map(byte_at));
            for piece in in_fragments(&answer(call, bytes, attributes), fragment).chunks(piece) {
                got.extend(feed(&mut pipeline, piece, now).unwrap());
            }
        }
        prop_assert_eq!(got, expected);
    }

    /// Any input is accepted or refused, in bounded memory.
    #[test]
    fn anything_may_come(bytes in prop::collection::vec(any::<u8>(), 0..3000), skip in 0usize..200) {
        let now = Instant::now();
        let mut pipeline = pipeline(400, 2);
        let call = ask(&mut pipeline, now)[0];
        let good = in_fragments(&answer(call, 400, true), 100);
        let bytes = [&good[..skip.min(good.len())], &bytes].concat();
        let _ = feed(&mut pipeline, &bytes, now);
        prop_assert!(pipeline.head.len() <= HEAD_BYTES);
    }
}
