//! Which file keeps a value: our own file in sysctl.d or modprobe.d, a file for a device that udevd or networkd
//! configures, or else the unit that sets values at boot. A udev rule runs before the device is up.

use std::path::Path;

use goodput_model::{Permanent, SettingRef};

use super::host::SavingHost;
use super::{link, mount, network, systemd};
use crate::permanent::NETWORK_FILES;

/// File of our kernel parameters.
pub const PARAMETERS: &str = "/etc/sysctl.d/90-goodput.conf";
/// Files in which lines of any setting can stand.
const FILES: [&str; 3] = [PARAMETERS, crate::permanent::MODULES, mount::FILE];
/// Folders that may contain files of ours.
const FOLDERS: [&str; 5] = [
    "/etc/sysctl.d",
    "/etc/modprobe.d",
    "/etc/nfsmount.conf.d",
    "/etc/systemd/system",
    systemd::FOLDER,
];
/// Suffixes of folders of drop-ins.
pub const FOLDERS_OF_DROP_INS: [&str; 2] = [link::DROP_INS, network::DROP_INS];

/// The file that alone keeps all of a setting's value, if there is one.
pub fn own_file(
    host: &mut dyn SavingHost,
    setting: &SettingRef,
    forms: &[Permanent],
) -> Option<String> {
    let first = forms.first()?.file.as_str();
    let all = |is: &dyn Fn(&str) -> bool| forms.iter().all(|form| is(&form.file));
    if FILES.contains(&first) && all(&|file| file == first) {
        return Some(first.into());
    }
    if all(&|file| file.starts_with(NETWORK_FILES)) {
        return network::file(host, setting);
    }
    let is_link = all(&|file| file.ends_with(link::SUFFIX));
    is_link.then(|| link::file(host, setting.scope.as_deref()?)).flatten()
}

/// The paths of the files that may be ours, judged by their names, in order.
pub fn files(host: &mut dyn SavingHost) -> Vec<String> {
    let mut folders: Vec<String> = FOLDERS.map(String::from).into();
    let drop_ins = host.list(systemd::FOLDER).into_iter();
    let drop_ins = drop_ins.map(|name| format!("{}/{name}", systemd::FOLDER));
    folders.extend(drop_ins.filter(|folder| is_of_drop_ins(Path::new(folder))));
    let mut files = Vec::new();
    for folder in folders {
        let names = host.list(&folder).into_iter().filter(|name| name.contains("goodput"));
        files.extend(names.map(|name| format!("{folder}/{name}")));
    }
    files.sort();
    files
}

/// Whether a folder is one of drop-ins.
pub fn is_of_drop_ins(folder: &Path) -> bool {
    let name = folder.to_string_lossy();
    FOLDERS_OF_DROP_INS.iter().any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::super::host::Here;
    use super::*;

    #[test]
    fn only_what_a_file_of_ours_says_in_full_is_kept_by_it() {
        let forms = |files: &[&str]| -> Vec<Permanent> {
            let form = |file: &&str| Permanent { file: (*file).into(), lines: String::new() };
            files.iter().map(form).collect()
        };
        let setting = "link.mtu@eth0".parse().unwrap();
        let mut nowhere = Here(Path::new("/nowhere"));
        let mut kept = |files: &[&str]| own_file(&mut nowhere, &setting, &forms(files));
        assert_eq!(kept(&[PARAMETERS]).as_deref(), Some(PARAMETERS));
        assert_eq!(kept(&["/etc/systemd/network/10-goodput-eth0.link"]), None, "without udevd");
        assert_eq!(kept(&[PARAMETERS, "/etc/udev/rules.d/90-goodput.rules"]), None);
        assert_eq!(kept(&["/etc/fstab"]), None);
        let modules = "/etc/modprobe.d/90-goodput.conf";
        assert_eq!(kept(&[modules]).as_deref(), Some(modules));
        assert_eq!(kept(&["the .network file of eth0"]), None, "no networkd");
        assert_eq!(kept(&[]), None);
    }
}
