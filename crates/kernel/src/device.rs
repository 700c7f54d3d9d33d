//! The location of the path's device: its bus, its address, and its directory in /sys.

use goodput_model::Missing;
use goodput_netlink::{Netlink, ethtool};

use crate::Context;
use crate::context::missing;

/// A device's place on its bus, as its driver reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// "0000:00:03.0": domain, bus, device and function.
    Pci(String),
    /// A USB device: the name of the bus controller and the ports on the path from it, "1.2".
    Usb {
        /// "0000:00:14.0" if the controller is a PCI device.
        controller: String,
        /// Ports, starting at the root hub.
        ports: String,
    },
    /// Another bus, in the driver's words.
    Other(String),
}

impl Place {
    /// The place of the path's device. Virtual devices have none.
    pub(crate) fn of(context: &Context) -> Result<Self, Missing> {
        let device = context.device_name()?;
        let info = ethtool::driver_info(&device).map_err(missing)?;
        let address = info.bus_address.filter(|address| address != "N/A");
        address
            .map(|address| Self::parse(&address))
            .ok_or_else(|| Missing::because(format!("{device} is a virtual device, on no bus")))
    }

    /// A PCI device is named by its address; a USB device by `usb_make_path` of include/linux/usb.h: "usb-", its
    /// controller, "-", its ports.
    pub(crate) fn parse(address: &str) -> Self {
        if pci_numbers(address).is_some() {
            return Self::Pci(address.into());
        }
        let usb = address.strip_prefix("usb-").and_then(|rest| rest.rsplit_once('-'));
        match usb {
            Some((controller, ports)) if !controller.is_empty() && is_ports(ports) => {
                Self::Usb { controller: controller.into(), ports: ports.into() }
            }
            _ => Self::Other(address.into()),
        }
    }

    /// The PCI address of the device, or of the controller to which it is attached.
    pub(crate) fn pci_address(&self) -> Option<&str> {
        let address = match self {
            Self::Pci(address) | Self::Usb { controller: address, .. } => address,
            Self::Other(_) => return None,
        };
        pci_numbers(address).map(|_| address.as_str())
    }
}

/// Domain, and bus, device and function in one number, as the kernel encodes them (`PCI_DEVID`): for "0000:01:00.0" (0,
/// 256).
pub(crate) fn pci_numbers(address: &str) -> Option<(u64, u64)> {
    let (rest, function) = address.split_once('.')?;
    let [domain, bus, device] = rest.split(':').collect::<Vec<_>>().try_into().ok()?;
    let number = |text: &str, most: u64| {
        let value = u64::from_str_radix(text, 16).ok()?;
        (text.bytes().all(|byte| byte.is_ascii_hexdigit()) && value <= most).then_some(value)
    };
    let id = number(bus, 0xff)? << 8 | number(device, 0x1f)? << 3 | number(function, 7)?;
    Some((number(domain, 0xffff_ffff)?, id))
}

/// Ports are numbers separated by dots, and so safe as part of a path.
fn is_ports(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.')
        && !text.contains("..")
}

/// The directory of the path's device in /sys, if /sys shows the devices of the calling thread's network namespace.
/// /sys shows those of the namespace in which it was mounted (network_namespaces(7)); another device may have the same
/// name there.
pub(crate) fn directory(context: &Context) -> Result<String, Missing> {
    let device = context.device_name()?;
    let directory = format!("sys/class/net/{device}");
    let elsewhere = || {
        Missing::because(format!(
            "/sys shows another network namespace, where {device} is not ours"
        ))
    };
    let index =
        context.root.read_if_there(&format!("{directory}/ifindex"))?.ok_or_else(elsewhere)?;
    let link = Netlink::open().and_then(|mut netlink| netlink.link(&device)).map_err(missing)?;
    let address = context.root.read(&format!("{directory}/address"))?;
    if index.trim() != link.index.to_string() || address.trim() != hexadecimal(&link.address) {
        return Err(elsewhere());
    }
    Ok(directory)
}

/// A hardware address as /sys writes it: "02:00:5e:10:00:01".
fn hexadecimal(address: &[u8]) -> String {
    address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Root;
    use proptest::prelude::*;

    #[test]
    fn places_are_distinguished_by_their_form() {
        assert_eq!(Place::parse("0000:00:03.0"), Place::Pci("0000:00:03.0".into()));
        let usb = Place::parse("usb-0000:00:14.0-1.2");
        assert_eq!(usb, Place::Usb { controller: "0000:00:14.0".into(), ports: "1.2".into() });
        assert_eq!(usb.pci_address(), Some("0000:00:14.0"));
        assert_eq!(Place::parse("usb-3f980000.usb-1.1.1").pci_address(), None);
        assert_eq!(Place::parse("fec"), Place::Other("fec".into()));
        assert!(matches!(Place::parse("usb-x-../y"), Place::Other(_)));
    }

    #[test]
    fn an_address_has_the_number_that_the_kernel_gives_it() {
        assert_eq!(pci_numbers("0000:01:00.0"), Some((0, 256)));
        assert_eq!(pci_numbers("10000:e1:1f.7"), Some((0x10000, 0xe1ff)));
        for wrong in ["", "0000:01:00", "0000:01:20.0", "0000:01:00.8", "+0:01:00.0", "1:2:3:4.5"] {
            assert_eq!(pci_numbers(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn another_device_of_the_same_name_is_not_taken_for_ours() {
        let host = tempfile::tempdir().unwrap();
        let context =
            Context { root: Root::at(host.path()), device: Some("lo".into()), ..<_>::default() };
        let lo = host.path().join("sys/class/net/lo");
        std::fs::create_dir_all(&lo).unwrap();
        assert!(directory(&context).unwrap_err().to_string().contains("another network namespace"));
        std::fs::write(lo.join("ifindex"), "1\n").unwrap();
        std::fs::write(lo.join("address"), "00:00:00:00:00:00\n").unwrap();
        assert_eq!(directory(&context).as_deref(), Ok("sys/class/net/lo"));
        std::fs::write(lo.join("address"), "02:00:00:00:00:00\n").unwrap();
        assert!(directory(&context).is_err());
    }

    proptest! {
        #[test]
        fn no_address_makes_it_panic(text in "(usb-|[0-9a-f]{1,4}|:|\\.|-|.){0,9}") {
            let _ = Place::parse(&text).pci_address();
        }
    }
}
