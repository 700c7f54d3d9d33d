//! The congestion controls that this kernel has, or can load.

use std::fs;
use std::path::Path;

use goodput_model::SettingRef;

use super::host_file::host_file;
use crate::error::SettingError;
use crate::value::bad;

/// Those that are loaded.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The running kernel's version, which names the folder of its modules.
const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// The list of its modules there (depmod(8)).
const MODULES: &str = "modules.dep";

/// Refuses a congestion control that is neither loaded nor among the installed modules: asked for any other, the kernel
/// loads the module (`tcp_ca_find_autoload`, net/ipv4/tcp_cong.c).
///
/// # Errors
/// With those that are loaded. Without their list, the kernel alone knows.
pub(super) fn check_known(setting: &SettingRef, name: &str) -> Result<(), SettingError> {
    let Ok(loaded) = fs::read_to_string(host_file(AVAILABLE)) else { return Ok(()) };
    let loaded: Vec<&str> = loaded.split_whitespace().collect();
    if loaded.contains(&name) || is_installed(name) {
        return Ok(());
    }
    let why = format!(
        "this kernel has {}; others may be modules, and no module tcp_{name} is installed where goodput runs; if there \
         is one, load it first with `modprobe tcp_{name}`",
        loaded.join(", ")
    );
    Err(bad(setting, name, why))
}

fn is_installed(name: &str) -> bool {
    let release = fs::read_to_string(host_file(RELEASE)).unwrap_or_default();
    let list = Path::new("/lib/modules").join(release.trim()).join(MODULES);
    let list = fs::read_to_string(host_file(&list.to_string_lossy())).unwrap_or_default();
    list.lines().any(|line| is_of_module(line, name))
}

/// Whether a line, `kernel/net/ipv4/tcp_bbr.ko.xz: …`, is about the module of this congestion control.
fn is_of_module(line: &str, name: &str) -> bool {
    let path = line.split(':').next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    file.split_once(".ko").is_some_and(|(module, _)| module.strip_prefix("tcp_") == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    #[test]
    fn what_is_loaded_or_installed_is_known_and_the_rest_is_refused_with_what_is_loaded() {
        let _host = MadeUp::host(&[
            ("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n"),
            ("proc/sys/kernel/osrelease", "6.12.1\n"),
            (
                "lib/modules/6.12.1/modules.dep",
                "kernel/net/ipv4/tcp_bbr.ko.xz:\nkernel/net/ipv4/tcp_diag.ko.xz: kernel/a.ko\n",
            ),
        ]);
        let setting = "route.congctl@default".parse().unwrap();
        for name in ["reno", "cubic", "bbr"] {
            assert!(check_known(&setting, name).is_ok(), "{name}");
        }
        for name in ["nonsense", "bb", "tcp_bbr"] {
            let said = check_known(&setting, name).unwrap_err().to_string();
            assert!(said.contains("this kernel has reno, cubic; others may be modules"), "{said}");
        }
    }
}
