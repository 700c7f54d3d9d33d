//! What the units of a package go through: a systemd that is the first process of a machine that vanishes starts them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use goodput_tools::shell::{has_program, root};

/// The programs of it.
const PROGRAMS: [&str; 8] = [
    "/lib/systemd/systemd",
    "systemctl",
    "journalctl",
    "unshare",
    "pivot_root",
    "setpriv",
    "timeout",
    "nats-server",
];

/// Why it can't run here.
pub fn obstacle() -> Option<String> {
    let missing = PROGRAMS.into_iter().find(|program| !has_program(program));
    missing.map(|program| format!("{program}, to start the package's units"))
}

/// Installs `old`, starts its units, upgrades to `new`, and purges that.
pub fn go_through(old: &Path, new: &Path) -> Result<()> {
    let place = tempfile::tempdir().context("can't make a folder for a root")?;
    let beside = tempfile::tempdir().context("can't make a folder for the packages")?;
    let said = beside.path().join("said");
    fs::write(&said, "")?;
    let scripts = root().join("xtask/src/package");
    let mut apart = Command::new("unshare");
    apart.args(["--mount", "sh"]).arg(scripts.join("machine.sh")).args([place.path(), &said]);
    apart.arg(scripts.join("started.sh"));
    for (name, package) in [("old.deb", old), ("new.deb", new)] {
        let to = beside.path().join(name);
        fs::copy(package, &to).with_context(|| format!("can't copy {}", package.display()))?;
        apart.arg(to);
    }
    let status = apart.status().context("can't start unshare")?;
    if !status.success() {
        bail!("the units of a package: {status}\n{}", fs::read_to_string(&said)?);
    }
    Ok(())
}
