//! `sysctl.<any>` through sysctl(8), with the same rules as for a local parameter.

use std::path::PathBuf;

use goodput_model::{EndName, SettingRef};
use goodput_settings::{Assignment, parameters};

use super::row::{At, Row};
use super::{congestion, sysctl_range};
use crate::command::{Command, Condition};
use crate::error::RemoteError;

/// Any kernel parameter.
pub(super) struct Parameter;

/// The most commonly important parameters, for lists.
pub(super) const LISTED: [&str; 8] = [
    "sysctl.net.core.rmem_max",
    "sysctl.net.core.wmem_max",
    "sysctl.net.core.netdev_max_backlog",
    "sysctl.net.ipv4.tcp_rmem",
    "sysctl.net.ipv4.tcp_wmem",
    "sysctl.net.ipv4.tcp_congestion_control",
    "sysctl.net.ipv4.tcp_mtu_probing",
    "sysctl.net.ipv4.tcp_window_scaling",
];

impl Row for Parameter {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let command = show(at.setting)?;
        let printed = at.shell.output(&command).map_err(|error| match error {
            // What sysctl(8) of procps and of busybox print.
            RemoteError::Failed { said, .. } if said.contains("No such file or directory") => {
                let listed = format!("`goodput settings list --on {}`", at.shell.host());
                at.refused(&format!("its kernel has no such parameter; {listed} shows many"))
            }
            other => other,
        })?;
        match printed.trim_end_matches('\n') {
            line if line.contains('\n') => Err(at.misread(&command, line, "one line")),
            line => Ok(one_space(line)),
        }
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        parameters::check(at.setting)?;
        if name(at.setting)?.contains("/neigh/default/") {
            return Err(
                at.refused("the kernel copies it to devices, whose own values would be lost")
            );
        }
        let now = self.read(at)?;
        Ok(parameters::fitting(at.setting, value, &now)?)
    }

    fn check_new(
        &self,
        at: &mut At<'_>,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), RemoteError> {
        let value = one_space(value);
        match name(at.setting)?.as_str() {
            "net/ipv4/tcp_congestion_control" => congestion::check(at, &value),
            name => sysctl_range::check(at, name, &value, &named(earlier)),
        }
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let name = name(at.setting)?;
        Ok(vec![Command::new("sysctl", ["-q", "-w", &format!("{name}={value}")])])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        Ok(Condition::line(show(at.setting)?, Condition::literal(value)))
    }

    fn files(&self, setting: &SettingRef) -> Vec<String> {
        name(setting).map(|name| vec![format!("/proc/sys/{name}")]).unwrap_or_default()
    }
}

/// The parameters among these, with the names of their files below /proc/sys.
fn named(arm: &[Assignment]) -> Vec<(String, String)> {
    let parameters = arm.iter().filter(|(setting, _)| setting.name.starts_with("sysctl."));
    parameters.filter_map(|(setting, value)| Some((name(setting).ok()?, value.clone()))).collect()
}

fn show(setting: &SettingRef) -> Result<Command, RemoteError> {
    Ok(Command::new("sysctl", ["-n", &name(setting)?]))
}

/// The command that checks if the parameter exists.
pub(super) fn is_there(setting: &SettingRef) -> Result<Command, RemoteError> {
    Ok(Command::new("test", ["-e", &format!("/proc/sys/{}", name(setting)?)]))
}

/// The name with slashes, so that dots can be part of device names (sysctl(8)).
pub(super) fn name(setting: &SettingRef) -> Result<String, RemoteError> {
    let path: PathBuf = parameters::path(setting)?;
    let below = path.strip_prefix("/proc/sys").unwrap_or(&path);
    Ok(below.display().to_string())
}

/// Parameters that the kernel alters along with this one.
pub(super) fn coupled(setting: &SettingRef) -> Result<Vec<SettingRef>, RemoteError> {
    let others = parameters::coupled(&name(setting)?).into_iter();
    let named = |name: String| SettingRef {
        end: EndName::Near,
        name: format!("sysctl.{name}"),
        scope: None,
    };
    Ok(others.map(named).collect())
}

fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    #[test]
    fn numbers_are_read_compared_and_written_as_the_kernel_prints_them() {
        let mut shell =
            Scripted::default().prints("sysctl -n net/ipv4/tcp_rmem", "4096\t87380\t1\n");
        let setting = "sysctl.net.ipv4.tcp_rmem".parse().unwrap();
        let mut at = At { shell: &mut shell, setting: &setting };
        assert_eq!(Parameter.read(&mut at).unwrap(), "4096 87380 1");
        assert_eq!(Parameter.normalise(&mut at, " 1 2\t3").unwrap(), "1 2 3");
        let few = Parameter.normalise(&mut at, "1").unwrap_err().to_string();
        assert!(few.contains("3 numbers"), "{few}");
        let write = Parameter.write(&mut at, "1 2 3").unwrap();
        assert_eq!(write[0].typed(), "sysctl -q -w 'net/ipv4/tcp_rmem=1 2 3'");
    }

    #[test]
    fn an_unknown_parameter_is_named_without_the_words_of_a_program() {
        let said = "sysctl: cannot stat /proc/sys/net/ipv4/nosuch: No such file or directory";
        let mut shell = Scripted::default().fails("sysctl -n net/ipv4/nosuch", 1, said);
        let setting = "sysctl.net.ipv4.nosuch".parse().unwrap();
        let refused = Parameter.read(&mut At { shell: &mut shell, setting: &setting }).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("no such parameter") && !refused.contains("stat"), "{refused}");
    }

    #[test]
    fn what_does_not_come_back_is_refused_before_anything_is_asked() {
        let mut shell = Scripted::default();
        for name in ["sysctl.net.ipv4.ip_forward", "sysctl.kernel.core_pattern"] {
            let setting = name.parse().unwrap();
            let refused =
                Parameter.normalise(&mut At { shell: &mut shell, setting: &setting }, "1");
            assert!(refused.is_err(), "{name}");
        }
        assert_eq!(shell.ran, [""; 0]);
    }
}
