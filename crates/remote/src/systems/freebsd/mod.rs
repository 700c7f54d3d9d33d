//! FreeBSD, by ifconfig(8) and sysctl(8).
//!
//! | file | what it knows |
//! |---|---|
//! | `switches` | what can be switched on an interface, one row each |
//! | `mibs` | the parameters of device polling, one row each |
//! | `polling` | what a host needs for polling and how to provide it; how much polling can carry |
//! | `overruled` | lines of other files that count more than ours |
//! | `facts` | its settings, by the names that rules read |
//! | `processes` | other goodputs there |
//! | `ifconfig`, `sysctl`, `counters` | what the programs print |

mod counters;
mod facts;
mod ifconfig;
mod kinds;
mod mibs;
mod overruled;
mod polling;
mod processes;
mod switches;
mod sysctl;
mod text;

use std::net::IpAddr;

use goodput_model::{Permanent, SettingRef, Snapshot};
use goodput_settings::{Assignment, merged};

use crate::awaited::Whose;
use crate::command::{Command, Condition};
use crate::counters::Counters;
use crate::error::RemoteError;
use crate::keeper::Keeper;
use crate::polling::PollingRates;
use crate::shell::Shell;
use crate::system::{Listed, Process, System, Watch};
use kinds::Kind;

/// FreeBSD.
pub(crate) struct FreeBsd;

impl Watch for FreeBsd {
    fn counters(
        &self,
        shell: &mut dyn Shell,
        device: Option<&str>,
    ) -> Result<Counters, RemoteError> {
        counters::counters(shell, device)
    }

    fn polling(
        &self,
        shell: &mut dyn Shell,
        device: &str,
    ) -> Result<Option<PollingRates>, RemoteError> {
        polling::rates(shell, device)
    }

    fn facts(
        &self,
        shell: &mut dyn Shell,
        towards: Option<IpAddr>,
    ) -> Result<Snapshot, RemoteError> {
        facts::facts(shell, towards)
    }
}

impl System for FreeBsd {
    fn name(&self) -> &'static str {
        "FreeBSD"
    }

    fn list(&self, shell: &mut dyn Shell) -> Result<Vec<Listed>, RemoteError> {
        let names = shell.output(&Command::new("ifconfig", ["-l"]))?;
        let mut listed = Vec::new();
        for device in names.split_whitespace() {
            listed.extend(kinds::of_interface(shell, device)?);
        }
        listed.extend(kinds::parameters(shell)?);
        Ok(listed)
    }

    fn read(&self, shell: &mut dyn Shell, setting: &SettingRef) -> Result<String, RemoteError> {
        let read = Kind::of(shell.host(), setting)?.read(shell, setting);
        read.map_err(|error| kinds::without_interface(shell, setting, error))
    }

    fn normalise(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<String, RemoteError> {
        let normal = Kind::of(shell.host(), setting)?.normalise(shell, setting, value);
        normal.map_err(|error| kinds::without_interface(shell, setting, error))
    }

    fn write(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Vec<Command>, RemoteError> {
        Ok(vec![Kind::of(shell.host(), setting)?.write(value)])
    }

    fn holds(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Condition, RemoteError> {
        Ok(Kind::of(shell.host(), setting)?.holds(value))
    }

    fn coupled(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<Vec<SettingRef>, RemoteError> {
        Kind::of(shell.host(), setting)?.coupled(shell, setting)
    }

    fn explained(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
        refusal: RemoteError,
    ) -> RemoteError {
        kinds::explained(shell, setting, value, refusal)
    }

    /// A driver reinitialises the card when its MTU or an offload changes, and a polled card depends on the
    /// clock.
    fn may_cut(&self, setting: &SettingRef) -> bool {
        setting.scope.is_some()
    }

    /// FreeBSD 13 has a boot id; `kern.boottime` moves with the clock. Earlier, rc(8) writes the boot messages
    /// into a file. A jail may have no id of its own, and doesn't see the number by which its host knows it; but it has a
    /// root directory of its own (jail(8), `path`).
    fn identity(&self) -> Vec<Command> {
        const BOOT: &str =
            "sysctl -nx kern.boot_id 2>/dev/null || stat -f '%m %i %z' /var/run/dmesg.boot";
        vec![
            Command::script("read when it started", BOOT, [""; 0]),
            Command::new("sysctl", ["-n", "kern.hostuuid", "security.jail.jailed"]),
            Command::new("stat", ["-f", "%d %i", "/"]),
        ]
    }

    /// Users see their own processes in any case, those of others perhaps not (security(7), `see_other_uids`).
    fn viewpoint(&self) -> Command {
        Command::new("id", ["-ru"])
    }

    fn machine(&self) -> Command {
        Command::new("sysctl", ["-n", "kern.hostuuid"])
    }

    fn gone(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
    ) -> Result<Option<String>, RemoteError> {
        Kind::of(shell.host(), setting)?.gone(shell)
    }

    /// rc.conf(5) and sysctl.conf(5): not every release reads additional files.
    fn keepers(&self, _shell: &mut dyn Shell) -> Result<Vec<Keeper>, RemoteError> {
        Ok(["/etc/rc.conf", "/etc/sysctl.conf"].map(Keeper::lines).into())
    }

    fn keeper_at(&self, path: &str) -> Keeper {
        Keeper::lines(path)
    }

    fn keeper(
        &self,
        shell: &mut dyn Shell,
        setting: &SettingRef,
        value: &str,
    ) -> Result<Keeper, RemoteError> {
        let form = Kind::of(shell.host(), setting)?.permanent(value);
        Ok(Keeper::lines(path(&form)))
    }

    fn overruled(
        &self,
        shell: &mut dyn Shell,
        keeper: &Keeper,
        keeps: &[Assignment],
    ) -> Vec<(SettingRef, String)> {
        overruled::overruled(shell, &keeper.path, keeps)
    }

    fn lines(
        &self,
        _shell: &mut dyn Shell,
        keeper: &Keeper,
        keeps: &[(SettingRef, String)],
    ) -> Result<String, RemoteError> {
        let forms = keeps.iter().flat_map(|(setting, value)| self.permanent(setting, value));
        let forms = merged(forms.filter(|form| path(form) == keeper.path));
        Ok(forms.into_iter().map(|form| form.lines).collect::<Vec<_>>().join("\n"))
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

    fn permanent(&self, setting: &SettingRef, value: &str) -> Vec<Permanent> {
        Kind::of(self.name(), setting).map(|kind| vec![kind.permanent(value)]).unwrap_or_default()
    }
}

/// What a setting of this name does on FreeBSD, and its values, in words; `None` if only a FreeBSD host can tell.
pub fn described(name: &str) -> Option<(&'static str, String)> {
    if let Some(mib) = name.strip_prefix("sysctl.").and_then(mibs::find) {
        let values = mib.settable.map_or("read only".into(), |values| values.to_string());
        return Some((mib.meaning, values));
    }
    switches::find(name).map(|switch| (switch.meaning, "on or off".into()))
}

/// `/etc/rc.conf` of `FreeBSD /etc/rc.conf`.
fn path(form: &Permanent) -> &str {
    form.file.strip_prefix("FreeBSD ").unwrap_or(&form.file)
}

#[cfg(test)]
mod tests;
