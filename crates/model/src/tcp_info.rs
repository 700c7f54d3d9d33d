//! `struct tcp_info` by the length that the kernel returned (include/uapi/linux/tcp.h).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Missing;

macro_rules! tcp_info {
    ($($(#[doc = $doc:literal])* $name:ident, $needs:literal;)*) => {
        /// What the kernel knows about one TCP connection. A field that this kernel does not have is absent; the
        /// method of the same name gives the reason.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct TcpInfo {
            /// Number of bytes that `getsockopt(TCP_INFO)` returned.
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
    /// Window scale that the peer uses.
    snd_wscale, 104;
    /// Window scale that this end uses.
    rcv_wscale, 104;
    /// 1 if the application limited the delivery rate.
    delivery_rate_app_limited, 168;
    /// Retransmission time-out, microseconds.
    rto_us, 104;
    /// Maximum segment size for sending, bytes.
    snd_mss_bytes, 104;
    /// Maximum segment size for receiving, bytes.
    rcv_mss_bytes, 104;
    /// Segments that were sent but not acknowledged yet.
    unacked_segments, 104;
    /// Unacknowledged segments that the peer acknowledged selectively.
    sacked_segments, 104;
    /// Segments that the kernel considers lost.
    lost_segments, 104;
    /// Retransmitted segments in flight.
    retrans_out_segments, 104;
    /// Time since payload last arrived in order, milliseconds, in steps of a jiffy (1 to 10 ms).
    last_data_recv_ms, 104;
    /// Path MTU, bytes.
    pmtu_bytes, 104;
    /// Smoothed round-trip time, microseconds.
    rtt_us, 104;
    /// Mean deviation of the round-trip time, microseconds.
    rttvar_us, 104;
    /// Slow-start threshold, segments; 2^31-1 if it was never set.
    snd_ssthresh_segments, 104;
    /// Congestion window, segments.
    snd_cwnd_segments, 104;
    /// Advertised maximum segment size, bytes.
    advmss_bytes, 104;
    /// Receiver's estimate of the round-trip time, microseconds.
    rcv_rtt_us, 104;
    /// Receive space that autotuning aims for, bytes.
    rcv_space_bytes, 104;
    /// Segments retransmitted so far.
    total_retrans_segments, 104;
    /// Pacing rate, bytes per second; 2^64-1 if unlimited.
    pacing_rate_bytes_per_s, 120;
    /// Upper bound of the pacing rate, bytes per second; 2^64-1 if unlimited.
    max_pacing_rate_bytes_per_s, 120;
    /// Payload bytes that the peer acknowledged.
    acked_bytes, 136;
    /// Payload bytes received in order.
    received_bytes, 136;
    /// Segments sent.
    segs_out, 144;
    /// Segments received.
    segs_in, 144;
    /// Bytes in the send queue that were not sent yet.
    notsent_bytes, 160;
    /// Smallest round-trip time, microseconds.
    min_rtt_us, 160;
    /// Segments with payload received.
    data_segs_in, 160;
    /// Segments with payload sent.
    data_segs_out, 160;
    /// Most recent delivery rate, bytes per second.
    delivery_rate_bytes_per_s, 168;
    /// Time in which data was in flight or waited to be sent, microseconds.
    busy_us, 192;
    /// Part of `busy_us` in which the peer's window stopped the sender, microseconds.
    rwnd_limited_us, 192;
    /// Part of `busy_us` in which the send buffer stopped the sender, microseconds.
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
    /// Number of reordering events.
    reord_seen, 224;
    /// Segments received out of order.
    rcv_ooo_segments, 232;
    /// Window that the peer advertised, bytes.
    snd_wnd_bytes, 232;
    /// Window that this end advertised, bytes.
    rcv_wnd_bytes, 240;
    /// How often the flow hash was changed after a time-out.
    rehash, 240;
    /// Number of retransmission time-outs.
    total_rto, 248;
    /// Number of recoveries from time-outs.
    total_rto_recoveries, 248;
    /// Time spent in time-out recovery, milliseconds.
    total_rto_time_ms, 248;
}

/// Counters that only grow while a connection lasts.
macro_rules! add_counts {
    ($info:ident, $past:ident: $($name:ident)*) => {
        $($info.$name = $info.$name.map(|count| count + $past.$name.unwrap_or(0));)*
    };
}

impl TcpInfo {
    /// Slow-start threshold, segments, before any loss or mark set it: `TCP_INFINITE_SSTHRESH` (include/net/tcp.h).
    pub const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;

    /// This connection's numbers after it replaced the `past` connections: counters are sums over all of them,
    /// everything else is of this connection.
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
