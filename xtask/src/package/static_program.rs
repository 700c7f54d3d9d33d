//! The program without libraries: linked with musl, so that it runs on every Linux, and alone in a container.
//!
//! glibc can be linked statically, too, but then still loads libraries to resolve names, which must be of the same
//! version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use goodput_tools::shell::{capture, cargo, command, has_program, root, run};

use crate::docs::target_directory;

/// Compiles the C code of SQLite and of the cryptography for musl (package musl-tools).
const COMPILER: &str = "musl-gcc";

/// Where releases of Debian are, also the older ones that are still supported.
const MIRROR: &str = "http://deb.debian.org/debian";

/// Makes it, lets it measure in an empty root, in the roots of other `systems` and in these releases of Debian, and copies it
/// into the folder `out`. Returns its path.
///
/// This is no step of the tests: the standard library for musl, which rustup loads, is not on every machine.
pub fn make(out: &Path, systems: &[PathBuf], debian: &[String]) -> Result<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "the static program is tried in an empty root, which only root can make; run it as root"
        );
    }
    let programs = [COMPILER, "readelf", "unshare", "ip"];
    if let Some(missing) = programs.into_iter().find(|program| !has_program(program)) {
        bail!("{missing} is missing; install musl-tools, binutils, util-linux and iproute2");
    }
    if !debian.is_empty() && !has_program("debootstrap") {
        bail!("debootstrap is missing, which makes the roots of Debian; install it");
    }
    let program = build()?;
    let needs = needs(&program)?;
    if !needs.is_empty() {
        bail!("{}", needs.join("; "));
    }
    try_alone(&program, None)?;
    systems.iter().try_for_each(|system| try_alone(&program, Some(system.as_path())))?;
    debian.iter().try_for_each(|release| try_in_debian(&program, release))?;
    let to = out.join("goodput");
    fs::copy(&program, &to).with_context(|| format!("can't write {}", to.display()))?;
    Ok(to)
}

fn build() -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    provide(&target)?;
    let compiler = format!("CC_{}", target.replace('-', "_"));
    let mut build = cargo(["build", "--package=goodput"]);
    build.args(["--profile=dist", "--target", &target]).env(compiler, COMPILER);
    run(&mut build)?;
    Ok(target_directory()?.join(target).join("dist/goodput"))
}

/// The standard library for the target, which rustup has.
fn provide(target: &str) -> Result<()> {
    let folder = capture(command("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    run(command("rustup").args(["target", "add", target]))
        .with_context(|| format!("the standard library of Rust for {target} is missing"))
}

/// How readelf calls what needs something else of the system: an interpreter, a library, versions of a library's symbols.
const NEEDS: [&str; 3] = ["INTERP", "(NEEDED)", "(VERNEED)"];

/// What in the program needs something else of the system, a line each.
fn needs(program: &Path) -> Result<Vec<String>> {
    let told =
        capture(command("readelf").args(["--wide", "--segments", "--dynamic"]).arg(program))?;
    let lines = told.lines().filter(|line| NEEDS.iter().any(|need| line.contains(need)));
    Ok(lines.map(|line| format!("the static program has {}", line.trim())).collect())
}

/// Lets it measure in a new root of this release of Debian.
fn try_in_debian(program: &Path, release: &str) -> Result<()> {
    let place = tempfile::tempdir().context("can't make a folder for a root of Debian")?;
    // What it mounts there goes with its namespace.
    let mut make = Command::new("unshare");
    make.args(["--mount", "--pid", "--fork", "--kill-child", "debootstrap", "--variant=minbase"]);
    run(make.arg(release).arg(place.path()).arg(MIRROR))?;
    try_alone(program, Some(place.path()))
}

/// Lets it measure in an empty network, in a root that has nothing else or what `system` has.
fn try_alone(program: &Path, system: Option<&Path>) -> Result<()> {
    let place = tempfile::tempdir().context("can't make a folder for a root")?;
    let mut apart = Command::new("unshare");
    apart.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh"]);
    apart.arg(root().join("xtask/src/package/alone.sh"));
    apart.arg(place.path()).arg(program);
    if let Some(system) = system {
        let found = system.canonicalize();
        apart.arg(found.with_context(|| format!("there is no system in {}", system.display()))?);
    }
    run(&mut apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test itself runs by a library of the system.
    #[test]
    fn a_program_with_libraries_is_no_static_one() {
        if !has_program("readelf") {
            return goodput_testing::skip("readelf (package binutils)");
        }
        let said = needs(&std::env::current_exe().unwrap()).unwrap();
        for need in NEEDS {
            assert!(said.iter().any(|line| line.contains(need)), "{need}: {said:?}");
        }
    }
}
