//! The packet filter's program, nft(8).

use std::io::{self, Write};
use std::process::{Output, Stdio};

use crate::host::Host;
use crate::programs;

/// Why the program is missing, in words; `None` if it is installed.
pub(crate) fn missing() -> Option<String> {
    programs::missing("nft", "nftables")
}

/// Adds rules to those of a host, all or none. The error is in words.
pub(crate) fn load(host: &Host, rules: &str) -> Result<(), String> {
    run(host, &["-f", "-"], rules).map(drop)
}

/// All rules of a host, as nft prints them. The error is in words.
pub(crate) fn list(host: &Host) -> Result<String, String> {
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
    let program = programs::find("nft").ok_or(io::ErrorKind::NotFound)?;
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
