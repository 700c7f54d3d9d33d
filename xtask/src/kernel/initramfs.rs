//! The guest's first file system: busybox, the modules needed to reach the host's files, and two
//! scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use super::host;
use super::job::Job;
use super::package::Kernel;
use goodput_tools::shell::{capture, command, run};

/// First process of the guest: overlays the host's files with a layer of memory to form the root.
const INIT: &str = include_str!("init.sh");
/// The first process once the root exists: prepares it, runs the command, and switches the machine off.
const SESSION: &str = include_str!("session.sh");
/// What both scripts need before the kernel can load modules on demand.
const MODULES: [&str; 5] = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"];
const FOLDERS: [&str; 9] =
    ["bin", "dev", "goodput", "host", "layer", "modules", "proc", "root", "sys"];

/// Builds the archive in `folder`, and returns its path.
pub fn make(kernel: &Kernel, job: &Job, folder: &Path) -> Result<PathBuf> {
    let content = folder.join("content");
    for name in FOLDERS {
        fs::create_dir_all(content.join(name)).context("make the first file system")?;
    }
    let copy = |from: &Path, to: &str| {
        let copied = fs::copy(from, content.join(to));
        copied.with_context(|| format!("copy {}", from.display())).map(drop)
    };
    let busybox = host::busybox().map_err(|what| anyhow!("a guest needs {what}"))?;
    copy(&busybox, "bin/busybox")?;
    for (number, module) in modules(kernel)?.iter().enumerate() {
        let name = module.file_name().context("a module has a name")?.to_string_lossy();
        // Numbered, because each needs those before it.
        copy(module, &format!("modules/{number:02}-{name}"))?;
    }
    let write = |name: &str, text: &str| {
        let path = content.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
    };
    write("init", INIT).context("write the first script")?;
    write("goodput/session", SESSION).context("write the second script")?;
    write("goodput/command", &job.script()).context("write the command")?;
    write("goodput/kernel", &kernel.folder().to_string_lossy()).context("write the place")?;
    let archive = folder.join("initramfs");
    // The format that the kernel accepts (Documentation/driver-api/early-userspace/buffer-format.rst).
    let pack = "find . | cpio --quiet --create --format=newc > ../initramfs";
    run(command("sh").args(["-c", pack]).current_dir(&content))?;
    Ok(archive)
}

/// The files of `MODULES` and of everything they need, dependencies first.
fn modules(kernel: &Kernel) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for name in MODULES {
        let mut ask = command("modprobe");
        ask.arg("--dirname").arg(kernel.folder()).args(["--set-version", &kernel.release]);
        let listed = capture(ask.args(["--show-depends", name]))?;
        let files = listed.lines().filter_map(|line| line.strip_prefix("insmod "));
        for file in files.filter_map(|line| line.split_whitespace().next()).map(PathBuf::from) {
            if !all.contains(&file) {
                all.push(file);
            }
        }
    }
    Ok(all)
}
