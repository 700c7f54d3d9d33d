//! What the card negotiated and how its driver is configured.

use goodput_model::{Change, Confidence, Place};

use super::super::{Answer, Check, HostView, Scope};
use crate::finding::{rate, time};
use crate::names;
use crate::udev_rule;

/// Speed at which one queue, or an interrupt for every frame, is too much for a CPU.
const MIN_FAST_BITS_PER_S: f64 = 10e9;
/// Delay of an interrupt that shows in the round-trip time of a local network, microseconds.
const LATE_US: f64 = 250.0;

pub(super) const LINK_SPEED: Check = Check {
    id: "link-speed",
    title: "a link slower than both sides support",
    scope: Scope::Device,
    ask: &slower,
};
pub(super) const HALF_DUPLEX: Check = Check {
    id: "duplex-mismatch",
    title: "a link that is half duplex",
    scope: Scope::Device,
    ask: &half,
};
pub(super) const COALESCING: Check = Check {
    id: "interrupt-coalescing",
    title: "interrupts for every frame, or very late",
    scope: Scope::Device,
    ask: &coalescing,
};
pub(super) const QUEUES: Check = Check {
    id: "queue-imbalance",
    title: "one queue although the card has more",
    scope: Scope::Device,
    ask: &queues,
};

fn slower(check: &Check, host: &HostView) -> Answer {
    let speed = host.count(names::LINK_SPEED)?;
    let can = host.count("negotiation.supported_bits_per_s")?;
    // A partner that does not report its abilities is not to blame.
    let both = can.min(host.count("negotiation.partner_bits_per_s").unwrap_or(speed));
    if speed >= both {
        return Ok(None);
    }
    let text = format!("the link runs at {}; both sides support {}", rate(speed), rate(both));
    check
        .draft(Confidence::Certain, names::LINK_SPEED, speed, &text)
        .advice("use another cable or port")
        .command(
            Place::Near,
            "ethtool -s DEV autoneg on",
            "autonegotiation on; do the same at the other side",
        )
        .permanent(udev_rule::FILE, udev_rule::autonegotiation("DEV"))
        .permanent("FreeBSD /etc/rc.conf", "ifconfig_DEV=\"… media autoselect\"")
        .found()
}

fn half(check: &Check, host: &HostView) -> Answer {
    if host.text("link.duplex")? != "half" {
        return Ok(None);
    }
    let text = "the link is half duplex";
    check
        .draft(Confidence::Likely, "link.duplex", 1.0, text)
        .advice("switch autonegotiation on at both sides; one fixed side causes this")
        .permanent(udev_rule::FILE, udev_rule::autonegotiation("DEV"))
        .found()
}

fn coalescing(check: &Check, host: &HostView) -> Answer {
    let us = host.count("coalescing.rx_us")?;
    let adaptive = host.text("coalescing.rx_adaptive").unwrap_or("off") == "on";
    let fast = host.count(names::LINK_SPEED).is_ok_and(|speed| speed >= MIN_FAST_BITS_PER_S);
    let text = match us {
        _ if adaptive => return Ok(None),
        us if us > LATE_US => format!("the card delays interrupts by {}", time(us / 1e6)),
        0.0 if fast => "the card interrupts for every frame".into(),
        _ => return Ok(None),
    };
    let why = "fewer interrupts under load, early ones when idle";
    let change = host.change("coalescing.adaptive_rx", Some("off".into()), "on", why);
    check.draft(Confidence::Possible, "coalescing.rx_us", us, &text).changes([change]).found()
}

fn queues(check: &Check, host: &HostView) -> Answer {
    let (used, most) = (host.count("channels.combined")?, host.count("channels.combined_max")?);
    let cpus = host.count("cpu.count")?;
    let fast = host.count(names::LINK_SPEED)? >= MIN_FAST_BITS_PER_S;
    if used > 1.0 || most <= 1.0 || cpus <= 1.0 || !fast {
        return Ok(None);
    }
    let text = format!("the card uses 1 of {most} queues, so one CPU handles all interrupts");
    let changes = more_queues(host);
    check.draft(Confidence::Possible, "channels.combined", used, &text).changes(changes).found()
}

/// A queue for each CPU, as far as the card has them.
pub(super) fn more_queues(host: &HostView) -> Option<Change> {
    host.device?;
    let count = |name| host.count(name).ok();
    let (used, most) = (count("channels.combined")?, count("channels.combined_max")?);
    let to = most.min(count("cpu.count")?);
    let (from, why) = (Some(format!("{used:.0}")), "more CPUs share the work");
    (to > used).then(|| host.change("channels.combined", from, &format!("{to:.0}"), why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Finding, Snapshot};

    fn of(card: &Check, facts: &Snapshot) -> Option<Finding> {
        card.check(&HostView { device: Some("eth0"), now: facts, before: None }).unwrap()
    }

    #[test]
    fn a_slow_link_is_certain_where_the_partner_can_more() {
        let mut facts = Snapshot::default();
        facts.put(names::LINK_SPEED, 100_000_000u64);
        facts.put("negotiation.supported_bits_per_s", 1_000_000_000u64);
        assert_eq!(of(&LINK_SPEED, &facts), None);
        facts.put("negotiation.partner_bits_per_s", 2_500_000_000u64);
        let found = of(&LINK_SPEED, &facts).unwrap();
        let (runs, supports) = found.summary.split_once("support").unwrap();
        assert!(runs.contains("100 Mbit/s") && supports.contains("1 Gbit/s"), "{}", found.summary);
    }

    #[test]
    fn adaptive_coalescing_is_fine() {
        let mut facts = Snapshot::default();
        facts.put("coalescing.rx_us", 1000u64);
        assert!(of(&COALESCING, &facts).is_some());
        facts.put("coalescing.rx_adaptive", "on");
        assert_eq!(of(&COALESCING, &facts), None);
    }

    #[test]
    fn one_queue_of_many_on_a_fast_card() {
        let mut facts = Snapshot::default();
        facts.put(names::LINK_SPEED, 25_000_000_000u64);
        facts.put("channels.combined", 1u64);
        facts.put("channels.combined_max", 63u64);
        facts.put("cpu.count", 8u64);
        assert_eq!(of(&QUEUES, &facts).unwrap().changes[0].to, "8");
        facts.put("channels.combined", 8u64);
        assert_eq!(of(&QUEUES, &facts), None);
    }
}
