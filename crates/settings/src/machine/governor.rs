//! Reads and writes how the CPUs' frequencies are chosen (Documentation/admin-guide/pm/cpufreq.rst).
//!
//! intel_pstate changes the energy preference along with the governor (`intel_pstate_hwp_set`,
//! drivers/cpufreq/intel_pstate.c), so both are saved.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;

use super::host_file::host_file;
use crate::error::{SettingError, from_io};
use crate::footprint::Footprint;
use crate::setting::Machine;
use crate::value::bad;

/// The backend of `cpu.governor`: one name if all CPUs have the same, otherwise one for each policy, separated by
/// spaces.
pub(crate) struct Governor;

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
const GOVERNOR: &str = "scaling_governor";
const OFFERED: &str = "scaling_available_governors";
const DRIVER: &str = "scaling_driver";
const PREFERENCE: &str = "energy_performance_preference";
/// Separates governor and preference in the saved value.
const PART: char = '/';

impl Machine for Governor {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        each(setting, |policy| read(setting, policy, GOVERNOR))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let parts: Vec<&str> = value.split(' ').collect();
        for (place, policy) in policies(setting)?.iter().enumerate() {
            let own = if parts.len() == 1 { parts.first() } else { parts.get(place) };
            let Some(own) = own else { continue };
            #[cfg(test)]
            crate::testing::step();
            let (governor, preference) = own.split_once(PART).unwrap_or((own, ""));
            write(setting, policy, GOVERNOR, governor)?;
            // `performance` has its own preference, which can't be written.
            if !preference.is_empty() && read(setting, policy, PREFERENCE)? != preference {
                write(setting, policy, PREFERENCE, preference)?;
            }
        }
        Ok(())
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        for policy in policies(setting)? {
            let offered = read(setting, &policy, OFFERED)?;
            if !offered.split_whitespace().any(|name| name == value) {
                let driver = read(setting, &policy, DRIVER).unwrap_or_default();
                let why = format!("here it is one of {}{}", offered.trim(), about(&driver));
                return Err(bad(setting, value, why));
            }
        }
        Ok(value.into())
    }

    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        each(setting, |policy| {
            let governor = read(setting, policy, GOVERNOR)?;
            let preference = fs::read_to_string(policy.join(PREFERENCE)).unwrap_or_default();
            Ok(format!("{governor}{PART}{}", preference.trim()))
        })
    }

    fn is_between(&self, now: &str, values: &[&str]) -> bool {
        let names = |value: &str| value.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let known: Vec<String> = values.iter().flat_map(|value| names(value)).collect();
        names(now).iter().all(|name| known.contains(name))
    }

    fn footprint(&self, _: &SettingRef) -> Footprint {
        Footprint::Nothing
    }

    fn namespaced(&self, _: &SettingRef) -> bool {
        false
    }
}

/// The directories of all policies, each for one or more CPUs.
fn policies(setting: &SettingRef) -> Result<Vec<PathBuf>, SettingError> {
    let number =
        |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("policy")?.parse::<u32>().ok();
    let entries = fs::read_dir(host_file(POLICIES)).into_iter().flatten().flatten();
    let mut found: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| number(path).is_some()).collect();
    found.sort_by_key(number);
    if found.is_empty() {
        return Err(SettingError::Gone {
            setting: setting.clone(),
            what: "cpufreq (of a virtual machine its own host chooses frequencies)".into(),
        });
    }
    Ok(found)
}

/// One value if all policies agree.
fn each(
    setting: &SettingRef,
    read: impl Fn(&Path) -> Result<String, SettingError>,
) -> Result<String, SettingError> {
    let mut values =
        policies(setting)?.iter().map(|policy| read(policy)).collect::<Result<Vec<_>, _>>()?;
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        values.truncate(1);
    }
    Ok(values.join(" "))
}

fn read(setting: &SettingRef, policy: &Path, file: &str) -> Result<String, SettingError> {
    let text = fs::read_to_string(policy.join(file));
    text.map(|text| text.trim().to_owned()).map_err(|e| from_io(setting, "read it", file, e))
}

fn write(setting: &SettingRef, policy: &Path, file: &str, value: &str) -> Result<(), SettingError> {
    fs::write(policy.join(file), value)
        .map_err(|e| from_io(setting, format!("change it to {value:?}"), file, e))
}

/// How a driver treats its governors.
fn about(driver: &str) -> &'static str {
    match driver {
        "intel_pstate" | "amd-pstate-epp" => {
            "; this driver chooses frequencies itself, and its powersave still raises them under load"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MadeUp, folder, guard};
    use crate::{Changes, read as read_setting};

    fn host(driver: &str) -> MadeUp {
        let host = MadeUp::host(&[]);
        for policy in ["policy0", "policy2"] {
            let at = format!("sys/devices/system/cpu/cpufreq/{policy}");
            host.write(&format!("{at}/{GOVERNOR}"), "powersave\n");
            host.write(&format!("{at}/{OFFERED}"), "performance powersave\n");
            host.write(&format!("{at}/{DRIVER}"), driver);
            host.write(&format!("{at}/{PREFERENCE}"), "balance_performance\n");
        }
        host
    }

    #[test]
    fn all_cpus_get_the_governor_and_their_preference_back() {
        let (host, state) = (host("intel_pstate\n"), folder());
        let setting: SettingRef = "cpu.governor".parse().unwrap();
        let mut changes = Changes::begin(state.path(), guard()).unwrap();
        assert_eq!(changes.apply(&setting, "performance").unwrap(), "performance");
        let preference = "sys/devices/system/cpu/cpufreq/policy2/energy_performance_preference";
        // As the driver does.
        host.write(preference, "performance\n");
        assert!(changes.restore().is_clean());
        assert_eq!(read_setting(&setting).unwrap(), "powersave");
        assert_eq!(host.read(preference).trim(), "balance_performance");
    }

    #[test]
    fn what_is_not_offered_is_refused_with_what_is() {
        let _host = host("intel_pstate\n");
        let setting: SettingRef = "cpu.governor".parse().unwrap();
        let said = Governor.normalise(&setting, "schedutil").unwrap_err().to_string();
        assert!(said.contains("performance powersave; this driver chooses"), "{said}");
    }

    #[test]
    fn a_host_without_frequencies_is_reported_as_such() {
        let _host = MadeUp::host(&[]);
        let said = read_setting(&"cpu.governor".parse().unwrap()).unwrap_err().to_string();
        assert!(said.contains("there is no cpufreq"), "{said}");
    }
}
