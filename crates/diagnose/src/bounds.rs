//! Every limit that can be computed, to predict the next one when one is removed.

use goodput_model::{BitRate, Known, Missing, Role, Transport};

use crate::ceiling::link_ceiling;
use crate::names::{ROUTE_WINDOW, TCP_MODERATE_RCVBUF, TCP_RMEM, TCP_WMEM};
use crate::shaper::Shaper;
use crate::thresholds::{MAX_EXTRAPOLATION_RATIO, MIN_BUSY_SHARE_OF_ALL_CPUS};
use crate::view::{CpuTaker, Side, TcpOption, View};

/// Window that a receive buffer of 1 byte gives, bytes: half of it is for the kernel's bookkeeping
/// until a connection proves cheaper (`tcp_adv_win_scale` 1, `TCP_DEFAULT_SCALING_RATIO`).
const WINDOW_SHARE_OF_BUFFER: f64 = 0.5;

/// Below this round-trip time, seconds, the hosts take longer than the path, and window / round-trip time
/// says nothing.
const SHORT_PATH_S: f64 = 100e-6;

/// The rate that one cause allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The rule that would then name the cause.
    pub rule: &'static str,
    /// Goodput it allows.
    pub rate: f64,
}

/// The limits that are known, in no order.
pub fn bounds(view: &View) -> Vec<Bound> {
    let computed = [
        ("line-rate", link_ceiling(view, &view.sender)),
        ("line-rate", link_ceiling(view, &view.receiver)),
        ("shaper-rate", shaper(view)),
        ("sender-application", pacing(view)),
        ("receive-window", receive_window(view)),
        ("send-buffer", send_buffer(view)),
        ("sender-cpu", cpu(view, &view.sender)),
        ("receiver-cpu", cpu(view, &view.receiver)),
    ];
    let known = computed.into_iter().filter_map(|(rule, rate)| Some((rule, rate.ok()?)));
    known.filter(|(_, rate)| rate.is_finite()).map(|(rule, rate)| Bound { rule, rate }).collect()
}

/// The rate that the next limit would allow without `causes`. A bound that the measurement itself has
/// exceeded does not count.
pub fn next_after(view: &View, causes: &[&str]) -> Known<BitRate> {
    let goodput = match view.goodput() {
        Ok(goodput) => goodput,
        Err(why) => return Known::Missing(why),
    };
    let others = bounds(view).into_iter().filter(|b| !causes.contains(&b.rule)).map(|b| b.rate);
    let tuned = causes.iter().filter_map(|cause| tuned(view, cause).ok());
    match others.chain(tuned).filter(|rate| *rate >= goodput).reduce(f64::min) {
        Some(rate) => Known::Value(BitRate(rate)),
        None => Known::missing("no other limit near this goodput is known"),
    }
}

/// The rate that the next limit would allow without `cause`, by which `taker` takes CPU time of `side`: another limit, or the
/// same CPU, if it is known what that would carry.
pub fn next_with_cpu_room(
    view: &View,
    side: &Side,
    cause: &'static str,
    taker: CpuTaker,
) -> Known<BitRate> {
    let own = match side.role {
        Role::Sender => "sender-cpu",
        Role::Receiver => "receiver-cpu",
    };
    let next = match takes_of_both(view, side, taker) {
        true => next_after(view, &[cause, "sender-cpu", "receiver-cpu"]),
        false => next_after(view, &[cause, own]),
    };
    let carried =
        view.known_cpu_room(side, taker).and_then(|times| Ok(BitRate(times * view.goodput()?)));
    match (carried, next) {
        (Ok(carried), Known::Value(next)) if next.0 < carried.0 => Known::Value(next),
        (Ok(carried), _) => Known::Value(carried),
        (Err(_), next) => next,
    }
}

/// Whether it takes CPU time of both ends: what the sender cuts up arrives in pieces, and ends may share a machine.
fn takes_of_both(view: &View, side: &Side, taker: CpuTaker) -> bool {
    match taker {
        CpuTaker::SingleSegments => side.role == Role::Sender,
        CpuTaker::OtherPrograms | CpuTaker::Hypervisor => view.ends_share_a_machine(),
        CpuTaker::Quota | CpuTaker::Clock => false,
    }
}

/// The rate that a fixed buffer allows once the kernel tunes it.
fn tuned(view: &View, cause: &str) -> Result<f64, Missing> {
    match cause {
        "receive-window" if receive_buffer_is_fixed(view) => {
            per_round_trip(view, largest_of(&view.receiver, TCP_RMEM)? * WINDOW_SHARE_OF_BUFFER)
        }
        "send-buffer" if view.plan().socket.sndbuf_bytes.is_some() => {
            per_round_trip(view, largest_of(&view.sender, TCP_WMEM)?)
        }
        _ => Err(Missing::because("not fixed")),
    }
}

/// Whether something keeps the window from growing to what the maximum of `tcp_rmem` allows.
fn receive_buffer_is_fixed(view: &View) -> bool {
    view.plan().socket.rcvbuf_bytes.is_some()
        || view.receiver.count(ROUTE_WINDOW).is_ok_and(|window| window > 0.0)
        || !is_tuned(&view.receiver)
        || view.sender.has_option(TcpOption::WindowScale).is_ok_and(|scaled| !scaled)
}

/// Whether this side's receive buffers grow as needed, as far as it reports.
pub(crate) fn is_tuned(side: &Side) -> bool {
    side.words(TCP_MODERATE_RCVBUF).as_deref() != Some("0")
}

fn shaper(view: &View) -> Result<f64, Missing> {
    let shaper = Shaper::of(view)?.ok_or_else(|| Missing::because("no shaper"))?;
    Ok(shaper.ceiling)
}

fn pacing(view: &View) -> Result<f64, Missing> {
    let rate = view.plan().rate_bits_per_s;
    rate.map(|rate| rate.0).ok_or_else(|| Missing::because("the plan sets no rate"))
}

/// Goodput if this many bytes may be in flight each round trip, over all flows. A window that is many times as large as
/// what was in flight was not measured: the path may end far below its rate.
fn per_round_trip(view: &View, bytes: f64) -> Result<f64, Missing> {
    let rtt = view.sender.min_rtt_s()?;
    if rtt < SHORT_PATH_S {
        return Err(Missing::because("the path is too short for a window to bound it"));
    }
    let rate = bytes * 8.0 / rtt * view.sender.flow_count()?;
    if rate > view.goodput()? * MAX_EXTRAPOLATION_RATIO {
        return Err(Missing::because("too little of the window is in use to predict a limit"));
    }
    Ok(rate)
}

/// The peer's window; if it tunes itself, the largest it may grow to.
fn receive_window(view: &View) -> Result<f64, Missing> {
    let now = view.sender.peer_window_bytes()?;
    let fixed = receive_buffer_is_fixed(view);
    let largest = if fixed { 0.0 } else { largest_of(&view.receiver, TCP_RMEM)? };
    per_round_trip(view, now.max(largest * WINDOW_SHARE_OF_BUFFER))
}

/// The send buffer; if it tunes itself, the largest it may grow to. Its payload was measured to
/// equal its size.
fn send_buffer(view: &View) -> Result<f64, Missing> {
    if view.plan().transport == Transport::Udp {
        return Err(Missing::because("only TCP keeps sent data"));
    }
    let fixed = view.plan().socket.sndbuf_bytes.is_some();
    let now = view.sender.send_buffer_bytes()?;
    let largest = if fixed { 0.0 } else { largest_of(&view.sender, TCP_WMEM)? };
    per_round_trip(view, now.max(largest))
}

/// The last of the three numbers of `tcp_rmem` or `tcp_wmem`, bytes.
pub(crate) fn largest_of(side: &Side, name: &str) -> Result<f64, Missing> {
    let text = side.text(name)?;
    let last = text.split_whitespace().nth(2).and_then(|word| word.parse::<u64>().ok());
    last.map(|n| n as f64)
        .ok_or_else(|| Missing::because(format!("{name} is {text:?}, not three numbers")))
}

/// Goodput with the flows' threads at 100 % of a CPU each, at the same cost per byte.
fn cpu(view: &View, side: &Side) -> Result<f64, Missing> {
    let share = side.thread_cpu_share()?;
    if side.host_busy_share().is_ok_and(|busy| busy >= MIN_BUSY_SHARE_OF_ALL_CPUS) {
        return Err(Missing::because("the host has no CPU time left"));
    }
    if share < 1.0 / MAX_EXTRAPOLATION_RATIO {
        return Err(Missing::because("too little CPU is in use to predict the gain of more"));
    }
    Ok(view.goodput()? / share.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    #[test]
    fn the_next_limit_is_the_lowest_of_the_others() {
        let evidence = Case::receive_window().tbf(1e8, 125_000).evidence();
        let next = next_after(&View::new(&evidence), &["receive-window"]);
        assert_eq!(next.value().unwrap().to_string(), "95.6 Mbit/s");
    }

    #[test]
    fn a_bound_below_the_goodput_is_none() {
        let evidence = Case::healthy().plan(|p| p.rate_bits_per_s = Some(BitRate(1.0))).evidence();
        let next = next_after(&View::new(&evidence), &[]);
        assert!(next.value().unwrap().0 > 8e8);
    }

    #[test]
    fn a_buffer_that_is_no_longer_fixed_is_tuned_up_to_the_maximum() {
        let next = |case: Case| {
            let case = case.without_links();
            let evidence = case.evidence();
            next_after(&View::new(&evidence), &["send-buffer"]).value().unwrap().to_string()
        };
        // 4 MiB in 20.4 ms.
        assert_eq!(next(Case::send_buffer().goodput(500e6)), "1.64 Gbit/s");
    }

    #[test]
    fn a_window_far_larger_than_what_was_in_flight_predicts_nothing() {
        let evidence = Case::send_buffer().without_links().goodput(50e6).evidence();
        let next = next_after(&View::new(&evidence), &["send-buffer"]);
        assert_eq!(next, Known::missing("no other limit near this goodput is known"));
    }

    #[test]
    fn nothing_known_predicts_nothing() {
        let evidence = Case::empty().evidence();
        assert!(next_after(&View::new(&evidence), &[]).value().is_none());
    }
}
