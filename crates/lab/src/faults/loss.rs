//! Random loss of what the host receives, by the kernel's packet filter (nft(8), `numgen`).
//!
//! Unlike the loss of an emulated link it needs no TUN device, but a super-packet counts as one
//! packet here: for packets as on a wire, switch `tso` and `gso` off at the sender.

use std::io::{self, Write};
use std::process::{Output, Stdio};

use serde::Deserialize;

use super::{Fault, Kind, Site, Undo, read};
use crate::error::LabError;
use crate::host::Host;
use crate::nft;
use crate::scenario::amount::{self, Percent};
use crate::scenario::{HostName, Need};

pub(super) const KIND: Kind = Kind {
    id: "loss",
    summary: "the host loses this share of the packets that it receives",
    example: "host = \"far\"\npercent = 1",
    read: read::<Loss>,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Loss {
    host: HostName,
    #[serde(deserialize_with = "amount::required")]
    percent: Percent,
}

impl Loss {
    fn failed(&self, why: String) -> LabError {
        LabError::Fault { kind: KIND.id, host: self.host.to_string(), why }
    }

    /// Drops before routing, so that a router loses what it would pass on, too.
    fn rules(&self) -> String {
        let of_a_million = (self.percent.0 * 1e4).round() as u32;
        format!(
            "table inet goodput_lab {{\n chain lose {{\n type filter hook prerouting priority -300\n \
             iifname != \"lo\" numgen random mod 1000000 < {of_a_million} drop\n }}\n}}\n"
        )
    }

    fn nft(&self, host: &Host, args: &[&str], input: &str) -> Result<String, LabError> {
        let output = speak(host, args, input);
        let output = output.map_err(|error| self.failed(format!("cannot run nft: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(self.failed(format!("nft refused it: {}", said.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn speak(host: &Host, args: &[&str], input: &str) -> io::Result<Output> {
    let program = nft::program().ok_or(io::ErrorKind::NotFound)?;
    let mut command = host.command(program)?;
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Dropped at once, so that nft sees the end. One that has gone already says why itself.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    match written {
        Some(Err(error)) if output.status.success() => Err(error),
        _ => Ok(output),
    }
}

impl Fault for Loss {
    fn host(&self) -> HostName {
        self.host
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::PacketFilter]
    }

    fn plant(&self, site: Site<'_>) -> Result<Undo, LabError> {
        self.nft(site.host, &["-f", "-"], &self.rules()).map(|_| None)
    }

    fn read_back(&self, site: Site<'_>) -> Result<String, LabError> {
        self.nft(site.host, &["list", "ruleset"], "")
    }
}
