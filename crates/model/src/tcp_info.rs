//! `struct tcp_info` by the length that the kernel returned (include/uapi/linux/tcp.h).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::known::Missing;

/// `$needs` is the length from which the kernel's structure has the field. If `$read` stands there, the kernel has a number
/// for "none", which is never kept (`unset`); where code compares with it, the method returns `$none`.
macro_rules! tcp_info {
    ($($(#[doc = $doc:literal])* $name:ident, $needs:literal $(, read $read:literal)? $(, none $none:expr)?;)*) => {
        /// What the kernel knows about one TCP connection. A field that this kernel does not have is absent; the
        /// method of the same name gives the reason.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct TcpInfo {
            /// Number of bytes that `getsockopt(TCP_INFO)` returned.
            pub length_bytes: u32,
            $($(#[doc = $doc])* $(#[serde(deserialize_with = $read)])? #[serde(skip_serializing_if = "Option::is_none")]
              pub $name: Option<u64>,)*
        }

        impl TcpInfo {
            $($(#[doc = $doc])*
              pub fn $name(&self) -> Result<u64, Missing> {
                let none: &[u64] = &[$($none)?];
                let none = none.first().copied().filter(|_| self.length_bytes >= $needs);
                self.$name.or(none).ok_or_else(|| self.lacks(stringify!($name), $needs))
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
    /// Slow-start threshold, segments; absent if it was never set.
    snd_ssthresh_segments, 104, read "unset::threshold", none Self::INFINITE_SSTHRESH;
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
    /// Pacing rate, bytes per second; absent if unlimited.
    pacing_rate_bytes_per_s, 120, read "unset::rate", none Self::NO_PACING_RATE;
    /// Upper bound of the pacing rate, bytes per second; absent if there is none.
    max_pacing_rate_bytes_per_s, 120, read "unset::rate", none Self::NO_PACING_RATE;
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
    /// Smallest round-trip time, microseconds; absent before the first one.
    min_rtt_us, 160, read "unset::round_trip";
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
    /// Pacing rate without a limit, bytes per second: all ones (`tcp_get_info`, net/ipv4/tcp.c).
    pub const NO_PACING_RATE: u64 = u64::MAX;

    /// This connection's numbers after it replaced the `past` connections: counters are sums over all of them,
    /// everything else is of this connection.
    pub fn after(mut self, past: &Self) -> Self {
        add_counts!(self, past: total_retrans_segments acked_bytes received_bytes segs_out segs_in data_segs_in
            data_segs_out busy_us rwnd_limited_us sndbuf_limited_us delivered_segments delivered_ce_segments
            sent_bytes retrans_bytes dsack_dups reord_seen rcv_ooo_segments rehash total_rto
            total_rto_recoveries total_rto_time_ms);
        self
    }

    /// The same without the kernel's numbers for "none": what a record has.
    pub fn without_none(self) -> Self {
        Self {
            snd_ssthresh_segments: unset::set_threshold(self.snd_ssthresh_segments),
            pacing_rate_bytes_per_s: unset::set_rate(self.pacing_rate_bytes_per_s),
            max_pacing_rate_bytes_per_s: unset::set_rate(self.max_pacing_rate_bytes_per_s),
            min_rtt_us: unset::seen_round_trip(self.min_rtt_us),
            ..self
        }
    }

    fn lacks(&self, field: &str, needs: u32) -> Missing {
        Missing::because(match self.length_bytes >= needs {
            true => format!("the kernel does not know {field} of this connection"),
            false => format!(
                "this kernel's tcp_info has {} bytes, {field} needs {needs}",
                self.length_bytes
            ),
        })
    }
}

/// The kernel's numbers for "none". Older records have them; programs that read JSON as floating-point numbers, such
/// as jq 1.6, turn 2^64-1 into 18446744073709552000, which is none either.
mod unset {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer};
    use serde_json::Number;

    use super::TcpInfo;

    /// Smallest round-trip time before the first one, microseconds (`tcp_min_rtt`, include/net/tcp.h).
    const NO_ROUND_TRIP_US: u64 = 0xffff_ffff;

    pub(super) fn set_threshold(segments: Option<u64>) -> Option<u64> {
        segments.filter(|segments| *segments < TcpInfo::INFINITE_SSTHRESH)
    }

    pub(super) fn set_rate(bytes_per_s: Option<u64>) -> Option<u64> {
        bytes_per_s.filter(|rate| *rate != TcpInfo::NO_PACING_RATE)
    }

    pub(super) fn seen_round_trip(us: Option<u64>) -> Option<u64> {
        us.filter(|us| *us < NO_ROUND_TRIP_US)
    }

    pub(super) fn threshold<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        Ok(set_threshold(Option::deserialize(from)?))
    }

    pub(super) fn round_trip<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        Ok(seen_round_trip(Option::deserialize(from)?))
    }

    pub(super) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        let Some(number) = Option::<Number>::deserialize(from)? else { return Ok(None) };
        let is_none = || number.as_f64().is_some_and(|rate| rate >= TcpInfo::NO_PACING_RATE as f64);
        match number.as_u64() {
            Some(rate) => Ok(set_rate(Some(rate))),
            None if is_none() => Ok(None),
            None => {
                Err(D::Error::custom(format!("{number} is no whole number of bytes per second")))
            }
        }
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

    /// A kernel that has no limit, no threshold and no round trip yet.
    fn unset() -> TcpInfo {
        TcpInfo { length_bytes: 248, rtt_us: Some(7), ..TcpInfo::default() }
    }

    #[test]
    fn a_number_for_none_is_absent_in_json_and_read_from_older_records_as_none() {
        assert_eq!(
            serde_json::to_value(unset()).unwrap(),
            serde_json::json!({"length_bytes": 248, "rtt_us": 7})
        );
        // As the kernel, records of before, and jq 1.6 and 1.5 have them.
        for rate in
            ["18446744073709551615", "18446744073709552000", "1.8446744073709552e+19", "null"]
        {
            let old = format!(
                r#"{{"length_bytes":248,"rtt_us":7,"snd_ssthresh_segments":2147483647,"min_rtt_us":4294967295,
                "pacing_rate_bytes_per_s":{rate},"max_pacing_rate_bytes_per_s":{rate}}}"#
            );
            assert_eq!(serde_json::from_str::<TcpInfo>(&old).unwrap(), unset(), "{rate}");
        }
        let set = TcpInfo {
            snd_ssthresh_segments: Some(30),
            pacing_rate_bytes_per_s: Some(1_250_000),
            max_pacing_rate_bytes_per_s: Some(u64::MAX - 1),
            min_rtt_us: Some(42_000),
            ..unset()
        };
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<TcpInfo>(&json).unwrap(), set);
        assert_eq!(set.clone().without_none(), set);
        for wrong in ["-1", "0.5", "\"many\""] {
            let wrong = format!(r#"{{"max_pacing_rate_bytes_per_s":{wrong}}}"#);
            assert!(serde_json::from_str::<TcpInfo>(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_compares_with_a_limit_gets_one_that_is_never_reached_and_an_old_kernel_tells_none() {
        let unset = unset();
        assert_eq!(unset.snd_ssthresh_segments(), Ok(TcpInfo::INFINITE_SSTHRESH));
        assert_eq!(unset.max_pacing_rate_bytes_per_s(), Ok(TcpInfo::NO_PACING_RATE));
        let why = unset.min_rtt_us().unwrap_err().to_string();
        assert_eq!(why, "the kernel does not know min_rtt_us of this connection");
        let old = TcpInfo { length_bytes: 104, ..unset };
        assert!(old.max_pacing_rate_bytes_per_s().unwrap_err().to_string().contains("needs 120"));
    }
}
