//! One direction of a connection: late, in pieces, cut short or spoilt.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::session::Input;

/// How a direction ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Nothing more arrives, not even the end.
    Silence,
    /// The connection is closed.
    Close,
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Link {
    /// How long a byte takes.
    pub delay: Duration,
    /// Most bytes that arrive at once.
    pub piece: usize,
    /// After how many bytes it is cut, and how.
    pub cut: Option<(usize, Cut)>,
    /// A byte that arrives changed: its position, and the bits that are flipped.
    pub flip: Option<(usize, u8)>,
    /// Bytes that were sent.
    pub sent: usize,
    in_flight: VecDeque<(Instant, Input)>,
    closed: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(20),
            piece: usize::MAX,
            cut: None,
            flip: None,
            sent: 0,
            in_flight: VecDeque::new(),
            closed: false,
        }
    }
}

impl Link {
    /// Sends bytes.
    pub fn send(&mut self, now: Instant, mut bytes: Vec<u8>) {
        if self.closed {
            return;
        }
        let from = self.sent;
        self.sent += bytes.len();
        if let Some((place, bits)) = self.flip
            && let Some(byte) = place.checked_sub(from).and_then(|at| bytes.get_mut(at))
        {
            *byte ^= bits;
        }
        let room = self.cut.map_or(usize::MAX, |(at, _)| at.saturating_sub(from));
        for piece in bytes[..bytes.len().min(room)].chunks(self.piece) {
            self.in_flight.push_back((now + self.delay, Input::Received(piece.to_vec())));
        }
        match self.cut {
            Some((_, Cut::Close)) if bytes.len() > room => self.close(now),
            Some((_, Cut::Silence)) if bytes.len() > room => self.closed = true,
            _ => {}
        }
    }

    /// Sends the end.
    pub fn close(&mut self, now: Instant) {
        if !self.closed {
            self.closed = true;
            self.in_flight.push_back((now + self.delay, Input::Closed));
        }
    }

    /// When the next piece arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.front().map(|(at, _)| *at)
    }

    /// The piece that arrives next.
    pub fn arrive(&mut self) -> Input {
        self.in_flight.pop_front().map_or(Input::Closed, |(_, input)| input)
    }
}
