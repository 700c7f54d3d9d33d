//! The system call of the ethtool ioctl (`SIOCETHTOOL`, include/uapi/linux/ethtool.h).

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType};

use crate::NetlinkError;

/// The kernel writes its whole list, whatever length was requested. A list that was announced shorter
/// than this ...
const SMALL_TABLE_BYTES: usize = 8 * 1024;
/// ... gets this much room, so that it may still grow eightfold in between: drivers add counters
/// with each queue.
const ROOM_BYTES: usize = 8 * SMALL_TABLE_BYTES;
/// Longest list that is requested.
pub(crate) const MAX_TABLE_BYTES: usize = 512 * 1024;
const LARGE_ROOM_BYTES: usize = 8 * MAX_TABLE_BYTES;

/// The ioctl itself.
#[expect(unsafe_code, reason = "no library covers SIOCETHTOOL")]
pub(crate) fn ask_kernel(
    operation: &str,
    device: &str,
    command: u32,
    data: &mut [u8],
) -> Result<(), NetlinkError> {
    let refused = |cause: std::io::Error| NetlinkError::refused(operation, cause);
    if data.len() > MAX_TABLE_BYTES {
        return Err(NetlinkError::impossible(operation, "the answer would be too long"));
    }
    // Lists longer than the other structures get the large buffer. Its pages come from the kernel
    // and cost nothing before they are written to.
    let mut room =
        vec![0u8; if data.len() <= SMALL_TABLE_BYTES { ROOM_BYTES } else { LARGE_ROOM_BYTES }];
    room[..data.len()].copy_from_slice(data);
    room[..4].copy_from_slice(&command.to_ne_bytes());
    let mut request = libc::ifreq {
        ifr_name: device_name(operation, device)?,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: room.as_mut_ptr().cast() },
    };
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
        .map_err(|cause| refused(cause.into()))?;
    // SAFETY: `request` and `room`, to which it points, live through the call. The kernel writes
    // structures of a fixed size far below ROOM_BYTES, and lists whose length it reported just before;
    // for these there is eight times the room.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
    if result < 0 {
        return Err(refused(std::io::Error::last_os_error()));
    }
    data.copy_from_slice(&room[..data.len()]);
    Ok(())
}

fn device_name(
    operation: &str,
    device: &str,
) -> Result<[libc::c_char; libc::IFNAMSIZ], NetlinkError> {
    let mut name = [0; libc::IFNAMSIZ];
    if device.is_empty() || device.len() >= name.len() || device.contains('\0') {
        let why = "a device name has 1 to 15 characters";
        return Err(NetlinkError::impossible(operation, why));
    }
    for (to, from) in name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(name)
}
