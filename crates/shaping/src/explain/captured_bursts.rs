//! Bursts of TCP that a capture at one of the ends shows.

use goodput_model::{CapturedPayload, PacketCapture, Seconds, Transport};

use super::{Answer, Seen, say};

/// TCP that comes in bursts at even times, with nothing between them, while it gets less than the rate. A capture that lacks
/// packets has pauses that were none.
pub(super) fn bursts(seen: &Seen) -> Answer {
    let capture = seen.sender.capture.filter(|capture| capture.is_whole())?;
    let rhythm = tcp(capture, seen)?.gaps.rhythm?;
    seen.tcp_shortfall_or_lag().then(|| {
        say(
            "captured-bursts",
            format!(
                "the capture on {} shows TCP in bursts of {} every {}, with nothing between them",
                capture.device,
                rhythm.burst_bytes,
                Seconds(rhythm.period_s)
            ),
        )
    })
}

fn tcp<'a>(capture: &'a PacketCapture, seen: &Seen) -> Option<&'a CapturedPayload> {
    let is_tcp = |payload: &&CapturedPayload| {
        payload.transport == Transport::Tcp && payload.sender == seen.sender.end
    };
    capture.payload.iter().find(is_tcp)
}
