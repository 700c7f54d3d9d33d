//! What a package goes through at those who install it, in a root of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use goodput_tools::shell::{has_program, root, run};

/// The programs of it.
const PROGRAMS: [&str; 6] = ["unshare", "mount", "ip", "dpkg-deb", "dpkg-shlibdeps", "strip"];

/// Why it can't run here.
pub fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root, to install a package in a root of its own".into());
    }
    let missing = PROGRAMS.into_iter().find(|program| !has_program(program));
    missing.map(|program| format!("{program}, to make and install a package"))
}

/// Installs `old`, uses it, upgrades to `new`, and removes that. All of it sees an overlay of this machine's files and an
/// empty network, which vanish with the script.
pub fn go_through(old: &Path, new: &Path) -> Result<()> {
    let place = tempfile::tempdir().context("can't make a folder for a root")?;
    let script = root().join("xtask/src/package/lifecycle.sh");
    let mut apart = Command::new("unshare");
    apart.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh"]).arg(script);
    run(apart.args([place.path(), old, new]))
}
