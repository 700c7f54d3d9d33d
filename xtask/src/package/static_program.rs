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

/// Why it can't be built and tried here.
pub fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root, to run the static program in an empty root".into());
    }
    let missing =
        [COMPILER, "readelf", "unshare", "ip"].into_iter().find(|program| !has_program(program));
    missing.map(|program| format!("{program}, to build and try the static program"))
}

/// Builds it with this profile, whose folder may have another name.
pub fn build(profile: &str, folder: &str) -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    provide(&target)?;
    let compiler = format!("CC_{}", target.replace('-', "_"));
    let mut build = cargo(["build", "--package=goodput"]);
    build.args(["--profile", profile, "--target", &target]).env(compiler, COMPILER);
    run(&mut build)?;
    Ok(target_directory()?.join(target).join(folder).join("goodput"))
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

/// What in the program needs something else of the system: an interpreter, or libraries.
pub fn needs(program: &Path) -> Result<Vec<String>> {
    let told =
        capture(command("readelf").args(["--wide", "--segments", "--dynamic"]).arg(program))?;
    let lines = told.lines().filter(|line| line.contains("INTERP") || line.contains("(NEEDED)"));
    Ok(lines.map(|line| format!("the static program has {}", line.trim())).collect())
}

/// Copies it into the folder `out`, and returns its path.
pub fn make(out: &Path) -> Result<PathBuf> {
    let program = build("dist", "dist")?;
    let needs = needs(&program)?;
    if !needs.is_empty() {
        bail!("{}", needs.join("; "));
    }
    let to = out.join("goodput");
    fs::copy(&program, &to).with_context(|| format!("can't write {}", to.display()))?;
    Ok(to)
}

/// Lets it measure in a root that has nothing else, and an empty network.
pub fn try_alone(program: &Path) -> Result<()> {
    let place = tempfile::tempdir().context("can't make a folder for a root")?;
    let mut apart = Command::new("unshare");
    apart.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh"]);
    apart.arg(root().join("xtask/src/package/alone.sh"));
    run(apart.arg(place.path()).arg(program))
}
