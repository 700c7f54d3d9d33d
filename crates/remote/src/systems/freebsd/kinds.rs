//! The kinds of settings on FreeBSD: how each is read, written and put back.

use goodput_model::{Permanent, SettingRef};
use goodput_settings::{SettingError, freebsd};

use super::ifconfig::interface;
use super::switches::{self, POLLING, SWITCHES, Switch};
use super::text::{number, read};
use super::{mibs, polling, sysctl};
use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::shell::Shell;
use crate::system::Listed;

/// Smallest and largest MTU of an interface, bytes (`IF_MINMTU`, `IF_MAXMTU`, sys/net/if.h).
const MTU_BYTES: std::ops::RangeInclusive<u64> = 72..=65_535;

/// Names the default congestion control (mod_cc(4)).
const CONGESTION: &str = "net.inet.tcp.cc.algorithm";

/// Longest name of an interface: `IFNAMSIZ` less the final zero byte (sys/net/if.h).
const DEVICE_NAME_MAX: usize = 15;

/// The reason given for a parameter that only other versions have.
const NO_SUCH_PARAMETER: &str = "its kernel has no such parameter";

/// Prints whether an interface has a flag among its options: `on` or `off`, or nothing if the interface does
/// not exist.
const HAS_FLAG: &str = "s=$(ifconfig \"$1\") && if printf '%s\\n' \"$s\" | \
    grep \"^[[:blank:]]options=[0-9a-f]*<\\(.*,\\)\\{0,1\\}$2[,>]\" >/dev/null; then echo on; else echo off; fi";

/// One kind, with its object.
pub(super) enum Kind<'a> {
    /// A capability of an interface.
    Switch(&'static Switch, &'a str),
    /// The MTU of an interface.
    Mtu(&'a str),
    /// A kernel parameter.
    Parameter(&'a str),
}

impl<'a> Kind<'a> {
    /// The kind of a setting. `host` is for the message.
    pub(super) fn of(host: &str, setting: &'a SettingRef) -> Result<Self, RemoteError> {
        let no = |why: String| no_such(host, setting, why);
        let scope = setting.scope.as_deref();
        if let Some(oid) = setting.name.strip_prefix("sysctl.") {
            return match scope {
                Some(_) => Err(no("it applies to the whole host; leave out the @".into())),
                None if sysctl::is_name(oid) => Ok(Self::Parameter(oid)),
                None => Err(no("it is no name of a parameter".into())),
            };
        }
        let switch = switches::find(&setting.name);
        if switch.is_none() && setting.name != "link.mtu" {
            let names: Vec<_> = SWITCHES.iter().map(|switch| switch.setting).collect();
            let names = names.join(", ");
            return Err(no(format!("FreeBSD has sysctl.NAME, link.mtu and {names}")));
        }
        let device = scope
            .ok_or_else(|| no(format!("which interface? write it like {}@em0", setting.name)))?;
        if !is_device(device) {
            return Err(no("its interface is no plain name".into()));
        }
        Ok(switch.map_or(Self::Mtu(device), |switch| Self::Switch(switch, device)))
    }

    /// The value now.
    pub(super) fn read(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<String, RemoteError> {
        match self {
            Self::Switch(switch, device) => {
                let interface = interface(shell, device)?;
                if !interface.possible.contains(switch.flag) {
                    return Err(impossible(shell, setting, switch, device));
                }
                Ok(on_off(interface.enabled.contains(switch.flag)).into())
            }
            Self::Mtu(device) => Ok(interface(shell, device)?.mtu.to_string()),
            Self::Parameter(oid) => parameter(shell, setting, oid),
        }
    }

    /// What `value` reads back as; refuses an invalid value.
    pub(super) fn normalise(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<String, RemoteError> {
        let bad = |why: String| bad_value(setting, value, why);
        if let Self::Parameter(oid) = self
            && let Some(why) = sysctl::refusal(oid)
        {
            return Err(no_such(shell.host(), setting, why));
        }
        let now = self.read(shell, setting)?;
        match self {
            Self::Switch(..) if matches!(value, "on" | "off") => Ok(value.into()),
            Self::Switch(..) => Err(bad("it must be on or off".into())),
            Self::Mtu(_) => match number(value).filter(|mtu| MTU_BYTES.contains(mtu)) {
                Some(mtu) => Ok(mtu.to_string()),
                None => Err(bad("it must be a whole number from 72 to 65535".into())),
            },
            Self::Parameter(oid) => {
                refuse_read_only(shell, setting, oid)?;
                let value = sysctl::normalise(&now, value).map_err(bad)?;
                if *oid == CONGESTION {
                    is_available(shell, &value)?.map_err(bad)?;
                }
                if let Some(limits) = mibs::find(oid).and_then(|mib| mib.settable) {
                    polling::check_limits(shell, limits, &value)?.map_err(bad)?;
                }
                Ok(value)
            }
        }
    }

    /// The command that makes `value` effective.
    pub(super) fn write(&self, value: &str) -> Command {
        match self {
            Self::Switch(switch, device) => {
                let sign = if value == "on" { "" } else { "-" };
                Command::new("ifconfig", [*device, &format!("{sign}{}", switch.word)])
            }
            Self::Mtu(device) => Command::new("ifconfig", [*device, "mtu", value]),
            Self::Parameter(oid) => Command::new("sysctl", [format!("{oid}={value}")]),
        }
    }

    /// The line that keeps `value`: rc.conf(5), sysctl.conf(5).
    pub(super) fn permanent(&self, value: &str) -> Permanent {
        match self {
            Self::Switch(switch, device) => {
                let sign = if value == "on" { "" } else { "-" };
                freebsd::interface_option(device, &format!("{sign}{}", switch.word))
            }
            Self::Mtu(device) => freebsd::interface_option(device, &format!("mtu {value}")),
            Self::Parameter(oid) => freebsd::sysctl_conf(oid, value),
        }
    }

    /// The condition that shows whether `value` is in effect.
    pub(super) fn holds(&self, value: &str) -> Condition {
        match self {
            Self::Switch(switch, device) => Condition::line(
                Command::script(format!("look at {device}"), HAS_FLAG, [*device, switch.flag]),
                value,
            ),
            Self::Mtu(device) => {
                let begin = Condition::literal(&format!("{device}: flags="));
                let end = Condition::literal(&format!(" mtu {value}"));
                Condition::line(Command::new("ifconfig", [*device]), format!("{begin}.*{end}"))
            }
            Self::Parameter(oid) => {
                Condition::line(Command::new("sysctl", ["-n", oid]), Condition::literal(value))
            }
        }
    }

    /// Why its object no longer exists, if so.
    pub(super) fn gone(&self, shell: &mut dyn Shell) -> Result<Option<String>, RemoteError> {
        match self {
            Self::Switch(_, device) | Self::Mtu(device) => {
                let names = shell.output(&Command::new("ifconfig", ["-l"]))?;
                let is_there = names.split_whitespace().any(|name| name == *device);
                Ok((!is_there).then(|| format!("the interface {device} is gone")))
            }
            Self::Parameter(oid) => {
                let is_there = shell.run(&Command::new("sysctl", ["-N", oid]))?.status == 0;
                Ok((!is_there).then(|| format!("the parameter {oid} is gone")))
            }
        }
    }

    /// What changes along with it.
    pub(super) fn coupled(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<Vec<SettingRef>, RemoteError> {
        let named = |name: String| SettingRef { name, ..setting.clone() };
        match self {
            Self::Switch(switch, device) => {
                let possible = interface(shell, device)?.possible;
                let flags = switch.drags.iter().filter(|flag| possible.contains(**flag));
                let dragged = flags.filter_map(|flag| switches::of_flag(flag));
                Ok(dragged.map(|other| named(other.setting.into())).collect())
            }
            Self::Mtu(_) => Ok(Vec::new()),
            Self::Parameter(oid) => {
                let dragged = mibs::find(oid).map_or(&[][..], |mib| mib.drags);
                Ok(dragged
                    .iter()
                    .map(|mib| named(format!("sysctl.{}.{mib}", mibs::NODE)))
                    .collect())
            }
        }
    }
}

/// What the driver's refusal of an MTU means: ifconfig(8) prints no range (`SIOCSIFMTU`, sys/net/if.c, and the driver's
/// ioctl).
pub(super) fn explained(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    value: &str,
    refusal: RemoteError,
) -> RemoteError {
    let RemoteError::Failed { host, said, .. } = &refusal else { return refusal };
    let Ok(kind) = Kind::of(host, setting) else { return refusal };
    let Kind::Mtu(device) = kind else { return refusal };
    if !said.contains("Invalid argument") {
        return refusal;
    }
    let left = match Kind::Mtu(device).read(shell, setting) {
        Ok(now) => format!("{device} still has an MTU of {now}"),
        Err(_) => format!("the MTU of {device} could not be read again"),
    };
    let driver = device.trim_end_matches(|c: char| c.is_ascii_digit());
    let cause = format!(
        "the driver of {device} does not take packets of this size ({said}), and ifconfig does not show which it takes: \
         see man 4 {driver} on {host}. {left}"
    );
    let operation = format!("change it to {value:?}");
    SettingError::Refused { operation, setting: setting.clone(), cause: cause.into() }.into()
}

/// Reports that the interface of a setting is missing, if that is why something failed.
pub(super) fn without_interface(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    error: RemoteError,
) -> RemoteError {
    let device = match Kind::of(shell.host(), setting) {
        Ok(Kind::Switch(_, device) | Kind::Mtu(device)) => device,
        _ => return error,
    };
    if matches!(error, RemoteError::Lost { .. }) {
        return error;
    }
    match shell.output(&Command::new("ifconfig", ["-l"])) {
        Ok(names) if names.split_whitespace().all(|name| name != device) => {
            let names = names.split_whitespace().map(str::to_owned);
            RemoteError::no_device(shell.host(), setting, device, names)
        }
        _ => error,
    }
}

/// The settings that can be changed on one interface.
pub(super) fn of_interface(
    shell: &mut dyn Shell,
    device: &str,
) -> Result<Vec<Listed>, RemoteError> {
    let interface = interface(shell, device)?;
    let row = |setting: &str, value: String, meaning: &str| Listed {
        setting: format!("{setting}@{device}"),
        value,
        meaning: meaning.into(),
    };
    let possible = SWITCHES.iter().filter(|switch| interface.possible.contains(switch.flag));
    let switches = possible.map(|switch| {
        let value = on_off(interface.enabled.contains(switch.flag)).into();
        row(switch.setting, value, switch.meaning)
    });
    let mtu = row("link.mtu", interface.mtu.to_string(), "largest IP packet, bytes");
    Ok(switches.chain([mtu]).collect())
}

/// The parameters of polling, including read-only ones, and the writable parameters of TCP.
pub(super) fn parameters(shell: &mut dyn Shell) -> Result<Vec<Listed>, RemoteError> {
    let polling = group(shell, &["-e"], mibs::NODE)?;
    let mut listed: Vec<Listed> = polling
        .iter()
        .filter_map(|(oid, value)| {
            let mib = mibs::find(oid)?;
            let meaning = match mib.settable {
                Some(values) => format!("{} ({values})", mib.meaning),
                None => format!("{} (read only)", mib.meaning),
            };
            Some(Listed { setting: format!("sysctl.{oid}"), value: value.clone(), meaning })
        })
        .collect();
    for node in ["net.inet.tcp", "kern.ipc"] {
        // sysctl before -W can't report which are writable.
        let writable = group(shell, &["-W", "-e"], node)?;
        let texts = shell.run(&Command::new("sysctl", ["-d", node]))?.stdout;
        let texts = sysctl::descriptions(&texts);
        let of_tcp = writable.iter().filter(|(oid, _)| {
            sysctl::refusal(oid).is_none() && (node != "kern.ipc" || oid == "kern.ipc.maxsockbuf")
        });
        listed.extend(of_tcp.map(|(oid, value)| Listed {
            setting: format!("sysctl.{oid}"),
            value: value.clone(),
            meaning: texts.get(&**oid).copied().unwrap_or_default().into(),
        }));
    }
    Ok(listed)
}

/// The parameters below a node; none if the node does not exist or sysctl has no such option.
fn group(
    shell: &mut dyn Shell,
    options: &[&str],
    node: &str,
) -> Result<Vec<(String, String)>, RemoteError> {
    let command = Command::new("sysctl", options.iter().copied().chain([node]));
    if shell.run(&command)?.status != 0 {
        return Ok(Vec::new());
    }
    read(shell, &command, |text| sysctl::values_below(node, text))
}

fn parameter(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    oid: &str,
) -> Result<String, RemoteError> {
    let command = Command::new("sysctl", ["-e", oid]);
    let output = shell.run(&command)?;
    if output.status != 0 && output.stderr.contains("unknown oid") {
        let why = match mibs::find(oid) {
            Some(_) if !polling::has_kernel_support(shell)? => polling::NO_KERNEL_SUPPORT,
            // Newer kernels have no switch for all interfaces together.
            Some(_) => sysctl::refusal(oid).unwrap_or(NO_SUCH_PARAMETER),
            None => NO_SUCH_PARAMETER,
        };
        return Err(no_such(shell.host(), setting, why));
    }
    match mibs::find(oid) {
        Some(_) => read(shell, &command, |text| sysctl::count(oid, text)).map(|n| n.to_string()),
        None => read(shell, &command, |text| sysctl::value(oid, text)),
    }
}

/// Refuses parameters that the kernel would not write. Polling's parameters are known in advance; sysctl before -W
/// can't report the others, and then the kernel refuses later.
fn refuse_read_only(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    oid: &str,
) -> Result<(), RemoteError> {
    let is_read_only = match mibs::find(oid) {
        Some(mib) => mib.settable.is_none(),
        None => {
            let output = shell.run(&Command::new("sysctl", ["-W", "-N", oid]))?;
            output.status == 0 && output.stdout.trim() != oid
        }
    };
    match is_read_only {
        true => Err(no_such(shell.host(), setting, "it can only be read")),
        false => Ok(()),
    }
}

/// Refuses a congestion control whose module is not loaded (mod_cc(4)). The list is a table of names with their users,
/// or before release 12 a comma-separated list.
fn is_available(shell: &mut dyn Shell, name: &str) -> Result<Result<(), String>, RemoteError> {
    let list = shell.output(&Command::new("sysctl", ["-n", "net.inet.tcp.cc.available"]))?;
    let mut names = list.split(|c: char| c.is_whitespace() || c == ',');
    Ok(match names.any(|known| known == name) {
        true => Ok(()),
        false => Err(format!(
            "its kernel has not loaded it; `kldload cc_{name}` does, `sysctl net.inet.tcp.cc.available` lists what is there"
        )),
    })
}

/// Why an interface has no such capability. For polling, either the kernel or the driver is the reason.
fn impossible(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    switch: &Switch,
    device: &str,
) -> RemoteError {
    let why = match switch.setting {
        POLLING => match polling::lacks(shell, device) {
            Ok(why) => why,
            Err(error) => return error,
        },
        _ => format!("the driver of {device} has no {}", switch.flag),
    };
    no_such(shell.host(), setting, why)
}

fn no_such(host: &str, setting: &SettingRef, why: impl Into<String>) -> RemoteError {
    RemoteError::NoSuchSetting { host: host.into(), setting: setting.to_string(), why: why.into() }
}

fn bad_value(setting: &SettingRef, value: &str, why: String) -> RemoteError {
    SettingError::BadValue { setting: setting.clone(), value: value.into(), why }.into()
}

/// Whether it can be the name of an interface.
pub(super) fn is_device(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_');
    !name.is_empty() && name.len() <= DEVICE_NAME_MAX && name.bytes().all(plain)
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
