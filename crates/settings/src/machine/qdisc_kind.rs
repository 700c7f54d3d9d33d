//! Reads and writes the kind of a device's root queueing discipline (tc(8)), which is put back with
//! all its parameters. A change is refused if this can't be guaranteed.

use goodput_model::SettingRef;
use goodput_netlink::{Netlink, NetlinkError, Qdisc, QdiscOptions};

use super::device;
use crate::error::{SettingError, from_netlink};
use crate::setting::Machine;
use crate::value::{self, bad};

/// The backend of `qdisc.kind`.
pub(crate) struct QdiscKind;

/// Kinds that work without a parameter.
pub const SETTABLE: [&str; 11] = [
    "fq_codel",
    "fq",
    "codel",
    "cake",
    "pie",
    "sfq",
    "pfifo",
    "bfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "noqueue",
];

/// Refuses what is no kind that works without a parameter. Whether a kernel has it is another question.
///
/// # Errors
/// With all such kinds.
pub fn check_kind(setting: &SettingRef, value: &str) -> Result<(), SettingError> {
    if value == value::DEFAULT || SETTABLE.contains(&value) {
        return Ok(());
    }
    let kinds = SETTABLE.join(", ");
    let why = format!("it must be default, or one of these if the kernel has it: {kinds}");
    Err(bad(setting, value, why))
}

/// Kinds without classes whose dump contains everything needed to create them, in the same form: `*_dump`
/// and `*_init` of net/sched/sch_*.c.
const RESTORABLE: [&str; 10] = [
    "fq_codel",
    "fq",
    "codel",
    "pie",
    "pfifo",
    "bfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "noqueue",
    "tbf",
];

/// Kinds with a parameter that can't be changed later: `TCA_FQ_CODEL_FLOWS` in
/// `fq_codel_change`, net/sched/sch_fq_codel.c.
const FIXED_AT_CREATION: [&str; 1] = ["fq_codel"];

/// Separates the parts of a captured value.
const PART: char = ':';
/// Discipline that the kernel gives a new device (sysctl net.core.default_qdisc).
const DEFAULT_KIND: &str = "/proc/sys/net/core/default_qdisc";

impl Machine for QdiscKind {
    fn read(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let root = Device::of(setting)?.root(setting)?;
        Ok(if root.is_default() { value::DEFAULT.into() } else { root.kind })
    }

    fn write(&self, setting: &SettingRef, value: &str) -> Result<(), SettingError> {
        let mut device = Device::of(setting)?;
        let wanted = match value.split_once(PART) {
            Some((value::DEFAULT, _)) => None,
            Some((kind, saved)) => Some(restored(device.index, kind, saved)),
            None if value == value::DEFAULT => None,
            None => Some(Qdisc::root(device.index, value, QdiscOptions::Other(Vec::new()))),
        };
        let root = device.root(setting)?;
        let written = match wanted {
            Some(qdisc) => device.replace(&root, &qdisc),
            None if root.is_default() => Ok(()),
            None => device.netlink.delete_qdisc(&root),
        };
        written.map_err(|e| failed(setting, value, e))
    }

    fn normalise(&self, setting: &SettingRef, value: &str) -> Result<String, SettingError> {
        check_kind(setting, value)?;
        Ok(value.into())
    }

    fn comes_back(&self, setting: &SettingRef) -> Result<(), SettingError> {
        let mut device = Device::of(setting)?;
        let root = device.root(setting)?;
        match device.objection(setting, &root)? {
            Some(why) => Err(SettingError::Irreversible { setting: setting.clone(), why }),
            None => Ok(()),
        }
    }

    /// `default:KIND`, or `KIND:HANDLE:PARAMETERS`, both numbers in hexadecimal.
    fn capture(&self, setting: &SettingRef) -> Result<String, SettingError> {
        let root = Device::of(setting)?.root(setting)?;
        if root.is_default() {
            return Ok(format!("{}{PART}{}", value::DEFAULT, root.kind));
        }
        let parameters: String =
            root.options.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{}{PART}{:x}{PART}{parameters}", root.kind, root.handle))
    }
}

/// The qdisc saved as `HANDLE:PARAMETERS`. We printed both.
fn restored(index: u32, kind: &str, saved: &str) -> Qdisc {
    let (handle, parameters) = saved.split_once(PART).unwrap_or((saved, ""));
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap_or_default(), 16).ok();
    let bytes: Vec<_> = parameters.as_bytes().chunks(2).filter_map(byte).collect();
    let handle = u32::from_str_radix(handle, 16).unwrap_or(0);
    Qdisc { handle, ..Qdisc::root(index, kind, QdiscOptions::to_read_back(kind, &bytes)) }
}

fn failed(setting: &SettingRef, value: &str, error: NetlinkError) -> SettingError {
    let what = format!("queueing discipline {value} in this kernel");
    from_netlink(setting, format!("change it to {value:?}"), &what, error)
}

struct Device {
    netlink: Netlink,
    index: u32,
}

impl Device {
    fn of(setting: &SettingRef) -> Result<Self, SettingError> {
        let mut netlink = device::netlink(setting)?;
        let index = device::index(&mut netlink, setting)?;
        Ok(Self { netlink, index })
    }

    fn all(&mut self, setting: &SettingRef) -> Result<Vec<Qdisc>, SettingError> {
        self.netlink
            .qdiscs(self.index)
            .map_err(|e| from_netlink(setting, "read its qdiscs", device::name(setting), e))
    }

    fn root(&mut self, setting: &SettingRef) -> Result<Qdisc, SettingError> {
        let found = self.all(setting)?.into_iter().find(Qdisc::is_root);
        found.ok_or_else(|| SettingError::Gone {
            setting: setting.clone(),
            what: format!(
                "root queueing discipline on {}; is the device up?",
                device::name(setting)
            ),
        })
    }

    /// Replaces `root` with `qdisc`.
    fn replace(&mut self, root: &Qdisc, qdisc: &Qdisc) -> Result<(), NetlinkError> {
        let is_restored = !qdisc.options.to_bytes().is_empty();
        let keeps = root.kind == qdisc.kind && FIXED_AT_CREATION.contains(&qdisc.kind.as_str());
        if keeps && is_restored && !root.is_default() {
            self.netlink.delete_qdisc(root)?;
        }
        self.netlink.replace_qdisc(qdisc)
    }

    /// Why `root` would not come back as it is, if so.
    fn objection(
        &mut self,
        setting: &SettingRef,
        root: &Qdisc,
    ) -> Result<Option<&'static str>, SettingError> {
        let own = |qdisc: &Qdisc| !qdisc.is_root() && !qdisc.is_default() && !qdisc.is_hook();
        if self.all(setting)?.iter().any(own) {
            return Ok(Some(
                "manually added queueing disciplines hang below the root one and would be lost",
            ));
        }
        if root.is_default() {
            return Ok(changed_default(&root.kind));
        }
        if !RESTORABLE.contains(&root.kind.as_str()) {
            return Ok(Some(
                "the device's own one has classes, or parameters that can't be read back; change \
                 its parameters instead, or remove it first",
            ));
        }
        let ties = self.netlink.has_ties(root);
        let ties = ties.map_err(|e| from_netlink(setting, "read its filters", "qdisc", e))?;
        Ok(ties.then_some("filters or a size table of the device's own one would be lost"))
    }
}

/// Deleting our qdisc brings the default of that time, which may differ from the present one. Within a network
/// namespace the parameter can't be seen; then the result is compared afterwards.
fn changed_default(kind: &str) -> Option<&'static str> {
    let default = std::fs::read_to_string(DEFAULT_KIND).ok()?;
    let by_device = ["noqueue", "mq"].contains(&kind);
    (!by_device && kind != default.trim()).then_some(
        "net.core.default_qdisc has changed since the device got its qdisc, so that qdisc would not come back",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{guard, in_scene};
    use crate::{Changes, read};
    use goodput_netlink::Tbf;

    fn kind(device: &str) -> SettingRef {
        format!("qdisc.kind@{device}").parse().unwrap()
    }

    fn root(device: &str) -> Qdisc {
        let setting = kind(device);
        Device::of(&setting).unwrap().root(&setting).unwrap()
    }

    #[test]
    fn a_root_comes_back_with_its_handle_and_all_parameters() {
        in_scene(|state_dir| {
            let setting = kind("eth0");
            let mut device = Device::of(&setting).unwrap();
            let mut tbf = Tbf::new(125_000_000, 10_007, 100_000);
            (tbf.peak_rate_bytes_per_s, tbf.mtu_bytes) = (Some(250_000_000), Some(3000));
            for (handle, kind, options) in [
                (0x77_0000, "tbf", QdiscOptions::Tbf(tbf)),
                (0x78_0000, "pfifo", QdiscOptions::Pfifo { limit_packets: 33 }),
                (0x79_0000, "noqueue", QdiscOptions::Other(Vec::new())),
            ] {
                let qdisc = Qdisc { handle, ..Qdisc::root(device.index, kind, options) };
                device.netlink.replace_qdisc(&qdisc).unwrap();
                let before = root("eth0");
                let mut changes = Changes::begin(state_dir, guard()).unwrap();
                for value in ["pfifo_fast", "default", "pfifo_head_drop"] {
                    changes.apply(&setting, value).unwrap();
                    assert_eq!(read(&setting).unwrap(), value);
                }
                let report = changes.restore();
                assert!(report.is_clean(), "{report}");
                let after = Qdisc { stats: before.stats, ..root("eth0") };
                assert_eq!((after.handle, &after), (handle, &before));
            }
        });
    }

    #[test]
    fn what_would_not_come_back_is_refused_in_words() {
        in_scene(|state_dir| {
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            let said = changes.apply(&kind("eth1"), "pfifo").unwrap_err().to_string();
            assert!(said.contains("has classes"), "{said}");
            // A queue of one's own below a token bucket.
            let mut device = Device::of(&kind("eth0")).unwrap();
            let parent = root("eth0").handle | 1;
            let child =
                Qdisc::root(device.index, "pfifo", QdiscOptions::Pfifo { limit_packets: 5 });
            device.netlink.replace_qdisc(&Qdisc { parent, ..child }).unwrap();
            let said = changes.apply(&kind("eth0"), "pfifo").unwrap_err().to_string();
            assert!(said.contains("hang below"), "{said}");
            assert_eq!(root("eth0").kind, "tbf");
        });
    }

    #[test]
    fn a_kind_that_the_kernel_lacks_is_reported_as_such() {
        let error = NetlinkError::Refused {
            operation: "set qdisc".into(),
            cause: std::io::Error::from_raw_os_error(libc::ENOENT),
            explanation: Some("Specified qdisc kind is unknown".into()),
        };
        let said = failed(&kind("eth0"), "cake", error).to_string();
        assert!(said.contains("no queueing discipline cake in this kernel"), "{said}");
    }
}
