//! # What it means
//! The card's bus is slower than its network link, and the bus is full.
//!
//! # Why it limits
//! USB moves packets in frames with gaps between them. The old PCI bus is shared by all its cards,
//! one direction at a time. On ISA the CPU moves each word itself. A "gigabit" adapter on USB 2
//! gets 200 to 350 Mbit/s, an ISA card 42 Mbit/s at most.
//!
//! # How it is seen
//! The device is on one of these buses, the bus carries less than the link, and the goodput is
//! between 70 % and 100 % of what the bus gives: USB 1.1 9.7, USB 2 426, USB 3 4000 Mbit/s and more
//! for faster versions; ISA 42.7 Mbit/s. On USB 2 the finding is possible from 45 %, because
//! adapters reach less than the bus.
//!
//! # What to try
//! A port or slot on a faster bus; another adapter; virtio in place of an emulated card.
//!
//! # When it is wrong
//! A hub shares one port's rate among all its devices, and cameras or disks take their part. The
//! speed is that of the adapter on its port: a USB 3 adapter in a USB 2 port shows 480.
//! Conventional PCI looks like a virtual machine's PCI Express and is not reported. The authors
//! have not seen this on such hardware.
//!
//! # Source
//! USB 1.1 section 5.8, USB 2.0 section 5.8.4 (most bulk transactions in a frame); USB 3.2 section 4.4.11;
//! Ethernet-HOWTO ("The ISA bus can do 5.3MB/sec"); Documentation/ABI/stable/sysfs-bus-usb (`speed`).

use goodput_ceiling::buses;
use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::ceiling::link_ceiling;
use crate::finding::{Draft, percent, rate};
use crate::framing::{QDISC_EXTRA_BYTES, packet};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, View, first_of};

/// The rule.
pub const RULE: Rule = Rule {
    id: "legacy-bus",
    title: "The card's bus is full",
    refines: &[parts::PATH_RATE],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "bus_percent",
    witness_words: ("goodput as a share of the bus", " %"),
    source: include_str!("legacy_bus.rs"),
};

/// Share of what the bus gives from which it limits.
const MIN_LIMITING_SHARE_OF_BUS: f64 = 0.7;
/// The same from which it may: adapters on USB 2 reach 200 to 350 Mbit/s.
const MIN_SUSPECT_SHARE_OF_BUS: f64 = 0.45;
/// Share above which the bus is another than it seems.
const MAX_PLAUSIBLE_SHARE_OF_BUS: f64 = 1.05;
/// Share of its link that the goodput leaves unused if the bus limits.
const MIN_FULL_LINK_SHARE: f64 = 0.9;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    first_of(view, |side| at(view, side))
}

fn at(view: &View, side: &Side) -> Result<Option<Finding>, Missing> {
    if !side.on_hardware()? {
        return Ok(None);
    }
    let Some((name, gives)) = bus(side)? else { return Ok(None) };
    let share = crossed(view)? / gives;
    let link = link_ceiling(view, side).ok();
    let full_link = link.is_some_and(|link| view.goodput_or_zero() >= MIN_FULL_LINK_SHARE * link);
    if !(MIN_SUSPECT_SHARE_OF_BUS..=MAX_PLAUSIBLE_SHARE_OF_BUS).contains(&share) || full_link {
        return Ok(None);
    }
    let confidence =
        if share >= MIN_LIMITING_SHARE_OF_BUS { Confidence::Likely } else { Confidence::Possible };
    let (place, device) = (side.place(), side.device()?);
    let text = format!(
        "{device} is on {name}, which carries {}; {} of this rate is used",
        rate(gives),
        percent(share)
    );
    Draft::new(RULE.id, place, confidence, format!("the bus of {device}, {name}"))
        .saw(place, RULE.witness_name, share * 100.0, text)
        .saw_if(place, "link_bits_per_s", link.ok_or_else(|| Missing::because("unknown")), |link| {
            format!("the network link of {device} could carry {}", rate(link))
        })
        .predicted(next_after(view, &[RULE.id]))
        .advice("use a port or slot on a faster bus")
        .command(place, "lsusb -t", "the speed of each USB device")
        .command(place, "lspci -tv", "the place of each card")
        .found()
}

/// The bus and what it gives; `None` for a bus that is none of these.
fn bus(side: &Side) -> Result<Option<(String, f64)>, Missing> {
    match side.text("bus.kind")? {
        "usb" => {
            let speed = side.number("bus.usb_bits_per_s")?;
            Ok(buses::usb(speed).map(|bus| (format!("USB at {}", rate(speed)), bus.gives())))
        }
        _ if side.text("bus.address").is_ok_and(|address| address.starts_with("ISA")) => {
            Ok(buses::find("isa16").map(|bus| ("ISA".into(), bus.gives())))
        }
        _ => Ok(None),
    }
}

/// What crosses the bus: frames without checksum.
fn crossed(view: &View) -> Result<f64, Missing> {
    Ok(view.goodput()? / packet(view)?.share(QDISC_EXTRA_BYTES))
}

/// Share of the fuller of the two ends' buses that is used, percent; 0 if neither is one of these.
fn witness(view: &View) -> Result<f64, Missing> {
    let crossed = crossed(view)?;
    let [one, other] = view.sides().map(|side| bus(side));
    let shares = [one?, other?].into_iter().flatten().map(|(_, gives)| crossed / gives * 100.0);
    Ok(shares.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::{Far, Near};

    fn adapter(speed: u64) -> Case {
        Case::healthy().fact(Near, "bus.kind", "usb").fact(Near, "bus.usb_bits_per_s", speed)
    }

    #[test]
    fn a_gigabit_adapter_on_usb_2_is_named() {
        let finding = fires(&RULE, adapter(480_000_000).goodput(340e6));
        assert_eq!(finding.confidence, Confidence::Likely);
        assert_eq!(finding.summary, "the bus of eth0, USB at 480 Mbit/s");
        let slow = fires(&RULE, adapter(480_000_000).goodput(220e6));
        assert_eq!(slow.confidence, Confidence::Possible);
    }

    #[test]
    fn an_isa_card_is_recognised_by_its_address() {
        let case = Case::healthy().goodput(38e6).fact(Far, "bus.kind", "other");
        assert!(fires(&RULE, case.fact(Far, "bus.address", "ISA 0x300")).summary.ends_with("ISA"));
    }

    #[test]
    fn room_on_the_bus_or_a_full_link_is_quiet() {
        quiet(&RULE, adapter(5_000_000_000).goodput(800e6));
        quiet(&RULE, adapter(480_000_000).goodput(100e6));
        let case = adapter(12_000_000).fact(Near, "link.speed_bits_per_s", 10_000_000u64);
        quiet(&RULE, case.goodput(9.3e6));
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn cannot_tell_without_the_bus() {
        cannot_tell(&RULE, Case::healthy().without(Near, "bus"));
    }
}
