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
    let missing = missing.map(|program| format!("{program}, to start the package's units"));
    missing.or_else(no_control_group)
}

/// Why a systemd can't have a control group of its own here.
fn no_control_group() -> Option<String> {
    let place = tempfile::tempdir().ok()?;
    let make = "mount -t cgroup2 cgroup2 \"$0\" && \
                group=$0$(sed -n 's/^0:://p' /proc/self/cgroup)/goodput-tried.$$ && \
                mkdir \"$group\" && rmdir \"$group\"";
    let mut apart = Command::new("unshare");
    let made = apart.args(["--mount", "sh", "-c", make]).arg(place.path()).output().ok()?;
    let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
    (!made.status.success())
        .then(|| format!("the right to make a control group, for the package's units: {why}"))
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
