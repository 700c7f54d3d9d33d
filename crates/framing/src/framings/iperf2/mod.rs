//! iperf 2: 16 bytes in front of every datagram, a negative number at the end, and the receiver's
//! report in answer to it (include/payloads.h, src/Client.cpp and src/Reports.c of 2.1.8). Numbers
//! are big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | number of the datagram, lower half |
//! | 4-7 | time of sending, seconds since 1970 |
//! | 8-11 | its microseconds |
//! | 12-15 | number, upper half; payload before 2.0.14, and not there before 2.0.9 |
//! | 16- | settings of the test, in what a client sends; else digits |
//!
//! The end is a full datagram with the next number, negated. Since 2.0.14 numbers begin at 1 and the last datagram
//! counts as payload; before, they begin at 0 and it does not. Either way the number at the end is the count of
//! datagrams.

mod chunks;
mod report;

use goodput_model::FlowTotals;

use super::Kind;
use crate::times::{time_at, time_bytes, word_at};
use crate::{
    ChunkHeader, Closing, Datagrams, Framing, Layout, MAX_DATAGRAM_BYTES, NUMBER_BOUND, Read, Sent,
    Summary,
};

/// Bytes of the header.
const HEADER_BYTES: usize = 16;
/// The flag for 64-bit numbers (`HEADER_SEQNO64B`).
const WIDE_FLAG: u32 = 0x0800_0000;
/// How often the end marker is sent until it is answered, and the time between two, nanoseconds.
const END_COUNT: u64 = 200;
const END_GAP_NS: u64 = 10_000_000;
/// The same if it is never answered: any marker may be lost.
const UNANSWERED_ENDS: u64 = 5;
/// The position of the number of flows in a client's settings (`numThreads`; 2.2 has other bits above it).
const FLOWS_AT: usize = 4;
const FLOWS_BITS: u32 = 0xf_ffff;
/// How long a server has no socket for a new client after each flow that it accepts, nanoseconds: not long in 2.1.8
/// (`Listener::udp_accept`), up to a second in 2.2.1 (the wait for `receiving`).
const TAKING_UP_NS: u64 = 1_000_000_000;
/// After this time without a datagram, nanoseconds, the receiver gives the sender up, because no control connection
/// could report the end. A program that sends this rarely has a rate below 400 bit/s.
const IDLE_NS: u64 = 30_000_000_000;

/// How a client of a certain version writes its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    /// 64 bits, since 2.0.14.
    Wide,
    /// 32 bits, report after 16 bytes: 2.0.9 to 2.0.13.
    Narrow,
    /// 32 bits, report after 12 bytes: up to 2.0.8.
    Old,
}

/// The registry's entry.
pub const KIND: Kind = Kind { id: "iperf2", examples };

fn examples() -> Vec<Framing> {
    let settings = b"\x48\x01\0\x98".to_vec();
    let answered = [false, true].map(|answered| iperf2(settings.clone(), answered, false));
    let server = [false, true].map(|timed| iperf2(Vec::new(), false, timed));
    answered.into_iter().chain(server).chain([iperf2(Vec::new(), true, false)]).collect()
}

/// iperf2: each datagram has a number and its sending time; the last number is negative and is answered with the
/// receiver's report.
///
/// - `settings`: the settings of the test, which a sender writes after those 16 bytes in each datagram. A receiver that
///   has settings requests its payload with such a datagram.
/// - `answered`: whether the receiver answers: the negative number with its report, the header of a byte stream with a
///   few bytes. Not for a server's payload.
/// - `timed`: whether each chunk of a byte stream begins with its sending time, as `--trip-times` requests.
pub fn iperf2(settings: Vec<u8>, answered: bool, timed: bool) -> Framing {
    Framing::new(Tested { settings, answered, timed })
}

#[derive(Debug)]
struct Tested {
    settings: Vec<u8>,
    answered: bool,
    timed: bool,
}

impl Layout for Tested {
    fn datagrams(&self, _flow: u16, _chunk: usize) -> Box<dyn Datagrams> {
        Box::new(Iperf2::new(self.settings.clone(), self.answered))
    }

    /// A receiver looks for a header in the first bytes of a stream. The real sender's first bytes are not a header.
    fn lead(&self) -> &'static [u8] {
        b"01234567890123456789012345678901"
    }

    fn announces_its_beginning(&self) -> bool {
        true
    }

    fn answers_streams(&self) -> bool {
        self.answered
    }

    fn counts_proof(&self) -> bool {
        true
    }

    fn chunk_header(&self) -> Option<ChunkHeader> {
        self.timed.then_some(chunks::HEADER)
    }
}

/// The datagrams of one flow.
#[derive(Debug, Clone)]
struct Iperf2 {
    settings: Vec<u8>,
    answered: bool,
    generation: Option<Generation>,
    /// The sender's lowest number; 1 if the sender does not begin with 0.
    base: Option<u64>,
    /// The highest of its numbers so far.
    highest: u64,
    /// The datagram at the end, which old clients want to see again in the report.
    end: [u8; HEADER_BYTES],
}

impl Iperf2 {
    /// Writes `settings` after each header. `answered`: the receiver reports, and the sender waits for the report.
    fn new(settings: Vec<u8>, answered: bool) -> Self {
        let (generation, base, highest, end) = (None, None, 0, [0; HEADER_BYTES]);
        Self { settings, answered, generation, base, highest, end }
    }

    /// The number in a datagram, and whether it is negative, as at the end.
    fn number(&mut self, datagram: &[u8]) -> Option<(u64, bool)> {
        let low = word_at(datagram, 0)?;
        let generation = *self.generation.get_or_insert_with(|| generation(datagram));
        if generation == Generation::Wide {
            let high = word_at(datagram, 12)?;
            let id = (u64::from(high) << 32 | u64::from(low)) as i64;
            return Some((id.unsigned_abs(), id < 0));
        }
        let id = low as i32;
        if id >= 0 {
            return Some((u64::from(low), false));
        }
        // Either -n or n with the highest bit set, depending on the version: one of them is near the numbers that came.
        let (negated, marked) = (u64::from(id.unsigned_abs()), u64::from(low & 0x7fff_ffff));
        let distance = |n: u64| n.abs_diff(self.highest);
        Some((if distance(negated) <= distance(marked) { negated } else { marked }, true))
    }

    fn base(&mut self, first: u64) -> u64 {
        let from_one = self.generation == Some(Generation::Wide) && first != 0;
        *self.base.get_or_insert(u64::from(from_one))
    }
}

/// The generation of clients that writes such a datagram.
fn generation(datagram: &[u8]) -> Generation {
    match [12, 16, 20].map(|at| word_at(datagram, at)) {
        [_, Some(flags), _] if flags & WIDE_FLAG != 0 => Generation::Wide,
        // Number of threads and port of settings that begin at byte 12.
        [_, Some(1..=1024), Some(1..=0xffff)] => Generation::Old,
        [Some(0 | u32::MAX), ..] => Generation::Wide,
        [Some(_), ..] => Generation::Narrow,
        [None, ..] => Generation::Old,
    }
}

impl Datagrams for Iperf2 {
    fn least(&self) -> usize {
        HEADER_BYTES + self.settings.len()
    }

    fn longest(&self, _chunk: usize) -> usize {
        // A client need not report the length of its datagrams.
        MAX_DATAGRAM_BYTES
    }

    /// A first datagram with the settings of a reverse test; a server's receiver has none.
    fn request(&self, at_ns: u64) -> Option<Vec<u8>> {
        let mut datagram = [&[0; HEADER_BYTES], &self.settings[..]].concat();
        write_id(&mut datagram, 1, at_ns);
        (!self.settings.is_empty()).then_some(datagram)
    }

    fn settling_ns(&self) -> Option<u64> {
        let flows = word_at(&self.settings, FLOWS_AT).map_or(1, |word| word & FLOWS_BITS);
        Some(u64::from(flows.max(1)) * TAKING_UP_NS)
    }

    fn prepare(&self, datagram: &mut [u8]) {
        // Payload must not look like settings; the real programs' digits do not.
        let digits =
            (HEADER_BYTES..HEADER_BYTES + 8).zip(b'6'..).map(|(at, digit)| (at, digit.min(b'9')));
        digits.for_each(|(at, digit)| datagram.get_mut(at).into_iter().for_each(|b| *b = digit));
        datagram[HEADER_BYTES..HEADER_BYTES + self.settings.len()].copy_from_slice(&self.settings);
    }

    fn write(&self, datagram: &mut [u8], sent: Sent) {
        write_id(datagram, sent.number as i64 + 1, sent.at_ns);
    }

    fn read(&mut self, datagram: &[u8]) -> Read {
        let Some((number, is_end)) = self.number(datagram) else { return Read::Foreign };
        if number >= NUMBER_BOUND {
            return Read::Foreign;
        }
        let base = self.base(number);
        let Some(index) = number.checked_sub(base) else { return Read::Foreign };
        if !is_end {
            self.highest = self.highest.max(number);
            let sent_ns = time_at(datagram, 4);
            return Read::Payload { number: Some(index), sent_ns };
        }
        let kept = datagram.len().min(HEADER_BYTES);
        self.end[..kept].copy_from_slice(&datagram[..kept]);
        Read::End { sent: Some(number), is_payload: base == 1, ago_ns: 0 }
    }

    fn closing(&self, round: u64, sent: Sent, room: &mut [u8]) -> Option<Closing> {
        // Each marker has its own number, as if the previous one had been payload.
        write_id(room, -((sent.number + round) as i64 + 1), sent.at_ns);
        let rounds = if self.answered { END_COUNT } else { UNANSWERED_ENDS };
        let closing = Closing { len: room.len(), pause_ns: END_GAP_NS, is_payload: round == 0 };
        (round < rounds).then_some(closing)
    }

    fn awaits_answer(&self) -> bool {
        self.answered
    }

    fn hear(&self, flow: u16, datagram: &[u8]) -> Option<FlowTotals> {
        report::read(flow, datagram)
    }

    fn answer(&self, summary: &Summary) -> Option<Vec<u8>> {
        let generation = self.generation.filter(|_| self.answered)?;
        Some(match generation {
            Generation::Wide => report::write(&[0; HEADER_BYTES], true, summary),
            Generation::Narrow => report::write(&self.end, false, summary),
            Generation::Old => report::write(&self.end[..12], false, summary),
        })
    }

    fn idle_ns(&self) -> Option<u64> {
        Some(IDLE_NS)
    }
}

fn write_id(datagram: &mut [u8], id: i64, at_ns: u64) {
    let id = id.to_be_bytes();
    datagram[..4].copy_from_slice(&id[4..]);
    datagram[4..12].copy_from_slice(&time_bytes(at_ns));
    datagram[12..HEADER_BYTES].copy_from_slice(&id[..4]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The time of a captured datagram, 2026-11-21.
    const AT_NS: u64 = 0x6b01_ed19 * 1_000_000_000 + 0x000d_660f * 1000;
    const TIME: [u8; 8] = *b"\x6b\x01\xed\x19\x00\x0d\x66\x0f";

    fn datagram(words: &[&[u8]], len: usize) -> Vec<u8> {
        let mut bytes = words.concat();
        bytes.resize(len, b'5');
        bytes
    }

    fn read(format: &mut Iperf2, id: u32, high: u32, rest: &[u8]) -> Read {
        format.read(&datagram(&[&id.to_be_bytes(), &TIME, &high.to_be_bytes(), rest], 100))
    }

    fn payload(number: u64) -> Read {
        Read::Payload { number: Some(number), sent_ns: Some(AT_NS) }
    }

    fn end(sent: u64, is_payload: bool) -> Read {
        Read::End { sent: Some(sent), is_payload, ago_ns: 0 }
    }

    #[test]
    fn a_client_of_2_1_8_is_written_as_it_was_captured() {
        // `iperf -c 127.0.0.1 -u -n 2K -l 512 -b 1M`: 4 datagrams, then the end.
        let settings = b"\x48\x01\x00\x98\x00\x00\x00\x01\x00\x00\x13\x89\x00\x00\x02\x00".to_vec();
        let format = Iperf2::new(settings.clone(), true);
        let mut room = [0; 512];
        format.prepare(&mut room);
        format.write(&mut room, Sent { number: 0, bytes: 512, at_ns: AT_NS });
        let first = [&b"\0\0\0\x01"[..], &TIME, b"\0\0\0\0", &settings].concat();
        assert_eq!(room[..32], first);
        let sent = Sent { number: 4, bytes: 0, at_ns: AT_NS };
        let closing = format.closing(0, sent, &mut room);
        assert_eq!(closing, Some(Closing { len: 512, pause_ns: END_GAP_NS, is_payload: true }));
        let last = [&b"\xff\xff\xff\xfb"[..], &TIME, b"\xff\xff\xff\xff", &settings].concat();
        assert_eq!(room[..32], last);
        format.closing(1, sent, &mut room);
        assert_eq!(room[..4], *b"\xff\xff\xff\xfa", "each has a number of its own");
        assert_eq!(format.closing(END_COUNT, sent, &mut room), None);
    }

    #[test]
    fn a_server_writes_digits_behind_the_header() {
        let mut room = [0; 30];
        Iperf2::new(Vec::new(), false).prepare(&mut room);
        assert_eq!(room[16..20], *b"6789");
    }

    #[test]
    fn a_client_of_2_1_is_read_with_its_last_datagram_as_payload() {
        let (mut format, flags) = (Iperf2::new(Vec::new(), true), b"\x48\x01\x00\x98");
        for id in 1..5 {
            assert_eq!(read(&mut format, id, 0, flags), payload(u64::from(id) - 1));
        }
        assert_eq!(read(&mut format, 0xffff_fffb, u32::MAX, flags), end(5, true));
        assert_eq!(read(&mut format, 0, 1, flags), payload(0xffff_ffff), "upper half");
    }

    #[test]
    fn clients_before_2_0_14_begin_at_0_and_end_without_payload() {
        let narrow = b"\0\0\0\0";
        for last in [0x8000_0004, 0xffff_fffc] {
            let mut format = Iperf2::new(Vec::new(), true);
            assert_eq!(read(&mut format, 0, 0x3233_3435, narrow), payload(0));
            assert_eq!(read(&mut format, 3, 0x3233_3435, narrow), payload(3));
            assert_eq!(read(&mut format, last, 0x3233_3435, narrow), end(4, false));
            assert_eq!(format.generation, Some(Generation::Narrow));
        }
        let old = b"\0\0\0\x01\0\0\x13\x89";
        let mut format = Iperf2::new(Vec::new(), true);
        assert_eq!(read(&mut format, 0, 0, old), payload(0));
        assert_eq!(read(&mut format, 0xffff_ffff, 0, old), end(1, false));
        assert_eq!(format.generation, Some(Generation::Old));
    }

    #[test]
    fn what_a_server_sends_is_read_though_no_flags_give_its_width() {
        let mut format = Iperf2::new(Vec::new(), false);
        assert_eq!(read(&mut format, 1, 0, b"6789"), payload(0));
        assert_eq!(read(&mut format, 0xffff_fffe, u32::MAX, b"6789"), end(2, true));
    }

    #[test]
    fn numbers_that_nobody_sends_are_refused() {
        let mut format = Iperf2::new(Vec::new(), true);
        assert_eq!(read(&mut format, 0, 0x8000_0000, b"\x48\x01\x00\x98"), Read::Foreign);
        assert_eq!(read(&mut format, 0, 0x7000_0000, b"\x48\x01\x00\x98"), Read::Foreign);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in 0u64..1 << 40, len in 16usize..99, settings in proptest::collection::vec(any::<u8>(), 0..4)) {
            let settings = [&b"\x48"[..], &settings].concat();
            let mut format = Iperf2::new(settings, true);
            let mut room = vec![7; len + format.least()];
            format.prepare(&mut room);
            let sent = Sent { number, bytes: 0, at_ns: AT_NS };
            format.write(&mut room, sent);
            prop_assert_eq!(format.read(&room), payload(number));
            format.closing(0, sent, &mut room);
            prop_assert_eq!(format.read(&room), end(number + 1, true));
        }
    }
}
