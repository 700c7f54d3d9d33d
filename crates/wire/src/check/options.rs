//! Whether the socket options of a plan make sense, and which of them other protocols can't carry.

use goodput_model::traffic_class::MAX_DSCP;
use goodput_model::{EndName, Plan, SocketOptions, Transport};

use super::{MAX_CONGESTION_NAME_BYTES, Problems, is_name, short};

/// The least and the greatest `TCP_MAXSEG` that Linux takes (`TCP_MIN_MSS` and `MAX_TCP_WINDOW`,
/// include/net/tcp.h).
const MSS_RANGE_BYTES: std::ops::RangeInclusive<u32> = 88..=32_767;

/// The least that a socket is paced at, bits per second: the kernel counts whole bytes.
const MIN_PACING_BITS_PER_S: f64 = 8.0;

/// Longest busy poll, microseconds: the kernel takes an int, and more than a second is useless.
const MAX_BUSY_POLL_US: u32 = 1_000_000;

/// The kernel takes an int (`SO_PRIORITY`, net/core/sock.c).
const MAX_PRIORITY: u32 = i32::MAX as u32;

pub(super) fn check(plan: &Plan, problems: &mut Problems) {
    let options = &plan.socket;
    check_each(options, problems);
    for (given, option) in of_tcp_alone(options) {
        if given && plan.transport != Transport::Tcp {
            problems.push(format!("datagrams have no such thing: leave out {option}"));
        }
        if given && options.mptcp {
            problems.push(format!("MPTCP sockets have no such thing: leave out {option}"));
        }
    }
}

fn of_tcp_alone(options: &SocketOptions) -> [(bool, &'static str); 2] {
    [
        (options.quickack.is_some(), "--quickack"),
        (options.notsent_lowat_bytes.is_some(), "--notsent-lowat"),
    ]
}

/// An option that may matter at the far end, and that only goodput's own protocol carries. Older servers don't know
/// this option.
pub(crate) struct OwnOption {
    /// Whether the plan sets this option.
    pub(crate) given: bool,
    /// Which end sends if the option matters at the far end.
    sender: EndName,
    /// Its name in the plan.
    pub(crate) name: &'static str,
    /// What the user typed.
    pub(crate) option: &'static str,
}

impl OwnOption {
    /// Whether the far end has to do it.
    pub(crate) fn is_asked_of_far_end(&self, plan: &Plan) -> bool {
        self.given && plan.direction.senders().contains(&self.sender)
    }
}

/// A row for each such option.
pub(crate) fn own_options(plan: &Plan) -> [OwnOption; 4] {
    let options = &plan.socket;
    let row = |given, sender, name, option| OwnOption { given, sender, name, option };
    let (near, far) = (EndName::Near, EndName::Far);
    let notsent = options.notsent_lowat_bytes.is_some();
    [
        row(options.quickack.is_some(), near, "quickack", "--quickack"),
        row(notsent, far, "notsent_lowat_bytes", "--notsent-lowat"),
        row(options.busy_poll_us.is_some(), near, "busy_poll_us", "--busy-poll"),
        row(options.priority.is_some(), far, "priority", "--priority"),
    ]
}

/// The plan's options that another protocol can't carry to the far end.
pub(crate) fn only_in_goodput(plan: &Plan) -> Vec<&'static str> {
    let options = own_options(plan).into_iter();
    options.filter(|own| own.is_asked_of_far_end(plan)).map(|own| own.option).collect()
}

/// What may be wrong with each of a plan's options alone.
fn check_each(options: &SocketOptions, problems: &mut Problems) {
    if let Some(dscp) = options.dscp.filter(|dscp| *dscp > MAX_DSCP) {
        problems.push(format!("DSCP {dscp} is greater than {MAX_DSCP}"));
    }
    if let Some(mss) = options.mss_bytes.filter(|mss| !MSS_RANGE_BYTES.contains(mss)) {
        problems.push(format!(
            "an MSS of {mss} is not between {} and {}",
            MSS_RANGE_BYTES.start(),
            MSS_RANGE_BYTES.end()
        ));
    }
    if let Some(rate) = options
        .max_pacing_bits_per_s
        .filter(|rate| rate.0.is_nan() || rate.0 < MIN_PACING_BITS_PER_S)
    {
        problems.push(format!("pacing at {rate} would send nothing"));
    }
    if options.mptcp && options.max_pacing_bits_per_s.is_some() {
        problems.push("MPTCP sockets can't be paced by the kernel: leave out --max-pacing".into());
    }
    let unsent = options.notsent_lowat_bytes;
    if let Some(unsent) = unsent.filter(|unsent| !(1..=u32::MAX.into()).contains(&unsent.0)) {
        problems.push(format!("{} bytes unsent are not between 1 and {}", unsent.0, u32::MAX));
    }
    if let Some(us) = options.busy_poll_us.filter(|us| *us > MAX_BUSY_POLL_US) {
        problems.push(format!("a busy poll of {us} us is longer than {MAX_BUSY_POLL_US} us"));
    }
    if let Some(priority) = options.priority.filter(|priority| *priority > MAX_PRIORITY) {
        problems.push(format!("a socket priority of {priority} is above {MAX_PRIORITY}"));
    }
    if let Some(name) = &options.congestion
        && !is_name(name, MAX_CONGESTION_NAME_BYTES)
    {
        problems.push(format!("{:?} can't be the name of a congestion control", short(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Bytes, Direction};

    fn with(change: impl FnOnce(&mut Plan)) -> Plan {
        let mut plan = Plan::standard();
        change(&mut plan);
        plan
    }

    fn problems(change: impl FnOnce(&mut Plan)) -> String {
        let mut problems = Problems::new();
        check(&with(change), &mut problems);
        problems.join("; ")
    }

    #[test]
    fn values_beyond_the_kernels_are_named_with_its_range() {
        assert!(problems(|p| p.socket.priority = Some(1 << 31)).contains("above 2147483647"));
        assert!(problems(|p| p.socket.busy_poll_us = Some(2_000_000)).contains("1000000 us"));
        for unsent in [0, 1 << 32] {
            let said = problems(|p| p.socket.notsent_lowat_bytes = Some(Bytes(unsent)));
            assert!(said.contains("between 1 and 4294967295"), "{said}");
        }
    }

    #[test]
    fn what_only_a_stream_has_is_refused_for_datagrams_and_mptcp() {
        let said = problems(|p| (p.socket.quickack, p.transport) = (Some(true), Transport::Udp));
        assert!(said.contains("leave out --quickack"), "{said}");
        let said = problems(|p| (p.socket.quickack, p.socket.mptcp) = (Some(true), true));
        assert!(said.contains("MPTCP"), "{said}");
    }

    #[test]
    fn other_protocols_lose_what_matters_at_the_far_end_only() {
        let lost = |direction| {
            only_in_goodput(&with(|plan| {
                plan.direction = direction;
                (plan.socket.quickack, plan.socket.priority) = (Some(true), Some(6));
            }))
        };
        assert_eq!(lost(Direction::Send), ["--quickack"]);
        assert_eq!(lost(Direction::Reverse), ["--priority"]);
        assert_eq!(lost(Direction::Both), ["--quickack", "--priority"]);
    }
}
