//! How each cause changes a healthy transfer; odd numbers were measured.

use goodput_model::{Bytes, EndName, TcpInfo, Transport};

use super::Case;
use crate::names;

impl Case {
    /// The same with datagrams.
    pub fn healthy_udp() -> Self {
        Self::healthy().plan(|plan| {
            plan.transport = Transport::Udp;
            plan.chunk_bytes = Bytes(1400);
        })
    }

    /// Nothing was read at all.
    pub fn empty() -> Self {
        let mut case = Self::healthy();
        case.before = Default::default();
        case.after = Default::default();
        case.samples = 0;
        case.held_to = [None, None];
        case
    }

    /// 262144 bytes of receive buffer at most, 42 ms.
    pub fn receive_window() -> Self {
        Self::healthy()
            .goodput(25e6)
            .shares(1.0, 0.97, 0.0)
            .writer(0.99, 0.0, 0.01)
            .reader(0.97, 0.0, 0.02)
            .fact(EndName::Far, names::TCP_RMEM, "4096 131072 262144")
            .tcp(|tcp, _| tcp.snd_wnd_bytes = Some(131_072))
    }

    /// SO_SNDBUF 65536 at 20.4 ms, as measured: the kernel says application-limited.
    pub fn send_buffer() -> Self {
        Self::healthy()
            .goodput(51e6)
            .shares(1.0, 0.0, 0.02)
            .app_limited(1.0)
            .writer(0.99, 0.0, 0.01)
            .reader(0.98, 0.0, 0.01)
            .plan(|plan| plan.socket.sndbuf_bytes = Some(Bytes(65_536)))
            .tcp(|tcp, _| {
                tcp.unacked_segments = Some(90);
                tcp.snd_cwnd_segments = Some(300);
                tcp.rtt_us = Some(20_500);
                tcp.min_rtt_us = Some(20_400);
            })
    }

    /// 16 kB every 1 ms, as measured: the connection is busy throughout.
    pub fn sender_application() -> Self {
        Self::healthy()
            .goodput(116e6)
            .shares(1.0, 0.0, 0.0)
            .app_limited(1.0)
            .writer(0.0, 0.0, 0.05)
            .reader(0.95, 0.0, 0.05)
    }

    /// A receiver throttled to 20 % of a CPU, as measured: the sender sees nothing but a long RTT.
    pub fn throttled_receiver() -> Self {
        Self::healthy()
            .goodput(9.5e9)
            .without_links()
            .shares(1.0, 0.03, 0.0)
            .writer(0.8, 0.0, 0.2)
            .reader(0.02, 0.0, 0.2)
            .queued(2_000_000)
            .grows(EndName::Far, names::THROTTLED_US, 3_250_000)
            .tcp(|tcp, _| {
                tcp.rtt_us = Some(1645);
                tcp.min_rtt_us = Some(40);
            })
    }

    /// A remote shaper of 100 Mbit/s.
    pub fn path_rate() -> Self {
        Self::healthy()
            .goodput(95.64e6)
            .wobble(0.0)
            .writer(0.98, 0.0, 0.02)
            .reader(0.96, 0.0, 0.03)
            .tcp(|tcp, _| {
                tcp.rtt_us = Some(40_000);
                tcp.min_rtt_us = Some(20_000);
                tcp.delivery_rate_bytes_per_s = Some(11_950_000);
            })
    }

    /// CUBIC at 20 ms and 0.1 % random loss, which cuts the window wherever it happens to be.
    pub fn path_loss() -> Self {
        Self::healthy()
            .goodput(22e6)
            .writer(0.99, 0.0, 0.01)
            .reader(0.99, 0.0, 0.01)
            .retransmitted(0.001)
            .congestion("cubic")
            .tcp(|tcp, number| {
                tcp.rtt_us = Some(20_300);
                tcp.min_rtt_us = Some(20_000);
                let (cut, since) = (20 + number / 4 * 37 % 30, number % 4);
                tcp.snd_ssthresh_segments =
                    Some(if number == 0 { TcpInfo::INFINITE_SSTHRESH } else { cut });
                tcp.snd_cwnd_segments = Some(cut + 4 * since);
                tcp.unacked_segments = Some(cut + 4 * since);
            })
    }

    /// Full-sized packets vanish beyond a router, as measured.
    pub fn black_hole() -> Self {
        Self::healthy()
            .goodput(0.0)
            .writer(0.99, 0.0, 0.0)
            .reader(0.99, 0.0, 0.0)
            .fact(EndName::Near, names::ROUTE_DEVICE, "eth0")
            .fact(EndName::Near, names::ROUTE_GATEWAY, "192.0.2.1")
            .fact(EndName::Near, names::TCP_MTU_PROBING, 0u64)
            .tcp(|tcp, number| {
                tcp.acked_bytes = Some(25);
                tcp.sent_bytes = Some(24 + 1448 * number.min(15));
                tcp.total_rto = Some(number / 10);
                tcp.unacked_segments = Some(12);
                tcp.snd_cwnd_segments = Some(1);
            })
    }

    /// CUBIC at 20 ms if 1 % of the packets come 8 ms late.
    pub fn reordering() -> Self {
        Self::path_loss().retransmitted(0.01).tcp(|tcp, number| {
            tcp.dsack_dups = tcp.total_retrans_segments.map(|again| again * 7 / 10);
            tcp.reord_seen = Some(200 * number);
            tcp.delivered_segments = Some(190 * number);
            tcp.snd_ssthresh_segments = Some(30);
            tcp.unacked_segments = Some(40);
            tcp.snd_cwnd_segments = Some(40);
        })
    }

    /// CUBIC at 20 ms if 0.1 % of the packets are marked, as measured.
    pub fn ecn_marking() -> Self {
        let case = Self::path_loss().goodput(23e6).retransmitted(0.0);
        case.grows(EndName::Far, names::RECEIVED_CE, 7).tcp(|tcp, number| {
            tcp.delivered_segments = Some(195 * number);
            tcp.delivered_ce_segments = Some(8 * number);
            tcp.snd_ssthresh_segments = Some(28);
            tcp.unacked_segments = Some(35);
            tcp.snd_cwnd_segments = Some(35);
        })
    }

    /// A path of 1 ms that loses whole windows: a time-out each third of a second.
    pub fn rto_bound() -> Self {
        Self::path_loss().goodput(200e6).retransmitted(0.02).tcp(|tcp, number| {
            tcp.rtt_us = Some(1100);
            tcp.min_rtt_us = Some(1000);
            tcp.rto_us = Some(204_000);
            tcp.ca_state = Some(4);
            tcp.total_rto = Some(number / 3);
            tcp.total_rto_time_ms = Some(68 * number);
        })
    }

    /// A token bucket of 1600 bytes at 1 Gbit/s, as measured: 75 % of what it should give.
    pub fn shaper_burst() -> Self {
        Self::healthy()
            .goodput(0.75 * 956.4e6)
            .without_links()
            .tbf(1e9, 1600)
            .overlimits(0.98)
            .writer(0.95, 0.0, 0.05)
            .reader(0.6, 0.0, 0.3)
            .tcp(|tcp, _| {
                tcp.rtt_us = Some(1100);
                tcp.min_rtt_us = Some(1000);
            })
    }

    /// Reno at 100 ms and 200 Mbit/s, as measured: slow start ended with a loss at 190 Mbit/s, and
    /// the window has grown by one segment per round trip since.
    pub fn crawling() -> Self {
        Self::healthy()
            .goodput(122e6)
            .without_links()
            .writer(0.98, 0.0, 0.02)
            .reader(0.97, 0.0, 0.03)
            .congestion("reno")
            .tcp(|tcp, n| {
                tcp.snd_cwnd_segments = Some(1060 + n);
                tcp.unacked_segments = Some(1058 + n);
                let begins = n == 0;
                tcp.snd_ssthresh_segments =
                    Some(if begins { TcpInfo::INFINITE_SSTHRESH } else { 1055 });
                tcp.rtt_us = Some(100_600);
                tcp.min_rtt_us = Some(100_000);
                tcp.acked_bytes = Some(n * 1_525_000);
                tcp.delivery_rate_bytes_per_s = Some(if n == 3 { 23_750_000 } else { 15_250_000 });
            })
    }
}
