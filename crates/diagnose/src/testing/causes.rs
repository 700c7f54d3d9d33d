//! What each cause changes about a healthy transfer, as measured where a number is odd.

use goodput_model::{Bytes, EndName, Transport};

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

    /// A receiver held to 20 % of a CPU, as measured: the sender sees nothing but a long RTT.
    pub fn throttled_receiver() -> Self {
        Self::healthy()
            .goodput(9.5e9)
            .without_links()
            .shares(1.0, 0.03, 0.0)
            .writer(0.8, 0.0, 0.2)
            .reader(0.02, 0.0, 0.2)
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

    /// CUBIC at 20 ms and 0.1 % random loss.
    pub fn path_loss() -> Self {
        Self::healthy()
            .goodput(22e6)
            .writer(0.99, 0.0, 0.01)
            .reader(0.99, 0.0, 0.01)
            .retransmitted(0.001)
            .congestion("cubic")
            .tcp(|tcp, _| {
                tcp.rtt_us = Some(20_300);
                tcp.min_rtt_us = Some(20_000);
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
    /// the window has grown by a segment in a round trip since.
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
                tcp.snd_ssthresh_segments = Some(if begins { 0x7fff_ffff } else { 1055 });
                tcp.rtt_us = Some(100_600);
                tcp.min_rtt_us = Some(100_000);
                tcp.acked_bytes = Some(n * 1_525_000);
                tcp.delivery_rate_bytes_per_s = Some(if n == 3 { 23_750_000 } else { 15_250_000 });
            })
    }
}
