//! Reads and writes kernel parameters under /proc/sys (proc_sys(5), sysctl(8)).

use std::fs;
use std::io::Write;
use std::path::Path;

use goodput_model::SettingRef;

use super::{
    congestion, sysctl_couplings, sysctl_documented, sysctl_name, sysctl_range, sysctl_rules,
};
use crate::error::{SettingError, from_io};
use crate::footprint::Footprint;
use crate::setting::{Assignment, Machine};
use crate::sysctl_cell;
use crate::value::bad;

/// The parameter that holds the name of a congestion control.
const CONGESTION: &str = "net/ipv4/tcp_congestion_control";

/// The backend of `sysctl.<any>`.
pub(crate) struct Sysctl;

impl Machine for Sysctl {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let path = sysctl_name::path(setting)?;
        let what = path.display().to_string();
        let text =
            fs::read_to_string(&path).map_err(|cause| from_io(setting, "read it", &what, cause))?;
        Ok(one_space(&text))
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        sysctl_rules::check(setting)?;
        let path = sysctl_name::path(setting)?;
        let what = path.display().to_string();
        // One write(2): the kernel parses each write as a whole value.
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()))
            .map_err(|cause| refused(setting, value, &what, cause))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        sysctl_rules::check(setting)?;
        let now = self.read(setting)?;
        refuse_read_only(setting)?;
        fitting(setting, value, &now)
    }

    fn check_new(
        &self,
        setting: &SettingRef,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), SettingError> {
        let value = one_space(value);
        let path = sysctl_name::path(setting)?;
        sysctl_rules::check_value(setting, &value)?;
        match path.ends_with(CONGESTION) {
            true => congestion::check_known(setting, &value),
            false => sysctl_range::check(setting, &value, earlier),
        }
    }

    fn footprint(&self, setting: &SettingRef) -> Footprint {
        let altered = sysctl_name::path(setting).map(|file| sysctl_couplings::altered(&file));
        Footprint::Sysctls(altered.unwrap_or_default())
    }

    fn cell(&self, setting: &SettingRef) -> Option<String> {
        sysctl_cell::name(&sysctl_name::path(setting).ok()?)
    }

    fn namespaced(&self, setting: &SettingRef) -> bool {
        sysctl_name::dotted(setting).is_some_and(|name| name.starts_with("net"))
    }
}

/// The value as the kernel prints it; refuses a value whose form differs from the value now.
pub(crate) fn fitting(
    setting: &SettingRef,
    value: &str,
    now: &str,
) -> Result<String, SettingError> {
    let wanted = one_space(value);
    if wanted.is_empty() || wanted.chars().any(char::is_control) {
        return Err(bad(setting, value, "it is empty or has control characters"));
    }
    let (has, gets) = (now.split(' ').count(), wanted.split(' ').count());
    // A shorter vector would silently change only the first numbers.
    if is_numbers(now) && has != gets {
        let why = format!("it needs {has} numbers; now it is {now:?}");
        return Err(bad(setting, value, why));
    }
    Ok(wanted)
}

/// The kernel's answer to a value.
fn refused(setting: &SettingRef, value: &str, what: &str, cause: std::io::Error) -> SettingError {
    let operation = format!("change it to {value:?}");
    let path = Path::new(what);
    let limits = || sysctl_range::below(path).and_then(sysctl_documented::limits);
    let explained = match cause.raw_os_error() {
        // The parameter is there, so the kernel does not know what the value names.
        Some(libc::ENOENT) if path.exists() => Some("this kernel has nothing of this name".into()),
        Some(libc::EINVAL) => limits().map(|limits| format!("{cause}; {limits}")),
        _ => None,
    };
    match explained {
        Some(why) => {
            SettingError::Refused { operation, setting: setting.clone(), cause: why.into() }
        }
        None => from_io(setting, operation, what, cause),
    }
}

/// Not even root may write it, so naming a missing privilege would mislead.
fn refuse_read_only(setting: &SettingRef) -> Result<(), SettingError> {
    let read_only = fs::metadata(sysctl_name::path(setting)?)
        .is_ok_and(|status| status.permissions().readonly());
    if !read_only {
        return Ok(());
    }
    Err(SettingError::Refused {
        operation: "change it".into(),
        setting: setting.clone(),
        cause: "it is read-only in this network namespace or kernel".into(),
    })
}

/// The words of `text` separated by single spaces: the kernel separates numbers by tabs.
fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_numbers(text: &str) -> bool {
    !text.is_empty() && text.split(' ').all(|field| field.parse::<i128>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_scene;

    fn setting(name: &str) -> SettingRef {
        name.parse().unwrap()
    }

    #[test]
    fn numbers_are_read_with_single_spaces() {
        let value = Sysctl.read(&setting("sysctl.net.ipv4.tcp_rmem")).unwrap();
        assert_eq!(value.split(' ').count(), 3, "{value:?}");
        assert!(is_numbers(&value));
    }

    #[test]
    fn too_few_numbers_are_refused_with_the_value_of_now() {
        let rmem = setting("sysctl.net.ipv4.tcp_rmem");
        let error = Sysctl.normalise(&rmem, "8192").unwrap_err().to_string();
        assert!(error.contains("needs 3 numbers"), "{error}");
        assert_eq!(Sysctl.normalise(&rmem, " 1\t2  3 ").unwrap(), "1 2 3");
    }

    #[test]
    fn a_missing_file_is_gone() {
        let error = Sysctl.read(&setting("sysctl.net.ipv4.no_such_thing")).unwrap_err();
        assert!(matches!(error, SettingError::Gone { .. }), "{error}");
    }

    #[test]
    fn a_name_that_the_kernel_does_not_know_is_refused_with_those_it_does() {
        in_scene(|_| {
            let congestion = setting("sysctl.net.ipv4.tcp_congestion_control");
            let said = crate::check_value(&congestion, "no_such_name").unwrap_err().to_string();
            assert!(said.contains("this kernel has") && said.contains("reno"), "{said}");
            let said = Sysctl.write(&congestion, "no_such_name").unwrap_err().to_string();
            assert!(said.contains("nothing of this name"), "{said}");
        });
    }

    #[test]
    fn only_the_parameters_of_the_network_belong_to_a_namespace() {
        assert!(Sysctl.namespaced(&setting("sysctl.net.core.rmem_max")));
        assert!(!Sysctl.namespaced(&setting("sysctl.vm.swappiness")));
    }
}
