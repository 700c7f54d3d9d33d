//! Files of systemd that someone added before the one that ours is or extends: only the first file that matches a device
//! is applied to it (systemd.link(5), systemd.network(5)).

use std::collections::BTreeMap;

use goodput_model::SettingRef;

use super::contents::Assignment;
use super::host::{Device, SavingHost};
use super::systemd::{DROP_IN, FOLDERS, is_for, is_for_all};
use super::{link, network};

/// The values of our file at `path` whose device another file matches first, with that file.
pub fn overruled(
    host: &mut dyn SavingHost,
    path: &str,
    keeps: &[Assignment],
) -> Vec<(SettingRef, String)> {
    let Some((suffix, applied)) = applied(path) else { return Vec::new() };
    let found = keeps.iter().filter_map(|(setting, _)| {
        let device = host.device(setting.scope.as_deref()?)?;
        let earlier = first(host, suffix, applied, &device)?;
        Some((setting.clone(), earlier))
    });
    found.collect()
}

/// The name of the file to which ours is a drop-in, or its own name, and the suffix of such files.
fn applied(path: &str) -> Option<(&'static str, &str)> {
    let whole = path.strip_suffix(DROP_IN).and_then(|folder| folder.strip_suffix(".d/"));
    let name = whole.unwrap_or(path).rsplit('/').next()?;
    let suffix = [link::SUFFIX, network::SUFFIX].into_iter().find(|one| name.ends_with(*one))?;
    Some((suffix, name))
}

/// The first file that is read before the one called `applied` and matches the device.
fn first(
    host: &mut dyn SavingHost,
    suffix: &str,
    applied: &str,
    device: &Device,
) -> Option<String> {
    // Of several files with one name, the first counts.
    let mut files = BTreeMap::new();
    for folder in FOLDERS {
        let names = host.list(folder).into_iter();
        for name in names.filter(|name| name.ends_with(suffix) && name.as_str() < applied) {
            let path = format!("{folder}/{name}");
            files.entry(name).or_insert(path);
        }
    }
    let plugged = link::path(host, device);
    files.into_values().find(|path| {
        let text = host.read(path).unwrap_or_default();
        is_for(&text, device, plugged.as_deref()) || is_for_all(&text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with these files and the device eth0.
    struct MadeUp(BTreeMap<String, String>);

    impl SavingHost for MadeUp {
        fn read(&mut self, path: &str) -> Option<String> {
            self.0.get(path).cloned()
        }

        fn list(&mut self, folder: &str) -> Vec<String> {
            let own = |path: &String| path.strip_prefix(&format!("{folder}/")).map(String::from);
            self.0.keys().filter_map(own).filter(|name| !name.contains('/')).collect()
        }

        fn device(&mut self, name: &str) -> Option<Device> {
            let address = Some("02:00:00:00:00:01".into());
            (name == "eth0").then(|| Device { index: 2, name: name.into(), address })
        }

        fn udev_version(&mut self) -> Option<String> {
            Some("255".into())
        }

        fn identity(&mut self, _path: &str) -> Option<String> {
            None
        }
    }

    fn overruled_by(own: &str, setting: &str, other: &str, text: &str) -> Vec<String> {
        let mut host = MadeUp([(other.to_owned(), text.to_owned())].into());
        let keeps = [(setting.parse().unwrap(), "x".to_owned())];
        overruled(&mut host, own, &keeps).into_iter().map(|(_, file)| file).collect()
    }

    #[test]
    fn a_file_that_matches_the_device_first_overrules() {
        let own = "/etc/systemd/network/98-goodput-eth0.link";
        let by = |other: &str, text: &str| overruled_by(own, "ring.rx@eth0", other, text);
        let mine = "[Match]\nMACAddress=02:00:00:00:00:01\n[Link]\n";
        let early = "/run/systemd/network/10-x.link";
        assert_eq!(by(early, mine), [early]);
        assert_eq!(by(early, "[Match]\nOriginalName=*\n[Link]\n"), [early]);
        assert!(by(early, "[Match]\nOriginalName=*\nDriver=e1000\n").is_empty());
        assert!(by(early, "[Match]\nMACAddress=02:00:00:00:00:02\n").is_empty());
        assert!(by("/usr/lib/systemd/network/99-default.link", mine).is_empty(), "it is later");
        assert!(by("/etc/systemd/network/10-x.network", mine).is_empty(), "another kind");
    }

    #[test]
    fn a_drop_in_goes_with_its_file() {
        let own = "/etc/systemd/network/50-lan.network.d/90-goodput.conf";
        let by = |other: &str| {
            overruled_by(own, "qdisc.kind@eth0", other, "[Match]\nName=eth0\n[Network]\n")
        };
        let early = "/etc/systemd/network/20-x.network";
        assert_eq!(by(early), [early]);
        assert!(by("/etc/systemd/network/50-lan.network").is_empty(), "its own");
        assert!(overruled_by("/etc/modprobe.d/90-goodput.conf", "x@eth0", early, "").is_empty());
    }
}
