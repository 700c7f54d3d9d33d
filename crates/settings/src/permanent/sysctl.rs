//! Kernel parameters: sysctl.d(5).

use goodput_model::{Permanent, SettingRef};

use super::{entry, module_option};

/// File of our parameters: read late, so that they override the distribution's.
const FILE: &str = "/etc/sysctl.d/90-goodput.conf";

/// The form of `sysctl.<any>`.
pub(crate) fn sysctl(setting: &SettingRef, value: &str) -> Vec<Permanent> {
    let Some(name) = setting.name.strip_prefix("sysctl.") else { return Vec::new() };
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let parameter = || entry(FILE, format!("{name} = {value}"));
    vec![module_option(name, &value).unwrap_or_else(parameter)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(setting: &str, value: &str) -> Vec<(String, String)> {
        let files = sysctl(&setting.parse().unwrap(), value);
        files.into_iter().map(|p| (p.file, p.lines)).collect()
    }

    #[test]
    fn the_three_numbers_of_a_parameter_are_parted_by_one_space() {
        let files = of("sysctl.net.ipv4.tcp_rmem", "4096\t131072 6291456");
        let line = "net.ipv4.tcp_rmem = 4096 131072 6291456".to_owned();
        assert_eq!(files, [(FILE.to_owned(), line)]);
    }

    #[test]
    fn what_a_module_brings_along_is_an_option_of_the_module() {
        let files = of("sysctl.sunrpc.tcp_slot_table_entries", "16");
        let line = "options sunrpc tcp_slot_table_entries=16".to_owned();
        assert_eq!(files, [("/etc/modprobe.d/90-goodput.conf".to_owned(), line)]);
    }
}
