//! How the path's device is attached to the host: the PCI Express link against its best possible values, NUMA node, USB
//! speed.
//!
//! Found by the address that the driver reports, not by the device's name: /sys shows the device names of one network
//! namespace only, but all buses. No PCI Express or USB device was available to test; the tests use texts based on the
//! kernel's own documentation of /sys.

use goodput_model::{Fact, Missing, Snapshot};

use super::Source;
use crate::device::Place;
use crate::parse::pcie::{parse_speed, parse_width};
use crate::{Context, Root};

/// More USB buses than a host has.
const MAX_USB_BUSES: u32 = 32;

pub(super) struct Bus;

impl Source for Bus {
    fn id(&self) -> &'static str {
        "bus"
    }

    fn summary(&self) -> &'static str {
        "bus of the path's device: PCI Express speed and width with their maximum, NUMA node, USB speed"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        put(snapshot, &context.root, &Place::of(context)?);
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

fn put(snapshot: &mut Snapshot, root: &Root, place: &Place) {
    match place {
        Place::Pci(address) => {
            snapshot.put("bus.kind", "pci");
            snapshot.put("bus.address", address.as_str());
            pci(snapshot, root, &format!("sys/bus/pci/devices/{address}"));
        }
        Place::Usb { controller, ports } => {
            snapshot.put("bus.kind", "usb");
            snapshot.put("bus.address", format!("{controller}-{ports}"));
            match usb_speed(root, controller, ports) {
                Ok(speed) => snapshot.put("bus.usb_bits_per_s", speed),
                Err(why) => snapshot.lacks("bus.usb_bits_per_s", why.to_string()),
            }
        }
        Place::Other(address) => {
            snapshot.put("bus.kind", "other");
            snapshot.put("bus.address", address.as_str());
        }
    }
}

/// Records what exists: an emulated card reports no link at all, and one reason covers all four facts.
fn pci(snapshot: &mut Snapshot, root: &Root, directory: &str) {
    let read = |file: &str| root.read(&format!("{directory}/{file}")).ok();
    let speed = |file| read(file).and_then(|text| parse_speed(&text)).map(Fact::Real);
    let width = |file| read(file).and_then(|text| parse_width(&text)).map(Fact::Count);
    let link = [
        ("bus.pcie_gt_per_s", speed("current_link_speed")),
        ("bus.pcie_max_gt_per_s", speed("max_link_speed")),
        ("bus.pcie_lanes", width("current_link_width")),
        ("bus.pcie_max_lanes", width("max_link_width")),
    ];
    if link.iter().all(|(_, fact)| fact.is_none()) {
        snapshot.lacks("bus.pcie_lanes", "the device reports no PCI Express link");
    }
    for (name, fact) in link {
        if let Some(fact) = fact {
            snapshot.put(name, fact);
        }
    }
    // -1 if the host has only one node or does not report it.
    match read("numa_node").and_then(|text| text.trim().parse::<u64>().ok()) {
        Some(node) => snapshot.put("bus.numa_node", node),
        None => snapshot.lacks("bus.numa_node", "the host does not report it"),
    }
}

/// The speed of the device at `ports` of the bus whose root hub has the controller's name as its serial number
/// (drivers/usb/core/hcd.c `rh_string`), bits per second.
fn usb_speed(root: &Root, controller: &str, ports: &str) -> Result<u64, Missing> {
    for bus in 1..=MAX_USB_BUSES {
        let serial = root.read_if_there(&format!("sys/bus/usb/devices/usb{bus}/serial"));
        if !matches!(serial, Ok(Some(serial)) if serial.trim() == controller) {
            continue;
        }
        // A controller has a bus for USB 2 and one for USB 3; the device is on one of them.
        let speed = root.read_if_there(&format!("sys/bus/usb/devices/{bus}-{ports}/speed"))?;
        let mbit = speed.and_then(|speed| speed.trim().parse::<f64>().ok());
        if let Some(mbit) = mbit.filter(|mbit| (1.0..=1e6).contains(mbit)) {
            return Ok((mbit * 1e6) as u64);
        }
    }
    Err(Missing::because(format!("/sys shows no USB device at {controller}-{ports}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(directory.path());
        (directory, root)
    }

    #[test]
    fn a_card_in_a_slot_too_narrow_shows_it() {
        const CARD: &str = "sys/bus/pci/devices/0000:01:00.0";
        let file = |name: &str| format!("{CARD}/{name}");
        let (_directory, root) = host(&[
            (&file("current_link_speed"), "8.0 GT/s PCIe\n"),
            (&file("max_link_speed"), "8.0 GT/s PCIe\n"),
            (&file("current_link_width"), "4\n"),
            (&file("max_link_width"), "8\n"),
            (&file("numa_node"), "1\n"),
        ]);
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, &root, &Place::parse("0000:01:00.0"));
        assert_eq!(snapshot.text("bus.kind"), Ok("pci"));
        assert_eq!(snapshot.number("bus.pcie_gt_per_s"), Ok(8.0));
        assert_eq!(snapshot.count("bus.pcie_lanes"), Ok(4));
        assert_eq!(snapshot.count("bus.pcie_max_lanes"), Ok(8));
        assert_eq!(snapshot.count("bus.numa_node"), Ok(1));
    }

    #[test]
    fn an_emulated_card_reports_no_link_and_no_node() {
        let (_directory, root) = host(&[("sys/bus/pci/devices/0000:00:03.0/numa_node", "-1\n")]);
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, &root, &Place::parse("0000:00:03.0"));
        assert!(snapshot.number("bus.pcie_gt_per_s").is_err());
        assert!(snapshot.count("bus.numa_node").is_err());
    }

    #[test]
    fn a_usb_device_is_found_on_the_bus_of_its_controller() {
        let (_directory, root) = host(&[
            ("sys/bus/usb/devices/usb1/serial", "0000:00:1a.0\n"),
            ("sys/bus/usb/devices/1-1.2/speed", "12\n"),
            ("sys/bus/usb/devices/usb2/serial", "0000:00:14.0\n"),
            ("sys/bus/usb/devices/usb3/serial", "0000:00:14.0\n"),
            ("sys/bus/usb/devices/3-1.2/speed", "5000\n"),
        ]);
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, &root, &Place::parse("usb-0000:00:14.0-1.2"));
        assert_eq!(snapshot.count("bus.usb_bits_per_s"), Ok(5_000_000_000));
        put(&mut snapshot, &root, &Place::parse("usb-0000:00:14.0-9"));
        assert!(snapshot.missing["bus.usb_bits_per_s"].contains("no USB device"));
    }
}
