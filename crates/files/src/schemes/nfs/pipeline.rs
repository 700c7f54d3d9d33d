//! Many READs in flight on one connection, without I/O: calls go out, and what comes back is told apart into the words
//! of answers and their payload.
//!
//! The file is read from its beginning to its end, again and again. Answers may come in any order. Payload is never
//! held: whoever reads the connection is told how much of what comes next is payload.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::calls::{self, Handle, READ, Read};
use super::log::RpcLog;
use super::rpc::{self, Credential, LAST_FRAGMENT_BIT};
use super::xdr::{Reader, Unread, padding};
use crate::error::FileError;

/// Bytes of an answer before its payload at most: with the longest verifier and all attributes they are below.
const HEAD_BYTES: usize = 1 << 10;
/// How often one call is sent at most.
const MAX_TRIES: u32 = 4;

/// What is read, and how.
pub struct Reads {
    pub file: Handle,
    /// Length of the file, bytes; at least 1.
    pub file_bytes: u64,
    /// Bytes of one call; at least 1.
    pub call_bytes: u32,
    /// Calls in flight; at least 1.
    pub slots: u16,
}

/// The calls and answers of one connection.
pub struct Pipeline {
    reads: Reads,
    credential: Credential,
    log: Arc<RpcLog>,
    xid: u32,
    /// Where the next call begins.
    next: u64,
    /// What short answers left out.
    rest: Vec<Range>,
    waiting: VecDeque<Waiting>,
    /// Answers that were whole.
    answers: u64,
    /// When the calls for the beginning of the file left, of those passes that nobody has begun to read.
    passes: VecDeque<Instant>,
    fragment: Fragment,
    stage: Stage,
    head: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    bytes: u32,
}

/// A call that is not answered.
#[derive(Clone, Copy)]
struct Waiting {
    xid: u32,
    range: Range,
    /// When it was sent first, and last.
    first: Instant,
    sent: Instant,
    /// Answers that were whole by then.
    answers_before: u64,
    tries: u32,
}

/// Where in a record the stream is.
#[derive(Default)]
struct Fragment {
    mark: [u8; 4],
    /// Bytes of the mark that have come.
    marked: usize,
    /// Bytes of the fragment that are to come.
    left: usize,
    /// Whether the record ends with it.
    is_last: bool,
}

/// What of an answer comes next.
#[derive(Clone, Copy)]
enum Stage {
    Head,
    Payload { left: u32, then: Ending },
    Padding { left: usize, then: Ending },
    End(Ending),
}

/// What is noted when an answer is whole.
#[derive(Clone, Copy)]
struct Ending {
    sent: Instant,
    /// Where in the file its payload ends.
    end: u64,
    bytes: u32,
    is_short: bool,
}

impl Stage {
    /// Goes on where nothing is left.
    fn settled(self) -> Self {
        match self {
            Self::Payload { left: 0, then } => {
                Self::Padding { left: padding(then.bytes as usize), then }.settled()
            }
            Self::Padding { left: 0, then } => Self::End(then),
            other => other,
        }
    }
}

impl Pipeline {
    pub fn new(reads: Reads, credential: Credential, log: Arc<RpcLog>, xid: u32) -> Self {
        log.begin(reads.call_bytes, reads.slots);
        Self {
            reads,
            credential,
            log,
            xid,
            next: 0,
            rest: Vec::new(),
            waiting: VecDeque::new(),
            answers: 0,
            passes: VecDeque::new(),
            fragment: Fragment::default(),
            stage: Stage::Head,
            head: Vec::new(),
        }
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.reads.file_bytes
    }

    /// Adds as many calls as there are free slots.
    pub fn ask(&mut self, out: &mut Vec<u8>, now: Instant) {
        while self.in_flight() < usize::from(self.reads.slots) {
            let range = self.next_range(now);
            let xid = self.xid;
            self.xid = xid.wrapping_add(1);
            self.call(out, xid, range);
            let answers_before = self.answers;
            let call = Waiting { xid, range, first: now, sent: now, answers_before, tries: 1 };
            self.waiting.push_back(call);
        }
    }

    fn call(&self, out: &mut Vec<u8>, xid: u32, range: Range) {
        rpc::call(out, xid, READ, &self.credential, |out| {
            calls::read_args(out, &self.reads.file, range.offset, range.bytes);
        });
    }

    /// Goes on with a new connection: adds the calls that the old one left without an answer, by the same numbers
    /// (RFC 5531 section 9). Fails if one of them was sent often enough.
    pub fn ask_again(&mut self, out: &mut Vec<u8>, now: Instant) -> Result<(), FileError> {
        self.fragment = Fragment::default();
        self.head.clear();
        let mut calls = self.waiting.len();
        if let Stage::Payload { left, then } = std::mem::replace(&mut self.stage, Stage::Head) {
            self.rest.push(Range { offset: then.end - u64::from(left), bytes: left });
            calls += 1;
        }
        self.log.reconnected(calls);
        for at in 0..self.waiting.len() {
            let Waiting { xid, range, tries, .. } = self.waiting[at];
            if tries == MAX_TRIES {
                return Err(FileError::TimedOut(format!(
                    "the server gave no answer to the READ of {} bytes at {}, which was sent {tries} times",
                    range.bytes, range.offset
                )));
            }
            self.call(out, xid, range);
            let answers_before = self.answers;
            let call = &mut self.waiting[at];
            *call = Waiting { sent: now, answers_before, tries: tries + 1, ..*call };
        }
        Ok(())
    }

    /// Whether a call has been without an answer for longer than `patience`, while the server answered so many that were
    /// sent later that it must have lost this one. That alone takes long is no sign: many large answers may be before it.
    pub fn is_overdue(&self, patience: Duration, now: Instant) -> bool {
        // Calls are sent in order, and all of them again on a new connection.
        self.waiting.front().is_some_and(|call| {
            let passed_by = self.answers - call.answers_before >= 2 * u64::from(self.reads.slots);
            passed_by && now.saturating_duration_since(call.sent) > patience
        })
    }

    /// Calls that are not answered to the end.
    pub fn in_flight(&self) -> usize {
        self.waiting.len() + usize::from(!matches!(self.stage, Stage::Head))
    }

    fn next_range(&mut self, now: Instant) -> Range {
        if let Some(range) = self.rest.pop() {
            return range;
        }
        let offset = self.next;
        if offset == 0 {
            self.passes.push_back(now);
        }
        let left = self.reads.file_bytes - offset;
        let bytes = u32::try_from(left).unwrap_or(u32::MAX).min(self.reads.call_bytes);
        self.next = if u64::from(bytes) == left { 0 } else { offset + u64::from(bytes) };
        Range { offset, bytes }
    }

    /// When the calls for the next pass over the file left, if they did.
    pub fn next_pass(&mut self) -> Option<Instant> {
        self.passes.pop_front()
    }

    /// How many of the next bytes are payload; 0: they are to be given to [`Self::take`].
    pub fn payload(&self) -> usize {
        match self.stage {
            Stage::Payload { left, .. } => self.fragment.left.min(left as usize),
            _ => 0,
        }
    }

    /// `bytes` of payload came, at most [`Self::payload`].
    pub fn took(&mut self, bytes: usize, now: Instant) -> Result<(), FileError> {
        if let Stage::Payload { left, then } = self.stage {
            let left = left.saturating_sub(bytes as u32);
            self.stage = Stage::Payload { left, then }.settled();
        }
        self.advance(bytes, now)
    }

    /// Takes bytes that are no payload from the beginning of `bytes`, at least one. How many.
    pub fn take(&mut self, bytes: &[u8], now: Instant) -> Result<usize, FileError> {
        if self.fragment.left == 0 {
            return self.take_mark(bytes, now);
        }
        let piece = &bytes[..bytes.len().min(self.fragment.left)];
        let used = match self.stage {
            Stage::Head => self.take_head(piece)?,
            Stage::Payload { .. } => return Ok(0),
            Stage::Padding { left, then } => {
                let used = piece.len().min(left);
                self.stage = Stage::Padding { left: left - used, then }.settled();
                used
            }
            Stage::End(_) => return Err(protocol("the server's answer is longer than it says")),
        };
        self.advance(used, now)?;
        Ok(used)
    }

    fn take_mark(&mut self, bytes: &[u8], now: Instant) -> Result<usize, FileError> {
        let fragment = &mut self.fragment;
        let used = bytes.len().min(4 - fragment.marked);
        fragment.mark[fragment.marked..][..used].copy_from_slice(&bytes[..used]);
        fragment.marked += used;
        if fragment.marked == 4 {
            let mark = u32::from_be_bytes(fragment.mark);
            if mark == 0 {
                // As many of them as one likes would bring nothing.
                return Err(protocol("the server's answer has an empty fragment"));
            }
            *fragment = Fragment {
                left: (mark & !LAST_FRAGMENT_BIT) as usize,
                is_last: mark & LAST_FRAGMENT_BIT != 0,
                ..Fragment::default()
            };
            self.advance(0, now)?;
        }
        Ok(used)
    }

    /// `bytes` of the fragment are over.
    fn advance(&mut self, bytes: usize, now: Instant) -> Result<(), FileError> {
        self.fragment.left = self.fragment.left.saturating_sub(bytes);
        if self.fragment.left > 0 || !self.fragment.is_last {
            return Ok(());
        }
        self.fragment = Fragment::default();
        let Stage::End(answer) = self.stage else {
            return Err(protocol("the server's answer is shorter than it says"));
        };
        self.stage = Stage::Head;
        self.answers += 1;
        self.log.answered(now.saturating_duration_since(answer.sent), answer.is_short);
        Ok(())
    }

    fn take_head(&mut self, piece: &[u8]) -> Result<usize, FileError> {
        let had = self.head.len();
        let more = piece.len().min(HEAD_BYTES - had);
        self.head.extend(&piece[..more]);
        match read_head(&self.head) {
            Ok((used, xid, read)) => {
                self.head.clear();
                let then = self.answered(xid, read)?;
                self.stage = Stage::Payload { left: read.bytes, then }.settled();
                // What was there before was too short, so the head ends in this piece.
                Ok(used.saturating_sub(had))
            }
            Err(Unread::Short) if self.head.len() < HEAD_BYTES => Ok(more),
            Err(Unread::Short) => Err(protocol("the head of the server's answer has no end")),
            Err(Unread::Failed(why)) => Err(why),
        }
    }

    /// Finds the call that an answer is to, and what of it is left to ask for.
    fn answered(&mut self, xid: u32, read: Read) -> Result<Ending, FileError> {
        let at = self.waiting.iter().position(|call| call.xid == xid);
        let call = at.and_then(|at| self.waiting.remove(at));
        let call = call.ok_or_else(|| {
            protocol("the server answers a call that was not made, or one that it had answered")
        })?;
        let (asked, bytes) = (call.range.bytes, read.bytes);
        if bytes > asked {
            let why = format!("the server answers {bytes} bytes where {asked} were asked for");
            return Err(FileError::Protocol(why));
        }
        if bytes < asked {
            if read.is_end {
                let at = call.range.offset + u64::from(bytes);
                let announced = self.reads.file_bytes;
                return Err(FileError::Refused(format!(
                    "the file ends after {at} bytes, but the server had announced {announced}"
                )));
            }
            if bytes == 0 {
                return Err(protocol("the server answers a READ with nothing"));
            }
            let offset = call.range.offset + u64::from(bytes);
            self.rest.push(Range { offset, bytes: asked - bytes });
        }
        let end = call.range.offset + u64::from(bytes);
        Ok(Ending { sent: call.first, end, bytes, is_short: bytes < asked })
    }
}

fn read_head(bytes: &[u8]) -> Result<(usize, u32, Read), Unread> {
    let mut reader = Reader::new(bytes);
    let xid = rpc::reply(&mut reader)?;
    let read = calls::read(&mut reader)?;
    Ok((reader.used(), xid, read))
}

fn protocol(why: &str) -> FileError {
    FileError::Protocol(why.into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::xdr::{put, put_opaque, put_u64};
    use super::*;

    const FILE: u64 = 1000;

    fn pipeline(call_bytes: u32, slots: u16) -> Pipeline {
        let file = Handle(vec![1, 2, 3]);
        let reads = Reads { file, file_bytes: FILE, call_bytes, slots };
        Pipeline::new(reads, Credential::own(), Arc::default(), u32::MAX)
    }

    /// What a call asks for.
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

    /// Gives bytes to a pipeline as they come, and returns their payload.
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

    /// Why a pipeline gives up when its one call for 400 bytes is answered so.
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
        assert!(longer.contains("401 bytes where 400"), "{longer}");
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
        /// In whatever order, fragments and pieces answers come, and however short, all of the file comes.
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

        /// Whatever comes, it is taken or refused, in bounded memory.
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
}
