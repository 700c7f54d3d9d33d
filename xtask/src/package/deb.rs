//! The Debian package (deb(5)), by Debian's own `dpkg-deb`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use goodput_tools::shell::{capture, command, has_program, root, run};

use super::tree::{Tree, packaging, read};

/// Scripts that dpkg runs (Debian policy, chapter 6).
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Files that belong to the administrator once they are installed (deb-conffiles(5)).
const CONFFILES: &str = "/etc/default/goodput\n";

/// How hard to pack (dpkg-deb(1), `-z`).
#[derive(Clone, Copy)]
pub enum Packing {
    /// As small as it gets.
    Small,
    /// As quickly as it goes, for tests.
    Quick,
}

/// Makes a package of `program` with this version in the folder `out`, and returns its path.
pub fn make(program: &Path, version: &str, out: &Path, packing: Packing) -> Result<PathBuf> {
    let place = tempfile::tempdir().context("can't make a folder for the package's files")?;
    // dpkg-deb packs the folder as it is, and a temporary one is its owner's alone.
    let top = place.path().join("root");
    fs::create_dir(&top)?;
    fs::set_permissions(&top, fs::Permissions::from_mode(0o755))?;
    let tree = Tree::lay(top, program, &changelog(version)?)?;
    let (bytes, sums) = tree.sums()?;
    let architecture = capture(command("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let fields = format!(
        "Version: {version}\nArchitecture: {architecture}\nInstalled-Size: {}\nDepends: {}\n",
        bytes.div_ceil(1024),
        depends(tree.top(), place.path())?
    );
    let control = [read(&packaging("debian/control"))?, fields.into_bytes()].concat();
    tree.write("DEBIAN/control", &control)?;
    tree.write("DEBIAN/conffiles", CONFFILES.as_bytes())?;
    tree.write("DEBIAN/md5sums", sums.as_bytes())?;
    for script in SCRIPTS {
        let text = read(&packaging(&format!("debian/{script}")))?;
        tree.write_as(&format!("DEBIAN/{script}"), &text, 0o755)?;
    }
    let deb = out.join(format!("goodput_{version}_{architecture}.deb"));
    let mut pack = Command::new("dpkg-deb");
    pack.arg(match packing {
        Packing::Small => "-z9",
        Packing::Quick => "-z0",
    });
    run(pack.args(["--root-owner-group", "--build"]).arg(tree.top()).arg(&deb))?;
    Ok(deb)
}

/// What lintian complains about, a line each.
pub fn complaints(deb: &Path) -> Result<Vec<String>> {
    if !has_program("lintian") {
        return Ok(vec!["lintian is missing, which judges the Debian package".into()]);
    }
    // Run as root, it would complain about that.
    let output = Command::new("lintian")
        .args(["--allow-root", "--fail-on=error,warning", "--tag-display-limit=0"])
        .arg(deb)
        .output()
        .context("can't start lintian")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = said.lines().chain(errors.lines()).map(str::to_owned);
    Ok(if output.status.success() { Vec::new() } else { lines.collect() })
}

/// The libraries that the program needs, as packages (dpkg-shlibdeps(1), which wants to be called where a source package
/// lies).
fn depends(top: &Path, place: &Path) -> Result<String> {
    let debian = place.join("debian");
    fs::create_dir_all(&debian)?;
    fs::write(debian.join("control"), "Source: goodput\n\nPackage: goodput\nArchitecture: any\n")?;
    let mut ask = Command::new("dpkg-shlibdeps");
    let answer = capture(ask.arg("-O").arg(top.join("usr/bin/goodput")).current_dir(place))?;
    let line = answer.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(line.context("dpkg-shlibdeps names no dependencies")?.to_owned())
}

/// One entry (deb-changelog(5)), of the day of the newest commit.
fn changelog(version: &str) -> Result<String> {
    let mut ask = command("git");
    let day = capture(ask.args(["log", "-1", "--format=%cD"]).current_dir(root()))?;
    let control = String::from_utf8(read(&packaging("debian/control"))?)?;
    let authors = control.lines().find_map(|line| line.strip_prefix("Maintainer: "));
    let authors = authors.context("packaging/debian/control names no maintainer")?;
    Ok(format!(
        "goodput ({version}) unstable; urgency=medium\n\n  * The sources' history says what changed.\n\n -- {authors}  {}\n",
        day.trim()
    ))
}
