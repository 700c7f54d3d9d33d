//! Where payload was lost: the path from the sender's application to the receiver's, with the
//! counts of each step.
//!
//! Sockets count the flows' own segments; devices and queues count every packet of the host. So the
//! path's loss is the sockets' loss less the hosts' drops, and only if both count alike.
//!
//! Each step passes on what came in less its drops, and the next step receives that. Counts that contradict this
//! (read at different instants, or mixed with other traffic) are missing, with the reason.

use goodput_model::{FlowSample, Known, Missing, Role, Step, StepName, StepUnit};

use crate::names;
use crate::view::{Side, View};

/// The steps, in the order in which the payload passes them.
pub fn path_steps(view: &View) -> Vec<Step> {
    let (from, to) = (&view.sender, &view.receiver);
    let mut steps = vec![
        application(from),
        socket(view, from),
        queue(from),
        device(from, "tx", &["dropped", "errors"]),
        path(view),
        // Missed frames are counted apart from dropped ones (if_link.h); errors include frame errors.
        device(to, "rx", &["dropped", "missed_errors", "errors"]),
        backlog(view),
        socket(view, to),
        application(to),
    ];
    remove_contradictions(&mut steps);
    steps
}

/// Takes back each count that contradicts an earlier one. Both can't be right about this path, and the earlier count
/// comes from its own counter.
fn remove_contradictions(steps: &mut [Step]) {
    for at in 0..steps.len() {
        let (before, from) = steps.split_at_mut(at);
        let Some(step) = from.first_mut() else { continue };
        let previous = before
            .last()
            .filter(|previous| (previous.place, previous.unit) == (step.place, step.unit));
        let came = previous.and_then(|previous| previous.left.value());
        if came.zip(step.entered.value()).is_some_and(|(came, entered)| came != entered) {
            step.entered = nothing("not counted: the step before counts other packets too");
        }
        let counts = (step.entered.value(), step.dropped.value(), step.left.value());
        let (Some(entered), Some(dropped), Some(left)) = counts else { continue };
        if entered.checked_sub(*dropped) != Some(*left) {
            step.left = nothing("the steps around it count at different instants");
        }
    }
}

/// Why the number of datagrams that a socket dropped is unknown.
const JOINED: &str = "the receiving socket dropped packets that held several datagrams each";

fn nothing(why: &'static str) -> Known<u64> {
    Known::missing(why)
}

fn application(side: &Side) -> Step {
    let moved: Known<u64> = total(side, |flow| Ok(flow.bytes)).into();
    let elsewhere = || nothing("payload begins and ends here");
    let (entered, left) = match side.role {
        Role::Sender => (elsewhere(), moved),
        Role::Receiver => (moved, elsewhere()),
    };
    let dropped = nothing("a program drops nothing");
    let (place, name, unit) = (side.place(), StepName::Application, StepUnit::Bytes);
    Step { place, name, unit, entered, left, dropped }
}

fn socket(view: &View, side: &Side) -> Step {
    let stream = || nothing("bytes and packets are counted separately");
    let (entered, left, dropped) = match (side.role, view.is_tcp()) {
        (Role::Sender, _) => {
            let dropped = match refused(view) {
                0 => nothing("a sending socket waits instead"),
                refused => Known::Value(refused),
            };
            (stream(), left_sender(view).into(), dropped)
        }
        (Role::Receiver, is_tcp) => {
            // The program reads datagrams, but a stream's bytes.
            let left = if is_tcp { stream() } else { carried(view, side).into() };
            let dropped = dropped_by_socket(view, side).into();
            (came_to_receiver(view).into(), left, dropped)
        }
    };
    Step {
        place: side.place(),
        name: StepName::Socket,
        unit: flow_unit(view),
        entered,
        left,
        dropped,
    }
}

/// The unit of the flows' own counters.
fn flow_unit(view: &View) -> StepUnit {
    if view.is_tcp() { StepUnit::Segments } else { StepUnit::Datagrams }
}

/// Payload units that reached the receiving sockets. Segments are counted before a socket can drop them (`tcp_segs_in`,
/// net/ipv4/tcp_ipv4.c), datagrams when the program reads them.
fn came_to_receiver(view: &View) -> Result<u64, Missing> {
    let counted = carried(view, &view.receiver)?;
    match view.is_tcp() {
        true => Ok(counted),
        false => Ok(counted.saturating_add(dropped_by_socket(view, &view.receiver)?)),
    }
}

/// The kernel counts a socket's drops in packets. With TCP these include segments that had come before
/// (`SKB_DROP_REASON_TCP_OLD_DATA` and `TCP_OFOMERGE`, net/ipv4/tcp_input.c), which are not lost.
fn dropped_by_socket(view: &View, side: &Side) -> Result<u64, Missing> {
    let packets = total(side, |flow| Ok(flow.memory.get()?.drops))?;
    if packets == 0 {
        return Ok(0);
    }
    if view.is_tcp() {
        return Ok(packets.saturating_sub(came_before(view)?));
    }
    if total(side, |flow| Ok(flow.datagrams.map_or(0, |d| d.joined)))? > 0 {
        return Err(Missing::because(JOINED));
    }
    Ok(packets)
}

/// What the sockets of one side sent or received.
fn carried(view: &View, side: &Side) -> Result<u64, Missing> {
    total(side, |flow| match (view.is_tcp(), side.role) {
        (true, Role::Sender) => flow.tcp.get()?.data_segs_out(),
        (true, Role::Receiver) => flow.tcp.get()?.data_segs_in(),
        (false, role) => {
            let counts = flow.datagrams.ok_or_else(|| Missing::because("not counted"))?;
            Ok(if role == Role::Sender { counts.sent } else { counts.received })
        }
    })
}

/// Datagrams that a firewall rule of the sending host dropped as they were sent.
fn refused(view: &View) -> u64 {
    total(&view.sender, |flow| Ok(flow.datagrams.map_or(0, |counts| counts.refused))).unwrap_or(0)
}

/// What the sending sockets passed on.
fn left_sender(view: &View) -> Result<u64, Missing> {
    Ok(carried(view, &view.sender)?.saturating_sub(refused(view)))
}

fn queue(side: &Side) -> Step {
    let counted = |name| match side.text(names::QDISC_KIND)? {
        "noqueue" => Err(Missing::because("the device has no queue")),
        _ => side.grown(name),
    };
    let (sent, dropped) = (counted(names::QDISC_PACKETS), counted(names::QDISC_DROPS));
    packets(side, StepName::Qdisc, both(&sent, &dropped), sent, dropped)
}

fn device(side: &Side, rx_or_tx: &str, drops: &[&str]) -> Step {
    let passed = side.grown(&format!("link.{rx_or_tx}_packets"));
    let lost = drops.iter().map(|kind| side.grown(&format!("link.{rx_or_tx}_{kind}")));
    let dropped = lost.into_iter().try_fold(0u64, |sum, one| Ok(sum.saturating_add(one?)));
    packets(side, StepName::Device, both(&passed, &dropped), passed, dropped)
}

fn backlog(view: &View) -> Step {
    let processed = view.receiver.grown(names::SOFTNET_PROCESSED);
    let dropped = view.backlog_drops().map(|drops| drops as u64);
    packets(&view.receiver, StepName::Backlog, both(&processed, &dropped), processed, dropped)
}

fn both(one: &Result<u64, Missing>, other: &Result<u64, Missing>) -> Result<u64, Missing> {
    Ok(one.clone()?.saturating_add(other.clone()?))
}

fn packets(
    side: &Side,
    name: StepName,
    entered: Result<u64, Missing>,
    left: Result<u64, Missing>,
    dropped: Result<u64, Missing>,
) -> Step {
    Step {
        place: side.place(),
        name,
        unit: StepUnit::Packets,
        entered: entered.into(),
        left: left.into(),
        dropped: dropped.into(),
    }
}

fn path(view: &View) -> Step {
    let sent = || left_sender(view)?.checked_sub(dropped_before_path(view)?).ok_or_else(others);
    let came = || Ok(came_to_receiver(view)?.saturating_add(dropped_behind_path(view)));
    Step {
        place: goodput_model::Place::Path,
        name: StepName::Path,
        unit: flow_unit(view),
        entered: sent().into(),
        left: came().into(),
        dropped: lost_on_the_path(view).into(),
    }
}

/// Why the path's part is unknown if the hosts dropped more packets than the flows miss.
fn others() -> Missing {
    Missing::because("the hosts dropped more than this transfer lost: part was other traffic")
}

/// Packets of all traffic that the sending host dropped between socket and path.
fn dropped_before_path(view: &View) -> Result<u64, Missing> {
    let steps = [queue(&view.sender), device(&view.sender, "tx", &["dropped", "errors"])];
    // A device without a queue counts no drops, and it drops nothing that it can't count.
    let dropped = steps.iter().map(counted_drops).fold(0, u64::saturating_add);
    if dropped > 0 && view.sender.text(names::OFFLOAD_TSO).is_ok_and(|tso| tso == "on") {
        return Err(Missing::because(
            "the sending host dropped packets of several segments each, so the path's part is unknown",
        ));
    }
    Ok(dropped)
}

/// Packets of all traffic that the receiving host dropped between path and socket.
fn dropped_behind_path(view: &View) -> u64 {
    let device =
        counted_drops(&device(&view.receiver, "rx", &["dropped", "missed_errors", "errors"]));
    let backlog = counted_drops(&backlog(view));
    // A veth also counts a packet that found the backlog full as its own drop (drivers/net/veth.c).
    match view.receiver.text(names::LINK_KIND) {
        Ok("veth") => device.max(backlog),
        _ => device.saturating_add(backlog),
    }
}

fn counted_drops(step: &Step) -> u64 {
    step.dropped.value().copied().unwrap_or(0)
}

/// Payload units that never reached the receiving socket. The two ends read their counters at different
/// instants, so the difference won't do. With TCP the loss is the retransmissions, less those that the receiver
/// had already (RFC 2883); with UDP it is the sequence numbers that never came.
fn lost(view: &View) -> Result<u64, Missing> {
    if !view.is_tcp() {
        let uncounted = || Missing::because("datagrams were not counted");
        return total(&view.receiver, |f| f.datagrams.ok_or_else(uncounted)?.lost());
    }
    let again = total(&view.sender, |f| f.tcp.get()?.total_retrans_segments())?;
    again
        .checked_sub(came_before(view)?)
        .ok_or_else(|| Missing::because("the path duplicates segments"))
}

/// The segments that the receiver reports as duplicates (RFC 2883).
fn came_before(view: &View) -> Result<u64, Missing> {
    total(&view.sender, |flow| flow.tcp.get()?.dsack_dups())
}

/// The loss, less the hosts' own drops.
fn lost_on_the_path(view: &View) -> Result<u64, Missing> {
    let gone = lost(view)?;
    let before = dropped_before_path(view)?;
    let socket = match dropped_by_socket(view, &view.receiver) {
        Err(why) if why.missing == JOINED => return Err(why),
        dropped => dropped.unwrap_or(0),
    };
    let sending = before.saturating_add(refused(view));
    let hosts = sending.saturating_add(dropped_behind_path(view)).saturating_add(socket);
    gone.checked_sub(hosts).ok_or_else(others)
}

/// A counter of the flows of one side since they began, all flows together.
fn total(side: &Side, read: impl Fn(&FlowSample) -> Result<u64, Missing>) -> Result<u64, Missing> {
    let last = side.end()?.samples.iter().rev().find(|sample| !sample.flows.is_empty());
    let last = last.ok_or_else(|| Missing::because("no flow was sampled"))?;
    let mut flows = last.flows.iter().filter(|flow| flow.role == side.role).peekable();
    flows.peek().ok_or_else(|| Missing::because("no flow of this direction was sampled"))?;
    flows.try_fold(0u64, |sum, flow| Ok(sum.saturating_add(read(flow)?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::Case;
    use goodput_model::EndName::{Far, Near};
    use goodput_model::Transport;

    fn dropped(case: Case) -> Vec<Known<u64>> {
        path_steps(&View::new(&case.evidence())).into_iter().map(|step| step.dropped).collect()
    }

    fn datagrams(lost: f64) -> Case {
        Case::healthy().plan(|plan| plan.transport = Transport::Udp).lost(lost)
    }

    #[test]
    fn nine_steps_from_application_to_application() {
        let steps = path_steps(&View::new(&Case::healthy().evidence()));
        assert_eq!(steps.len(), 9);
        assert_eq!((steps[0].name, steps[8].name), (StepName::Application, StepName::Application));
        assert!(steps[0].left.value().is_some_and(|bytes| *bytes > 0));
    }

    #[test]
    fn absent_is_not_zero() {
        let all = dropped(Case::empty());
        assert!(all.iter().all(|drops| drops.value().is_none()), "{all:?}");
    }

    #[test]
    fn the_backlogs_drops_are_not_the_paths() {
        let case = || datagrams(0.0).grows(Far, "link.rx_packets", 10);
        let steps = dropped(case().grows(Far, names::SOFTNET_DROPPED, 5));
        // The datagrams are all there, so the five were someone else's.
        assert!(steps[4].get().unwrap_err().to_string().contains("other traffic"), "{steps:?}");
        assert_eq!(dropped(case())[4], Known::Value(0));
    }

    #[test]
    fn a_busy_machines_backlog_drops_are_nobodys() {
        let case = datagrams(0.1).grows(Far, names::SOFTNET_DROPPED, 5);
        let case = case.grows(Far, names::SOFTNET_PROCESSED, 540_000);
        let steps = dropped(case.grows(Far, names::LINK_RX_PACKETS, 14_000));
        assert!(steps[6].get().unwrap_err().to_string().contains("others'"), "{steps:?}");
    }

    #[test]
    fn what_a_socket_dropped_of_joined_datagrams_is_not_known() {
        let steps = dropped(datagrams(0.1).dropped(0.1 / 45.0).joined(45));
        for step in [4, 7] {
            assert!(steps[step].get().unwrap_err().to_string().contains("several datagrams"));
        }
        assert_eq!(dropped(datagrams(0.0).joined(45))[4], Known::Value(0));
    }

    #[test]
    fn segments_that_come_twice_are_not_lost_at_the_socket() {
        let steps = |needless: fn(u64) -> u64| {
            let again = Case::healthy().retransmitted(0.01).dropped(0.001);
            let again = again.tcp(move |tcp, _| {
                tcp.dsack_dups = tcp.total_retrans_segments.map(needless);
            });
            dropped(again)
        };
        let (none, all) = (steps(|_| 0), steps(|again| again));
        assert!(none[7].value().is_some_and(|drops| *drops > 0), "{none:?}");
        assert_eq!((&all[4], &all[7]), (&Known::Value(0), &Known::Value(0)), "{all:?}");
    }

    #[test]
    fn local_drops_of_super_packets_leave_the_path_unknown() {
        let steps = dropped(datagrams(0.1).grows(Near, names::QDISC_DROPS, 3));
        assert!(steps[4].get().unwrap_err().to_string().contains("several segments"), "{steps:?}");
    }

    /// Losses at any of the steps, some of other traffic, and the sender's counts at its own instant.
    #[derive(Debug, Clone)]
    struct Losses {
        udp: bool,
        lost: f64,
        dropped: f64,
        joined: u64,
        sent: Option<u64>,
        tso: bool,
        of_hosts: Vec<u64>,
    }

    impl Losses {
        fn any() -> impl Strategy<Value = Self> {
            let shares = (0.0..0.3, 0.0..0.05, prop_oneof![Just(1u64), Just(45)]);
            let of_hosts = proptest::collection::vec(prop_oneof![Just(0u64), 1..2000u64], 5);
            let sent = prop_oneof![Just(None), (200_000..400_000u64).prop_map(Some)];
            (any::<bool>(), any::<bool>(), shares, sent, of_hosts).prop_map(
                |(udp, tso, (lost, dropped, joined), sent, of_hosts)| Self {
                    udp,
                    lost,
                    dropped,
                    joined,
                    sent,
                    tso,
                    of_hosts,
                },
            )
        }

        fn case(&self) -> Case {
            let case = match self.udp {
                true => datagrams(self.lost),
                false => Case::healthy().retransmitted(self.lost),
            };
            let case = case.dropped(self.dropped).joined(self.joined);
            let case = self.sent.into_iter().fold(case, Case::datagrams_sent);
            case.fact(Near, names::OFFLOAD_TSO, if self.tso { "on" } else { "off" })
                .grows(Near, names::QDISC_DROPS, self.of_hosts[0])
                .grows(Near, names::QDISC_PACKETS, 300_000)
                .grows(Far, names::LINK_RX_DROPPED, self.of_hosts[1])
                .grows(Far, "link.rx_packets", 290_000 + self.of_hosts[4])
                .grows(Far, names::SOFTNET_DROPPED, self.of_hosts[2])
                .grows(Far, names::SOFTNET_PROCESSED, 290_000 + self.of_hosts[3])
                .arriving(|info, _| info.rcv_ooo_segments = Some(0))
        }
    }

    proptest! {
        /// Whatever the counts, the numbers add up within each step and from one step to the next.
        #[test]
        fn what_came_in_less_what_was_dropped_goes_on(losses in Losses::any()) {
            let steps = path_steps(&View::new(&losses.case().evidence()));
            for step in &steps {
                let counts = (step.entered.value(), step.dropped.value(), step.left.value());
                if let (Some(entered), Some(dropped), Some(left)) = counts {
                    prop_assert_eq!(entered - dropped, *left, "{:?}", step);
                }
            }
            for pair in steps.windows(2) {
                let [from, to] = pair else { unreachable!("two steps") };
                let both = from.left.value().zip(to.entered.value());
                if let Some((left, entered)) = both.filter(|_| (from.place, from.unit) == (to.place, to.unit)) {
                    prop_assert_eq!(left, entered, "{:?}", pair);
                }
            }
            // Packets between sockets and path are counted with other traffic; how many of them were dropped is known.
            let between = |from: usize, to: usize| -> u64 { steps[from + 1..to].iter().map(counted_drops).sum() };
            for (from, to) in [(1, 4), (4, 7)] {
                if let Some((left, entered)) = steps[from].left.value().zip(steps[to].entered.value()) {
                    prop_assert_eq!(left - between(from, to), *entered, "{:?}", steps);
                }
            }
        }
    }

    #[test]
    fn what_the_senders_firewall_dropped_never_reached_the_path() {
        let case = datagrams(0.3).datagrams_sent(400_000).refused(0.25);
        let steps = path_steps(&View::new(&case.evidence()));
        assert_eq!(steps[1].dropped, Known::Value(100_000));
        assert_eq!(steps[1].left, Known::Value(300_000));
        let lost =
            |refused| dropped(datagrams(0.3).datagrams_sent(400_000).refused(refused))[4].clone();
        let (all, rest) = (*lost(0.0).value().unwrap(), *lost(0.1).value().unwrap());
        assert_eq!(all - rest, 40_000, "the path is blamed for the rest alone");
    }

    #[test]
    fn what_the_socket_dropped_came_in_and_did_not_go_on() {
        let steps = path_steps(&View::new(&datagrams(0.1).dropped(0.01).evidence()));
        let socket = &steps[7];
        let [entered, dropped, left] = [&socket.entered, &socket.dropped, &socket.left]
            .map(|count| *count.value().expect("it is counted"));
        assert!(dropped > 0 && entered == left + dropped, "{socket:?}");
    }
}
