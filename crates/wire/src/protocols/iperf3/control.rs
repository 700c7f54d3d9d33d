//! The bytes of a control connection: single bytes of state, and JSON behind its length.

use serde::Serialize;
use serde_json::Value;

use super::states::{ACCESS_DENIED, SERVER_ERROR};
use crate::error::WireError;
use crate::frame;
use crate::outbox::Outbox;
use crate::plain;
use crate::session::Action;
use crate::untrusted;

/// Longest parameters, bytes (`MAX_PARAMS_JSON_STRING` in `iperf.h`, 3.18 and later).
pub const MAX_PARAMS_BYTES: usize = 8 * 1024;

/// Longest results, bytes: 256 streams of 200 bytes, and some thousand lines of a server's output.
pub const MAX_RESULTS_BYTES: usize = 1024 * 1024;

/// Bytes that may arrive while nothing is awaited: a few states that crossed ours.
const MAX_EARLY_BYTES: usize = 64;

/// Bytes of the length before JSON, and of each word of an error.
const WORD_BYTES: usize = 4;

/// One end of a control connection.
#[derive(Default)]
pub struct Control {
    outbox: Outbox,
    inbox: Vec<u8>,
}

/// The two words after [`SERVER_ERROR`], as far as they arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorWords {
    /// iperf3's number; `None` if not even this arrived.
    pub number: Option<u32>,
    /// The other system's errno, 0 for none.
    pub errno: u32,
}

impl Control {
    /// Sends bytes.
    pub fn send(&mut self, bytes: Vec<u8>) {
        self.outbox.send(bytes);
    }

    /// Sends JSON behind its length.
    pub fn send_json(&mut self, value: &impl Serialize) -> Result<(), WireError> {
        let unable = |cause: String| WireError::Local(format!("can't encode a message: {cause}"));
        let body = serde_json::to_vec(value).map_err(|cause| unable(cause.to_string()))?;
        let mut bytes = Vec::with_capacity(WORD_BYTES + body.len());
        frame::encode::<WORD_BYTES>(&body, &mut bytes)
            .map_err(|cause| unable(cause.to_string()))?;
        self.send(bytes);
        Ok(())
    }

    /// Sends a client iperf3's number of an error, and closes.
    pub fn fail(&mut self, number: u32) {
        let errno = 0u32;
        let words = [number.to_be_bytes(), errno.to_be_bytes()].concat();
        self.send([&[SERVER_ERROR][..], &words].concat());
        self.close();
    }

    /// Informs a client that the server is busy, and closes.
    pub fn deny(&mut self) {
        self.send(vec![ACCESS_DENIED]);
        self.close();
    }

    /// Asks the host to act.
    pub fn act(&mut self, action: Action) {
        self.outbox.act(action);
    }

    /// Closes once everything is sent.
    pub fn close(&mut self) {
        self.outbox.close();
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.outbox.is_closed()
    }

    /// The session's outputs.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The session's outputs.
    pub fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Takes bytes that arrived.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// Bytes that arrived and were not taken yet.
    pub fn waiting(&self) -> &[u8] {
        &self.inbox
    }

    /// The next `count` bytes, once they are there.
    pub fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        (self.inbox.len() >= count).then(|| self.inbox.drain(..count).collect())
    }

    /// The next state.
    pub fn next_state(&mut self) -> Option<u8> {
        self.take(1).and_then(|taken| taken.first().copied())
    }

    /// An error if more bytes have arrived than must be kept while nothing is awaited.
    pub fn stay_small(&self) -> Result<(), WireError> {
        match self.inbox.len() {
            length if length > MAX_EARLY_BYTES => {
                Err(broken(format!("{length} bytes out of turn")))
            }
            _ => Ok(()),
        }
    }

    /// The next JSON, once it is complete.
    pub fn next_json(&mut self, longest: usize) -> Result<Option<Value>, WireError> {
        let Some(length) = self.inbox.first_chunk::<WORD_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > longest {
            return Err(broken(format!("JSON of {length} bytes; at most {longest} are accepted")));
        }
        let Some(bytes) = self.take(WORD_BYTES + length) else { return Ok(None) };
        let value = untrusted::read_lines(&bytes[WORD_BYTES..]);
        value.map(Some).map_err(|cause| broken(format!("not JSON: {cause}")))
    }

    /// The words after [`SERVER_ERROR`], once they are there. Version 3.12 omits the second word of a failed
    /// authentication.
    pub fn error_words(&self) -> ErrorWords {
        let word = |at: usize| {
            let bytes = self.inbox.get(at..)?.first_chunk::<WORD_BYTES>()?;
            Some(u32::from_be_bytes(*bytes))
        };
        ErrorWords { number: word(0), errno: word(WORD_BYTES).unwrap_or(0) }
    }

    /// Whether both words of an error are there.
    pub fn has_both_words(&self) -> bool {
        self.inbox.len() >= 2 * WORD_BYTES
    }
}

/// An error caused by the peer's bytes.
pub fn broken(cause: impl std::fmt::Display) -> WireError {
    WireError::Protocol(plain::phrase(&cause.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(bytes: &[u8]) -> Control {
        let mut control = Control::default();
        control.receive(bytes);
        control
    }

    #[test]
    fn json_comes_behind_its_length_however_it_is_cut() {
        let mut control = Control::default();
        for byte in [&2u32.to_be_bytes()[..], b"{}\x10"].concat() {
            assert_eq!(control.next_json(8).unwrap(), None);
            control.receive(&[byte]);
            if control.waiting().len() == WORD_BYTES + 2 {
                break;
            }
        }
        assert_eq!(control.next_json(8).unwrap(), Some(serde_json::json!({})));
    }

    #[test]
    fn lengths_and_nesting_are_bounded() {
        assert!(holding(&[0x7f, 0xff, 0xff, 0xff]).next_json(MAX_PARAMS_BYTES).is_err());
        let deep = "[".repeat(4000);
        let bytes = [&4000u32.to_be_bytes()[..], deep.as_bytes()].concat();
        assert!(holding(&bytes).next_json(MAX_PARAMS_BYTES).is_err());
        assert!(holding(&[0; 100]).stay_small().is_err());
    }

    #[test]
    fn an_error_may_lack_its_words() {
        assert_eq!(holding(&[]).error_words(), ErrorWords { number: None, errno: 0 });
        let one = holding(&142u32.to_be_bytes());
        assert_eq!(one.error_words(), ErrorWords { number: Some(142), errno: 0 });
        assert!(!one.has_both_words());
    }
}
