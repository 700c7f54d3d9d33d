//! Reads and writes how a device is polled as a whole, by presets (Documentation/networking/napi.rst):
//! interrupts deferred, polling in threads, programs that poll.

use std::fmt::Write;
use std::path::PathBuf;

use goodput_model::SettingRef;
use goodput_netlink::napis::{Napi, NapiNumber, set_napi};

use super::host_file::host_file;
use super::napi::instances;
use super::{device, sysfs};
use crate::error::{SettingError, from_io, from_netlink};
use crate::footprint::Footprint;
use crate::setting::Machine;
use crate::value::bad;

/// The backend of `polling`.
pub(crate) struct Polling;

/// The parts of a preset: the names that `mixed:` prints, and where each is.
const PARTS: [(&str, Place); 5] = [
    ("defer_hard_irqs", Place::Device("napi_defer_hard_irqs")),
    ("gro_flush_timeout", Place::Device("gro_flush_timeout")),
    ("threaded", Place::Device("threaded")),
    ("busy_poll", Place::Host("/proc/sys/net/core/busy_poll")),
    ("busy_read", Place::Host("/proc/sys/net/core/busy_read")),
];

/// Where a part is.
enum Place {
    /// An attribute of the device in /sys.
    Device(&'static str),
    /// A parameter of the whole host, which only its first network namespace has (`net_core_table`,
    /// net/core/sysctl_net_core.c).
    Host(&'static str),
}

/// The presets, each with its numbers in the order of [`PARTS`]: times without packets, nanoseconds, 1 for on,
/// microseconds and microseconds.
const PRESETS: [(&str, [u64; 5]); 4] = [
    ("interrupts", [0, 0, 0, 0, 0]),
    // A timer polls every 20 us while there is traffic.
    ("deferred", [2, 20_000, 0, 0, 0]),
    ("threaded", [0, 0, 1, 0, 0]),
    // The timer only matters when no program polls (Documentation/networking/af_xdp.rst), and
    // Documentation/admin-guide/sysctl/net.rst recommends 50 us.
    ("busy", [2, 200_000, 0, 50, 50]),
];

/// Prefix of a state that matches no preset.
const MIXED: &str = "mixed:";

/// How a device is polled now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    /// In the order of [`PARTS`]; `None`: this host does not have it.
    numbers: [Option<u64>; 5],
    /// The numbers of each NAPI instance, if one differs from the device.
    instances: Vec<Instance>,
}

/// Empty polls, flush time-out, suspension and threads of a NAPI instance. `None`: not reported, which is only possible
/// for the last, by a kernel before 6.17.
type Instance = [Option<u64>; 4];

impl Machine for Polling {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        State::of(setting).map(|state| state.text())
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let wanted = State::parse(value).ok_or_else(|| not_one(setting, value))?;
        let now = State::of(setting)?;
        for (place, (_, at)) in PARTS.iter().enumerate() {
            let (is, number) = (now.numbers[place], wanted.numbers[place]);
            // A number written for the whole device also becomes each instance's.
            let anew = !now.instances.is_empty() && matches!(at, Place::Device(_));
            match (is, number) {
                (Some(_), Some(number)) if is != Some(number) || anew => {
                    #[cfg(test)]
                    crate::testing::step();
                    at.write(setting, number)?;
                }
                _ => {}
            }
        }
        wanted.write_instances(setting)
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        let Some((name, numbers)) = PRESETS.iter().find(|(name, _)| *name == value) else {
            return Err(not_one(setting, value));
        };
        let now = State::of(setting)?;
        for ((part, at), (is, wanted)) in PARTS.iter().zip(now.numbers.iter().zip(numbers)) {
            if is.is_none() && *wanted != 0 {
                let why = match at {
                    Place::Device(_) => format!("this kernel has no {part} for devices"),
                    Place::Host(_) => format!(
                        "net.core.{part} belongs to the whole host, and this network namespace can't set it"
                    ),
                };
                return Err(bad(setting, value, why));
            }
        }
        Ok((*name).into())
    }

    fn is_between(&self, now: &str, values: &[&str]) -> bool {
        let values: Option<Vec<State>> = values.iter().map(|value| State::parse(value)).collect();
        let (Some(now), Some(values)) = (State::parse(now), values) else { return false };
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

impl Place {
    /// `None`: this host does not have it.
    fn read(&self, setting: &SettingRef) -> Result<Option<u64>, SettingError> {
        match self {
            Self::Device(attribute) => match sysfs::read(setting, attribute) {
                Ok(text) => Ok(text.parse().ok()),
                Err(SettingError::Gone { .. }) => Ok(None),
                Err(error) => Err(error),
            },
            Self::Host(file) => Ok(std::fs::read_to_string(host_file(file))
                .ok()
                .and_then(|t| t.trim().parse().ok())),
        }
    }

    fn write(&self, setting: &SettingRef, number: u64) -> Result<(), SettingError> {
        match self {
            Self::Device(attribute) => sysfs::write(setting, attribute, &number.to_string()),
            Self::Host(file) => std::fs::write(host_file(file), number.to_string())
                .map_err(|e| from_io(setting, format!("change {file} to {number}"), file, e)),
        }
    }
}

impl State {
    fn of(setting: &SettingRef) -> Result<Self, SettingError> {
        device::index(&mut device::netlink(setting)?, setting)?;
        let mut state = Self::default();
        for (place, (_, at)) in PARTS.iter().enumerate() {
            state.numbers[place] = at.read(setting)?;
        }
        let each: Vec<_> = instances(setting)?.iter().filter_map(numbers_of).collect();
        let common = state.instance(0);
        let is_common = |own: &Instance| {
            own.iter().zip(&common).all(|(own, common)| own.is_none() || own == common)
        };
        state.instances = if each.iter().all(is_common) { Vec::new() } else { each };
        Ok(state)
    }

    /// The numbers of a NAPI instance.
    fn instance(&self, place: usize) -> Instance {
        let [defer, flush, threaded, ..] = self.numbers;
        let common = [defer.or(Some(0)), flush.or(Some(0)), Some(0), threaded.or(Some(0))];
        self.instances.get(place).copied().unwrap_or(common)
    }

    /// The matching preset, as far as this host has its parts; otherwise all numbers.
    fn text(&self) -> String {
        let is = |(_, numbers): &&(&str, [u64; 5])| {
            let mut pairs = self.numbers.iter().zip(numbers);
            self.instances.is_empty() && pairs.all(|(is, wanted)| is.unwrap_or(0) == *wanted)
        };
        if let Some((name, _)) = PRESETS.iter().find(is) {
            return (*name).into();
        }
        let mut text = MIXED.to_owned();
        for ((part, _), number) in PARTS.iter().zip(self.numbers) {
            if let Some(number) = number {
                let _ = write!(text, "{part}={number},");
            }
        }
        for instance in &self.instances {
            let numbers: Vec<_> = instance.iter().flatten().map(u64::to_string).collect();
            let _ = write!(text, "napi={},", numbers.join("/"));
        }
        text.trim_end_matches(',').into()
    }

    /// Parses the output of [`State::text`].
    fn parse(text: &str) -> Option<Self> {
        if let Some((_, numbers)) = PRESETS.iter().find(|(name, _)| *name == text) {
            return Some(Self { numbers: numbers.map(Some), instances: Vec::new() });
        }
        let mut state = Self::default();
        for part in text.strip_prefix(MIXED)?.split(',') {
            let (name, value) = part.split_once('=')?;
            if name == "napi" {
                state.instances.push(parse_instance(value)?);
                continue;
            }
            let place = PARTS.iter().position(|(part, _)| *part == name)?;
            state.numbers[place] = Some(value.parse().ok()?);
        }
        Some(state)
    }

    /// Gives each NAPI instance its numbers, if they differ.
    fn write_instances(&self, setting: &SettingRef) -> Result<(), SettingError> {
        const WHICH: [NapiNumber; 4] = [
            NapiNumber::DeferHardIrqs,
            NapiNumber::GroFlushTimeoutNs,
            NapiNumber::IrqSuspendTimeoutNs,
            NapiNumber::Threaded,
        ];
        for (place, napi) in instances(setting)?.iter().enumerate() {
            let Some(now) = numbers_of(napi) else { continue };
            for (which, (is, wanted)) in WHICH.iter().zip(now.iter().zip(self.instance(place))) {
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
}

/// A kernel has the first three since 6.13.
fn numbers_of(napi: &Napi) -> Option<Instance> {
    let [defer, flush] = [napi.defer_hard_irqs?, napi.gro_flush_timeout_ns?];
    Some([Some(defer), Some(flush), Some(napi.irq_suspend_timeout_ns?), napi.threaded])
}

fn parse_instance(text: &str) -> Option<Instance> {
    let numbers: Vec<u64> =
        text.split('/').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    match numbers[..] {
        [defer, flush, suspend] => Some([Some(defer), Some(flush), Some(suspend), None]),
        [defer, flush, suspend, threaded] => Some([defer, flush, suspend, threaded].map(Some)),
        _ => None,
    }
}

fn not_one(setting: &SettingRef, value: &str) -> SettingError {
    let names = PRESETS.map(|(name, _)| name).join(", ");
    bad(setting, value, format!("it must be one of {names}"))
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
    fn what_is_no_preset_says_all_its_numbers_and_is_read_again() {
        for numbers in [[Some(3), Some(0), Some(1), None, None], [Some(0); 5], [None; 5]] {
            let older = [Some(4), Some(5), Some(6), None];
            for instances in [Vec::new(), vec![[1, 2, 3, 1].map(Some), older]] {
                let state = State { numbers, instances };
                let again = State::parse(&state.text()).unwrap();
                assert_eq!(again.text(), state.text());
            }
        }
        let mixed = State { numbers: [Some(3), Some(9), Some(0), None, None], ..State::default() };
        assert_eq!(mixed.text(), "mixed:defer_hard_irqs=3,gro_flush_timeout=9,threaded=0");
        for text in [
            "",
            "mixed:",
            "mixed:x=1",
            "mixed:threaded=x",
            "mixed:napi=1/2",
            "mixed:napi=1/2/3/0/4",
        ] {
            assert!(State::parse(text).is_none(), "{text:?}");
        }
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
            assert!(before.starts_with(MIXED) && before.ends_with(last), "{before}");
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
    fn a_namespace_that_lacks_the_hosts_parameters_says_so() {
        in_scene(|_| {
            let said = Polling.normalise(&polling("eth3"), "busy").unwrap_err().to_string();
            assert!(said.contains("net.core.busy_poll belongs to the whole host"), "{said}");
        });
    }
}
