//! Proposed changes: which setting of which host, from what to what.

use goodput_model::{Change, EndName, SettingRef};

use crate::names::{
    GOVERNOR, INTERRUPT_ALLOWED, INTERRUPT_CPUS, INTERRUPT_VECTORS, ROUTE_CONGCTL,
    ROUTE_DESTINATION, RPS_MASK, TCP_AVAILABLE, TCP_CONGESTION, TCP_RMEM, TCP_WMEM,
};
use crate::view::{Side, View};
use crate::{bounds, ceiling};

/// A setting of the measurement itself, not of a host; always named without an end.
pub fn of_plan(name: &str, from: Option<String>, to: &str, why: &str) -> Change {
    let setting = SettingRef { end: EndName::Near, name: name.into(), scope: None };
    Change { setting, from, to: to.into(), why: why.into() }
}

/// A setting of one side's host.
pub fn of_host(
    side: &Side,
    name: &str,
    scope: Option<&str>,
    values: (Option<String>, String),
    why: &str,
) -> Change {
    let setting = SettingRef { end: side.name, name: name.into(), scope: scope.map(Into::into) };
    Change { setting, from: values.0, to: values.1, why: why.into() }
}

/// A queue for each CPU, as far as the card has them.
pub fn more_queues(side: &Side) -> Option<Change> {
    let now = side.count("channels.combined").ok()?;
    let most = side.count("channels.combined_max").ok()?;
    let cpus = f64::from(side.end().ok()?.host.cpus);
    let wanted = most.min(cpus);
    let values = (Some(format!("{now:.0}")), format!("{wanted:.0}"));
    let why = "a queue with its own interrupt for each CPU";
    let device = side.device().ok()?;
    (wanted > now).then(|| of_host(side, "channels.combined", Some(device), values, why))
}

/// The setting of the CPUs that a device's interrupts go to.
pub const AFFINITY: &str = "irq.affinity";
/// Its value that gives each interrupt a CPU of its own.
pub const SPREAD: &str = "spread";
/// Why interrupts are spread.
pub const SPREADS_INTERRUPTS: &str = "each queue's interrupt on a CPU of its own";

/// A CPU for each interrupt, if all of them go to one CPU.
pub fn spread_interrupts(side: &Side) -> Option<Change> {
    let on = side.text(INTERRUPT_CPUS).ok()?;
    let vectors = side.count(INTERRUPT_VECTORS).ok()?;
    let is_one = one_cpu_for_several(on, vectors, side.end().ok()?.host.cpus);
    // What the setting is, and not what the kernel made of it: that is what an undo writes.
    let from = side.text(INTERRUPT_ALLOWED).ok().map(Into::into);
    let (values, device) = ((from, SPREAD.into()), side.device().ok()?);
    is_one.then(|| of_host(side, AFFINITY, Some(device), values, SPREADS_INTERRUPTS))
}

/// Whether several interrupts all go to one of several CPUs; `on` are those CPUs.
pub fn one_cpu_for_several(on: &str, vectors: f64, cpus: u32) -> bool {
    on.parse::<u32>().is_ok() && vectors > 1.0 && cpus > 1
}

/// Why packets are handed on.
pub const SPREADS: &str = "another CPU takes the packets through the stack";

/// Packets handed on to all CPUs, if the CPU that takes them in hands on none.
pub fn spread_packets(side: &Side) -> Option<Change> {
    let all = all_cpus(side.text(RPS_MASK).ok()?, side.end().ok()?.host.cpus)?;
    let (values, device) = ((Some("0".into()), all), side.device().ok()?);
    Some(of_host(side, "rps.cpus", Some(device), values, SPREADS))
}

/// The mask of all CPUs, as far as one number holds them, if `mask` has none of several.
pub fn all_cpus(mask: &str, cpus: u32) -> Option<String> {
    let none = mask.chars().all(|c| c == '0' || c == ',');
    (none && cpus > 1).then(|| format!("{:x}", (1u64 << cpus.min(32)) - 1))
}

/// Settings that bound how much one softirq does at a time, with what each is multiplied by.
pub const SOFTIRQ_BUDGETS: [(&str, u64); 2] =
    [("sysctl.net.core.netdev_budget", 2), ("sysctl.net.core.netdev_budget_usecs", 4)];

/// Why the clock is kept high.
pub const FULL_CLOCK: &str = "the highest clock at all times";
/// The governor that keeps it there (Documentation/admin-guide/pm/cpufreq.rst).
pub const PERFORMANCE: &str = "performance";

/// The highest clock, if one governor chooses another for all CPUs.
pub fn full_clock(side: &Side) -> Option<Change> {
    let governor = one_governor(side.text(GOVERNOR).ok()?)?;
    let values = (Some(governor.into()), PERFORMANCE.into());
    Some(of_host(side, "cpu.governor", None, values, FULL_CLOCK))
}

/// The governor of all CPUs, if it is one, and another than the fastest.
pub fn one_governor(governors: &str) -> Option<&str> {
    (!governors.contains(',') && governors != PERFORMANCE).then_some(governors)
}

/// The congestion control of the sockets of one measurement.
const OF_SOCKETS: &str = "socket.congestion";

/// BBR in place of another congestion control, where the sender has it.
pub fn to_bbr(view: &View, why: &str) -> Vec<Change> {
    other_control(view, "bbr", why)
}

/// Another congestion control for the flows; none if they have it, or if the sender doesn't. First where the present one
/// comes from, the sender's route or host: that holds for all programs, and can be kept. Then for the sockets of the
/// measurement alone, which needs no privilege.
pub fn other_control(view: &View, name: &str, why: &str) -> Vec<Change> {
    let (Ok(present), Ok(available)) = (view.congestion(), view.sender.text(TCP_AVAILABLE)) else {
        return Vec::new();
    };
    if present == name || !available.split_whitespace().any(|one| one == name) {
        return Vec::new();
    }
    let of_sockets = of_plan(OF_SOCKETS, Some(present.into()), name, why);
    control_of_sender(view, name, why).into_iter().chain([of_sockets]).collect()
}

/// The same for all programs of the sender; `None` if the measurement chose a congestion control of its own, or if which
/// route names it is unknown.
fn control_of_sender(view: &View, name: &str, why: &str) -> Option<Change> {
    if view.plan().socket.congestion.is_some() {
        return None;
    }
    let side = &view.sender;
    let (setting, scope, present) = match side.text(ROUTE_CONGCTL) {
        Ok(present) => (ROUTE_CONGCTL, Some(side.text(ROUTE_DESTINATION).ok()?), present),
        Err(_) => (TCP_CONGESTION, None, side.text(TCP_CONGESTION).ok()?),
    };
    Some(of_host(side, setting, scope, (Some(present.into()), name.into()), why))
}

/// What does the same for the sockets of the measurement as this change of a host does, if anything.
pub fn of_sockets(change: &Change) -> Option<Change> {
    let is_control = [ROUTE_CONGCTL, TCP_CONGESTION].contains(&change.setting.name.as_str());
    is_control.then(|| of_plan(OF_SOCKETS, change.from.clone(), &change.to, &change.why))
}

/// Largest receive and send buffer if nobody set one, bytes (tcp(7); include/net/tcp.h).
const DEFAULT_MAX_RMEM_BYTES: f64 = 6_291_456.0;
const DEFAULT_MAX_WMEM_BYTES: f64 = 4_194_304.0;

/// Receive buffer at the start of a connection if nobody set one, bytes (tcp_init of net/ipv4/tcp.c). The window that
/// the receiver first offers follows from it, and then grows with what came in a round trip: a small one costs many
/// round trips. A send buffer needs no such start, as it grows with the congestion window.
const DEFAULT_FIRST_RMEM_BYTES: u64 = 131_072;

/// Larger receive buffers for the receiver: at least the kernel's own at the start, and a larger maximum.
pub fn larger_rmem(view: &View) -> Option<Change> {
    larger_buffer(view, &view.receiver, TCP_RMEM, DEFAULT_FIRST_RMEM_BYTES)
}

/// A larger maximum for the send buffers of the sender.
pub fn larger_wmem(view: &View) -> Option<Change> {
    larger_buffer(view, &view.sender, TCP_WMEM, 0)
}

/// Raises the second of three numbers to at least `first`, and the last to twice the bandwidth-delay product of the next
/// limit, one for the data in flight and one for what waits behind a loss, but at least to twice the present value. If
/// no limit is known, raises it to the kernel's own maximum.
fn larger_buffer(view: &View, side: &Side, name: &str, first: u64) -> Option<Change> {
    let present = side.text(name).ok()?;
    let largest = bounds::largest_of(side, name).ok()?;
    let product = ceiling::ceiling(view)
        .value()
        .and_then(|rate| Some(rate.bytes_in(view.sender.min_rtt_s().ok()?)));
    // The receiver's bookkeeping takes half of its buffer, so the window needs twice the memory.
    let memory = if name == TCP_RMEM { 2.0 } else { 1.0 };
    let usual = if name == TCP_RMEM { DEFAULT_MAX_RMEM_BYTES } else { DEFAULT_MAX_WMEM_BYTES };
    let wanted = product.map_or(usual, |bytes| 2.0 * memory * bytes).max(2.0 * largest);
    let whole = round_up(wanted)?;
    let mut words: Vec<String> = present.split_whitespace().map(Into::into).collect();
    let present_first: u64 = words.get(1)?.parse().ok()?;
    words[1] = present_first.max(first).to_string();
    *words.get_mut(2)? = whole.to_string();
    let why = match product {
        Some(_) => "2 × bandwidth-delay product, at least twice the present maximum",
        None if wanted > 2.0 * largest => "the kernel's default",
        None => "twice the present maximum",
    };
    Some(of_host(side, name, None, (Some(present.into()), words.join(" ")), why))
}

/// The next power of two, as is usual for buffer sizes; `None` beyond the kernel's maximum
/// (a signed 32-bit number).
fn round_up(bytes: f64) -> Option<u64> {
    let whole = (bytes.ceil() as u64).checked_next_power_of_two()?;
    (whole < 1 << 31).then_some(whole)
}

#[cfg(test)]
mod tests {
    use goodput_model::EndName::{Far, Near};

    use super::*;
    use crate::testing::Case;

    #[test]
    fn a_buffer_grows_to_what_the_path_needs() {
        let evidence = Case::receive_window().evidence();
        let change = larger_rmem(&View::new(&evidence)).unwrap();
        assert_eq!(change.setting.to_string(), "far:sysctl.net.ipv4.tcp_rmem");
        assert_eq!(change.from.as_deref(), Some("4096 131072 262144"));
        // 941.5 Mbit/s × 42 ms = 4.9 MB, four times that, rounded up.
        assert_eq!(change.to, "4096 131072 33554432");
    }

    #[test]
    fn a_small_receive_buffer_starts_as_large_as_the_kernels_own() {
        let receiver_has = |rmem: &'static str| {
            let case = Case::receive_window().fact(Far, TCP_RMEM, rmem);
            larger_rmem(&View::new(&case.evidence())).unwrap().to
        };
        assert_eq!(receiver_has("4096 16384 262144"), "4096 131072 33554432");
        assert_eq!(receiver_has("4096 200000 262144"), "4096 200000 33554432");
    }

    #[test]
    fn a_congestion_control_is_changed_where_it_comes_from_and_then_for_the_sockets() {
        let crawling = || Case::crawling().plan(|plan| plan.socket.congestion = None);
        let offered = |case: Case, name: &str| -> Vec<String> {
            let evidence = case.evidence();
            let changes = other_control(&View::new(&evidence), name, "x");
            changes.iter().map(Change::as_argument).collect()
        };
        let reno = crawling().fact(Near, TCP_CONGESTION, "reno");
        let sysctl = format!("{TCP_CONGESTION}=reno,bbr");
        assert_eq!(offered(reno, "bbr"), [&sysctl, "socket.congestion=reno,bbr"]);
        let routed = crawling().fact(Near, ROUTE_CONGCTL, "vegas").fact(
            Near,
            ROUTE_DESTINATION,
            "192.0.2.0/24",
        );
        let route = "route.congctl@192.0.2.0/24=vegas,cubic";
        assert_eq!(offered(routed, "cubic"), [route, "socket.congestion=vegas,cubic"]);
        let unknown = crawling().fact(Near, ROUTE_CONGCTL, "vegas");
        let sockets = ["socket.congestion=vegas,cubic"];
        assert_eq!(offered(unknown, "cubic"), sockets, "a metric without its route");
        let chosen = offered(Case::crawling(), "bbr");
        assert_eq!(chosen, ["socket.congestion=reno,bbr"], "the host's own would change nothing");
        let absent = crawling().fact(Near, TCP_AVAILABLE, "reno cubic");
        assert_eq!(offered(absent, "bbr"), [""; 0]);
        assert_eq!(offered(crawling().congestion("bbr"), "bbr"), [""; 0]);
    }

    #[test]
    fn the_hosts_congestion_control_is_that_of_the_sockets_too() {
        let evidence = Case::crawling().plan(|plan| plan.socket.congestion = None).evidence();
        let changes = other_control(&View::new(&evidence), "cubic", "x");
        assert_eq!(of_sockets(&changes[0]).as_ref(), changes.get(1));
        assert_eq!(of_sockets(&changes[1]), None);
    }

    #[test]
    fn no_more_than_the_kernel_takes() {
        assert_eq!(round_up(2e9), None);
        assert_eq!(round_up(1e9), Some(1 << 30));
    }
}
