//! Which numbers the kernel accepts for a network parameter that it has just refused to change.
//!
//! Ranges differ between versions, and the kernel does not print them. So numbers are tried in a temporary
//! network namespace until the ends of the range are found.

use std::fs;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use goodput_model::SettingRef;
use goodput_netlink::namespace;

use super::sysctl_name;

/// Limits of the search: `i32` and the range of `proc_doulongvec_minmax` (kernel/sysctl.c).
const LOWEST: i128 = i32::MIN as i128;
const HIGHEST: i128 = u64::MAX as i128;

/// The range of a parameter that is one number, if every network namespace has the parameter and this process may
/// create a namespace.
pub(super) fn of(setting: &SettingRef) -> Option<RangeInclusive<i128>> {
    let path = sysctl_name::path(setting).ok()?;
    if !path.starts_with("/proc/sys/net") {
        return None;
    }
    namespace::in_new_namespace(move || search(&path)).ok()?
}

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
    let written = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
    let read = || fs::read_to_string(path).unwrap_or_default();
    written.is_ok() && read().trim() == number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{guard, in_scene};
    use crate::{Changes, SettingError};

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
                assert!(matches!(error, SettingError::Refused { .. }), "{error:?}");
                assert!(error.to_string().contains(range), "{error}");
                assert_eq!(crate::read(&setting).unwrap(), before);
            }
            assert!(changes.restore().is_clean());
        });
    }

    #[test]
    fn what_only_the_first_namespace_has_or_is_no_number_has_no_range() {
        for name in ["sysctl.vm.swappiness", "sysctl.net.ipv4.tcp_rmem", "sysctl.net.ipv4.none"] {
            assert_eq!(of(&name.parse().unwrap()), None, "{name}");
        }
    }
}
