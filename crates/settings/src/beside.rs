//! The run's other settings, which a change of one may alter: one offload switches off another, a VLAN's MTU
//! falls with that of the device below. Such changes are this run's doing, not somebody else's.

use goodput_model::SettingRef;

use crate::error::SettingError;
use crate::footprint::Footprint;
use crate::lookup::machine;
use crate::setting::Machine;

/// Settings with their values; `None` if their object does not exist.
pub(crate) type Values = Vec<(SettingRef, Option<String>)>;

/// The present values of those of `all` that a change of `setting` may alter.
pub(crate) fn values<'a>(
    all: impl Iterator<Item = &'a SettingRef>,
    changer: &dyn Machine,
    setting: &SettingRef,
) -> Values {
    let footprint = changer.footprint(setting);
    let others = all.filter(|other| *other != setting);
    let reached = others.filter(|other| reaches(&footprint, other));
    reached.filter_map(|other| Some((other.clone(), read(other)?))).collect()
}

/// Those whose values have changed.
pub(crate) fn altered(before: &Values) -> Values {
    let now = before.iter().filter_map(|(setting, _)| Some((setting.clone(), read(setting)?)));
    now.filter(|now| !before.contains(now)).collect()
}

/// The value now, or that there is no such object; `None` if it is unknown.
fn read(setting: &SettingRef) -> Option<Option<String>> {
    match machine(setting).and_then(|machine| machine.read(setting)) {
        Ok(value) => Some(Some(value)),
        Err(SettingError::Gone { .. }) => Some(None),
        Err(_) => None,
    }
}

/// Whether a change with this footprint may alter another setting.
fn reaches(footprint: &Footprint, other: &SettingRef) -> bool {
    match footprint {
        Footprint::Nothing => false,
        Footprint::Sysctls(_) => {
            let cell = machine(other).ok().and_then(|machine| machine.cell(other));
            cell.is_some_and(|cell| footprint.parameters().any(|name| name == cell))
        }
        _ => true,
    }
}
