//! Options of NFS mounts, in a file that mount.nfs(8) reads beside /etc/nfsmount.conf (nfsmount.conf(5)). What fstab
//! itself says for a mount counts more.

use goodput_model::{Permanent, SettingRef};

use super::contents::Assignment;
use super::host::SavingHost;
use crate::permanent::in_bytes;

/// Our file.
pub const FILE: &str = "/etc/nfsmount.conf.d/90-goodput.conf";
/// Settings, and the options that keep them.
const OPTIONS: [(&str, &str); 3] =
    [("nfs.rsize", "rsize"), ("nfs.wsize", "wsize"), ("nfs.nconnect", "nconnect")];
/// Where mounts of the system are (fstab(5)).
const FSTAB: &str = "/etc/fstab";

/// The setting with the mount point that it is kept for, if a mount option keeps it: `nfs.rsize@/mnt/nas`.
pub fn of_mount(setting: &SettingRef, point: &str) -> Option<SettingRef> {
    option(setting)?;
    Some(SettingRef { scope: Some(point.into()), ..setting.clone() })
}

/// Whether a setting names the mount point that it is kept for.
pub fn is_of_mount(setting: &SettingRef) -> bool {
    option(setting).is_some() && setting.scope.as_deref().is_some_and(|at| at.starts_with('/'))
}

/// The lines for a setting that names its mount point.
pub fn form(setting: &SettingRef, value: &str) -> Option<Permanent> {
    let (option, point) = (option(setting)?, setting.scope.as_deref()?);
    let is_plain = !point.contains(['"', ']', '\n']);
    let lines = format!("[ MountPoint \"{point}\" ]\n{option}={}", in_bytes(value));
    is_plain.then(|| Permanent { file: FILE.into(), lines })
}

/// The lines of our file: each mount point once, with all of its options.
pub fn lines(keeps: &[Assignment]) -> String {
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for form in keeps.iter().filter_map(|(setting, value)| form(setting, value)) {
        let (heading, line) = form.lines.split_once('\n').unwrap_or((&form.lines, ""));
        match sections.iter_mut().find(|(known, _)| known == heading) {
            Some((_, lines)) => lines.push(line.into()),
            None => sections.push((heading.into(), vec![line.into()])),
        }
    }
    let section =
        |(heading, lines): &(String, Vec<String>)| format!("{heading}\n{}", lines.join("\n"));
    sections.iter().map(section).collect::<Vec<_>>().join("\n")
}

/// The options that fstab itself names for these mount points.
pub fn overruled(host: &mut dyn SavingHost, keeps: &[Assignment]) -> Vec<(SettingRef, String)> {
    let text = host.read(FSTAB).unwrap_or_default();
    let names = |setting: &SettingRef| {
        let (Some(option), Some(point)) = (option(setting), &setting.scope) else { return false };
        text.lines().any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let is_of_point = fields.next() == Some(point);
            let options = fields.nth(1).filter(|_| is_of_point && !line.trim().starts_with('#'));
            let mut options = options.into_iter().flat_map(|all| all.split(','));
            options.any(|one| one.split_once('=').is_some_and(|(name, _)| name == option))
        })
    };
    let found = keeps.iter().filter(|(setting, _)| names(setting));
    found.map(|(setting, _)| (setting.clone(), FSTAB.into())).collect()
}

fn option(setting: &SettingRef) -> Option<&'static str> {
    OPTIONS.iter().find(|(id, _)| *id == setting.name).map(|(_, option)| *option)
}
