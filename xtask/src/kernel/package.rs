//! Kernels of Debian packages: found by name, fetched with apt, unpacked below `target/kernels`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use goodput_tools::shell::{capture, command, root, run};

/// An unpacked kernel.
pub struct Kernel {
    /// As `uname -r` prints it.
    pub release: String,
    folder: PathBuf,
}

impl Kernel {
    /// The kernel of a package or a short name, from the cache if it is there.
    pub fn provide(name: &str) -> Result<Self> {
        let known = Known::of(&package(name))?;
        let folder =
            root().join("target/kernels").join(format!("{}_{}", known.package, known.version));
        if !folder.exists() {
            known.unpack(&folder)?;
        }
        Ok(Self { release: release(&folder)?, folder })
    }

    /// The compressed kernel.
    pub fn image(&self) -> PathBuf {
        self.folder.join("boot").join(format!("vmlinuz-{}", self.release))
    }

    /// The folder that has `lib/modules`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The package that a name stands for.
fn package(name: &str) -> String {
    match name {
        "debian" => "linux-image-amd64".into(),
        whole if whole.starts_with(PREFIX) => whole.into(),
        part => format!("{PREFIX}{part}-amd64"),
    }
}

const PREFIX: &str = "linux-image-";

/// What apt knows about a package that has a kernel.
struct Known {
    package: String,
    version: String,
}

impl Known {
    /// The package itself, or the package with the kernel if it is only a name for the newest.
    fn of(package: &str) -> Result<Self> {
        let described = describe(package)?;
        match newest(&described) {
            Some(named) => Ok(Self { version: version(&describe(named)?)?, package: named.into() }),
            None => Ok(Self { package: package.into(), version: version(&described)? }),
        }
    }

    /// Fetches and unpacks the package, and lists what its modules need; `folder` exists only once it is complete.
    fn unpack(&self, folder: &Path) -> Result<()> {
        let partial = folder.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).with_context(|| format!("create {}", partial.display()))?;
        eprintln!("fetching {} {}", self.package, self.version);
        let mut fetch = command("apt-get");
        // Another user could not write to the folder.
        fetch.args(["--quiet=2", "--option=APT::Sandbox::User=root", "download"]);
        run(fetch.arg(format!("{}={}", self.package, self.version)).current_dir(&partial))?;
        let packages = files(&partial)?;
        let Some(package) =
            packages.iter().find(|path| path.extension().is_some_and(|e| e == "deb"))
        else {
            bail!("apt-get download left no package in {}", partial.display());
        };
        run(command("dpkg-deb").arg("--extract").arg(package).arg(&partial))?;
        fs::remove_file(package).context("remove what is unpacked")?;
        run(command("depmod").arg("--basedir").arg(&partial).arg(release(&partial)?))?;
        fs::rename(&partial, folder).with_context(|| format!("name it {}", folder.display()))
    }
}

/// apt's description of the newest version. A machine that has never fetched the lists has none.
fn describe(package: &str) -> Result<String> {
    let ask = || capture(command("apt-cache").args(["show", "--no-all-versions", package]));
    ask().or_else(|error| {
        if rustix::process::geteuid().is_root() {
            run(command("apt-get").args(["--quiet=2", "update"]))?;
        }
        ask().map_err(|_| error).with_context(|| {
            let names =
                capture(command("apt-cache").args(["pkgnames", PREFIX])).unwrap_or_default();
            format!("apt has no package {package}; its kernels are {}", bootable(&names).join(", "))
        })
    })
}

/// The names of packages with a kernel for this kind of guest, or for the newest of its series.
fn bootable(names: &str) -> Vec<&str> {
    let special = ["-cloud-", "-rt-"];
    let fits = |name: &&str| {
        name.ends_with("amd64") && !special.iter().any(|special| name.contains(special))
    };
    let mut names: Vec<_> = names.lines().filter(fits).collect();
    names.sort_unstable();
    names
}

/// The kernel's package, if this is the description of a name for it.
fn newest(described: &str) -> Option<&str> {
    let depends = described.lines().find_map(|line| line.strip_prefix("Depends: "))?;
    let first = depends.split([',', '|', ' ']).next()?;
    first.starts_with(PREFIX).then_some(first)
}

fn version(described: &str) -> Result<String> {
    let line = described.lines().find_map(|line| line.strip_prefix("Version: "));
    Ok(line.context("apt-cache shows no version")?.trim().into())
}

/// The only entry of `lib/modules`.
fn release(folder: &Path) -> Result<String> {
    let all = files(&folder.join("lib/modules"))?;
    let [modules] = &all[..] else {
        bail!("{} has {} kernels instead of one", folder.display(), all.len());
    };
    let name = modules.file_name().context("a folder has a name")?;
    Ok(name.to_string_lossy().into_owned())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_stands_for_a_package() {
        assert_eq!(package("debian"), "linux-image-amd64");
        assert_eq!(package("6.12"), "linux-image-6.12-amd64");
        assert_eq!(package("linux-image-6.1.0-56-amd64"), "linux-image-6.1.0-56-amd64");
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_kernels_that_would_boot() {
        let names = "linux-image-6.12-rt-amd64\nlinux-image-amd64\nlinux-image-6.1.0-56-amd64-dbg\n\
                     linux-image-6.12-amd64\nlinux-image-6.1.0-56-cloud-amd64\n";
        assert_eq!(bootable(names), ["linux-image-6.12-amd64", "linux-image-amd64"]);
    }

    #[test]
    fn a_name_for_the_newest_kernel_leads_to_it() {
        let name = "Package: linux-image-amd64\nVersion: 6.1.192-2\n\
                    Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\n";
        assert_eq!(newest(name), Some("linux-image-6.1.0-56-amd64"));
        let kernel = "Package: linux-image-6.1.0-56-amd64\nVersion: 6.1.192-2\n\
                      Depends: kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool\n";
        assert_eq!(newest(kernel), None);
        assert_eq!(version(kernel).unwrap(), "6.1.192-2");
        assert!(version("Package: x\n").is_err());
    }
}
