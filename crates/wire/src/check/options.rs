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

/// The mover that the driver proposes for a far end if the user has chosen none.
pub(crate) const PLAIN_MOVER: &str = "copy";

/// An option that may matter at the far end, so that a protocol has to carry it there.
pub(crate) struct FarOption {
    /// Whether the plan sets this option.
    pub(crate) given: bool,
    /// Which end sends if the option matters at the far end.
    sender: EndName,
    /// What the user typed.
    pub(crate) option: &'static str,
    /// Its name in the plan, if servers of goodput that know only the first options don't know it.
    pub(crate) newer: Option<&'static str>,
}

impl FarOption {
    /// Whether the far end has to do it.
    pub(crate) fn is_asked_of_far_end(&self, plan: &Plan) -> bool {
        self.given && plan.direction.senders().contains(&self.sender)
    }
}

/// A row for each such option.
pub(crate) fn far_options(plan: &Plan) -> [FarOption; 12] {
    let options = &plan.socket;
    let of_sender = |given, option| FarOption { given, sender: EndName::Far, option, newer: None };
    let newer =
        |given, sender, name, option| FarOption { given, sender, option, newer: Some(name) };
    let (near, far) = (EndName::Near, EndName::Far);
    let notsent = options.notsent_lowat_bytes.is_some();
    [
        of_sender(options.sndbuf_bytes.is_some(), "--sndbuf"),
        of_sender(options.congestion.is_some(), "--congestion"),
        of_sender(options.nodelay, "--nodelay"),
        of_sender(options.cork, "--cork"),
        of_sender(options.max_pacing_bits_per_s.is_some(), "--max-pacing"),
        of_sender(plan.burst_bytes.is_some(), "--burst"),
        of_sender(options.dont_fragment, "--dont-fragment"),
        of_sender(plan.mover != PLAIN_MOVER, "--mover"),
        newer(options.quickack.is_some(), near, "quickack", "--quickack"),
        newer(notsent, far, "notsent_lowat_bytes", "--notsent-lowat"),
        newer(options.busy_poll_us.is_some(), near, "busy_poll_us", "--busy-poll"),
        newer(options.priority.is_some(), far, "priority", "--priority"),
    ]
}

/// The plan's options that the far end has to do, except those that a protocol has `carried` there.
pub(crate) fn not_carried(plan: &Plan, carried: &[&str]) -> Vec<&'static str> {
    let asked = far_options(plan).into_iter().filter(|option| option.is_asked_of_far_end(plan));
    asked.map(|asked| asked.option).filter(|option| !carried.contains(option)).collect()
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
        let lost = |direction, carried: &[&str]| {
            let plan = with(|plan| {
                plan.direction = direction;
                plan.socket.cork = true;
                (plan.socket.quickack, plan.socket.priority) = (Some(true), Some(6));
            });
            not_carried(&plan, carried)
        };
        assert_eq!(lost(Direction::Send, &[]), ["--quickack"]);
        assert_eq!(lost(Direction::Reverse, &[]), ["--cork", "--priority"]);
        assert_eq!(lost(Direction::Both, &["--cork"]), ["--quickack", "--priority"]);
    }
}
