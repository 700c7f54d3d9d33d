//! An address of this host, with the device that a link-local one needs: `fe80::1%eth0` (RFC 4007
//! section 11).

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use super::unfit;

/// `ADDRESS` or `ADDRESS%DEVICE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalAddress {
    /// The address.
    pub ip: IpAddr,
    /// Name of the device behind it.
    pub device: Option<String>,
}

impl FromStr for LocalAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, device) = match text.split_once('%') {
            Some((ip, device)) => (ip, Some(device)),
            None => (text, None),
        };
        let like = "it like 192.0.2.1, 2001:db8::1 or fe80::1%eth0";
        let wrong = || unfit(text, "an IP address", like);
        let ip = ip.parse().map_err(|_| wrong())?;
        match device {
            Some("") => Err(wrong()),
            device => Ok(Self { ip, device: device.map(Into::into) }),
        }
    }
}

impl LocalAddress {
    /// The address with the number of its device, if it is link-local, and no port yet.
    pub fn scoped(&self) -> anyhow::Result<SocketAddr> {
        let Self { ip, device } = self;
        match (ip, device) {
            (IpAddr::V6(v6), Some(device)) if v6.is_unicast_link_local() => {
                let text = format!("{v6}%{device}");
                let mut found = (text.as_str(), 0).to_socket_addrs().ok().into_iter().flatten();
                found.next().ok_or_else(|| {
                    anyhow::anyhow!("there is no device {device} here; `ip link` lists them")
                })
            }
            (IpAddr::V6(v6), None) if v6.is_unicast_link_local() => {
                anyhow::bail!("{v6} is link-local: write --bind {v6}%DEVICE")
            }
            (_, Some(device)) => {
                anyhow::bail!("%{device}: only a link-local address needs its device to listen at")
            }
            (ip, None) => Ok(SocketAddr::new(*ip, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_its_device() {
        let read = |text: &str| text.parse::<LocalAddress>();
        assert_eq!(read("192.0.2.1").unwrap().device, None);
        assert_eq!(read("fe80::1%eth0").unwrap().device.as_deref(), Some("eth0"));
        for wrong in ["", "nas", "%eth0", "fe80::1%", "[::1]", "1.2.3"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_scope_of_a_link_local_address_is_the_number_of_its_device() {
        let scoped = |text: &str| text.parse::<LocalAddress>().unwrap().scoped();
        assert_eq!(scoped("fe80::1%lo").unwrap().to_string(), "[fe80::1%1]:0");
        assert_eq!(scoped("::1").unwrap().to_string(), "[::1]:0");
        for wrong in ["fe80::1", "fe80::1%no-such-dev", "::1%lo", "127.0.0.1%lo"] {
            assert!(scoped(wrong).is_err(), "{wrong}");
        }
    }
}
