//! A host of the lab: a network namespace with its devices and addresses.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use goodput_model::Family;
use goodput_netlink::{Netlink, NetlinkError, namespace};
use rustix::thread::LinkNameSpaceType;

use crate::error::LabError;
use crate::host_name::HostName;

/// A network device of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name of the device in the host.
    pub device: String,
    /// Its IPv4 address.
    pub v4: IpAddr,
    /// Its IPv6 address.
    pub v6: IpAddr,
}

/// A host. Its namespace disappears with the last descriptor or process in it.
#[derive(Debug)]
pub struct Host {
    name: HostName,
    namespace: OwnedFd,
    has_v6: bool,
    pub(crate) ports: Vec<Port>,
}

impl Host {
    /// A new host with only the loopback device, which is up.
    pub(crate) fn create(name: HostName) -> Result<Self, LabError> {
        let failed = |source| LabError::Netlink { host: name.to_string(), source };
        let namespace = namespace::create().map_err(failed)?;
        let mut host = Self { name, namespace, has_v6: false, ports: vec![] };
        host.has_v6 = host.with_lasting_addresses()?;
        host.netlink(|netlink| {
            let loopback = netlink.link("lo")?.index;
            netlink.set_up(loopback)
        })?;
        Ok(host)
    }

    /// Makes the addresses of future devices usable at once, and keeps them while a device is down, as IPv4 does
    /// (`keep_addr_on_down`, Documentation/networking/ip-sysctl.rst). Nobody else is on our cables, and the kernel would
    /// look for duplicates for a second or two (RFC 4862 section 5.4). False if the kernel runs without IPv6.
    fn with_lasting_addresses(&self) -> Result<bool, LabError> {
        for (name, value) in [("accept_dad", "0"), ("keep_addr_on_down", "1")] {
            for devices in ["all", "default"] {
                let name = format!("net.ipv6.conf.{devices}.{name}");
                match self.set_sysctl(&name, value) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                    Err(source) => return Err(LabError::Io { what: "set", object: name, source }),
                }
            }
        }
        Ok(true)
    }

    /// Whether its kernel has IPv6.
    pub fn has_v6(&self) -> bool {
        self.has_v6
    }

    /// Its role.
    pub fn name(&self) -> HostName {
        self.name
    }

    /// Its network namespace.
    pub fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }

    /// Its devices on the path, from near to far: one, or two on the router.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The device on the path; on the router, the one towards far.
    pub fn device(&self) -> &str {
        &self.last_port().device
    }

    /// The address on the path; on the router, the one visible to far.
    pub fn address(&self, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.last_port().v4,
            Family::V6 => self.last_port().v6,
        }
    }

    fn last_port(&self) -> &Port {
        self.ports.last().expect("a host of a lab that is up has a device")
    }

    /// Runs `work` on its own thread inside the host. A panic there is passed on here.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        namespace::inside(self.namespace(), work).map_err(|source| self.failed(source))
    }

    /// Talks to the kernel in the host's namespace.
    pub(crate) fn netlink<T: Send>(
        &self,
        talk: impl FnOnce(&mut Netlink) -> Result<T, NetlinkError> + Send,
    ) -> Result<T, LabError> {
        let spoken = self.within(|| Netlink::open().and_then(|mut netlink| talk(&mut netlink)))?;
        spoken.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: NetlinkError) -> LabError {
        LabError::Netlink { host: self.name.to_string(), source }
    }

    /// A command that will run inside the host. Only its network is the host's: /sys still shows the devices of the
    /// machine.
    #[expect(unsafe_code, reason = "pre_exec runs code between fork and exec")]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> io::Result<Command> {
        let namespace = self.namespace.try_clone()?;
        let mut command = Command::new(program);
        let enter = move || {
            let network = Some(LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(namespace.as_fd(), network)?;
            Ok(())
        };
        // SAFETY: `enter` makes one system call, setns; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(enter) };
        Ok(command)
    }

    /// Reads a kernel setting of the host, by its dotted name.
    pub fn sysctl(&self, name: &str) -> io::Result<String> {
        let read = || fs::read_to_string(sysctl_path(name)).map(|text| text.trim().to_owned());
        self.within(read).map_err(io::Error::other)?
    }

    /// Writes a kernel setting of the host, by its dotted name.
    pub fn set_sysctl(&self, name: &str, value: &str) -> io::Result<()> {
        self.within(|| fs::write(sysctl_path(name), value)).map_err(io::Error::other)?
    }
}

fn sysctl_path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}
