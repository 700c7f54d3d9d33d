//! Messages over the bytes of a control connection, encrypted or not, and keep-alives.

use std::time::Instant;

use goodput_model::MAX_HEADS_BYTES;

use super::allowance::Allowance;
use super::deflate::{deflated, inflated, is_deflated};
use super::messages::{Code, Goodbye, Message, Ping};
use super::secure::{MAX_RECORD_BYTES, Tunnel};
use super::times::{PING_INTERVAL, SILENCE_TIMEOUT};
use crate::error::WireError;
use crate::frame::{self, Decoder};
use crate::outbox::Outbox;
use crate::session::Action;

/// Longest message of a greeting, bytes: the most that an unauthenticated peer can make this end hold.
const MAX_GREETING_BYTES: usize = 4 * 1024;

/// Longest message while no measurement is in progress, bytes.
const MAX_QUIET_BYTES: usize = 64 * 1024;

/// Longest message of a client from the acceptance of its plan to the end of the measurement, bytes, without its
/// flows: a report has two snapshots of about 13 kB each, and more on hosts with hundreds of CPUs and queues.
const MAX_CLIENT_BYTES: usize = 1024 * 1024;

/// Longest message of a server after the proposal, bytes, without the flows: more than a client's, because a user
/// chose the server and must not lose a result.
const MAX_SERVER_BYTES: usize = 4 * 1024 * 1024;

/// What each flow adds, bytes: a sample with every field of [`FlowSample`](goodput_model::FlowSample) has up to 2 kB
/// for each flow.
const MAX_FLOW_BYTES: usize = 4 * 1024;

/// All heads of a capture as messages, bytes: Base64 and zlib streams of it, both counted.
const HEADS_JSON_BYTES: usize = 3 * MAX_HEADS_BYTES;

/// Header of a frame and authentication of a record, around the longest message of a greeting.
const MAX_GREETING_RECORD_BYTES: usize = MAX_GREETING_BYTES + 4 + 16;

/// Makes an HTTP, nuttcp or mail service answer, which shows that it is not goodput. A JSON reader skips it as white
/// space.
const PROVOCATION: &[u8] = b"\r\n\r\n";

/// One end of a control connection.
pub(super) struct Channel {
    outbox: Outbox,
    allowance: Allowance,
    frames: Decoder<4>,
    secured: Option<Secured>,
    talking: bool,
    /// Whether both ends have announced that they accept zlib streams as bodies.
    inflates: bool,
    /// Longest message that the peer takes, bytes.
    peer_takes: usize,
    last_sent: Instant,
    last_received: Instant,
}

struct Secured {
    tunnel: Tunnel,
    records: Decoder<2>,
}

impl Channel {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            outbox: Outbox::default(),
            allowance: Allowance::new(now),
            frames: Decoder::new(MAX_GREETING_BYTES),
            secured: None,
            talking: false,
            inflates: false,
            peer_takes: MAX_GREETING_BYTES,
            last_sent: now,
            last_received: now,
        }
    }

    /// Sends bytes that are not a message.
    pub(super) fn send_bytes(&mut self, now: Instant, bytes: Vec<u8>) {
        self.last_sent = now;
        self.outbox.send(bytes);
    }

    /// Sends a message.
    pub(super) fn send(&mut self, now: Instant, message: &Message) -> Result<(), WireError> {
        self.send_ending(now, message, b"")
    }

    /// Sends the first message of a client, in a way that makes other services reveal themselves.
    pub(super) fn send_provoking(
        &mut self,
        now: Instant,
        message: &Message,
    ) -> Result<(), WireError> {
        self.send_ending(now, message, PROVOCATION)
    }

    fn send_ending(
        &mut self,
        now: Instant,
        message: &Message,
        ending: &[u8],
    ) -> Result<(), WireError> {
        let unable = |cause: String| WireError::Local(format!("can't encode a message: {cause}"));
        let mut body = serde_json::to_vec(message).map_err(|cause| unable(cause.to_string()))?;
        body.extend_from_slice(ending);
        if body.len() > self.peer_takes {
            return Err(unable(format!("{} bytes are more than a peer accepts", body.len())));
        }
        if self.inflates {
            body = deflated(body);
        }
        let mut bytes = Vec::with_capacity(4 + body.len());
        frame::encode::<4>(&body, &mut bytes).map_err(|cause| unable(cause.to_string()))?;
        if let Some(secured) = &mut self.secured {
            bytes = secured.tunnel.seal(&bytes)?;
        }
        self.send_bytes(now, bytes);
        Ok(())
    }

    /// Asks the host to act.
    pub(super) fn act(&mut self, action: Action) {
        self.outbox.act(action);
    }

    /// Takes bytes of messages.
    pub(super) fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), WireError> {
        self.last_received = now;
        self.allowance.take(now, bytes.len())?;
        match &mut self.secured {
            Some(secured) => secured.records.push(bytes),
            None => self.frames.push(bytes),
        }
        Ok(())
    }

    /// The next complete message.
    pub(super) fn next_message(&mut self) -> Result<Option<Message>, WireError> {
        loop {
            if let Some(body) = self.frames.next_body().map_err(WireError::broken)? {
                let deflated = self.inflates && is_deflated(&body);
                let body = if deflated { self.inflate(&body)? } else { body };
                return Message::read(&body).map(Some).map_err(WireError::broken);
            }
            let Some(secured) = &mut self.secured else { return Ok(None) };
            let Some(record) = secured.records.next_body().map_err(WireError::broken)? else {
                return Ok(None);
            };
            self.frames.push(&secured.tunnel.open(&record)?);
        }
    }

    /// The body of a zlib stream. Its full length counts for the allowance.
    fn inflate(&mut self, stream: &[u8]) -> Result<Vec<u8>, WireError> {
        let body = inflated(stream, self.frames.limit())?;
        self.allowance.take(self.last_received, body.len())?;
        Ok(body)
    }

    /// The peer understands plain messages.
    pub(super) fn talk_plainly(&mut self) {
        self.talking = true;
    }

    /// Everything after this is encrypted.
    pub(super) fn encrypt(&mut self, tunnel: Tunnel) {
        self.secured = Some(Secured { tunnel, records: Decoder::new(MAX_GREETING_RECORD_BYTES) });
    }

    /// Accepts longer messages after this: the peer has greeted, and takes zlib streams or not.
    pub(super) fn greeted(&mut self, inflates: bool) {
        self.inflates = inflates;
        self.quiet();
        if let Some(secured) = &mut self.secured {
            secured.records.set_limit(MAX_RECORD_BYTES);
        }
    }

    /// Accepts no reports after this: no measurement is in progress.
    pub(super) fn quiet(&mut self) {
        self.frames.set_limit(MAX_QUIET_BYTES);
        self.allowance.quiet();
        // Messages that cross the end of a measurement are still accepted.
        self.peer_takes = self.peer_takes.max(MAX_QUIET_BYTES);
    }

    /// Accepts long messages of the server after this: a plan with this many flows was proposed. `captures`: the
    /// server may send heads of packets as well.
    pub(super) fn measuring_with_server(&mut self, flows: usize, captures: bool) {
        self.measuring(MAX_SERVER_BYTES, MAX_CLIENT_BYTES, flows);
        if captures {
            self.allowance.add_burst(HEADS_JSON_BYTES);
        }
    }

    /// Accepts long messages of the client after this: its plan with this many flows was accepted.
    pub(super) fn measuring_with_client(&mut self, flows: usize) {
        self.measuring(MAX_CLIENT_BYTES, MAX_SERVER_BYTES, flows);
    }

    fn measuring(&mut self, taken: usize, given: usize, flows: usize) {
        let longest = taken + flows * MAX_FLOW_BYTES;
        self.frames.set_limit(longest);
        self.allowance.measuring(longest);
        self.peer_takes = given + flows * MAX_FLOW_BYTES;
    }

    /// Whether messages are encrypted, and the peer has proven that it knows the token.
    pub(super) fn is_secured(&self) -> bool {
        self.secured.as_ref().is_some_and(|secured| secured.tunnel.is_proven())
    }

    /// Whether part of a message has arrived.
    pub(super) fn is_inside(&self) -> bool {
        self.frames.is_inside() || self.secured.as_ref().is_some_and(|s| s.records.is_inside())
    }

    /// Sends a ping if nothing was sent for a while, and notices a peer that is gone.
    pub(super) fn keep_alive(&mut self, now: Instant) -> Result<(), WireError> {
        if now >= self.last_received + SILENCE_TIMEOUT {
            let silence = SILENCE_TIMEOUT.as_secs();
            return Err(WireError::TimedOut(format!("nothing was heard from it for {silence} s")));
        }
        if now >= self.last_sent + PING_INTERVAL {
            self.send(now, &Message::Ping(Ping::default()))?;
        }
        Ok(())
    }

    /// When [`Channel::keep_alive`] has something to do.
    pub(super) fn next_timeout(&self) -> Instant {
        (self.last_sent + PING_INTERVAL).min(self.last_received + SILENCE_TIMEOUT)
    }

    /// Sends a goodbye and closes.
    pub(super) fn leave(&mut self, now: Instant, code: Code, why: String) {
        if self.talking || self.is_secured() {
            // The connection ends in either case, so a failed goodbye doesn't matter.
            let _ = self.send(now, &Message::Goodbye(Goodbye { code, why }));
        }
        self.close();
    }

    /// Closes because of `error`, with a goodbye that the peer can understand.
    pub(super) fn fail(&mut self, now: Instant, error: &WireError) {
        match last_words(error) {
            Some((code, why)) => self.leave(now, code, why),
            None => self.close(),
        }
    }

    /// Closes without a goodbye.
    pub(super) fn close(&mut self) {
        self.outbox.close();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.outbox.is_closed()
    }

    /// The session's outputs.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The session's outputs.
    pub(super) fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Bytes of memory held for received bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.frames.held() + self.secured.as_ref().map_or(0, |s| s.records.held())
    }
}

/// How an error is reported to a peer; `None` if the peer can't receive it or needn't.
fn last_words(error: &WireError) -> Option<(Code, String)> {
    match error {
        WireError::Version { .. } => Some((Code::Version, error.to_string())),
        WireError::NotPermitted(why) => Some((Code::NotPermitted, why.clone())),
        WireError::Protocol(why) => Some((Code::Protocol, why.clone())),
        WireError::TimedOut(why) => Some((Code::TimedOut, why.clone())),
        WireError::Local(why) => Some((Code::Unable, why.clone())),
        WireError::Foreign { .. } | WireError::Unanswered { .. } | WireError::Closed(_) => None,
    }
}

/// The error that a peer's goodbye means here.
pub(super) fn farewell(goodbye: Goodbye) -> WireError {
    let Goodbye { code, why } = goodbye;
    match code {
        Code::NotPermitted => WireError::NotPermitted(why),
        Code::Protocol | Code::TimedOut => {
            WireError::Closed(format!("it reports an error of this end: {why}"))
        }
        Code::Done | Code::Version | Code::Unable | Code::Other => WireError::Closed(why),
    }
}
