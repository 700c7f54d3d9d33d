//! The sender's time: application, send buffer, receive window and path, 100 % together.
//!
//! The kernel's chronographs alone mislead in known ways, so each of these cases has a second witness:
//!
//! - A small send buffer counts as application-limited, while `sndbuf_limited` stays near 0. Then our
//!   own writer waits nearly all the time, and app-limited time while it waits is the buffer's.
//! - A slow writer keeps the connection busy throughout if its pauses are shorter than a round
//!   trip. Then our own writer hardly waits, and time that is app-limited or never waits is the
//!   application's.
//! - BBR paces at the rate that the window allows, and then meets the window only part of the
//!   time. Then window / round-trip time is still the goodput, and apparent pacing is
//!   the window's; likewise for the send buffer.
//! - A window or buffer may fill only because a queue on the path swallows it. Then the round-trip time
//!   stays clearly above the smallest one, more buffer would only lengthen the queue, and the time
//!   is the path's. If both ends send, acknowledgements may wait in the other direction's
//!   queue: a window that is the whole goodput stays the cause.
//! - A buffer also fills behind losses: lost data stays in it for another round trip, with everything
//!   written after it. Then the buffer would allow far more than the goodput, and the time is the path's.

use goodput_model::{Direction, Missing, Split, Transport};

use crate::models::rate_at_loss;
use crate::round_rate::round_rate;
use crate::thresholds::{
    MAX_WAIT_SHARE_OF_LIMITING_THREAD, MIN_LIMITING_TIME_SHARE, MIN_SPARE_RATE_RATIO,
};
use crate::view::View;

/// Share of the time above which a window or buffer is known to have stopped the sender.
const MIN_STOPPED_BY_WINDOW_SHARE: f64 = 0.05;
/// How near window / round-trip time comes to the goodput if nothing else limits. Measured: within 3 %,
/// and up to 14 % above on a busy machine.
const WINDOW_EXPLAINS_ALL_RATIOS: std::ops::Range<f64> = 0.9..1.25;

/// Retransmitted share above which losses may be what fills the buffer.
const MIN_RETRANSMITTED_SHARE: f64 = 0.001;
/// Rate that the losses alone would allow, over the goodput, up to which losses hold the goodput too.
const MAX_LOSS_MODEL_RATIO: f64 = 2.0;
/// Goodput that a buffer allows over the measured goodput, above which the buffer's size is not the limit.
/// A limiting buffer was measured to hold down to 0.7 of its size in payload.
const MIN_BUFFER_RATE_RATIO: f64 = 1.6;

/// How the sender's time divides over the measured window. The shares add up to 100.
pub fn split(view: &View) -> Result<Split, Missing> {
    match view.plan().transport {
        Transport::Tcp => tcp(view),
        Transport::Udp => udp(view),
    }
}

/// Shares of the elapsed time, as counted.
struct Counted {
    busy: f64,
    window: f64,
    buffer: f64,
    blocked: f64,
    paced: f64,
    app_limited: f64,
}

impl Counted {
    fn of(view: &View) -> Result<Self, Missing> {
        let side = &view.sender;
        // A buffer that one write fills sometimes leaves the delivery rate unmarked.
        let starved = side.starved_share().unwrap_or(0.0);
        Ok(Self {
            busy: side.busy_share()?,
            window: side.rwnd_limited_share()?,
            buffer: side.sndbuf_limited_share()?,
            blocked: side.blocked_share()?.clamp(0.0, 1.0),
            paced: side.paced_share()?.clamp(0.0, 1.0),
            app_limited: starved.max(side.app_limited_share()?).clamp(0.0, 1.0),
        })
    }

    /// Share of the writer's non-waiting time in which the writer held the flow back, rather than
    /// copied while earlier data was still on its way: 1 if the writer almost never waits.
    fn hunger(&self) -> f64 {
        if self.blocked < MAX_WAIT_SHARE_OF_LIMITING_THREAD {
            1.0
        } else {
            self.app_limited.max(self.paced)
        }
    }
}

fn tcp(view: &View) -> Result<Split, Missing> {
    let counted = Counted::of(view)?;
    let idle = (1.0 - counted.busy).max(0.0);
    let rest = (counted.busy - counted.window - counted.buffer).max(0.0);
    let application = idle + rest * (1.0 - counted.blocked) * counted.hunger();
    let hidden_buffer = rest * counted.blocked * counted.app_limited;
    let buffer = counted.buffer + hidden_buffer;
    let window = counted.window;
    let path = (1.0 - application - buffer - window).max(0.0);
    let by_size =
        window >= MIN_STOPPED_BY_WINDOW_SHARE && is_all(view, view.sender.peer_window_bytes());
    let window_is_all =
        by_size || window >= MIN_LIMITING_TIME_SHARE && view.sender.peer_window_is_shut();
    let queue_may_be_the_others = view.plan().direction == Direction::Both && window_is_all;
    // A reader that is behind acknowledges late (net/ipv4/tcp_input.c, `__tcp_ack_snd_check`),
    // which lengthens the round trip without a queue on the path.
    let late_reader = window_is_all && reader_is_behind(view);
    let queue = queue_stands(view)
        && !queue_may_be_the_others
        && !late_reader
        && !runs_dry(view, counted.app_limited);
    Ok(if queue {
        normalised(application, 0.0, 0.0, path + buffer + window)
    } else if window_is_all && !losses_hold(view) {
        normalised(application, buffer, window + path, 0.0)
    } else if buffer >= MIN_STOPPED_BY_WINDOW_SHARE && buffer_is_all(view) {
        normalised(application, buffer + path, window, 0.0)
    } else if losses_fill_the_buffer(view) {
        normalised(application, 0.0, window, path + buffer)
    } else {
        normalised(application, buffer, window, path)
    })
}

/// Whether the receiver's program is behind, as far as the sender can see. Asked only if the
/// receiver itself reports nothing.
pub fn reader_is_behind(view: &View) -> bool {
    let side = &view.sender;
    let behind = side.peer_window_is_shut() || side.peer_window_falls().unwrap_or(false);
    view.receiver.blocked_share().is_err() && behind
}

/// Whether the send buffer explains the whole goodput. Another program may write more at once than the buffer
/// takes; it is then woken only when a third is free, and gets as little as 0.7 of the buffer.
fn buffer_is_all(view: &View) -> bool {
    let bytes = view.sender.send_buffer_bytes();
    match view.sender.is_watched() {
        true => allowed(view, bytes).is_ok_and(|ratio| {
            (WINDOW_EXPLAINS_ALL_RATIOS.start..MIN_BUFFER_RATE_RATIO).contains(&ratio)
        }),
        false => is_all(view, bytes),
    }
}

/// Whether losses keep the congestion window below the receiver's for the rest of the time: the losses alone
/// would allow hardly more, and the congestion control takes each loss for congestion. Then
/// apparent pacing is not the window's.
fn losses_hold(view: &View) -> bool {
    let modelled = rate_at_loss(view).ok().flatten().zip(view.goodput().ok());
    let enough =
        modelled.is_some_and(|(modelled, goodput)| modelled < MAX_LOSS_MODEL_RATIO * goodput);
    enough && matches!(view.backs_off_at_loss(), Ok(true))
}

/// Whether the send buffer is full because of losses, not because it is small.
pub fn losses_fill_the_buffer(view: &View) -> bool {
    let lossy =
        view.sender.retransmitted_share().is_ok_and(|share| share >= MIN_RETRANSMITTED_SHARE);
    lossy
        && allowed(view, view.sender.send_buffer_bytes())
            .is_ok_and(|ratio| ratio >= MIN_BUFFER_RATE_RATIO)
}

/// Whether a queue stands on the path: clearly, or less clearly if a contract sets the rate.
fn queue_stands(view: &View) -> bool {
    let at_contract = || -> Result<bool, Missing> {
        let stands = view.receiver.plateau().or_else(|_| view.sender.plateau())?.rate;
        Ok(view.sender.queue_shows()? && round_rate(view, stands)?.is_some())
    };
    view.sender.queue_stands().unwrap_or(false) || at_contract().unwrap_or(false)
}

/// Whether bursts fill the queue and it empties in between: the queue drains clearly faster than the
/// goodput, and there was nothing more to send most of the time.
fn runs_dry(view: &View, app_limited: f64) -> bool {
    let delivers = view.sender.delivery_rate().ok().zip(view.goodput().ok());
    app_limited >= MIN_LIMITING_TIME_SHARE
        && delivers.is_some_and(|(delivered, goodput)| delivered >= MIN_SPARE_RATE_RATIO * goodput)
}

/// Whether this number of bytes in each round trip explains the whole goodput.
fn is_all(view: &View, bytes: Result<f64, Missing>) -> bool {
    allowed(view, bytes).is_ok_and(|ratio| WINDOW_EXPLAINS_ALL_RATIOS.contains(&ratio))
}

/// Goodput that this number of bytes in each round trip allows, over the measured goodput.
fn allowed(view: &View, bytes: Result<f64, Missing>) -> Result<f64, Missing> {
    let side = &view.sender;
    Ok(bytes? * 8.0 / side.rtt_s()? * side.flow_count()? / view.goodput()?)
}

/// Without a window there are only the writer's turn and the wait for the device.
fn udp(view: &View) -> Result<Split, Missing> {
    let blocked = view.sender.blocked_share()?.clamp(0.0, 1.0);
    Ok(normalised(1.0 - blocked, 0.0, 0.0, blocked))
}

/// The chronographs tick in jiffies and are read at slightly different instants from our own
/// counters, so their sum is only nearly the whole. The shares are taken of that sum.
fn normalised(application: f64, buffer: f64, window: f64, path: f64) -> Split {
    let sum = application + buffer + window + path;
    let percent = |share: f64| share / sum * 100.0;
    Split {
        application_percent: percent(application),
        send_buffer_percent: percent(buffer),
        receive_window_percent: percent(window),
        path_percent: percent(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn of(case: Case) -> Split {
        split(&View::new(&case.evidence())).unwrap()
    }

    #[test]
    fn a_path_that_is_full_gets_the_time() {
        assert!(of(Case::healthy().shares(1.0, 0.0, 0.0)).path_percent > 90.0);
    }

    #[test]
    fn trap_1_a_small_send_buffer_is_not_the_application() {
        let split = of(Case::send_buffer());
        assert!(split.send_buffer_percent > 90.0, "{split:?}");
    }

    #[test]
    fn a_queue_that_runs_dry_between_bursts_is_not_the_path() {
        // Writes of 128 KiB into a buffer of 15 kB: 90 Mbit/s, and 112 pass, as measured.
        let case = |delivered: u64| {
            let bursts = Case::send_buffer().goodput(90e6).app_limited(1.0);
            bursts.tcp(move |tcp, _| {
                tcp.rtt_us = Some(22_500);
                tcp.min_rtt_us = Some(6_327);
                tcp.delivery_rate_bytes_per_s = Some(delivered / 8);
            })
        };
        assert!(of(case(112_400_000)).send_buffer_percent > 50.0);
        assert!(of(case(91_000_000)).path_percent > 50.0);
    }

    #[test]
    fn trap_2_a_slow_writer_is_not_the_path() {
        let split = of(Case::sender_application());
        assert!(split.application_percent > 90.0, "{split:?}");
    }

    #[test]
    fn what_bbr_paces_at_the_windows_rate_is_the_windows() {
        // 162432 bytes at 20 ms, as measured: 64.2 Mbit/s, stopped by the window 44 % of the time.
        let case = Case::receive_window().shares(1.0, 0.44, 0.0).goodput(64.2e6).tcp(|tcp, _| {
            tcp.snd_wnd_bytes = Some(162_432);
            tcp.rtt_us = Some(20_100);
            tcp.min_rtt_us = Some(20_032);
        });
        assert!(of(case).receive_window_percent > 90.0);
        let faster = Case::receive_window().shares(1.0, 0.44, 0.0).goodput(90e6);
        assert!(of(faster).receive_window_percent < 50.0);
    }

    #[test]
    fn losses_share_the_time_with_a_window_that_hardly_allows_more() {
        // 64 KiB at 2 ms with 0.2 % of loss under CUBIC: 128 Mbit/s, the window met 54 % of the time.
        let case = |congestion: &str, lost| {
            let case = Case::receive_window().shares(1.0, 0.54, 0.0).goodput(128e6);
            case.congestion(congestion).retransmitted(lost).tcp(|tcp, _| {
                tcp.snd_wnd_bytes = Some(35_000);
                tcp.rtt_us = Some(2_100);
                tcp.min_rtt_us = Some(2_020);
            })
        };
        assert!((40.0..60.0).contains(&of(case("cubic", 0.002)).path_percent));
        assert!(of(case("cubic", 0.00001)).receive_window_percent > 90.0);
        assert!(of(case("bbr", 0.002)).receive_window_percent > 90.0);
    }

    #[test]
    fn a_writer_that_waits_while_both_windows_are_nearly_empty_lacks_buffer() {
        let starved = |tcp: &mut goodput_model::TcpInfo, _| {
            tcp.delivery_rate_app_limited = Some(0);
            tcp.notsent_bytes = Some(0);
            tcp.unacked_segments = Some(45);
            tcp.snd_cwnd_segments = Some(314);
            tcp.snd_wnd_bytes = Some(3 << 20);
        };
        let split = of(Case::send_buffer().shares(1.0, 0.0, 0.0).tcp(starved));
        assert!(split.send_buffer_percent > 90.0, "{split:?}");
    }

    #[test]
    fn a_buffer_filled_by_a_queue_is_the_path() {
        // 4 MiB of send buffer at 20 ms and 1 Gbit/s: full, and the path is too, as measured.
        let case = Case::send_buffer().goodput(916e6).tcp(|tcp, _| tcp.rtt_us = Some(29_000));
        assert!(of(case).path_percent > 90.0);
    }

    #[test]
    fn a_window_filled_by_a_queue_is_the_path() {
        let case = Case::receive_window().tcp(|tcp, _| {
            tcp.min_rtt_us = Some(20_000);
            tcp.rtt_us = Some(150_000);
        });
        assert!(of(case).path_percent > 90.0);
    }

    #[test]
    fn a_short_queue_at_a_contracts_rate_is_the_path() {
        // BBR fills 4 MiB of buffer at 1 Gbit/s and 20 ms: 24.3 ms under load, as measured.
        let case = |rate: f64| {
            Case::send_buffer().without_links().wobble(0.0).goodput(rate).tcp(|tcp, _| {
                tcp.rtt_us = Some(24_300);
                tcp.min_rtt_us = Some(20_046);
            })
        };
        assert!(of(case(956.4e6)).path_percent > 90.0);
        assert!(of(case(870e6)).send_buffer_percent > 90.0);
    }

    #[test]
    fn a_queue_of_the_other_direction_does_not_hide_the_window() {
        let case = Case::receive_window().shares(1.0, 0.27, 0.0).goodput(43.5e6).tcp(|tcp, _| {
            tcp.snd_wnd_bytes = Some(162_432);
            tcp.rtt_us = Some(30_000);
            tcp.min_rtt_us = Some(10_037);
        });
        assert!(
            of(case.plan(|plan| plan.direction = Direction::Both)).receive_window_percent > 90.0
        );
    }

    #[test]
    fn a_buffer_filled_behind_losses_is_the_path() {
        // BBR at 10 ms and 3 % of loss: 1006 Mbit/s with 4 MiB of buffer, as measured.
        let case = |again| {
            Case::send_buffer().goodput(1006e6).retransmitted(again).plan(|plan| {
                plan.socket.sndbuf_bytes = None;
            })
        };
        let short = |tcp: &mut goodput_model::TcpInfo, _| {
            tcp.rtt_us = Some(10_150);
            tcp.min_rtt_us = Some(10_000);
        };
        assert!(of(case(0.03).tcp(short)).path_percent > 90.0);
        assert!(of(case(0.0001).tcp(short)).send_buffer_percent > 90.0);
    }

    #[test]
    fn udp_has_two_parts() {
        let split = of(Case::healthy_udp());
        assert_eq!(split.application_percent + split.path_percent, 100.0);
    }

    #[test]
    fn an_old_kernel_has_no_split_and_says_why() {
        let case = Case::healthy().tcp(|tcp, _| {
            tcp.busy_us = None;
            tcp.length_bytes = 168;
        });
        let why = split(&View::new(&case.evidence())).unwrap_err().to_string();
        assert_eq!(why, "this kernel's tcp_info has 168 bytes, busy_us needs 192");
    }
}
