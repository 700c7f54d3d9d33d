//! Recognises a path that lets small packets through and swallows full-sized ones.

use goodput_model::{Missing, Transport};

use crate::names::{FRAGMENTS_MADE, ROUTE_DEVICE, ROUTE_GATEWAY};
use crate::view::View;

/// IPv4 packets up to this size get through everywhere (RFC 791 section 3.1), bytes.
const ALWAYS_ACCEPTED_BYTES: f64 = 576.0;
/// IPv4 and UDP headers, bytes; 20 more with IPv6.
pub const DATAGRAM_HEADERS_BYTES: u64 = 28;
/// Time-outs without a single acknowledgement that distinguish silence from a late answer.
const MIN_SILENT_TIMEOUTS: f64 = 2.0;
/// Datagrams without a single arrival that show the same.
const MIN_SILENT_DATAGRAMS: f64 = 20.0;

/// Nothing of full size arrives, though the ends still talk to each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vanishing {
    /// Size of the IP packets that vanish, bytes.
    pub packet_bytes: f64,
    /// Number of attempts: time-outs, or datagrams sent.
    pub tries: f64,
}

/// Whether packets vanish because of their size: the handshake, the flow's short greeting and the control
/// connection came through the same path, and not one of many full-sized packets did.
pub fn vanishing(view: &View) -> Result<Option<Vanishing>, Missing> {
    let (packet_bytes, tries, enough, answered) = match view.plan().transport {
        Transport::Tcp => {
            let answered = view.sender.acknowledged_in_all()?;
            (
                view.sender.path_mtu_bytes()?,
                view.sender.timeouts_in_all()?,
                MIN_SILENT_TIMEOUTS,
                answered,
            )
        }
        Transport::Udp => {
            let packet = view.plan().chunk_bytes.0.saturating_add(DATAGRAM_HEADERS_BYTES) as f64;
            (packet, view.sender.datagrams_sent()?, MIN_SILENT_DATAGRAMS, 0.0)
        }
    };
    if answered > 0.0 || view.goodput_or_zero() > 0.0 {
        return Ok(None);
    }
    let by_host = view.sender.queue_drops().unwrap_or(0.0) >= enough
        || view.sender.datagrams_refused().unwrap_or(0.0) >= enough
        || view.receiver.socket_drops().unwrap_or(0.0) >= enough;
    let fragments = view.sender.grown(FRAGMENTS_MADE).unwrap_or(0) as f64;
    let found =
        tries >= enough && packet_bytes > ALWAYS_ACCEPTED_BYTES && !by_host && fragments < tries;
    Ok(found.then_some(Vanishing { packet_bytes, tries }))
}

/// Whether both hosts are on one link, so that no router could report that a packet is too big.
pub fn shares_a_link(view: &View) -> bool {
    view.sender.text(ROUTE_DEVICE).is_ok() && view.sender.text(ROUTE_GATEWAY).is_err()
}

/// Percentage of the payload sent over the whole measurement that nobody acknowledged; for datagrams, that did
/// not arrive.
pub fn unanswered_percent(view: &View) -> Result<f64, Missing> {
    if !view.is_tcp() {
        let (sent, lost) = (view.sender.datagrams_sent()?, view.receiver.lost_share());
        return Ok(if sent > 0.0 { lost.unwrap_or(1.0) * 100.0 } else { 0.0 });
    }
    let (sent, answered) = (view.sender.sent_in_all()?, view.sender.acknowledged_in_all()?);
    Ok(if sent > 0.0 { (1.0 - answered / sent).max(0.0) * 100.0 } else { 0.0 })
}

/// What was sent without an answer, for a person.
pub fn tried(view: &View, found: Vanishing) -> String {
    let (bytes, tries) = (found.packet_bytes, found.tries);
    match view.plan().transport {
        Transport::Tcp => format!(
            "not one packet of {bytes:.0} bytes was acknowledged, in {tries:.0} time-outs \
             (tcp_info total_rto)"
        ),
        Transport::Udp => {
            format!("not one of {tries:.0} datagrams arrived, in packets of {bytes:.0} bytes")
        }
    }
}
