//! Reads and writes how a device is polled as a whole, by presets (Documentation/networking/napi.rst):
//! interrupts deferred, polling in threads, programs that poll.

use std::path::PathBuf;

use goodput_model::SettingRef;
use goodput_netlink::napis::{Napi, NapiNumber, set_napi};

use super::host_file::host_file;
use super::napi::instances;
use super::{device, sysfs};
use crate::error::{SettingError, from_io, from_netlink};
use crate::footprint::Footprint;
use crate::polled::{Instance, PARTS, Place, Polled};
use crate::setting::Machine;
use crate::value::bad;

/// The backend of `polling`.
pub(crate) struct Polling;

impl Machine for Polling {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        state(setting).map(|state| state.text())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let unknown = || bad(setting, value, "it is no state that goodput prints");
        let wanted = Polled::parse(value).ok_or_else(unknown)?;
        let now = state(setting)?;
        for (place, (part, at)) in PARTS.iter().enumerate() {
            let (is, number) = (now.numbers[place], wanted.numbers[place]);
            // A number written for the whole device also becomes each instance's.
            let anew = !now.instances.is_empty() && matches!(at, Place::Device(_));
            match (is, number) {
                (Some(_), Some(number)) if is != Some(number) || anew => {
                    #[cfg(test)]
                    crate::testing::step();
                    write(*at, setting, number).map_err(|error| {
                        error.in_a_change_to(value, &format!("{part}={number}"))
                    })?;
                }
                _ => {}
            }
        }
        write_instances(&wanted, setting)
            .map_err(|error| error.in_a_change_to(value, "its NAPI instances"))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let preset = Polled::preset(value, &state(setting)?);
        preset.map(|_| value.into()).map_err(|why| bad(setting, value, why))
    }

    fn is_between(&self, now: &str, values: &[&str]) -> bool {
        let values: Option<Vec<Polled>> = values.iter().map(|value| Polled::parse(value)).collect();
        let (Some(now), Some(values)) = (Polled::parse(now), values) else { return false };
        let number = |place: usize| {
            let is = now.numbers[place];
            is.is_none() || values.iter().any(|value| value.numbers[place] == is)
        };
        let instance = |(place, numbers): (usize, &Instance)| {
            numbers.iter().enumerate().all(|(which, is)| {
                is.is_none() || values.iter().any(|value| value.instance(place)[which] == *is)
            })
        };
        (0..PARTS.len()).all(number) && now.instances.iter().enumerate().all(instance)
    }

    fn footprint(&self, _: &SettingRef) -> Footprint {
        let files = PARTS.iter().filter_map(|(_, place)| match place {
            Place::Host(file) => Some(PathBuf::from(file)),
            Place::Device(_) => None,
        });
        Footprint::DeviceAnd(files.collect())
    }
}

/// `None`: this host does not have it.
fn read(place: Place, setting: &SettingRef) -> Result<Option<u64>, SettingError> {
    match place {
        Place::Device(attribute) => match sysfs::read(setting, attribute) {
            Ok(text) => Ok(text.parse().ok()),
            Err(SettingError::Gone { .. }) => Ok(None),
            Err(error) => Err(error),
        },
        Place::Host(file) => {
            Ok(std::fs::read_to_string(host_file(file)).ok().and_then(|t| t.trim().parse().ok()))
        }
    }
}

fn write(place: Place, setting: &SettingRef, number: u64) -> Result<(), SettingError> {
    match place {
        Place::Device(attribute) => sysfs::write(setting, attribute, &number.to_string()),
        Place::Host(file) => std::fs::write(host_file(file), number.to_string())
            .map_err(|e| from_io(setting, format!("change it to {number}"), file, e)),
    }
}

/// How the device is polled now.
fn state(setting: &SettingRef) -> Result<Polled, SettingError> {
    device::index(&mut device::netlink(setting)?, setting)?;
    let mut state = Polled::default();
    for (place, (_, at)) in PARTS.iter().enumerate() {
        state.numbers[place] = read(*at, setting)?;
    }
    let each: Vec<_> = instances(setting)?.iter().filter_map(numbers_of).collect();
    let common = state.instance(0);
    let is_common = |own: &Instance| {
        own.iter().zip(&common).all(|(own, common)| own.is_none() || own == common)
    };
    state.instances = if each.iter().all(is_common) { Vec::new() } else { each };
    Ok(state)
}

/// Gives each NAPI instance its numbers, if they differ.
fn write_instances(wanted: &Polled, setting: &SettingRef) -> Result<(), SettingError> {
    const WHICH: [NapiNumber; 4] = [
        NapiNumber::DeferHardIrqs,
        NapiNumber::GroFlushTimeoutNs,
        NapiNumber::IrqSuspendTimeoutNs,
        NapiNumber::Threaded,
    ];
    for (place, napi) in instances(setting)?.iter().enumerate() {
        let Some(now) = numbers_of(napi) else { continue };
        for (which, (is, wanted)) in WHICH.iter().zip(now.iter().zip(wanted.instance(place))) {
            let (Some(_), Some(number)) = (is, wanted) else { continue };
            if *is != wanted {
                set_napi(napi.id, *which, number).map_err(|e| {
                    from_netlink(setting, "change its NAPI instances", device::name(setting), e)
                })?;
            }
        }
    }
    Ok(())
}

/// A kernel has the first three since 6.13.
fn numbers_of(napi: &Napi) -> Option<Instance> {
    let [defer, flush] = [napi.defer_hard_irqs?, napi.gro_flush_timeout_ns?];
    Some([Some(defer), Some(flush), Some(napi.irq_suspend_timeout_ns?), napi.threaded])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MadeUp, Whole, guard, in_scene};
    use crate::{Changes, read};

    fn polling(device: &str) -> SettingRef {
        format!("polling@{device}").parse().unwrap()
    }

    #[test]
    fn a_change_that_was_cut_short_is_between_its_ends_and_another_ones_is_not() {
        let between = |now: &str| Polling.is_between(now, &["interrupts", "deferred"]);
        assert!(between("mixed:defer_hard_irqs=2,gro_flush_timeout=0,threaded=0"));
        assert!(between(
            "mixed:defer_hard_irqs=2,gro_flush_timeout=0,threaded=0,napi=2/0/0,napi=0/0/0"
        ));
        assert!(!between("mixed:defer_hard_irqs=7,gro_flush_timeout=0,threaded=0"));
        assert!(!between("mixed:defer_hard_irqs=2,gro_flush_timeout=0,threaded=0,napi=2/0/9"));
        assert!(between("mixed:defer_hard_irqs=2,gro_flush_timeout=0,threaded=0,napi=2/0/0/0"));
        assert!(!between("mixed:defer_hard_irqs=2,gro_flush_timeout=0,threaded=0,napi=2/0/0/1"));
    }

    #[test]
    fn every_preset_comes_about_and_each_instance_comes_back() {
        in_scene(|state_dir| {
            let setting = polling("eth3");
            let second = instances(&setting).unwrap()[1].clone();
            if numbers_of(&second).is_none() {
                return goodput_testing::skip("a kernel that sets NAPI instances");
            }
            let (second, has_threads) = (second.id, second.threaded.is_some());
            if has_threads {
                set_napi(second, NapiNumber::Threaded, 1).unwrap();
            }
            set_napi(second, NapiNumber::IrqSuspendTimeoutNs, 9_000_000).unwrap();
            set_napi(second, NapiNumber::DeferHardIrqs, 7).unwrap();
            let (before, whole) = (read(&setting).unwrap(), Whole::now());
            let last = if has_threads { "napi=7/0/9000000/1" } else { "napi=7/0/9000000" };
            assert!(before.starts_with("mixed:") && before.ends_with(last), "{before}");
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            for preset in ["deferred", "threaded", "interrupts"] {
                assert_eq!(changes.apply(&setting, preset).unwrap(), preset);
            }
            let report = changes.restore();
            assert!(report.is_clean(), "{report}");
            assert_eq!(read(&setting).unwrap(), before);
            assert_eq!(whole.differences(), [""; 0]);
        });
    }

    /// Only the first namespace has the host's parameters, so they are made up.
    #[test]
    fn busy_polling_sets_the_hosts_parameters_and_puts_them_back() {
        in_scene(|state_dir| {
            let host = MadeUp::host(&[
                ("proc/sys/net/core/busy_poll", "0\n"),
                ("proc/sys/net/core/busy_read", "7\n"),
                ("sys/class/net/eth2/napi_defer_hard_irqs", "0\n"),
                ("sys/class/net/eth2/gro_flush_timeout", "0\n"),
                ("sys/class/net/eth2/threaded", "0\n"),
            ]);
            let files = || {
                ["busy_poll", "busy_read"]
                    .map(|name| host.read(&format!("proc/sys/net/core/{name}")).trim().to_owned())
            };
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            assert_eq!(changes.apply(&polling("eth2"), "busy").unwrap(), "busy");
            assert_eq!(files(), ["50", "50"]);
            let report = changes.restore();
            assert!(report.is_clean(), "{report}");
            assert_eq!(files(), ["0", "7"]);
        });
    }

    #[test]
    fn a_part_that_fails_names_the_preset_that_was_asked_for() {
        in_scene(|_| {
            let host = MadeUp::host(&[
                ("sys/class/net/eth2/napi_defer_hard_irqs", "0\n"),
                ("sys/class/net/eth2/gro_flush_timeout", "0\n"),
            ]);
            // A number that not even root may write.
            host.link("sys/class/net/eth2/threaded", "/proc/sys/kernel/ngroups_max");
            let said = Polling.write(&polling("eth2"), "threaded").unwrap_err().to_string();
            assert!(said.contains("change it to \"threaded\" (threaded=1)"), "{said}");
        });
    }

    #[test]
    fn a_namespace_that_lacks_the_hosts_parameters_says_so() {
        in_scene(|_| {
            let said = Polling.normalise(&polling("eth3"), "busy").unwrap_err().to_string();
            assert!(said.contains("net.core.busy_poll belongs to the whole host"), "{said}");
        });
    }
}
