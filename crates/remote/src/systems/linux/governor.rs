//! How the CPUs' frequencies are chosen (Documentation/admin-guide/pm/cpufreq.rst), through the files of /sys.

use goodput_model::{EndName, SettingRef};
use goodput_settings::value;

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

/// The governor alone.
pub(super) const GOVERNOR: &PolicyFile = &ROWS[0];

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq/policy*/";

impl PolicyFile {
    /// One line for all CPUs, so that a different one can't be overlooked.
    fn show(&self, file: &str) -> Command {
        let words = format!("cat {POLICIES}{file} | tr -s ' ' '\\n' | sort -u");
        let script = format!("set -- $({words}); echo \"$*\"");
        Command::script(format!("read {file} of the CPUs"), &script, [""; 0])
    }

    /// Every different word that the policies have in this file.
    fn words(&self, at: &mut At<'_>, file: &str) -> Result<String, RemoteError> {
        let printed = at.shell.output(&self.show(file))?;
        match printed.trim() {
            "" => Err(at.refused("no CPU there has it")),
            words => Ok(words.into()),
        }
    }
}

impl Row for PolicyFile {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        self.words(at, self.file)
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        let offered = self.words(at, self.offered)?;
        match offered.split(' ').any(|name| name == value) {
            true => Ok(value.into()),
            false => {
                let why = format!("the CPUs there have {}", offered.replace(' ', ", "));
                Err(value::bad(at.setting, value, why).into())
            }
        }
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        if value.contains(' ') {
            return Err(at.refused("the CPUs differ, which would not come back"));
        }
        let script = format!(
            "for file in {POLICIES}{}; do printf '%s\\n' \"$1\" >\"$file\" || exit 1; done",
            self.file
        );
        let purpose = format!("change {} of the CPUs to {value:?}", self.file);
        Ok(vec![Command::script(purpose, &script, [value])])
    }

    fn holds(&self, _at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        Ok(Condition::line(self.show(self.file), Condition::literal(value)))
    }

    /// The policies are written one after another.
    fn half_way(&self, one: &str, other: &str) -> Vec<String> {
        let mut words: Vec<_> = one.split(' ').chain(other.split(' ')).collect();
        words.sort_unstable();
        words.dedup();
        vec![words.join(" ")]
    }

    /// Values that the driver changes along with it must come back too.
    fn comes_back(&self, at: &mut At<'_>) -> Result<(), RemoteError> {
        for row in &ROWS {
            match row.read(at) {
                Ok(words) if words.contains(' ') => {
                    let why = format!(
                        "the {} of the CPUs differ ({words}), which would not come back",
                        row.file
                    );
                    return Err(at.refused(&why));
                }
                Err(error @ RemoteError::Lost { .. }) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Settings that the driver changes along with the governor.
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

    fn scene(governors: &str) -> Scripted {
        let show = ROWS[0].show(ROWS[0].file).typed();
        Scripted::default().prints(&show, governors)
    }

    #[test]
    fn cpus_that_differ_are_not_taken_for_one() {
        let setting = "cpu.governor".parse().unwrap();
        let read = |printed: &str| {
            let mut shell = scene(printed);
            let mut at = At { shell: &mut shell, setting: &setting };
            (ROWS[0].read(&mut at).ok(), ROWS[0].comes_back(&mut at).is_ok())
        };
        assert_eq!(read("powersave\n"), (Some("powersave".into()), true));
        assert!(!read("performance powersave\n").1);
        assert_eq!(read("\n").0, None);
    }

    #[test]
    fn a_change_that_was_cut_short_leaves_both() {
        assert_eq!(ROWS[0].half_way("powersave", "performance"), ["performance powersave"]);
    }

    #[test]
    fn the_host_looks_at_every_cpu() {
        let setting = "cpu.governor".parse().unwrap();
        let mut shell = Scripted::default();
        let mut at = At { shell: &mut shell, setting: &setting };
        let condition = ROWS[0].holds(&mut at, "powersave").unwrap().to_string();
        let folder = tempfile::tempdir().unwrap();
        let condition =
            condition.replace("/sys/devices/system/cpu/cpufreq", folder.path().to_str().unwrap());
        let holds = |governors: [&str; 2]| {
            for (number, governor) in governors.iter().enumerate() {
                let policy = folder.path().join(format!("policy{number}"));
                std::fs::create_dir_all(&policy).unwrap();
                std::fs::write(policy.join("scaling_governor"), format!("{governor}\n")).unwrap();
            }
            std::process::Command::new("sh").args(["-c", &condition]).status().unwrap().success()
        };
        assert!(holds(["powersave", "powersave"]));
        assert!(!holds(["powersave", "performance"]) && !holds(["performance", "performance"]));
    }
}
