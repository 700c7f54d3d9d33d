//! The feature flags of a device as the kernel keeps them: what was asked for, flag by flag.
//!
//! One switch like `tso` stands for several flags, of which a device may have some on and others
//! off; switching it off and on again would turn all of them on. So they are saved one by one.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};

/// `ETHTOOL_GSSET_INFO`, `ETHTOOL_GSTRINGS`, `ETHTOOL_GFEATURES`, `ETHTOOL_SFEATURES` of
/// include/uapi/linux/ethtool.h.
const GET_SET_INFO: u32 = 0x37;
const GET_STRINGS: u32 = 0x1b;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// `ETH_SS_FEATURES`.
const FEATURE_NAMES: u32 = 4;
/// `ETH_GSTRING_LEN`, in words of 4 bytes.
const NAME_WORDS: usize = 32 / 4;
/// `struct ethtool_get_features_block`: available, requested, active, never changed.
const GET_BLOCK: usize = 4;
/// `struct ethtool_set_features_block`: valid, requested.
const SET_BLOCK: usize = 2;

/// Those of `names` that were asked for at `device`, in the order of the kernel's list.
pub(crate) fn requested(device: &str, names: &[&str]) -> io::Result<Vec<String>> {
    let all = feature_names(device)?;
    let mut data = vec![0; 2 + blocks(&all) * GET_BLOCK];
    data[..2].copy_from_slice(&[GET_FEATURES, blocks(&all) as u32]);
    call(device, &mut data)?;
    let asked = |bit: usize| data[2 + bit / 32 * GET_BLOCK + 1] & (1 << (bit % 32)) != 0;
    let chosen = all
        .into_iter()
        .enumerate()
        .filter(|(bit, name)| names.contains(&name.as_str()) && asked(*bit));
    Ok(chosen.map(|(_, name)| name).collect())
}

/// Asks for exactly those of `names` that are `wanted`; all other flags stay.
pub(crate) fn request(device: &str, names: &[&str], wanted: &[&str]) -> io::Result<()> {
    let all = feature_names(device)?;
    let mut data = vec![0; 2 + blocks(&all) * SET_BLOCK];
    data[..2].copy_from_slice(&[SET_FEATURES, blocks(&all) as u32]);
    for (bit, name) in all.iter().enumerate() {
        let at = 2 + bit / 32 * SET_BLOCK;
        let mask = 1 << (bit % 32);
        if names.contains(&name.as_str()) {
            data[at] |= mask;
        }
        if wanted.contains(&name.as_str()) {
            data[at + 1] |= mask;
        }
    }
    call(device, &mut data)
}

fn blocks(names: &[String]) -> usize {
    names.len().div_ceil(32)
}

/// The kernel's list of features; the place of a name is the number of its bit.
fn feature_names(device: &str) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: command, reserved, 64 bit mask of sets, one count for each set.
    let mut info = [GET_SET_INFO, 0, 0, 0, 0];
    let mask = (1u64 << FEATURE_NAMES).to_ne_bytes();
    for (word, bytes) in info[2..4].iter_mut().zip(mask.as_chunks::<4>().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    call(device, &mut info)?;
    let count = info[4] as usize;
    // struct ethtool_gstrings: command, set, count, names.
    let mut data = vec![0; 3 + count * NAME_WORDS];
    data[..3].copy_from_slice(&[GET_STRINGS, FEATURE_NAMES, info[4]]);
    call(device, &mut data)?;
    Ok(data[3..].chunks_exact(NAME_WORDS).map(name).collect())
}

fn name(words: &[u32]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|w| w.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One ethtool ioctl on `device` in the calling thread's namespace. `data` begins with the command
/// and must be as long as the kernel reads and writes for it.
#[expect(unsafe_code, reason = "no library covers SIOCETHTOOL")]
fn call(device: &str, data: &mut [u32]) -> io::Result<()> {
    let mut request = libc::ifreq {
        ifr_name: device_name(device)?,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: data.as_mut_ptr().cast() },
    };
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: `request` and the `data` it points at live through the call; each caller in this
    // module sized `data` by the counts that it carries, which bound what the kernel copies.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn device_name(device: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut name = [0; libc::IFNAMSIZ];
    if device.is_empty() || device.len() >= name.len() || device.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(name)
}
