//! What this machine needs to host a guest, checked before anything is fetched or booted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goodput_tools::shell::{capture, command, has_program};

/// Programs that a guest needs on this machine.
const PROGRAMS: [&str; 9] = [
    "qemu-system-x86_64",
    "busybox",
    "cpio",
    "modprobe",
    "depmod",
    "apt-get",
    "dpkg-deb",
    "unshare",
    "setpriv",
];

/// Where a process requests its own network device.
const TUN: &str = "/dev/net/tun";

/// Nothing, or what any guest needs and is missing here, and what provides it.
pub fn can_boot() -> Result<(), String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("an x86-64 machine, whose programs the guest can run".into());
    }
    if let Some(name) = PROGRAMS.into_iter().find(|name| !has_program(name)) {
        return Err(format!("the program {name}; `cargo xtask test packages` installs it"));
    }
    busybox().map(drop)
}

/// A statically linked busybox: no library is available before the host's files are reached.
pub fn busybox() -> Result<PathBuf, String> {
    let path = capture(command("sh").args(["-c", "command -v busybox"]))
        .map_err(|_| "the program busybox; apt-get install busybox-static")?;
    let path = PathBuf::from(path.trim());
    let program =
        fs::read(&path).map_err(|cause| format!("to read {}: {cause}", path.display()))?;
    match needs_loader(&program) {
        Some(false) => Ok(path),
        Some(true) => Err(format!(
            "a busybox without libraries, and {} needs some; apt-get install busybox-static",
            path.display()
        )),
        None => Err(format!(
            "a busybox that is a program of x86-64, and {} is none; apt-get install busybox-static",
            path.display()
        )),
    }
}

/// Nothing, or why this host can't make the device of a card with two queues (eth3).
pub fn can_make_tun() -> Result<(), String> {
    let script = format!("exec 3<>{TUN}");
    match capture(in_namespace().args(["sh", "-c", &script])) {
        Ok(_) => Ok(()),
        Err(_) if !Path::new(TUN).exists() => Err(format!("{TUN}, which `modprobe tun` provides")),
        Err(error) => Err(format!("a {TUN} that a new network namespace can use: {error:#}")),
    }
}

/// A command that runs in its own network namespace.
pub fn in_namespace() -> Command {
    let mut unshare = command("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.arg("--net");
    unshare
}

/// Whether a program of x86-64 needs a dynamic loader, and so libraries; `None` if it is no such program.
/// Layout: ELF-64 object file format, version 1.5, figures 2 and 7.
fn needs_loader(program: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, bytes: usize| {
        let field = program.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let is_x86_64 = program.starts_with(b"\x7fELF\x02\x01") && number(0x12, 2)? == 62;
    if !is_x86_64 {
        return None;
    }
    let first = usize::try_from(number(0x20, 8)?).ok()?;
    let (size, count) = (number(0x36, 2)? as usize, number(0x38, 2)? as usize);
    let kinds = (0..count).map(|index| number(first.checked_add(index * size)?, 4));
    let kinds = kinds.collect::<Option<Vec<_>>>()?;
    Some(kinds.contains(&u64::from(INTERPRETER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers of a program with segments of these kinds.
    fn program(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[0x12], bytes[0x20], bytes[0x36]) = (62, 64, 56);
        bytes[0x38] = kinds.len() as u8;
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_program_that_asks_for_a_loader_is_not_static() {
        let (load, interpreter) = (1, 3);
        assert_eq!(needs_loader(&program(&[load, load])), Some(false));
        assert_eq!(needs_loader(&program(&[load, interpreter])), Some(true));
    }

    #[test]
    fn what_is_no_program_of_this_machine_or_ends_early_is_none() {
        assert_eq!(needs_loader(b"#!/bin/sh\nexec busybox \"$@\"\n"), None);
        let whole = program(&[1, 3]);
        // Only the last segment's kind is read.
        for length in 0..64 + 56 + 4 {
            assert_eq!(needs_loader(&whole[..length]), None, "{length} bytes");
        }
        let mut arm = whole.clone();
        arm[0x12] = 183;
        assert_eq!(needs_loader(&arm), None);
        let mut far = whole;
        far[0x20..0x28].fill(0xff);
        assert_eq!(needs_loader(&far), None);
    }
}
