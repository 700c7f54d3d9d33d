//! Datagrams that reached a host but found no room in the socket.

use goodput_model::{DatagramCounts, End, Missing, Role};

/// Share of the sent datagrams for which the receiving sockets had no room, by their own count (`SK_MEMINFO_DROPS`, the
/// per-socket part of what `RcvbufErrors` of /proc/net/snmp counts for all sockets). A dropped packet counts as many
/// datagrams as the packets that were read had on average.
pub fn dropped_share(receiver: &End) -> Result<f64, Missing> {
    let last = receiver.samples.iter().rev().find(|sample| !sample.flows.is_empty());
    let flows = last.map_or(&[][..], |sample| &sample.flows);
    let (mut dropped, mut all) = (0.0, 0.0);
    for flow in flows.iter().filter(|flow| flow.role == Role::Receiver) {
        let counts = flow.datagrams.as_ref();
        let counts = counts.ok_or_else(|| Missing::because("it counts no datagrams"))?;
        dropped += flow.memory.get()?.drops as f64 * in_a_packet(counts);
        all += counts.received as f64 + counts.lost as f64;
    }
    if all > 0.0 { Ok(dropped / all) } else { Err(Missing::because("nothing was counted")) }
}

fn in_a_packet(counts: &DatagramCounts) -> f64 {
    let packets = counts.received.saturating_sub(counts.joined);
    if packets == 0 { 1.0 } else { counts.received as f64 / packets as f64 }
}
