//! How long a program waited for its socket: by its own count, or, for another program, as far as the
//! kernel's side of the socket shows this.
//!
//! A writer sleeps while its socket has no room: the kernel wakes it when a third of the send memory
//! is free again (include/net/sock.h, `sk_stream_min_wspace`), so while it waits, more than two
//! thirds are in use. Unsent bytes show the same: the connection is not waiting for the
//! program. A reader that keeps up leaves only data in the receive queue that came
//! during its wake-up.

use goodput_model::{FlowSample, Missing, Role};

use super::{Side, mean, positive};

/// Share of the send memory in use while a writer waits, less some because samples fall in between.
const MIN_SEND_MEMORY_SHARE_IF_WAITING: f64 = 0.6;
/// Unsent bytes below this many segments may be a segment that waits for its acknowledgement.
const UNSENT_SEGMENTS: u64 = 2;
/// Time whose arrivals may be in the queue of a reader that keeps up, seconds: waking up and reading
/// on a busy machine.
const WAKE_UP_S: f64 = 0.001;
/// Bytes that may wait in addition: a train of segments that was received at once (GRO).
const TRAIN_BYTES: f64 = 65_536.0;

impl Side<'_> {
    /// Whether only the kernel's side of the sockets is visible, as with another program's transfer.
    pub fn is_watched(&self) -> bool {
        self.each().is_ok_and(|mut flows| {
            flows.any(|f| f.blocked_us.value().is_none() && f.tcp.value().is_some())
        })
    }

    /// Share of the window in which this side's thread waited for the socket. For another program, the
    /// share of the samples in which its socket shows this.
    pub fn blocked_share(&self) -> Result<f64, Missing> {
        if self.is_watched() {
            return match self.role {
                Role::Sender => self.writer_waits(),
                Role::Receiver => self.reader_waits(),
            };
        }
        self.share("blocked time", |f| f.blocked_us.get().copied())
    }

    /// Share of the window in which this side's thread waited on purpose, to hold a rate. Another
    /// program's intentions are unknown: its pauses count as its own turn.
    pub fn paced_share(&self) -> Result<f64, Missing> {
        if self.is_watched() {
            return Ok(0.0);
        }
        self.share("paced time", |f| f.paced_us.get().copied())
    }

    /// The meaning of [`Self::blocked_share`], for a person.
    pub fn waits_text(&self, share: f64) -> String {
        let share = crate::finding::percent(share);
        match (self.is_watched(), self.role) {
            (false, Role::Sender) => {
                format!("the writer waited for space in its send buffer {share} of the time")
            }
            (false, Role::Receiver) => format!("the reader waited for data {share} of the time"),
            (true, Role::Sender) => format!(
                "in {share} of the samples data waited to be sent or the send buffer was full \
                 (tcp_info notsent, sndbuf)"
            ),
            (true, Role::Receiver) => {
                format!("in {share} of the samples the receive queue was empty, or nearly so")
            }
        }
    }

    fn writer_waits(&self) -> Result<f64, Missing> {
        let waits = |f: &FlowSample| {
            let (tcp, memory) = (f.tcp.get()?, f.memory.get()?);
            let least = tcp.snd_mss_bytes()?.max(1).saturating_mul(UNSENT_SEGMENTS);
            let unsent = tcp.notsent_bytes()? >= least;
            let room = positive(memory.sndbuf_bytes as f64, "the send buffer")?;
            let full = memory.wmem_queued_bytes as f64 >= MIN_SEND_MEMORY_SHARE_IF_WAITING * room;
            Ok(f64::from(u8::from(unsent || full)))
        };
        mean(&self.gauges(waits)?, "the send queue")
    }

    fn reader_waits(&self) -> Result<f64, Missing> {
        let bytes_per_s = self.delta_sum("payload", |f| Ok(f.bytes))? / self.elapsed_s()?;
        let most = TRAIN_BYTES.max(bytes_per_s * WAKE_UP_S);
        let waits = |f: &FlowSample| {
            let queued = *f.queued_bytes.get()? as f64;
            Ok(f64::from(u8::from(queued <= most)))
        };
        mean(&self.gauges(waits)?, "the receive queue")
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::view::View;

    #[test]
    fn a_full_buffer_is_a_writer_that_waits() {
        let evidence = Case::send_buffer().watched().evidence();
        let view = View::new(&evidence);
        assert!(view.sender.is_watched() && view.sender.blocked_share().unwrap() > 0.9);
        assert!(view.sender.waits_text(0.97).contains("97 % of the samples"));
    }

    #[test]
    fn an_empty_buffer_is_a_writer_that_has_nothing() {
        let evidence = Case::sender_application().watched().send_queue(0.1).evidence();
        let view = View::new(&evidence);
        assert_eq!(view.sender.blocked_share(), Ok(0.0));
        assert_eq!(view.sender.paced_share(), Ok(0.0));
    }

    #[test]
    fn a_full_receive_queue_is_a_reader_that_is_behind() {
        let evidence = |queued| Case::healthy().watched().queued(queued).evidence();
        let (behind, keeps_up) = (evidence(900_000), evidence(20_000));
        assert_eq!(View::new(&behind).receiver.blocked_share(), Ok(0.0));
        assert_eq!(View::new(&keeps_up).receiver.blocked_share(), Ok(1.0));
    }
}
