//! Files of systemd-udevd for one device (systemd.link(5)), if udevd configures that device.
//!
//! Only the first file that matches a device is applied. So an administrator's file gets a drop-in if it applies to
//! this device alone, and the distribution's default gets a copy for this device, with our keys added. Files that
//! match several devices, or can't be distinguished from others, are left to the unit that sets values at boot.

use std::path::Path;

use super::host::{Device, SavingHost};
use super::systemd::{DROP_IN, FOLDER, is_for, is_new_enough, sections};

/// Suffix of such files.
pub const SUFFIX: &str = ".link";
/// Suffix of drop-in folders.
pub const DROP_INS: &str = ".link.d";
/// Precedes the name of the file that ours was copied from.
const COPIED: &str = "# instead of ";
/// The keys that name and address a device; a file of ours takes them from the file it was copied from.
const OF_THE_COPY: [&str; 3] = ["NamePolicy=", "MACAddressPolicy=", "AlternativeNamesPolicy="];

/// What udevd knows about a device.
struct Known {
    device: Device,
    /// Its hardware address.
    address: String,
    /// The file that it applied.
    applied: String,
    /// Where the device is plugged in; a device on top of it has no such path.
    path: String,
}

/// The file that keeps settings of `device`, if udevd can.
pub fn file(host: &mut dyn SavingHost, device: &str) -> Option<String> {
    if !is_new_enough(host) {
        return None;
    }
    let known = known(host, device)?;
    let name = Path::new(&known.applied).file_name()?.to_str()?;
    if name.contains("-goodput-") {
        return Some(known.applied.clone());
    }
    if known.applied.starts_with("/etc/") {
        let text = host.read(&known.applied)?;
        return is_for(&text, &known.device, Some(&known.path))
            .then(|| format!("{FOLDER}/{name}.d/{DROP_IN}"));
    }
    let own = format!("{}-goodput-{device}{SUFFIX}", just_before(name)?);
    Some(format!("{FOLDER}/{own}"))
}

/// The lines of such a file with these keys; `None` if the file that it is based on is gone.
pub fn lines(host: &mut dyn SavingHost, path: &str, keys: &[String]) -> Option<String> {
    if path.ends_with(DROP_IN) {
        return Some(format!("[Link]\n{}", keys.join("\n")));
    }
    let device = path.rsplit_once("-goodput-")?.1.strip_suffix(SUFFIX)?;
    let known = known(host, device)?;
    let base = copied_from(host, path).unwrap_or_else(|| known.applied.clone());
    let text = host.read(&base)?;
    let others: String = sections(&text, "Match", false);
    let (address, path) = (known.address, known.path);
    Some(format!(
        "{COPIED}{base}\n[Match]\nMACAddress={address}\nPath={path}\n{others}\n[Link]\n{}",
        keys.join("\n")
    ))
}

/// The keys in the permanent form of a setting for such a file.
pub fn keys(form: &str) -> Vec<String> {
    let section = sections(form, "Link", true);
    let lines = section.lines().filter(|line| line.contains('=') && !line.starts_with('#'));
    let own = lines.filter(|line| !OF_THE_COPY.iter().any(|key| line.starts_with(key)));
    own.map(ToOwned::to_owned).collect()
}

/// The number of a file that is applied just before `name`, after all that were applied before `name`.
fn just_before(name: &str) -> Option<String> {
    let number = name.split_once('-').and_then(|(number, _)| number.parse::<u32>().ok());
    match number {
        Some(number @ 1..=99) => Some(format!("{:02}", number - 1)),
        Some(_) => None,
        // Letters come after digits.
        None => name.starts_with(|c: char| c.is_ascii_lowercase()).then(|| "99".into()),
    }
}

/// The file that ours, if it is there, was copied from.
fn copied_from(host: &mut dyn SavingHost, path: &str) -> Option<String> {
    let text = host.read(path)?;
    text.lines().find_map(|line| line.strip_prefix(COPIED).map(ToOwned::to_owned))
}

fn known(host: &mut dyn SavingHost, device: &str) -> Option<Known> {
    let device = host.device(device)?;
    let applied = property(host, &device, "ID_NET_LINK_FILE")?;
    let (path, address) = (path(host, &device)?, device.address.clone()?);
    Some(Known { device, address, applied, path })
}

/// Where a device is plugged in, if udevd knows that.
pub fn path(host: &mut dyn SavingHost, device: &Device) -> Option<String> {
    property(host, device, "ID_PATH")
}

/// What udevd noted of a device.
fn property(host: &mut dyn SavingHost, device: &Device, name: &str) -> Option<String> {
    let data = host.read(&format!("/run/udev/data/n{}", device.index))?;
    let is = |line: &str| {
        line.strip_prefix("E:")?.strip_prefix(name)?.strip_prefix('=').map(String::from)
    };
    data.lines().find_map(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_comes_right_before_what_it_was_copied_from() {
        assert_eq!(just_before("99-default.link").as_deref(), Some("98"));
        assert_eq!(just_before("10-lan.link").as_deref(), Some("09"));
        assert_eq!(just_before("00-first.link"), None);
        assert_eq!(just_before("lan.link").as_deref(), Some("99"));
    }

    #[test]
    fn only_keys_of_links_are_ours() {
        let text = "[Match]\nOriginalName=*\n\n[Link]\n# why\nNamePolicy=keep\nMTUBytes=9000\n[SR-IOV]\nVLANId=1\n";
        assert_eq!(keys(text), ["MTUBytes=9000"]);
    }
}
