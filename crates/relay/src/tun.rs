//! A TUN device: the user-space end of a network interface (Documentation/networking/tuntap.rst).

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;

use super::vnet;
use crate::error::RelayError;

/// Where TUN devices are made. On most systems only root may open it.
pub const CLONE_DEVICE: &str = "/dev/net/tun";

/// The open end of a TUN device. The device disappears when this is dropped.
#[derive(Debug)]
pub struct Tun(OwnedFd);

impl Tun {
    /// Makes the device `name` in the network namespace of the calling thread. With `segmentation`, the kernel sends
    /// and receives whole super-packets; without it, only single packets. Either way a receiver that needs the checksum
    /// must compute it, because nothing gets corrupted on the path.
    pub fn create(name: &str, segmentation: bool) -> Result<Self, RelayError> {
        let failed =
            |what: &'static str| move |source| RelayError { what, object: CLONE_DEVICE, source };
        let file = OpenOptions::new().read(true).write(true).open(CLONE_DEVICE);
        let tun = Self(file.map_err(failed("open"))?.into());
        tun.name_it(name).map_err(failed("make a TUN device with"))?;
        tun.offload(segmentation).map_err(failed("set the offloads of a TUN device at"))?;
        rustix::fs::fcntl_setfl(&tun.0, OFlags::NONBLOCK)
            .map_err(|errno| failed("make non-blocking")(errno.into()))?;
        Ok(tun)
    }

    #[expect(unsafe_code, reason = "TUNSETIFF has no safe wrapper")]
    fn name_it(&self, name: &str) -> io::Result<()> {
        // SAFETY: `ifreq` is plain data, for which all zeroes is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= request.ifr_name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
    }

    #[expect(unsafe_code, reason = "TUNSETOFFLOAD has no safe wrapper")]
    fn offload(&self, segmentation: bool) -> io::Result<()> {
        let segments = libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let bits = libc::TUN_F_CSUM | if segmentation { segments } else { 0 };
        let bits = libc::c_ulong::from(bits);
        // SAFETY: TUNSETOFFLOAD takes its argument by value.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETOFFLOAD, bits) })
    }

    /// Reads one packet with its header; `None` if there is none now.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.0, buffer) {
            Ok(len) => Ok(Some(len)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Passes one packet with its header to the kernel; false if the kernel refused it, as it does while the device is
    /// down.
    pub(super) fn write(&self, packet: &[u8]) -> bool {
        rustix::io::write(&self.0, packet).is_ok()
    }

    /// Size of a buffer that fits any packet of a device with this `mtu`, bytes.
    pub(super) fn buffer_bytes(mtu: u32, segmentation: bool) -> usize {
        // A super-packet is an IP packet of at most 65535 bytes (GSO_LEGACY_MAX_SIZE).
        let largest = if segmentation { 65_536 } else { mtu as usize };
        vnet::HEADER_BYTES + largest
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn check(returned: libc::c_int) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
