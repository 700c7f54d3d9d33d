//! What the files of systemd-udevd and systemd-networkd have in common.

use super::host::{Device, SavingHost};

/// Folder of their files that belongs to the administrator, and to us.
pub const FOLDER: &str = "/etc/systemd/network";
/// Folders of their files and drop-ins, the one that counts most first.
pub const FOLDERS: [&str; 4] =
    [FOLDER, "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network"];
/// Name of our drop-ins.
pub const DROP_IN: &str = "90-goodput.conf";
/// The first version that knows every key that goodput writes (`RxCoalesceSec=` and others came with it).
const LEAST_VERSION: u32 = 250;

/// Whether systemd is there, and knows every key that goodput writes.
pub fn is_new_enough(host: &mut dyn SavingHost) -> bool {
    let version = |text: String| -> Option<u32> {
        text.trim().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    host.udev_version().and_then(version).is_some_and(|version| version >= LEAST_VERSION)
}

/// The lines of the sections called `name`, without their headings; or all other sections, with headings.
pub fn sections(text: &str, name: &str, is_wanted: bool) -> String {
    let heading = format!("[{name}]");
    let (mut is_in, mut out) = (false, String::new());
    for line in text.lines().map(str::trim) {
        let is_heading = line.starts_with('[');
        if is_heading {
            is_in = line == heading;
        }
        if is_in == is_wanted && !(is_heading && is_wanted) && !line.is_empty() {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim_end().into()
}

/// Whether a file matches only this device. `path` is where it is plugged in, if that is known.
pub fn is_for(text: &str, device: &Device, path: Option<&str>) -> bool {
    let own = device.address.as_deref();
    sections(text, "Match", true).lines().any(|line| match line.split_once('=') {
        Some(("MACAddress" | "PermanentMACAddress", address)) => {
            own.is_some_and(|own| own.eq_ignore_ascii_case(address.trim()))
        }
        Some(("Path", matched)) => path == Some(matched.trim()),
        // `.link` files have no such key: a device has no name yet.
        Some(("Name", name)) => name.trim() == device.name,
        _ => false,
    })
}

/// Whether a file matches every device.
pub fn is_for_all(text: &str) -> bool {
    let matched = sections(text, "Match", true);
    matches!(matched.as_str(), "OriginalName=*" | "Name=*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sections_of_a_file_are_distinguished() {
        let text = "[Match]\nOriginalName=*\n\n[Link]\n# why\nMTUBytes=9000\n[SR-IOV]\nVLANId=1\n";
        assert_eq!(sections(text, "Match", true), "OriginalName=*");
        assert!(sections(text, "Match", false).ends_with("MTUBytes=9000\n[SR-IOV]\nVLANId=1"));
    }
}
