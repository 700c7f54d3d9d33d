//! Which file of a host keeps a value, and its lines: the same on this host and on one that is reached in another way.

use goodput_model::{Permanent, SettingRef};

use super::contents::Assignment;
use super::host::SavingHost;
use super::place::{FOLDERS_OF_DROP_INS, own_file};
use super::{boot_unit, link, mount, namespace, network, place, systemd};
use crate::error::SettingError;
use crate::lookup::{machine, permanent};
use crate::permanent::{NETWORK_FILES, merged};

pub use super::boot_unit::{
    FILE as BOOT_UNIT, WANTED as BOOT_LINK, lines_of_shell as unit_lines,
    shell_lines as lines_in_unit,
};
pub use super::host::{Device, SavingHost as Host};
pub use super::overruled::overruled;

/// Whether a setting belongs to the network namespace of the thread, or of the login, that asks, and the files of the
/// host are about another one.
pub fn is_elsewhere(host: &mut dyn SavingHost, setting: &SettingRef) -> bool {
    let of_namespace = machine(setting).is_ok_and(|machine| machine.namespaced(setting));
    !mount::is_of_mount(setting) && of_namespace && namespace::is_foreign(host)
}

/// The file that keeps a setting's value, whose permanent `forms` are these: [`BOOT_UNIT`] if no other can.
pub fn file(host: &mut dyn SavingHost, setting: &SettingRef, forms: &[Permanent]) -> String {
    own_file(host, setting, forms).unwrap_or_else(|| boot_unit::FILE.into())
}

/// The paths of the files that may be ours, judged by their names, in order.
pub fn files(host: &mut dyn SavingHost) -> Vec<String> {
    place::files(host)
}

/// Whether the file's folder has drop-ins only, so that it goes with its last file.
pub fn is_drop_in(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    FOLDERS_OF_DROP_INS.iter().any(|suffix| folder.ends_with(suffix))
}

/// The lines that keep these values in the file at `path`, which is not [`BOOT_UNIT`]; `None` if what the file is based
/// on is gone. Settings of another host are named as far.
///
/// # Errors
/// If there is no such setting, or not with this scope.
pub fn lines(
    host: &mut dyn SavingHost,
    path: &str,
    keeps: &[Assignment],
) -> Result<Option<String>, SettingError> {
    match path {
        mount::FILE => Ok(Some(mount::lines(keeps))),
        _ if path.contains(network::DROP_INS) => {
            lines_of(keeps, |file| file.starts_with(NETWORK_FILES)).map(Some)
        }
        _ if path.starts_with(systemd::FOLDER) => link_lines(host, path, keeps),
        _ => lines_of(keeps, |file| file == path).map(Some),
    }
}

/// The lines of a file for one device.
fn link_lines(
    host: &mut dyn SavingHost,
    path: &str,
    keeps: &[Assignment],
) -> Result<Option<String>, SettingError> {
    let mut keys = Vec::new();
    for (setting, value) in keeps {
        let forms = permanent(setting, value)?;
        let own = forms.iter().filter(|form| form.file.ends_with(link::SUFFIX));
        keys.extend(own.flat_map(|form| link::keys(&form.lines)));
    }
    Ok(link::lines(host, path, &keys))
}

/// The lines that the values need in the files meant by `is_this`.
fn lines_of(keeps: &[Assignment], is_this: impl Fn(&str) -> bool) -> Result<String, SettingError> {
    let mut forms = Vec::new();
    for (setting, value) in keeps {
        forms.extend(permanent(setting, value)?.into_iter().filter(|form| is_this(&form.file)));
    }
    Ok(merged(forms).into_iter().map(|form| form.lines).collect::<Vec<_>>().join("\n"))
}
