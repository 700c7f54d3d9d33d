//! Many READs in flight on one connection, without I/O: calls go out, and the input is split into headers of answers
//! and their payload.
//!
//! The file is read from beginning to end, again and again. Answers may arrive in any order. The pipeline never holds
//! payload: it informs the reader of the connection how many of the next bytes are payload.

mod answers;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::calls::{self, Handle, READ};
use super::later;
use super::rpc::{self, Credential};
use crate::error::FileError;
use crate::rpc_log::RpcLog;
use answers::{Fragment, Stage};

/// How many times one call is sent at most.
const MAX_TRIES: u32 = 4;

/// The parameters of the READs.
pub struct Reads {
    pub file: Handle,
    /// Length of the file, bytes; at least 1.
    pub file_bytes: u64,
    /// Bytes of one call; at least 1.
    pub call_bytes: u32,
    /// Calls in flight; at least 1.
    pub slots: u16,
    /// Bytes after which no more is asked for, over all passes.
    pub wanted: u64,
}

/// The calls and answers of one connection.
pub struct Pipeline {
    reads: Reads,
    credential: Credential,
    log: Arc<RpcLog>,
    xid: u32,
    /// The offset of the next call.
    next: u64,
    /// Ranges that short answers left out.
    rest: Vec<Range>,
    /// Ranges that the server postponed, and when to request them.
    later: Vec<(Instant, Range)>,
    waiting: VecDeque<Waiting>,
    /// Complete answers.
    answers: u64,
    /// When the last answer was complete, if nothing has arrived since.
    idle_since: Option<Instant>,
    /// When the calls for the beginning of the file left, for passes whose reading has not begun.
    passes: VecDeque<Instant>,
    fragment: Fragment,
    stage: Stage,
    head: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    bytes: u32,
    /// How many times in a row the server postponed it.
    put_off: usize,
}

/// An unanswered call.
#[derive(Clone, Copy)]
struct Waiting {
    xid: u32,
    range: Range,
    /// When it was sent first, and last.
    first: Instant,
    sent: Instant,
    /// Complete answers at that time.
    answers_before: u64,
    tries: u32,
}

impl Pipeline {
    pub fn new(reads: Reads, credential: Credential, log: Arc<RpcLog>, xid: u32) -> Self {
        // A file that is shorter than a call gives the length of its answers.
        let longest = u64::from(reads.call_bytes).min(reads.file_bytes);
        log.begin(u32::try_from(longest).unwrap_or(u32::MAX), reads.slots);
        Self {
            reads,
            credential,
            log,
            xid,
            next: 0,
            rest: Vec::new(),
            later: Vec::new(),
            waiting: VecDeque::new(),
            answers: 0,
            idle_since: None,
            passes: VecDeque::new(),
            fragment: Fragment::default(),
            stage: Stage::Head,
            head: Vec::new(),
        }
    }

    /// Bytes of one call.
    pub fn call_bytes(&self) -> usize {
        self.reads.call_bytes as usize
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.reads.file_bytes
    }

    /// Adds as many calls as there are free slots.
    pub fn ask(&mut self, out: &mut Vec<u8>, now: Instant) {
        let due = self.later.extract_if(.., |(at, _)| *at <= now);
        self.rest.extend(due.map(|(_, range)| range));
        while self.in_flight() < usize::from(self.reads.slots) {
            let Some(range) = self.next_range(now) else { break };
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

    /// Continues on a new connection: adds the calls that the old one left unanswered, with the same numbers (RFC 5531
    /// section 9). Fails if one of them was sent too many times.
    pub fn ask_again(&mut self, out: &mut Vec<u8>, now: Instant) -> Result<(), FileError> {
        self.fragment = Fragment::default();
        self.idle_since = None;
        self.head.clear();
        let mut calls = self.waiting.len();
        if let Stage::Payload { left, then } = std::mem::replace(&mut self.stage, Stage::Head) {
            self.rest.push(Range { offset: then.end - u64::from(left), bytes: left, put_off: 0 });
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

    /// Whether a call has been unanswered for longer than `patience`, although the server answered this many later calls
    /// that it must have lost this one. A long time alone proves nothing: many large answers may be ahead of it.
    pub fn is_overdue(&self, patience: Duration, now: Instant) -> bool {
        // Calls are sent in order, and all of them are repeated on a new connection.
        self.waiting.front().is_some_and(|call| {
            let passed_by = self.answers - call.answers_before >= 2 * u64::from(self.reads.slots);
            passed_by && now.saturating_duration_since(call.sent) > patience
        })
    }

    /// The server postpones this range. Fails if it did so too many times.
    fn put_off(&mut self, range: Range, now: Instant) -> Result<(), FileError> {
        let put_off = range.put_off + 1;
        self.later.push((later::again_at(READ, put_off, now)?, Range { put_off, ..range }));
        self.log.put_off(1);
        Ok(())
    }

    /// When to repeat the first of the postponed calls, if there is one.
    pub fn resumes_at(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).min()
    }

    /// Whether the calls in flight cover the whole file, so that the calls for the next pass leave long before this
    /// one ends.
    pub fn asks_ahead(&self) -> bool {
        let Reads { file_bytes, call_bytes, slots, .. } = self.reads;
        u64::from(call_bytes) * u64::from(slots) > file_bytes
    }

    /// Calls that are not completely answered, and postponed calls.
    pub fn in_flight(&self) -> usize {
        self.waiting.len() + self.later.len() + usize::from(!matches!(self.stage, Stage::Head))
    }

    /// The next range to ask for; `None`: all that is wanted was asked for.
    fn next_range(&mut self, now: Instant) -> Option<Range> {
        if let Some(range) = self.rest.pop() {
            return Some(range);
        }
        if self.reads.wanted == 0 {
            return None;
        }
        let offset = self.next;
        if offset == 0 {
            self.passes.push_back(now);
        }
        let left = self.reads.file_bytes - offset;
        let at_most = u32::try_from(left.min(self.reads.wanted)).unwrap_or(u32::MAX);
        let bytes = at_most.min(self.reads.call_bytes);
        self.reads.wanted -= u64::from(bytes);
        self.next = if u64::from(bytes) == left { 0 } else { offset + u64::from(bytes) };
        Some(Range { offset, bytes, put_off: 0 })
    }

    /// When the calls for the next pass over the file left, if they have left.
    pub fn next_pass(&mut self) -> Option<Instant> {
        self.passes.pop_front()
    }
}
