//! Settings whose values are in the same files: what one of them changes is a change of the others, too.

use goodput_model::SettingRef;

use super::{link, near, row, rows};
use crate::error::RemoteError;
use crate::shell::Shell;

/// Where the files of parameters are, which belong to the whole host.
const PARAMETERS: &str = "/proc/sys/";

/// The other settings that share a file with this one.
pub(super) fn sharing(
    shell: &mut dyn Shell,
    setting: &SettingRef,
) -> Result<Vec<SettingRef>, RemoteError> {
    let files = row(shell, setting)?.files(setting);
    let of_host = files.iter().filter(|file| file.starts_with(PARAMETERS)).cloned();
    let of_host: Vec<String> = of_host.collect();
    let mut devices: Vec<String> = setting.scope.iter().cloned().collect();
    // Such a file belongs to the settings of each device, or to those of none.
    if !in_files(&of_host, "").is_empty() {
        let others = link::names(shell)?.into_iter();
        devices.extend(others.filter(|name| setting.scope.as_ref() != Some(name)));
    }
    let mut found: Vec<_> = devices.iter().flat_map(|device| in_files(&files, device)).collect();
    if setting.scope.is_some() {
        found.extend(of_host.iter().map(|file| parameter(file)));
    }
    found.retain(|other| other != setting);
    Ok(found)
}

/// The settings of a device that are in one of these files.
fn in_files(files: &[String], device: &str) -> Vec<SettingRef> {
    let settings = rows().filter_map(|(id, row)| {
        let setting = near(id, Some(device));
        row.files(&setting).iter().any(|file| files.contains(file)).then_some(setting)
    });
    settings.collect()
}

/// The parameter in a file, with dots unless a part of its path has one.
fn parameter(file: &str) -> SettingRef {
    let path = file.strip_prefix(PARAMETERS).unwrap_or(file);
    let name = if path.contains('.') { path.to_owned() } else { path.replace('/', ".") };
    near(&format!("sysctl.{name}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    fn shared(setting: &str) -> Vec<String> {
        let links = r#"[{"ifname":"lo"},{"ifname":"eth0"},{"ifname":"eth1"}]"#;
        let mut shell = Scripted::default().prints("ip -j link show", links);
        let mut all: Vec<String> = sharing(&mut shell, &setting.parse().unwrap())
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        all.sort();
        all
    }

    #[test]
    fn what_shares_a_file_is_found_by_the_files() {
        assert_eq!(shared("napi.threaded@eth0"), ["polling@eth0"]);
        for name in ["sysctl.net.core.busy_poll", "sysctl.net/core/busy_poll"] {
            assert_eq!(shared(name), ["polling@eth0", "polling@eth1"]);
        }
        assert_eq!(
            shared("polling@eth0"),
            [
                "napi.defer_hard_irqs@eth0",
                "napi.gro_flush_timeout@eth0",
                "napi.threaded@eth0",
                "polling@eth1",
                "sysctl.net.core.busy_poll",
                "sysctl.net.core.busy_read"
            ]
        );
        for name in ["rps.cpus@eth0", "link.mtu@eth0", "sysctl.net.ipv4.tcp_rmem"] {
            assert!(shared(name).is_empty(), "{name}");
        }
    }
}
