//! Linux: sysctl(8), ip(8), tc(8), ethtool(8) and files of /sys, one file per family and one row per setting.

mod congestion;
mod counters;
mod ethtool;
mod facts;
mod files;
mod governor;
mod link;
mod parameters;
mod polled;
mod processes;
mod qdisc;
mod queues;
mod routes;
mod row;
mod saving;
mod shaper;
mod sharing;
mod sysctl;
mod sysctl_range;
mod token_bucket;

use std::net::IpAddr;

use goodput_model::{EndName, SettingRef, Snapshot};
use goodput_settings::Assignment;

use crate::awaited::Whose;
use crate::command::{Command, Condition};
use crate::counters::Counters;
use crate::error::RemoteError;
use crate::keeper::Keeper;
use crate::shell::Shell;
use crate::system::{Listed, Process, System, Watch};
use row::{At, NO_DISCIPLINE, Row, refused};

/// The operating system.
pub(super) struct Linux;

/// The setting that makes the discipline at a device's root.
const KIND: &str = "qdisc.kind";

/// How the settings of a token bucket begin.
const BUCKET: &str = "qdisc.tbf.";

/// Every setting that has a faithful command; `sysctl.…` is the last.
fn rows() -> impl Iterator<Item = (&'static str, &'static dyn Row)> {
    let device = ethtool::ROWS.iter().map(|row| (row.id, row as &dyn Row));
    let links = link::ROWS.iter().map(|row| (row.id, row as &dyn Row));
    let routes = routes::ROWS.iter().map(|row| (row.id, row as &dyn Row));
    let host = governor::ROWS.iter().map(|row| (row.id, row as &dyn Row));
    let files = files::ROWS.iter().map(|row| (row.id, row as &dyn Row));
    let alone: [(&str, &dyn Row); 2] = [(KIND, &qdisc::RootKind), (polled::ID, &polled::Polling)];
    device.chain(links).chain(files).chain(alone).chain(disciplines()).chain(routes).chain(host)
}

/// What a discipline of this kind has.
fn of_kind(kind: &str) -> Vec<(&'static str, &'static dyn Row)> {
    let buckets = token_bucket::ROWS.iter().filter(|_| kind == "tbf");
    let buckets = buckets.map(|row| (row.id, row as &dyn Row));
    let parameters = parameters::ROWS.iter().filter(|row| row.is_of(kind));
    buckets.chain(parameters.map(|row| (row.id, row as &dyn Row))).collect()
}

/// What belongs to the discipline that is at a device's root now.
fn disciplines() -> impl Iterator<Item = (&'static str, &'static dyn Row)> {
    let buckets = token_bucket::ROWS.iter().map(|row| (row.id, row as &dyn Row));
    buckets.chain(parameters::ROWS.iter().map(|row| (row.id, row as &dyn Row)))
}

fn row(shell: &dyn Shell, setting: &SettingRef) -> Result<&'static dyn Row, RemoteError> {
    if setting.name.starts_with("sysctl.") {
        return Ok(&sysctl::Parameter);
    }
    let found = rows().find(|(id, _)| *id == setting.name).map(|(_, row)| row);
    let found = found.or_else(|| ethtool::feature(&setting.name).map(|row| row as &dyn Row));
    let found = found.or(match &*setting.name {
        qdisc::ATTACHED => Some(&qdisc::Attached as &dyn Row),
        queues::SPREADING => Some(&queues::Spreading),
        _ => None,
    });
    found.ok_or_else(|| {
        let why = match &*setting.name {
            "napi.irq_suspend_timeout" => {
                "no common program prints it; run goodput on that host to change it"
            }
            name if name.starts_with("qdisc.htb.") => {
                "tc changes all rates and bursts of a class at once, and prints rates of 1 Mbit/s and more cut to whole \
                 kilobits, so they would not come back exactly; run goodput on that host to change it"
            }
            name => match goodput_settings::find(name) {
                Err(_) => "there is no such setting; `goodput settings list --on` with this host lists all",
                Ok(known) if known.is_plan() => "it belongs to a measurement, not to a host",
                Ok(_) => "no common command prints exactly what it is; run goodput on that host to change it",
            },
        };
        refused(shell.host(), setting, why)
    })
}

/// What the kernel may change of a device: everything that can be read.
fn of_device(shell: &mut dyn Shell, device: &str) -> Result<Vec<SettingRef>, RemoteError> {
    let rows = rows().filter(|(id, row)| row.is_drawn() && !ethtool::is_whole(id));
    let rows = rows.map(|(id, _)| id.to_owned());
    let features = ethtool::features(shell, device)?;
    let all = rows.chain(features).map(|name| near(&name, Some(device)));
    Ok(all.chain([ipv6_mtu(device)]).collect())
}

/// Why the discipline of a parameter is gone, if so.
fn discipline_gone(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    device: &str,
) -> Result<Option<String>, RemoteError> {
    let Some((_, row)) = disciplines().find(|(id, _)| *id == setting.name) else { return Ok(None) };
    let read = row.read_of_discipline(&At { shell: &mut *shell, setting });
    let Some(read) = read else { return Ok(None) };
    let is_gone = shell.run(&read)?.status == NO_DISCIPLINE;
    let what = match setting.name.starts_with(BUCKET) {
        true => "token bucket",
        // As in qdisc.fq.limit.
        false => setting.name.split('.').nth(1).unwrap_or_default(),
    };
    Ok(is_gone.then(|| format!("the {what} of {device} is gone")))
}

fn ipv6_mtu(device: &str) -> SettingRef {
    near(&format!("sysctl.net/ipv6/conf/{device}/mtu"), None)
}

impl Watch for Linux {
    fn counters(
        &self,
        shell: &mut dyn Shell,
        device: Option<&str>,
    ) -> Result<Counters, RemoteError> {
        counters::counters(shell, device)
    }

    fn shaper(&self, shell: &mut dyn Shell, towards: IpAddr) -> Result<Snapshot, RemoteError> {
        shaper::shaper(shell, towards)
    }

    fn facts(
        &self,
        shell: &mut dyn Shell,
        towards: Option<IpAddr>,
    ) -> Result<Snapshot, RemoteError> {
        facts::facts(shell, towards)
    }
}

impl System for Linux {
    fn name(&self) -> &'static str {
        "Linux"
    }

    fn list(&self, shell: &mut dyn Shell) -> Result<Vec<Listed>, RemoteError> {
        let devices = link::names(shell)?;
        let mut listed = Vec::new();
        let mut add = |shell: &mut dyn Shell, name: &str, scope: Option<&str>, row: &dyn Row| {
            let setting = near(name, scope);
            match row.read(&mut At { shell, setting: &setting }) {
                Ok(value) => {
                    let meaning = row.meaning(&setting);
                    listed.push(Listed { setting: setting.to_string(), value, meaning });
                    Ok(())
                }
                Err(error @ RemoteError::Lost { .. }) => Err(error),
                // The driver does not have it.
                Err(_) => Ok(()),
            }
        };
        for device in &devices {
            for (name, row) in rows().filter(|(_, row)| row.of_device()) {
                add(shell, name, Some(device), row)?;
            }
            add(shell, KIND, Some(device), &qdisc::RootKind)?;
            let setting = near(KIND, Some(device));
            let root = qdisc::root(&mut At { shell: &mut *shell, setting: &setting });
            for (name, row) in root.map(|(kind, ..)| of_kind(&kind)).unwrap_or_default() {
                add(shell, name, Some(device), row)?;
            }
        }
        for row in &governor::ROWS {
            add(shell, row.id, None, row)?;
        }
        for name in sysctl::LISTED {
            add(shell, name, None, &sysctl::Parameter)?;
        }
        Ok(listed)
    }

    fn read(&self, shell: &mut dyn Shell, setting: &SettingRef) -> Result<String, RemoteError> {
        let read = row(shell, setting)?.read(&mut At { shell: &mut *shell, setting });
        read.map_err(|error| link::explained(shell, setting, error))
    }

    fn normalise(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<String, RemoteError> {
        let normal = row(shell, setting)?.normalise(&mut At { shell: &mut *shell, setting }, value);
        normal.map_err(|error| link::explained(shell, setting, error))
    }

    fn write(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Vec<Command>, RemoteError> {
        row(shell, setting)?.write(&mut At { shell, setting }, value)
    }

    fn holds(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Condition, RemoteError> {
        row(shell, setting)?.holds(&mut At { shell, setting }, value)
    }

    fn check_new(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
        earlier: &[Assignment],
    ) -> Result<(), RemoteError> {
        row(shell, setting)?.check_new(&mut At { shell, setting }, value, earlier)
    }

    fn comes_back(&self, shell: &mut dyn Shell, setting: &SettingRef) -> Result<(), RemoteError> {
        row(shell, setting)?.comes_back(&mut At { shell, setting })
    }

    fn starts_anew(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<bool, RemoteError> {
        Ok(row(shell, setting)?.starts_anew())
    }

    fn explained(
        &self,
        _shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
        refusal: RemoteError,
    ) -> RemoteError {
        files::explained(setting, value, refusal)
    }

    /// A device's setting notes everything that can be read of the device and of dependent devices; a parameter notes
    /// its known couplings.
    fn coupled(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<Vec<SettingRef>, RemoteError> {
        let mut shared = sharing::sharing(shell, setting)?;
        if setting.name.starts_with("sysctl.") {
            shared.extend(sysctl::coupled(setting)?);
            return Ok(shared);
        }
        let device = setting.scope.as_deref().unwrap_or_default();
        if setting.name == KIND {
            return Ok(vec![near(qdisc::ATTACHED, Some(device))]);
        }
        if setting.name.starts_with(BUCKET) {
            return Ok(token_bucket::coupled(setting));
        }
        if !row(shell, setting)?.draws() {
            shared.extend(governor::coupled(setting));
            return Ok(shared);
        }
        let mut all = of_device(shell, device)?;
        for other in link::related(shell, device)? {
            all.extend(of_device(shell, &other)?);
        }
        all.retain(|other| other != setting);
        Ok(all)
    }

    fn half_way(&self, setting: &SettingRef, one: &str, other: &str) -> Vec<String> {
        let known = rows().find(|(id, _)| *id == setting.name);
        known.map(|(_, row)| row.half_way(one, other)).unwrap_or_default()
    }

    fn made_by(&self, setting: &SettingRef) -> Option<SettingRef> {
        let is_parameter = disciplines().any(|(id, _)| id == setting.name);
        is_parameter.then(|| near(KIND, setting.scope.as_deref()))
    }

    fn gone(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<Option<String>, RemoteError> {
        let gone = |what: &str| Some(format!("{what} is gone"));
        if setting.name.starts_with("sysctl.") {
            let is_there = shell.run(&sysctl::is_there(setting)?)?.status == 0;
            return Ok(if is_there { None } else { gone("the parameter") });
        }
        match &setting.scope {
            Some(_) if setting.name.starts_with("route.") => {
                let is_there = routes::is_there(shell, setting)?;
                Ok(if is_there { None } else { gone("the route") })
            }
            Some(device) => Ok(match link::gone(shell, device)? {
                None => discipline_gone(shell, setting, device)?,
                gone => gone,
            }),
            None => Ok(None),
        }
    }

    fn may_cut(&self, setting: &SettingRef) -> bool {
        goodput_settings::may_cut(setting)
    }

    fn identity(&self) -> Vec<Command> {
        vec![
            Command::new("cat", ["/proc/sys/kernel/random/boot_id"]),
            Command::new("readlink", ["/proc/self/ns/net"]),
        ]
    }

    /// Users see their own processes in any case, those of others perhaps not (proc(5), `hidepid`), and none outside their
    /// process namespace.
    fn viewpoint(&self) -> Command {
        const WHO: &str = "id -ru; readlink /proc/self/ns/pid; readlink /proc/self/ns/user; :";
        Command::script("find out which processes the login sees", WHO, [""; 0])
    }

    /// machine-id(5), and where D-Bus keeps it on systems without systemd.
    fn machine(&self) -> Command {
        const ID: &str =
            "cat /etc/machine-id 2>/dev/null || cat /var/lib/dbus/machine-id 2>/dev/null || :";
        Command::script("read the id of the machine", ID, [""; 0])
    }

    fn keepers(&self, shell: &mut dyn Shell) -> Result<Vec<Keeper>, RemoteError> {
        saving::keepers(shell)
    }

    fn keeper_at(&self, path: &str) -> Keeper {
        saving::keeper_at(path.into())
    }

    fn check_savable(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<(), RemoteError> {
        saving::check(shell, setting)
    }

    fn overruled(
        &self,
        shell: &mut dyn Shell,
        keeper: &Keeper,
        keeps: &[(SettingRef, String)],
    ) -> Vec<(SettingRef, String)> {
        saving::overruled(shell, keeper, keeps)
    }

    fn keeper(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Keeper, RemoteError> {
        saving::keeper(shell, setting, &self.permanent(setting, value))
    }

    fn lines(
        &self,
        shell: &mut dyn Shell,
        keeper: &Keeper,
        keeps: &[(SettingRef, String)],
    ) -> Result<String, RemoteError> {
        saving::lines(shell, keeper, keeps)
    }

    fn processes(&self, shell: &mut dyn Shell, mark: &str) -> Result<Vec<Process>, RemoteError> {
        processes::marked(shell, mark)
    }

    fn is_putting_back(&self, shell: &mut dyn Shell, pid: u32) -> Result<bool, RemoteError> {
        processes::is_putting_back(shell, pid)
    }

    fn whose(&self, shell: &mut dyn Shell, pid: u32) -> Result<Option<Whose>, RemoteError> {
        processes::whose(shell, pid)
    }
}

fn near(name: &str, scope: Option<&str>) -> SettingRef {
    SettingRef { end: EndName::Near, name: name.into(), scope: scope.map(Into::into) }
}
