//! Which file keeps a value: our own file in sysctl.d, a file for a device that udevd configures, or else the
//! unit that sets values at boot. A udev rule runs before the device is up, and a `.network` file is the user's.

use std::path::{Path, PathBuf};

use goodput_model::{Permanent, SettingRef};

use super::link;
use super::root::below;

/// Prefix of files that belong to another system.
const FREEBSD: &str = "FreeBSD ";
/// File of our kernel parameters.
pub const PARAMETERS: &str = "/etc/sysctl.d/90-goodput.conf";
/// Folders that may contain files of ours.
const FOLDERS: [&str; 3] = ["/etc/sysctl.d", "/etc/systemd/system", link::FOLDER];

/// The file that alone keeps all of a setting's value, if there is one.
pub fn own_file(root: &Path, setting: &SettingRef, forms: &[Permanent]) -> Option<String> {
    let mut here = forms.iter().filter(|form| !form.file.starts_with(FREEBSD)).peekable();
    here.peek()?;
    if here.clone().all(|form| form.file == PARAMETERS) {
        return Some(PARAMETERS.into());
    }
    let is_link = here.all(|form| form.file.ends_with(link::SUFFIX));
    is_link.then(|| link::file(root, setting.scope.as_deref()?)).flatten()
}

/// The folders with files of ours, including those of drop-ins.
pub fn folders(root: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| below(root, folder)).collect();
    let entries = std::fs::read_dir(below(root, link::FOLDER)).into_iter().flatten().flatten();
    let is_of_drop_ins = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(link::DROP_INS);
    let drop_ins = entries.filter(|entry| is_of_drop_ins(&entry.file_name()));
    folders.extend(drop_ins.map(|entry| entry.path()));
    folders
}

/// Whether a file may be ours, judged by its name.
pub fn is_ours(name: &str) -> bool {
    name.contains("goodput")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_file_of_ours_says_in_full_is_kept_by_it() {
        let forms = |files: &[&str]| -> Vec<Permanent> {
            let form = |file: &&str| Permanent { file: (*file).into(), lines: String::new() };
            files.iter().map(form).collect()
        };
        let setting = "link.mtu@eth0".parse().unwrap();
        let nowhere = Path::new("/nowhere");
        let kept = |files: &[&str]| own_file(nowhere, &setting, &forms(files));
        assert_eq!(kept(&[PARAMETERS, "FreeBSD /etc/sysctl.conf"]).as_deref(), Some(PARAMETERS));
        assert_eq!(kept(&["/etc/systemd/network/10-goodput-eth0.link"]), None, "without udevd");
        assert_eq!(kept(&[PARAMETERS, "/etc/udev/rules.d/90-goodput.rules"]), None);
        assert_eq!(kept(&["/etc/fstab"]), None);
        assert_eq!(kept(&["FreeBSD /etc/rc.conf"]), None);
    }
}
