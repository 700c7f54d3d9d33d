//! Lists of CPUs like `0-3,8`, and the CPUs that the interrupts of a device may go to.

use std::collections::BTreeSet;

use goodput_model::SettingRef;

use crate::each;
use crate::error::SettingError;
use crate::value::bad;

/// A different CPU for each interrupt, as far as there are enough CPUs.
const SPREAD: &str = "spread";

/// More CPUs than any kernel supports (`NR_CPUS`, arch/x86/Kconfig); bounds how much a list can make us write.
const MAX_CPUS: u32 = 8192;

/// The CPUs in a list like `0-3,8`; `None` if the text is not a list.
pub fn parse(list: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// The list as the kernel prints it.
pub fn printed(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// What a person wrote for `irq.affinity` of a device with this many interrupts, as it reads back.
///
/// # Errors
/// When it is not a list of CPUs that are `online` for all interrupts, one for each, or `spread`.
pub fn affinity(
    setting: &SettingRef,
    value: &str,
    interrupts: usize,
    online: &BTreeSet<u32>,
) -> Result<String, SettingError> {
    if value == SPREAD {
        let cpus = online.iter().cycle().take(interrupts).map(u32::to_string).collect();
        return Ok(each::joined(cpus));
    }
    let list = |text: &str| {
        let cpus = parse(text).ok_or_else(|| {
            let why = "it must be CPUs like 0-3,8 for all, or a list for each, or spread";
            bad(setting, value, why)
        })?;
        if !cpus.is_subset(online) {
            let why = format!("only the CPUs {} are online", printed(online));
            return Err(bad(setting, value, why));
        }
        Ok(printed(&cpus))
    };
    let lists = value.split(' ').map(list).collect::<Result<Vec<_>, _>>()?;
    if lists.len() != 1 && lists.len() != interrupts {
        let device = setting.scope.as_deref().unwrap_or_default();
        return Err(bad(setting, value, format!("{device} has {interrupts} interrupts")));
    }
    Ok(each::joined(lists))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_printed_as_the_kernel_does() {
        for (typed, kernel) in [("2,0,1", "0-2"), ("8,0-3\n", "0-3,8"), ("7", "7")] {
            assert_eq!(printed(&parse(typed).unwrap()), kernel);
        }
        for text in ["", "a", "3-1", "1,,2", "-1", "0-99999999"] {
            assert!(parse(text).is_none(), "{text:?}");
        }
    }
}
