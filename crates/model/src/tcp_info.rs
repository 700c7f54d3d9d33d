//! `struct tcp_info` by the length that the kernel returned (include/uapi/linux/tcp.h).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Missing;

macro_rules! tcp_info {
    ($($(#[doc = $doc:literal])* $name:ident, $needs:literal;)*) => {
        /// The kernel's view of one TCP connection. A field that this kernel does not have stays
        /// `None`; ask through the method of the same name to get the reason.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct TcpInfo {
            /// Bytes that `getsockopt(TCP_INFO)` returned.
            pub length_bytes: u32,
            $($(#[doc = $doc])* #[serde(skip_serializing_if = "Option::is_none")]
              pub $name: Option<u64>,)*
        }

        impl TcpInfo {
            $($(#[doc = $doc])*
              pub fn $name(&self) -> Result<u64, Missing> {
                self.$name.ok_or_else(|| self.too_short(stringify!($name), $needs))
              })*
        }
    };
}

tcp_info! {
    /// Connection state, `TCP_*` of include/net/tcp_states.h.
    state, 104;
    /// Congestion avoidance state, `TCP_CA_*`.
    ca_state, 104;
    /// Options in use, `TCPI_OPT_*` bits.
    options, 104;
    /// Window scale the peer uses.
    snd_wscale, 104;
    /// Window scale this end uses.
    rcv_wscale, 104;
    /// 1 if the delivery rate was limited by the application.
    delivery_rate_app_limited, 168;
    /// Retransmission time-out, microseconds.
    rto_us, 104;
    /// Sending maximum segment size, bytes.
    snd_mss_bytes, 104;
    /// Receiving maximum segment size, bytes.
    rcv_mss_bytes, 104;
    /// Segments sent and not acknowledged.
    unacked_segments, 104;
    /// Of them, those that the peer acknowledged selectively.
    sacked_segments, 104;
    /// Segments considered lost.
    lost_segments, 104;
    /// Retransmitted segments that are in flight.
    retrans_out_segments, 104;
    /// Time since payload arrived in order, milliseconds, in steps of a jiffy: 1 to 10 ms.
    last_data_recv_ms, 104;
    /// Path MTU, bytes.
    pmtu_bytes, 104;
    /// Smoothed round-trip time, microseconds.
    rtt_us, 104;
    /// Mean deviation of the round-trip time, microseconds.
    rttvar_us, 104;
    /// Slow start threshold, segments; 2^31-1 while never set.
    snd_ssthresh_segments, 104;
    /// Congestion window, segments.
    snd_cwnd_segments, 104;
    /// Advertised maximum segment size, bytes.
    advmss_bytes, 104;
    /// Receiver's estimate of the round-trip time, microseconds.
    rcv_rtt_us, 104;
    /// Receive space that autotuning aims at, bytes.
    rcv_space_bytes, 104;
    /// Segments retransmitted until now.
    total_retrans_segments, 104;
    /// Pacing rate, bytes per second; 2^64-1 if unlimited.
    pacing_rate_bytes_per_s, 120;
    /// Upper bound of the pacing rate, bytes per second; 2^64-1 if unlimited.
    max_pacing_rate_bytes_per_s, 120;
    /// Payload bytes acknowledged by the peer.
    acked_bytes, 136;
    /// Payload bytes received in order.
    received_bytes, 136;
    /// Segments sent.
    segs_out, 144;
    /// Segments received.
    segs_in, 144;
    /// Bytes in the send queue that were not sent yet.
    notsent_bytes, 160;
    /// Smallest round-trip time seen, microseconds.
    min_rtt_us, 160;
    /// Segments with payload received.
    data_segs_in, 160;
    /// Segments with payload sent.
    data_segs_out, 160;
    /// Most recent delivery rate, bytes per second.
    delivery_rate_bytes_per_s, 168;
    /// Time with data to send or in flight, microseconds.
    busy_us, 192;
    /// Part of it stopped by the peer's window, microseconds.
    rwnd_limited_us, 192;
    /// Part of it stopped by the send buffer, microseconds.
    sndbuf_limited_us, 192;
    /// Segments delivered.
    delivered_segments, 200;
    /// Segments delivered with a congestion mark.
    delivered_ce_segments, 200;
    /// Payload bytes sent, retransmissions included.
    sent_bytes, 224;
    /// Payload bytes retransmitted.
    retrans_bytes, 224;
    /// Duplicate SACKs received.
    dsack_dups, 224;
    /// Reordering events seen.
    reord_seen, 224;
    /// Segments received out of order.
    rcv_ooo_segments, 232;
    /// Window that the peer advertised, bytes.
    snd_wnd_bytes, 232;
    /// Window that this end advertised, bytes.
    rcv_wnd_bytes, 240;
    /// Changes of the flow hash after time-outs.
    rehash, 240;
    /// Retransmission time-outs so far.
    total_rto, 248;
    /// Recoveries from time-outs.
    total_rto_recoveries, 248;
    /// Time spent in time-out recovery, milliseconds.
    total_rto_time_ms, 248;
}

/// What only grows while a connection lasts.
macro_rules! add_counts {
    ($info:ident, $past:ident: $($name:ident)*) => {
        $($info.$name = $info.$name.map(|count| count + $past.$name.unwrap_or(0));)*
    };
}

impl TcpInfo {
    /// `TCP_INFINITE_SSTHRESH` (include/net/tcp.h): no loss or mark has set the slow-start threshold yet, segments.
    pub const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;

    /// The same after this connection replaced the `past` ones: counters are sums over all of them, everything else is of
    /// this one.
    pub fn after(mut self, past: &Self) -> Self {
        add_counts!(self, past: total_retrans_segments acked_bytes received_bytes segs_out segs_in data_segs_in
            data_segs_out busy_us rwnd_limited_us sndbuf_limited_us delivered_segments delivered_ce_segments
            sent_bytes retrans_bytes dsack_dups reord_seen rcv_ooo_segments rehash total_rto
            total_rto_recoveries total_rto_time_ms);
        self
    }

    fn too_short(&self, field: &str, needs: u32) -> Missing {
        Missing::because(format!(
            "this kernel's tcp_info has {} bytes, {field} needs {needs}",
            self.length_bytes
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_goes_on_where_the_one_before_it_ended() {
        let info = |received, rtt| TcpInfo {
            received_bytes: Some(received),
            rtt_us: Some(rtt),
            ..TcpInfo::default()
        };
        let both = info(5, 10).after(&info(7, 99));
        assert_eq!((both.received_bytes, both.rtt_us, both.sent_bytes), (Some(12), Some(10), None));
    }
}
