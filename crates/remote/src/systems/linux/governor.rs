//! How the frequencies of the CPUs are chosen (Documentation/admin-guide/pm/cpufreq.rst), by the files of /sys.

use goodput_model::{EndName, SettingRef};

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;

/// One file that every policy has.
pub(super) struct PolicyFile {
    /// The setting.
    pub(super) id: &'static str,
    file: &'static str,
    offered: &'static str,
}

/// The governor, and the energy preference that intel_pstate changes along with it.
pub(super) static ROWS: [PolicyFile; 2] = [
    PolicyFile {
        id: "cpu.governor",
        file: "scaling_governor",
        offered: "scaling_available_governors",
    },
    PolicyFile {
        id: "cpu.energy-preference",
        file: "energy_performance_preference",
        offered: "energy_performance_available_preferences",
    },
];

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq/policy*/";

impl PolicyFile {
    fn show(&self, file: &str) -> Command {
        Command::new("sh", ["-c", &format!("cat {POLICIES}{file}")])
    }

    /// What all policies have in this file, in common.
    fn common(&self, at: &mut At<'_>, file: &str) -> Result<String, RemoteError> {
        let command = self.show(file);
        let printed = at.shell.output(&command)?;
        let mut lines = printed.lines().map(str::trim);
        let first = lines.next().unwrap_or_default().to_owned();
        match lines.all(|line| line == first) && !first.is_empty() {
            true => Ok(first),
            false => Err(at.misread(&command, &printed, "the same for all CPUs")),
        }
    }
}

impl Row for PolicyFile {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        self.common(at, self.file)
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        let offered = self.common(at, self.offered)?;
        match offered.split(' ').any(|name| name == value) {
            true => Ok(value.into()),
            false => Err(at.refused(&format!("{value:?} is none of {offered}"))),
        }
    }

    fn write(&self, _at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let script = format!(
            "for file in {POLICIES}{}; do printf '%s\\n' \"$1\" >\"$file\" || exit 1; done",
            self.file
        );
        Ok(vec![Command::new("sh", ["-c", &script, "sh", value])])
    }

    fn holds(&self, _at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        Ok(Condition::line(self.show(self.file), Condition::literal(value)))
    }
}

/// What the driver changes along with the governor.
pub(super) fn coupled(setting: &SettingRef) -> Vec<SettingRef> {
    let other = |id: &str| SettingRef { end: EndName::Near, name: id.into(), scope: None };
    match setting.name == ROWS[0].id {
        true => vec![other(ROWS[1].id)],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    #[test]
    fn cpus_that_differ_are_not_taken_for_one() {
        let file = "sh -c 'cat /sys/devices/system/cpu/cpufreq/policy*/scaling_governor'";
        let setting = "cpu.governor".parse().unwrap();
        let read = |printed: &str| {
            let mut shell = Scripted::default().prints(file, printed);
            ROWS[0].read(&mut At { shell: &mut shell, setting: &setting })
        };
        assert_eq!(read("powersave\npowersave\n").unwrap(), "powersave");
        assert!(read("powersave\nperformance\n").is_err() && read("").is_err());
    }
}
