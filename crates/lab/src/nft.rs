//! The packet filter's program, nft(8): its path (ordinary users do not have its folder in their search path), and the
//! faults that are rules of a host.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::error::LabError;
use crate::faults::{Fault, FaultTarget, Kind, Undo};
use crate::host::Host;
use crate::host_name::HostName;
use crate::limits::Limits;
use crate::need::Need;

/// A fault that consists only of rules of a host's packet filter. The rules disappear with the host.
pub(crate) trait FilterRules: fmt::Debug + Send + Sync {
    /// The kind of fault, to name in errors.
    const KIND: &'static Kind;

    /// The host with the rules.
    fn host(&self) -> HostName;

    /// What it leaves of the direction from near to far; by default everything.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// The fault's own table, in the syntax of nft(8).
    fn rules(&self) -> String;
}

impl<T: FilterRules> Fault for T {
    fn host(&self) -> HostName {
        FilterRules::host(self)
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::PacketFilter]
    }

    fn limits(&self) -> Limits {
        FilterRules::limits(self)
    }

    fn plant(&self, site: FaultTarget<'_>) -> Result<Undo, LabError> {
        load(site.host, &self.rules()).map_err(|why| failed(self, why)).map(|()| None)
    }

    fn read_back(&self, site: FaultTarget<'_>) -> Result<String, LabError> {
        list(site.host).map_err(|why| failed(self, why))
    }
}

fn failed<T: FilterRules>(fault: &T, why: String) -> LabError {
    LabError::Fault { kind: T::KIND.id, host: FilterRules::host(fault).to_string(), why }
}

/// Path of the program, if it is installed.
pub(crate) fn program() -> Option<&'static Path> {
    let places = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft", "/usr/local/sbin/nft"];
    places.into_iter().map(Path::new).find(|path| path.exists())
}

/// Why the program is missing, in words; `None` if it is installed.
pub(crate) fn missing() -> Option<String> {
    program().is_none().then(|| "nft is not installed: apt-get install nftables".into())
}

/// Adds rules to those of a host, all or none. The error is in words.
fn load(host: &Host, rules: &str) -> Result<(), String> {
    run(host, &["-f", "-"], rules).map(drop)
}

/// All rules of a host, as nft prints them. The error is in words.
fn list(host: &Host) -> Result<String, String> {
    run(host, &["list", "ruleset"], "")
}

fn run(host: &Host, args: &[&str], input: &str) -> Result<String, String> {
    let output = speak(host, args, input).map_err(|error| format!("can't run nft: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("nft refused it: {}", said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn speak(host: &Host, args: &[&str], input: &str) -> io::Result<Output> {
    let program = program().ok_or(io::ErrorKind::NotFound)?;
    let mut command = host.command(program)?;
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Dropped at once, so that nft sees the end. If nft has exited already, it reports the reason itself.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    match written {
        Some(Err(error)) if output.status.success() => Err(error),
        _ => Ok(output),
    }
}
