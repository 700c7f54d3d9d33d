//! Which values the kernel refuses for a network parameter, and which numbers it accepts: tried in a temporary network
//! namespace, before the parameter itself is touched.
//!
//! Ranges differ between versions, and the kernel does not print them. So numbers are tried until the ends of the range
//! are found.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use goodput_model::SettingRef;
use goodput_netlink::namespace;

use super::sysctl_name;
use super::sysctl_rules::OF_ALL_NAMESPACES;
use crate::error::SettingError;
use crate::setting::Assignment;
use crate::value::bad;

/// Limits of the search: `i32` and the range of `proc_doulongvec_minmax` (kernel/sysctl.c).
const LOWEST: i128 = i32::MIN as i128;
const HIGHEST: i128 = u64::MAX as i128;

/// Values that the kernel has taken: a comparison asks for each many times, and a namespace costs milliseconds.
static TAKEN: Mutex<Option<HashSet<Trial>>> = Mutex::new(None);
/// Most values to remember, each with some 20 kB of other parameters; a server is asked for values for months.
const MOST_REMEMBERED: usize = 100;

/// A value to be tried, and all that the kernel's answer may depend on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Trial {
    path: PathBuf,
    value: String,
    /// Parameters that have their new values by then.
    earlier: Vec<(PathBuf, String)>,
    /// The other parameters, as they are now.
    beside: Vec<(PathBuf, String)>,
}

/// Refuses a value that the kernel would refuse once `earlier` is in effect, if every network namespace has the
/// parameter and this process may create a namespace. Otherwise only a change can tell.
///
/// # Errors
/// With the numbers that the kernel takes, if that is the reason.
pub(super) fn check(
    setting: &SettingRef,
    value: &str,
    earlier: &[Assignment],
) -> Result<(), SettingError> {
    let path = sysctl_name::path(setting)?;
    if !may_be_tried(&path) {
        return Ok(());
    }
    let earlier = earlier.iter().filter_map(parameter).filter(|(path, _)| may_be_tried(path));
    let (earlier, beside) = (earlier.collect(), beside(&path));
    let trial = Trial { path, value: value.to_owned(), earlier, beside };
    if is_remembered(&trial) {
        return Ok(());
    }
    let refusal = namespace::in_new_namespace(|| {
        resemble(&trial.beside);
        // Whether one of these is refused was asked before; one that isn't there keeps none of the others from it.
        for (path, value) in &trial.earlier {
            let _ = write(path, value);
        }
        refusal(&trial.path, &trial.value)
    });
    match refusal {
        Ok(Some(why)) => return Err(bad(setting, value, why)),
        Ok(None) => remember(trial),
        // Nothing was tried.
        Err(_) => {}
    }
    Ok(())
}

/// The path below /proc/sys.
pub(super) fn below(path: &Path) -> Option<&str> {
    path.strip_prefix("/proc/sys").ok()?.to_str()
}

/// Whether a trial in a namespace leaves the host alone.
fn may_be_tried(path: &Path) -> bool {
    path.starts_with("/proc/sys/net") && !OF_ALL_NAMESPACES.iter().any(|one| path.ends_with(one))
}

/// The parameter and value of an assignment that is about one.
fn parameter((setting, value): &Assignment) -> Option<(PathBuf, String)> {
    sysctl_name::dotted(setting)?;
    Some((sysctl_name::path(setting).ok()?, value.clone()))
}

fn is_remembered(trial: &Trial) -> bool {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    taken.as_ref().is_some_and(|taken| taken.contains(trial))
}

fn remember(trial: Trial) {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = taken.get_or_insert_default();
    if taken.len() < MOST_REMEMBERED {
        taken.insert(trial);
    }
}

/// The parameters in the folder of this one, with their values. What the kernel takes may depend on them, as the ports
/// of `ip_local_port_range` do on `ip_unprivileged_port_start`.
fn beside(path: &Path) -> Vec<(PathBuf, String)> {
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    let files = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let files = files.filter(|file| may_be_tried(file) && may_be_written(file));
    files.filter_map(|file| Some((file.clone(), fs::read_to_string(file).ok()?))).collect()
}

/// What only the kernel changes, such as `tcp_available_congestion_control`, is no setting.
fn may_be_written(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.permissions().mode() & 0o200 != 0)
}

/// Gives these parameters these values here, twice, because the order may matter. What this namespace lacks or refuses
/// stays.
fn resemble(values: &[(PathBuf, String)]) {
    for (file, value) in values.iter().chain(values) {
        if fs::read_to_string(file).is_ok_and(|now| now != *value) {
            let _ = write(file, value.trim_end());
        }
    }
}

/// Why the kernel does not take a value here.
fn refusal(path: &Path, value: &str) -> Option<String> {
    let cause = write(path, value).err()?;
    if !matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::ERANGE)) {
        return None;
    }
    Some(match (value.parse::<i128>(), search(path)) {
        (Ok(number), Some(range)) if !range.contains(&number) => {
            format!("this kernel takes {} to {}", range.start(), range.end())
        }
        _ => format!("this kernel does not take it ({cause})"),
    })
}

/// The range of a parameter that is one number.
fn search(path: &Path) -> Option<RangeInclusive<i128>> {
    let now: i128 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    let least = end(path, now, LOWEST)?;
    let most =
        [HIGHEST, u32::MAX.into(), i32::MAX.into()].into_iter().find(|end| takes(path, *end));
    let most = most.or_else(|| end(path, now, i32::MAX.into()))?;
    Some(least..=most)
}

/// The last number from `good` towards `beyond` that the kernel accepts, found by bisection.
fn end(path: &Path, good: i128, beyond: i128) -> Option<i128> {
    if takes(path, beyond) {
        return Some(beyond);
    }
    let (mut good, mut bad) = (good, beyond);
    // Numbers that the kernel rounds are not ends of the range.
    while (good - bad).abs() > 1 {
        let between = i128::midpoint(good, bad);
        if takes(path, between) { good = between } else { bad = between }
    }
    takes(path, good).then_some(good)
}

/// Whether the kernel accepts a number unchanged.
fn takes(path: &Path, number: i128) -> bool {
    let written = write(path, number);
    let read = || fs::read_to_string(path).unwrap_or_default();
    written.is_ok() && read().trim() == number.to_string()
}

fn write(path: &Path, value: impl Display) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(format!("{value}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Changes;
    use crate::testing::{guard, in_scene};

    #[test]
    fn a_number_out_of_range_is_refused_with_the_range_and_changes_nothing() {
        in_scene(|state_dir| {
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            for (name, value, range) in [
                ("tcp_reordering", "301", "1 to 300"),
                ("tcp_min_tso_segs", "0", "1 to 255"),
                ("tcp_shrink_window", "-1", "0 to 1"),
            ] {
                let setting: SettingRef = format!("sysctl.net.ipv4.{name}").parse().unwrap();
                let before = crate::read(&setting).unwrap();
                let error = changes.apply(&setting, value).unwrap_err();
                assert!(matches!(error, SettingError::BadValue { .. }), "{error:?}");
                assert!(error.to_string().contains(range), "{error}");
                assert_eq!(crate::read(&setting).unwrap(), before);
            }
            assert!(changes.restore().is_clean());
        });
    }

    #[test]
    fn a_value_is_refused_before_a_change_and_a_good_one_is_tried_once() {
        in_scene(|_| {
            let setting: SettingRef = "sysctl.net.ipv4.tcp_reordering".parse().unwrap();
            let said = crate::check_value(&setting, "301").unwrap_err().to_string();
            assert!(said.contains("this kernel takes 1 to 300"), "{said}");
            assert!(crate::check_value(&setting, "299").is_ok());
            let path = sysctl_name::path(&setting).unwrap();
            let beside = beside(&path);
            let trial = Trial { path, value: "299".into(), earlier: Vec::new(), beside };
            assert!(is_remembered(&trial));
            let buffers: SettingRef = "sysctl.net.ipv4.tcp_rmem".parse().unwrap();
            let said = crate::check_value(&buffers, "0 0 0").unwrap_err().to_string();
            assert!(said.contains("does not take it"), "{said}");
        });
    }

    #[test]
    fn what_depends_on_another_parameter_is_judged_by_the_one_that_is_set() {
        in_scene(|_| {
            let folder = Path::new("/proc/sys/net/ipv4");
            let start: SettingRef = "sysctl.net.ipv4.ip_unprivileged_port_start".parse().unwrap();
            assert!(check(&start, "33000", &[]).is_err(), "above the first port of the range");
            write(&folder.join("ip_local_port_range"), "40000 50000").unwrap();
            assert!(check(&start, "33000", &[]).is_ok());
            write(&folder.join("ip_local_port_range"), "32768 60999").unwrap();
            assert!(check(&start, "33000", &[]).is_err(), "what was taken is no answer any more");
        });
    }

    #[test]
    fn several_are_judged_as_if_the_earlier_ones_were_in_effect() {
        in_scene(|_| {
            let one = |name: &str, value: &str| {
                (format!("sysctl.net.ipv4.{name}").parse().unwrap(), value.to_owned())
            };
            let range = one("ip_local_port_range", "40000 50000");
            let start = one("ip_unprivileged_port_start", "33000");
            let before = crate::read(&range.0).unwrap();
            assert!(crate::check_values(&[range.clone(), start.clone()]).is_ok());
            let refused = crate::check_values(&[start.clone(), range]).unwrap_err().to_string();
            assert!(refused.contains("ip_unprivileged_port_start"), "{refused}");
            // The other way round: alone, each of these is taken.
            let low = one("ip_local_port_range", "20000 30000");
            let below = one("ip_unprivileged_port_start", "25000");
            assert!(
                [&low, &below].iter().all(|one| crate::check_values(&[(*one).clone()]).is_ok())
            );
            assert!(crate::check_values(&[low.clone(), below]).is_err());
            assert_eq!(crate::read(&low.0).unwrap(), before, "nothing is changed");
        });
    }

    #[test]
    fn what_can_not_be_tried_is_left_to_the_change() {
        for name in ["sysctl.vm.none", "sysctl.net.ipv4.none", "sysctl.vm.swappiness"] {
            assert!(check(&name.parse().unwrap(), "-7", &[]).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_is_no_number_has_no_range() {
        assert_eq!(search(Path::new("/proc/sys/net/ipv4/tcp_rmem")), None);
    }
}
