//! The output of `ifconfig -m IF` on FreeBSD: ifconfig(8), and `status` in sbin/ifconfig/ifconfig.c.

use std::collections::BTreeSet;

use super::text::{NotUnderstood, number, read};
use crate::command::Command;
use crate::error::RemoteError;
use crate::shell::Shell;

/// What is known about an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Largest IP packet, bytes.
    pub mtu: u64,
    /// The enabled capabilities, as `options=` names them: `RXCSUM`, `POLLING`.
    pub enabled: BTreeSet<String>,
    /// The driver's capabilities, as `capabilities=` names them.
    pub possible: BTreeSet<String>,
}

/// What ifconfig reports about an interface.
pub(super) fn interface(shell: &mut dyn Shell, device: &str) -> Result<Interface, RemoteError> {
    let command = Command::new("ifconfig", ["-m", device]);
    read(shell, &command, |text| parse(device, text))
}

/// Reads the output for the interface `name`.
///
/// ifconfig leaves out a line whose set is empty.
fn parse(name: &str, text: &str) -> Result<Interface, NotUnderstood> {
    let bad = NotUnderstood::new;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let flags = first.strip_prefix(name).and_then(|rest| rest.strip_prefix(": flags="));
    let words: Vec<&str> = match flags {
        Some(flags) => flags.split(' ').collect(),
        None => return Err(bad(first, "it does not begin with the interface and its flags")),
    };
    let mtu = words.windows(2).find(|pair| pair[0] == "mtu").and_then(|pair| number(pair[1]));
    let mut interface = Interface {
        mtu: mtu.ok_or_else(|| bad(first, "it has no MTU"))?,
        enabled: BTreeSet::new(),
        possible: BTreeSet::new(),
    };
    for line in lines {
        // Other lines have options too, such as `nd6 options=` and `bridge … options=`.
        let (set, bits) = match line.strip_prefix('\t').and_then(|line| line.split_once('=')) {
            Some(("options", bits)) => (&mut interface.enabled, bits),
            Some(("capabilities", bits)) => (&mut interface.possible, bits),
            _ => continue,
        };
        *set = names(bits).ok_or_else(|| bad(line, "it is no list of capabilities"))?;
    }
    Ok(interface)
}

/// The names of `9b<RXCSUM,TXCSUM>`: the bits as a hexadecimal number, and their names (`printb`, ifconfig.c).
fn names(bits: &str) -> Option<BTreeSet<String>> {
    let (hexadecimal, names) = bits.strip_suffix('>')?.split_once('<')?;
    u64::from_str_radix(hexadecimal, 16).ok()?;
    let plain = |name: &&str| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    names.iter().all(plain).then(|| names.into_iter().map(Into::into).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EM0: &str = "em0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
\toptions=9b<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING>
\tcapabilities=100db<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING,POLLING,VLAN_HWCSUM,TSO4>
\tether 00:0c:29:01:02:03
\tinet 192.0.2.1 netmask 0xffffff00 broadcast 192.0.2.255
\tnd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>
\tmedia: Ethernet autoselect (1000baseT <full-duplex>)
\tstatus: active
\tsupported media:
\t\tmedia autoselect
";

    #[test]
    fn options_and_capabilities_are_distinguished_from_other_lines() {
        let interface = parse("em0", EM0).unwrap();
        assert_eq!(interface.mtu, 1500);
        assert!(interface.enabled.contains("TXCSUM") && !interface.enabled.contains("POLLING"));
        assert!(
            interface.possible.contains("POLLING") && !interface.possible.contains("IFDISABLED")
        );
    }

    #[test]
    fn an_interface_without_capabilities_has_none() {
        let lo0 = "lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> metric 0 mtu 16384\n";
        let interface = parse("lo0", lo0).unwrap();
        assert!(interface.enabled.is_empty() && interface.possible.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        for (text, what) in [
            ("", "its flags"),
            ("em00: flags=1<UP> mtu 1500\n", "its flags"),
            ("em0: flags=1<UP> metric 0\n", "no MTU"),
            ("em0: flags=1<UP> mtu 15x\n", "no MTU"),
            ("em0: flags=1<UP> mtu 1500\n\toptions=9b RXCSUM\n", "no list"),
            ("em0: flags=1<UP> mtu 1500\n\toptions=9b<RXCSUM,$(reboot)>\n", "no list"),
        ] {
            let said = format!("{:?}", parse("em0", text).unwrap_err());
            assert!(said.contains(what), "{text:?}: {said}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}(\n\t?(options|capabilities)?=?.{0,20}){0,4}") {
            let _ = parse("em0", &text);
            let _ = parse("em0", &format!("em0: flags=1<UP> mtu 9000\n{text}"));
        }
    }
}
