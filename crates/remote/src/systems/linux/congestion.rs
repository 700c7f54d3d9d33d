//! Checks which congestion controls a kernel has before a missing one is requested.

use goodput_settings::SettingError;

use super::row::At;
use crate::command::Command;
use crate::error::RemoteError;

/// Refuses a congestion control that the kernel neither has nor can load (tcp(7), `tcp_available_congestion_control`;
/// `tcp_ca_find_autoload`, net/ipv4/tcp_cong.c).
pub(super) fn check(at: &mut At<'_>, name: &str) -> Result<(), RemoteError> {
    let available = Command::new("sysctl", ["-n", "net/ipv4/tcp_available_congestion_control"]);
    let available = at.shell.output(&available)?;
    if available.split_whitespace().any(|known| known == name) {
        return Ok(());
    }
    let load = Command::new("modprobe", ["-n", "-q", &format!("tcp_{name}")]);
    if at.shell.run(&load)?.status == 0 {
        return Ok(());
    }
    let why = format!(
        "that kernel has no such congestion control; it has {}",
        available.split_whitespace().collect::<Vec<_>>().join(", ")
    );
    let (setting, value) = (at.setting.clone(), name.to_owned());
    Err(SettingError::BadValue { setting, value, why }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    #[test]
    fn one_that_can_be_loaded_counts_as_there() {
        let mut shell = Scripted::default()
            .prints("sysctl -n net/ipv4/tcp_available_congestion_control", "reno cubic\n")
            .prints("modprobe -n -q tcp_bbr", "")
            .fails("modprobe -n -q tcp_nosuch", 1, "");
        let setting = "sysctl.net.ipv4.tcp_congestion_control".parse().unwrap();
        let mut at = At { shell: &mut shell, setting: &setting };
        assert!(check(&mut at, "cubic").is_ok() && check(&mut at, "bbr").is_ok());
        let refused = check(&mut at, "nosuch").unwrap_err().to_string();
        assert!(refused.contains("it has reno, cubic"), "{refused}");
    }
}
