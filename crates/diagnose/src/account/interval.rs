//! Who limited one flow between two samples.
//!
//! A moment belongs to what would have delivered more then, had it been wider. So a busy bottleneck outranks every window:
//! what fills a window behind a queue is the queue's.

use goodput_model::{Limiter, Missing, TcpInfo};

use super::share::{Ledger, Seat};
use super::silence::Wait;
use super::state::{CA_LOSS, State, state};
use super::work::Work;
use crate::thresholds::MIN_LIMITING_TIME_SHARE;

/// `TCP_CA_CWR` (include/uapi/linux/tcp.h, `enum tcp_ca_state`).
const CA_CWR: u64 = 2;
/// Share of its upper bound from which pacing is at what was asked for.
const MIN_SHARE_OF_PACING_CAP: f64 = 0.95;

/// What is known of a TCP flow between two samples.
#[derive(Debug, Clone)]
pub struct Interval<'a> {
    /// Its length, microseconds.
    pub duration_us: f64,
    /// The sender's counters at its start and at its end.
    pub tcp: [&'a TcpInfo; 2],
    /// What was seen at its start and at its end.
    pub look: Look<'a>,
    /// How long the connection had something to send or in flight, of the interval's length, microseconds.
    pub busy_us: f64,
    /// Whether losses fill the send buffer.
    pub losses_fill: bool,
    /// What the sender's thread did; missing of another program's flow.
    pub writer: Result<Work, Missing>,
    /// The end whose CPU was full of softirqs, if one was.
    pub softirqs_full: Option<Seat>,
    /// What the flow waited for, if nothing was delivered until a time-out; of a needless one, until it is taken back.
    pub wait: Option<Wait>,
    /// Whether the flow has sent since its start what a pacing rate that was asked for allows.
    pub paced_out: bool,
    /// What the congestion control did.
    pub control: Control,
}

/// What samples show of an instant, for the time around it. Counters tell of all of the time between two samples.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The sender's connection at the start and at the end of the interval.
    pub tcp: [&'a TcpInfo; 2],
    /// What the receiver's thread did, if it was behind: most of the time bytes waited for it.
    pub behind: Option<Work>,
    /// Whether the path was full whatever this flow did: all flows together got what the slowest known link carries, or what
    /// the path usually gives while a queue stands on it, and most of them waited in one.
    pub full_for_all: bool,
    /// Share of what the path gives that all flows together got, 0 to 1.
    pub used_share: f64,
    /// Whether this flow waited in a queue: longer than hosts and jitter explain. Not asked of a path that is full for all.
    pub queued: bool,
}

/// What the sender's congestion control did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// It backs off at losses, as Reno and CUBIC do.
    ByLoss,
    /// It models the path, as BBR does, and was still looking for its rate.
    Probing,
    /// It models the path, and knows its rate.
    Modelled,
}

/// The ledger of an interval, microseconds; it adds up to the interval's length.
///
/// # Errors
/// If the kernel does not report what is needed to decide.
pub fn account(seen: &Interval) -> Result<Ledger, Missing> {
    let ledger = whole(seen).map_or_else(|| divided(seen), Ok)?;
    Ok(ledger.with_used_path(seen.look.used_share).scaled_to(seen.duration_us))
}

/// The ledger of a sender of datagrams, microseconds: a wait for room is one for its device. What gets lost takes no time.
pub fn of_datagrams(writer: &Work, duration_us: f64) -> Ledger {
    let blocked_us = writer.blocked_us.clamp(0.0, duration_us);
    let mut ledger = Ledger::default();
    ledger.enter(Limiter::PathRate, Seat::Path, blocked_us);
    ledger.enter_own(writer.own_split(duration_us), Seat::Sender, duration_us - blocked_us);
    ledger
}

/// What holds an interval as a whole.
fn whole(seen: &Interval) -> Option<Ledger> {
    let all = seen.duration_us;
    let mut ledger = Ledger::default();
    if let Some(reader) = &seen.look.behind {
        ledger.enter_own(reader.own_split(all), Seat::Receiver, all);
        ledger = ledger.all_seen();
    } else if let Some(seat) = seen.softirqs_full {
        ledger.enter(Limiter::Host, seat, all);
    } else if seen.paced_out {
        ledger.enter(Limiter::Application, Seat::Sender, all);
    } else if waits_for_time_out(seen) && !seen.look.full_for_all {
        ledger.enter(Limiter::Recovery, Seat::Path, all);
    } else {
        return None;
    }
    Some(ledger)
}

fn waits_for_time_out(seen: &Interval) -> bool {
    match seen.wait {
        Some(wait) => wait == Wait::TimeOut,
        None => seen.look.tcp[1].ca_state == Some(CA_LOSS),
    }
}

fn divided(seen: &Interval) -> Result<Ledger, Missing> {
    let queue_us = queue_us(seen)?;
    let mut ledger = Ledger::default();
    ledger.enter(Limiter::PathRate, Seat::Path, queue_us);
    let mut ledger = ledger.all_seen();
    // What a queue takes of a flow, it takes of the time in which the flow is busy.
    let idle_us = seen.duration_us - seen.busy_us.max(queue_us);
    own(&mut ledger, seen, idle_us.max(0.0));
    let busy_us = seen.busy_us - queue_us;
    if busy_us > 0.0 {
        ledger.add(&while_busy(seen)?.scaled_to(busy_us));
    }
    Ok(ledger)
}

/// How long a queue kept the bottleneck busy for this flow, microseconds: at most as long as something of the flow was on its
/// way, unless others fill the path. While nothing is, the smoothed round trip stays what it was.
fn queue_us(seen: &Interval) -> Result<f64, Missing> {
    let most_us = match (seen.look.full_for_all, seen.look.queued) {
        (true, _) => seen.duration_us,
        (false, true) => seen.busy_us,
        (false, false) => return Ok(0.0),
    };
    Ok((queue_share(seen)? * seen.duration_us).min(most_us))
}

/// Share of an interval with a queue that the bottleneck was busy. A sender that has nothing to send leaves the queue to
/// drain: then it is what arrived over what the bottleneck delivers. The kernel marks that a program limits only when the
/// program begins to write (net/ipv4/tcp_rate.c, `tcp_rate_check_app_limited`). One that waits within a write for room in a
/// full buffer has begun long before.
fn queue_share(seen: &Interval) -> Result<f64, Missing> {
    let ([from, to], [_, at_end]) = (seen.tcp, seen.look.tcp);
    let marked = at_end.delivery_rate_app_limited == Some(1);
    let waits_for_room = waits_for_room(seen) >= MIN_LIMITING_TIME_SHARE;
    if state(at_end)? != State::Hungry || !marked && !waits_for_room {
        return Ok(1.0);
    }
    let moved = to.acked_bytes()?.saturating_sub(from.acked_bytes()?) as f64;
    let delivered = to.delivery_rate_bytes_per_s()? as f64 * seen.duration_us / 1e6;
    Ok(if delivered > 0.0 { (moved / delivered).min(1.0) } else { 1.0 })
}

/// What held a flow while it was busy: by the kernel's chronographs (net/ipv4/tcp.c, `tcp_chrono_start`), and by the state at
/// either end of the interval.
fn while_busy(seen: &Interval) -> Result<Ledger, Missing> {
    let [from, to] = seen.tcp;
    let grown = |read: fn(&TcpInfo) -> Result<u64, Missing>| {
        Ok(read(to)?.saturating_sub(read(from)?) as f64)
    };
    let (window, buffer) = (grown(TcpInfo::rwnd_limited_us)?, grown(TcpInfo::sndbuf_limited_us)?);
    let mut ledger = Ledger::default();
    ledger.enter(Limiter::ReceiveWindow, Seat::Receiver, window);
    full_buffer(&mut ledger, seen, buffer);
    let rest = (seen.busy_us - window - buffer).max(0.0);
    let mut by_looks = Ledger::default();
    for tcp in seen.look.tcp {
        by_state(&mut by_looks, seen, tcp, rest / 2.0)?;
    }
    ledger.add(&by_looks.all_seen());
    Ok(ledger)
}

/// Time in which the writer waited for room in its send buffer.
fn full_buffer(ledger: &mut Ledger, seen: &Interval, time: f64) {
    match seen.losses_fill {
        true => ledger.enter(Limiter::Recovery, Seat::Path, time),
        false => ledger.enter(Limiter::SendBuffer, Seat::Sender, time),
    }
}

/// Time of the sender's own turn; of another program's thread nothing is known, so it is the program's.
fn own(ledger: &mut Ledger, seen: &Interval, time: f64) {
    match &seen.writer {
        Ok(writer) => ledger.enter_own(writer.own_split(seen.duration_us), Seat::Sender, time),
        Err(_) => ledger.enter(Limiter::Application, Seat::Sender, time),
    }
}

/// Share of the interval in which the writer waited for room in its send buffer.
fn waits_for_room(seen: &Interval) -> f64 {
    let blocked_us = seen.writer.as_ref().map_or(0.0, |writer| writer.blocked_us);
    (blocked_us / seen.duration_us).clamp(0.0, 1.0)
}

fn by_state(ledger: &mut Ledger, seen: &Interval, tcp: &TcpInfo, time: f64) -> Result<(), Missing> {
    match state(tcp)? {
        State::Closed => ledger.enter(Limiter::ReceiveWindow, Seat::Receiver, time),
        State::Hungry => {
            let blocked = waits_for_room(seen);
            full_buffer(ledger, seen, blocked * time);
            own(ledger, seen, (1.0 - blocked) * time);
        }
        State::Gated if paces_as_asked(tcp) => {
            ledger.enter(Limiter::Application, Seat::Sender, time);
        }
        State::Gated | State::Full => by_control(ledger, seen, tcp, time)?,
    }
    Ok(())
}

/// Whether a flow has sent as much in this time since its start, seconds, as the pacing rate that was asked for allows. The
/// first window is sent at once, and what follows waits until its time has passed, also what is sent again
/// (net/ipv4/tcp_output.c, `tcp_pacing_check`; `tcp_rearm_rto`).
pub fn is_paced_out(tcp: &TcpInfo, since_s: f64) -> bool {
    let allowed = tcp.max_pacing_rate_bytes_per_s.map(|rate| rate as f64 * since_s);
    let sent = tcp.sent_bytes.map(|bytes| bytes as f64);
    let is_used_up = |(sent, allowed)| sent >= MIN_SHARE_OF_PACING_CAP * allowed;
    paces_as_asked(tcp) && since_s > 0.0 && sent.zip(allowed).is_some_and(is_used_up)
}

/// Whether pacing is at an upper bound that was set (`SO_MAX_PACING_RATE`).
fn paces_as_asked(tcp: &TcpInfo) -> bool {
    let (Ok(paced), Ok(most)) = (tcp.pacing_rate_bytes_per_s(), tcp.max_pacing_rate_bytes_per_s())
    else {
        return false;
    };
    most != TcpInfo::NO_PACING_RATE && paced as f64 >= MIN_SHARE_OF_PACING_CAP * most as f64
}

fn by_control(
    ledger: &mut Ledger,
    seen: &Interval,
    tcp: &TcpInfo,
    time: f64,
) -> Result<(), Missing> {
    match seen.control {
        Control::Probing => ledger.enter(Limiter::Startup, Seat::Path, time),
        Control::Modelled => {
            let lost = retransmitted_share(seen.tcp)?;
            ledger.enter(Limiter::Recovery, Seat::Path, lost * time);
            ledger.enter(Limiter::PathRate, Seat::Path, (1.0 - lost) * time);
        }
        Control::ByLoss => ledger.enter(by_loss(tcp)?, Seat::Path, time),
    }
    Ok(())
}

fn by_loss(tcp: &TcpInfo) -> Result<Limiter, Missing> {
    let threshold = tcp.snd_ssthresh_segments()?;
    let grows_back = tcp.total_rto.is_some_and(|n| n > 0) && tcp.snd_cwnd_segments()? < threshold;
    Ok(match threshold {
        _ if tcp.ca_state()? >= CA_CWR => Limiter::Recovery,
        TcpInfo::INFINITE_SSTHRESH => Limiter::Startup,
        _ if grows_back => Limiter::Recovery,
        _ => Limiter::CongestionWindow,
    })
}

/// Share of the segments of an interval that were sent again.
fn retransmitted_share([from, to]: [&TcpInfo; 2]) -> Result<f64, Missing> {
    let again = to.total_retrans_segments()?.saturating_sub(from.total_retrans_segments()?) as f64;
    let sent = to.data_segs_out()?.saturating_sub(from.data_segs_out()?) as f64;
    Ok(if sent > 0.0 { (again / sent).min(1.0) } else { 0.0 })
}
