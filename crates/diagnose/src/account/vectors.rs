//! Worked examples: 100 ms of one flow, and whose they are.

use goodput_model::{Limiter, Missing, TcpInfo};

use super::busy::Busy;
use super::interval::{Control, Interval, Look, account, is_paced_out};
use super::share::Seat;
use super::silence::Wait;
use super::work::Work;

const US_PER_MS: f64 = 1000.0;
const SEGMENT_BYTES: u64 = 1000;

/// A connection in which 100 segments may be in flight, at a sample 100 ms after another at which all counters were 0.
fn tcp(busy_ms: f64, window_ms: f64, buffer_ms: f64) -> TcpInfo {
    TcpInfo {
        snd_mss_bytes: Some(SEGMENT_BYTES),
        snd_cwnd_segments: Some(100),
        snd_wnd_bytes: Some(1_000 * SEGMENT_BYTES),
        sacked_segments: Some(0),
        lost_segments: Some(0),
        retrans_out_segments: Some(0),
        pacing_rate_bytes_per_s: Some(1_024_000),
        max_pacing_rate_bytes_per_s: Some(u64::MAX),
        snd_ssthresh_segments: Some(30),
        ca_state: Some(0),
        total_rto: Some(0),
        delivered_segments: Some(1_000),
        acked_bytes: Some(1_125_000),
        delivery_rate_bytes_per_s: Some(14_050_000),
        delivery_rate_app_limited: Some(0),
        total_retrans_segments: Some(0),
        data_segs_out: Some(1_000),
        busy_us: Some((busy_ms * US_PER_MS) as u64),
        rwnd_limited_us: Some((window_ms * US_PER_MS) as u64),
        sndbuf_limited_us: Some((buffer_ms * US_PER_MS) as u64),
        ..TcpInfo::default()
    }
}

/// Nothing is left to send.
fn hungry(tcp: TcpInfo) -> TcpInfo {
    TcpInfo { unacked_segments: Some(10), notsent_bytes: Some(0), ..tcp }
}

/// The congestion window is full.
fn full(tcp: TcpInfo) -> TcpInfo {
    TcpInfo { unacked_segments: Some(100), notsent_bytes: Some(50 * SEGMENT_BYTES), ..tcp }
}

/// The peer's window of 50 segments is full.
fn closed(tcp: TcpInfo) -> TcpInfo {
    TcpInfo { snd_wnd_bytes: Some(50 * SEGMENT_BYTES), unacked_segments: Some(50), ..full(tcp) }
}

/// The same connection 100 ms before.
fn before(tcp: &TcpInfo) -> TcpInfo {
    let zero = Some(0);
    TcpInfo {
        busy_us: zero,
        rwnd_limited_us: zero,
        sndbuf_limited_us: zero,
        delivered_segments: zero,
        acked_bytes: zero,
        data_segs_out: zero,
        ..tcp.clone()
    }
}

struct Example {
    tcp: [TcpInfo; 2],
    writer: Work,
    behind: Option<Work>,
    wait: Option<Wait>,
    full_for_all: bool,
    used_share: f64,
    queued: bool,
    paced_out: bool,
    control: Control,
}

impl Example {
    fn new(tcp: TcpInfo) -> Self {
        let tcp = [before(&tcp), tcp];
        Self {
            tcp,
            writer: Work::default(),
            behind: None,
            wait: None,
            full_for_all: false,
            used_share: 0.0,
            queued: false,
            paced_out: false,
            control: Control::ByLoss,
        }
    }

    fn writer(self, blocked_ms: f64, paced_ms: f64, ran_ms: f64) -> Self {
        let (blocked_us, paced_us, ran_us) =
            (blocked_ms * US_PER_MS, paced_ms * US_PER_MS, ran_ms * US_PER_MS);
        Self { writer: Work { blocked_us, paced_us, ran_us, ..Work::default() }, ..self }
    }

    fn queued(self) -> Self {
        Self { queued: true, ..self }
    }

    /// Milliseconds of each limiter that holds 0.1 ms or more.
    fn account(&self) -> Result<Vec<(Limiter, Seat, f64)>, Missing> {
        let seen = Interval {
            duration_us: 100.0 * US_PER_MS,
            tcp: [&self.tcp[0], &self.tcp[1]],
            look: Look {
                tcp: [&self.tcp[0], &self.tcp[1]],
                behind: self.behind,
                full_for_all: self.full_for_all,
                used_share: self.used_share,
                queued: self.queued,
            },
            busy_us: Busy::default().within(&self.tcp[0], &self.tcp[1], 100.0 * US_PER_MS)?,
            losses_fill: false,
            writer: Ok(self.writer),
            softirqs_full: None,
            wait: self.wait,
            paced_out: self.paced_out,
            control: self.control,
        };
        let ledger = account(&seen)?;
        assert!((ledger.sum() - 100.0 * US_PER_MS).abs() < 1e-6, "{ledger:?}");
        let parts =
            ledger.entries().map(|((limiter, seat), held)| (limiter, seat, held.time / US_PER_MS));
        Ok(parts.filter(|(_, _, ms)| *ms >= 0.1).collect())
    }

    #[track_caller]
    fn is(&self, expected: &[(Limiter, Seat, f64)]) {
        let parts = self.account().unwrap();
        let same = parts.len() == expected.len()
            && parts
                .iter()
                .zip(expected)
                .all(|(a, b)| a.0 == b.0 && a.1 == b.1 && (a.2 - b.2).abs() < 0.2);
        assert!(same, "{parts:?} is not {expected:?}");
    }
}

use Limiter::{
    Application, CongestionWindow, Host, PathRate, ReceiveWindow, Recovery, SendBuffer, Startup,
};
use Seat::{Path, Receiver, Sender};

#[test]
fn a_writer_that_waits_with_nothing_left_to_send_has_too_small_a_buffer() {
    let example = Example::new(hungry(tcp(100.0, 0.0, 1.0))).writer(99.0, 0.0, 1.0);
    example.is(&[(SendBuffer, Sender, 99.0), (Host, Sender, 1.0)]);
}

#[test]
fn a_writer_that_paces_itself_is_the_program_however_long_the_round_trip() {
    for busy_ms in [100.0, 1.2] {
        let example = Example::new(hungry(tcp(busy_ms, 0.0, 0.0))).writer(0.0, 90.0, 10.0);
        example.is(&[(Application, Sender, 90.0), (Host, Sender, 10.0)]);
    }
}

#[test]
fn a_reader_that_is_throttled_is_its_host_whatever_the_window_says() {
    let reader = Work {
        waited_us: 5.0 * US_PER_MS,
        throttled_us: 80.0 * US_PER_MS,
        ran_us: 15.0 * US_PER_MS,
        ..Work::default()
    };
    let example = Example { behind: Some(reader), ..Example::new(full(tcp(100.0, 2.0, 0.0))) };
    example.is(&[(Host, Receiver, 100.0)]);
}

#[test]
fn a_closed_window_is_the_receivers() {
    Example::new(closed(tcp(100.0, 98.0, 0.0))).is(&[(ReceiveWindow, Receiver, 100.0)]);
    // BBR's pacing hides the window from the chronograph.
    let paced = TcpInfo {
        snd_wnd_bytes: Some(162_432),
        unacked_segments: Some(160),
        snd_cwnd_segments: Some(300),
        ..closed(tcp(100.0, 44.0, 0.0))
    };
    let example = Example { control: Control::Modelled, ..Example::new(paced) };
    example.is(&[(ReceiveWindow, Receiver, 100.0)]);
}

#[test]
fn two_windows_share_the_time() {
    let example = Example::new(full(tcp(100.0, 54.0, 0.0)));
    example.is(&[(ReceiveWindow, Receiver, 54.0), (CongestionWindow, Path, 46.0)]);
}

#[test]
fn a_queue_outranks_what_it_fills() {
    Example::new(hungry(tcp(100.0, 0.0, 95.0))).queued().is(&[(PathRate, Path, 100.0)]);
    let recovering = TcpInfo { ca_state: Some(3), ..full(tcp(100.0, 0.0, 0.0)) };
    Example::new(recovering).queued().is(&[(PathRate, Path, 100.0)]);
}

#[test]
fn a_time_out_of_one_flow_costs_nothing_while_the_others_fill_the_path() {
    let alone =
        || Example { wait: Some(Wait::TimeOut), ..Example::new(full(tcp(100.0, 0.0, 0.0))) };
    alone().is(&[(Recovery, Path, 100.0)]);
    Example { full_for_all: true, ..alone() }.is(&[(PathRate, Path, 100.0)]);
    // The others' round trips may be too new to show a queue.
    Example { used_share: 1.0, ..alone() }.is(&[(PathRate, Path, 100.0)]);
}

#[test]
fn a_window_that_was_cut_costs_what_the_path_then_lacks() {
    let given = |used_share, example| Example { used_share, ..example };
    let cut = || Example::new(full(tcp(100.0, 0.0, 0.0)));
    given(1.0, cut()).is(&[(PathRate, Path, 100.0)]);
    given(0.9, cut()).is(&[(CongestionWindow, Path, 10.0), (PathRate, Path, 90.0)]);
    let closed = || Example::new(closed(tcp(100.0, 98.0, 0.0)));
    given(1.0, closed()).is(&[(ReceiveWindow, Receiver, 100.0)]);
}

#[test]
fn a_queue_that_drains_holds_the_time_in_which_the_bottleneck_is_busy() {
    // 90 of 112.4 Mbit/s.
    let seldom = TcpInfo { delivery_rate_app_limited: Some(1), ..hungry(tcp(100.0, 0.0, 0.0)) };
    let example = Example::new(seldom).writer(97.0, 0.0, 3.0).queued();
    let shared = [(SendBuffer, Sender, 19.4), (PathRate, Path, 80.0), (Host, Sender, 0.6)];
    example.is(&shared);
    // A writer that waits within a write has not marked it.
    let unmarked = || hungry(tcp(100.0, 0.0, 0.0));
    Example::new(unmarked()).writer(97.0, 0.0, 3.0).queued().is(&shared);
    Example::new(unmarked()).writer(3.0, 0.0, 97.0).queued().is(&[(PathRate, Path, 100.0)]);
}

/// Four flows whose process a quota stops for 85 of 100 ms: what they sent at once still shows in the smoothed round trip.
#[test]
fn a_flow_waits_in_a_queue_at_most_while_something_of_it_is_on_its_way() {
    let stopped =
        Work { throttled_us: 90.0 * US_PER_MS, ran_us: 10.0 * US_PER_MS, ..Work::default() };
    let idle = Example { writer: stopped, ..Example::new(full(tcp(15.0, 0.0, 0.0))) }.queued();
    idle.is(&[(PathRate, Path, 15.0), (Host, Sender, 85.0)]);
    // Others may fill the path meanwhile.
    Example { full_for_all: true, ..idle }.is(&[(PathRate, Path, 100.0)]);
}

#[test]
fn what_a_queue_takes_of_a_flow_is_not_divided_again() {
    // Of 60 ms with something on its way, half as much arrived as the bottleneck could have delivered in 100 ms.
    let half = TcpInfo {
        delivery_rate_app_limited: Some(1),
        delivery_rate_bytes_per_s: Some(22_500_000),
        ..hungry(tcp(60.0, 0.0, 0.0))
    };
    let example = Example::new(half).writer(20.0, 0.0, 80.0).queued();
    example.is(&[(SendBuffer, Sender, 2.0), (PathRate, Path, 50.0), (Host, Sender, 48.0)]);
}

#[test]
fn a_silence_that_was_a_queue_is_no_recovery() {
    let recovering = TcpInfo { ca_state: Some(4), ..full(tcp(100.0, 0.0, 0.0)) };
    Example::new(recovering.clone()).is(&[(Recovery, Path, 100.0)]);
    let queue = Example { wait: Some(Wait::Queue), ..Example::new(recovering) };
    queue.queued().is(&[(PathRate, Path, 100.0)]);
}

#[test]
fn a_cap_that_the_first_window_uses_up_holds_what_follows() {
    // 10 segments at once, 1570 bytes a second: for 9 seconds.
    let sent = |bytes| TcpInfo {
        sent_bytes: Some(bytes),
        pacing_rate_bytes_per_s: Some(1_570),
        max_pacing_rate_bytes_per_s: Some(1_570),
        ..full(tcp(100.0, 0.0, 0.0))
    };
    assert!(is_paced_out(&sent(14_480), 4.0) && !is_paced_out(&sent(14_480), 12.0));
    let uncapped = TcpInfo { max_pacing_rate_bytes_per_s: Some(u64::MAX), ..sent(14_480) };
    assert!(!is_paced_out(&uncapped, 4.0));
    let wait = Some(Wait::TimeOut);
    let lost = Example { wait, paced_out: true, ..Example::new(sent(14_480)) };
    lost.is(&[(Application, Sender, 100.0)]);
}

#[test]
fn the_states_at_both_ends_of_an_interval_share_it() {
    let mut example = Example::new(full(tcp(100.0, 0.0, 0.0)));
    example.tcp[1].ca_state = Some(3);
    example.is(&[(CongestionWindow, Path, 50.0), (Recovery, Path, 50.0)]);
}

#[test]
fn slow_start_that_nothing_cut_is_startup() {
    let never = TcpInfo {
        snd_ssthresh_segments: Some(TcpInfo::INFINITE_SSTHRESH),
        ..full(tcp(100.0, 0.0, 0.0))
    };
    Example::new(never).is(&[(Startup, Path, 100.0)]);
}

#[test]
fn a_time_out_holds_all_of_an_interval() {
    let mut example = Example::new(full(tcp(100.0, 0.0, 0.0)));
    example.wait = Some(Wait::TimeOut);
    example.is(&[(Recovery, Path, 100.0)]);
}

#[test]
fn pacing_at_the_cap_that_was_asked_for_is_the_programs() {
    let capped = TcpInfo {
        unacked_segments: Some(50),
        max_pacing_rate_bytes_per_s: Some(1_024_000),
        ..full(tcp(100.0, 0.0, 0.0))
    };
    Example::new(capped).is(&[(Application, Sender, 100.0)]);
}

#[test]
fn a_kernel_that_reports_too_little_gives_no_account() {
    let old = TcpInfo { busy_us: None, ..full(tcp(100.0, 0.0, 0.0)) };
    assert!(Example::new(old).account().is_err());
}
