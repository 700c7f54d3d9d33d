//! The virtual machine: its devices, its output, and its end.

use std::fs;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::job::Job;
use super::package::Kernel;
use super::{host, initramfs};

/// What executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// QEMU's emulation, which runs everywhere and takes ten to twenty times as long.
    Emulated,
    /// The host's processor, through /dev/kvm. Machines that are guests themselves may have the device although
    /// their own guests never get anywhere.
    Own,
}

/// A running guest. Dropping it ends it.
pub struct Guest {
    qemu: Child,
    folder: TempDir,
}

/// Files in the guest's folder: the kernel's messages, and the command's exit status.
const LOG: &str = "kernel.log";
const STATUS: &str = "status";
/// Lines of the log shown if a guest broke off.
const LAST_LINES: usize = 30;
/// The guest's memory; half of it holds the files that it writes.
const MEMORY_MIB: u32 = 2048;
/// No endless panic, and no security measure that only costs time on a machine that nobody attacks.
const KERNEL_OPTIONS: &str = "console=ttyS0 panic=-1 quiet loglevel=5 mitigations=off nokaslr audit=0 nowatchdog net.ifnames=0";

impl Guest {
    /// Boots `kernel` with this host's files as its root, and starts the job.
    pub fn boot(kernel: &Kernel, processor: Processor, job: &Job) -> Result<Self> {
        let folder = tempfile::tempdir().context("make a folder for the guest")?;
        let initramfs = initramfs::make(kernel, job, folder.path())?;
        let mut qemu = in_namespace();
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        qemu.args(["-smp", "2", "-m", &MEMORY_MIB.to_string()]);
        qemu.args(match processor {
            // Five levels of page tables would only mean one more to walk.
            Processor::Emulated => ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"],
            Processor::Own => ["-accel", "kvm", "-cpu", "max"],
        });
        qemu.arg("-kernel").arg(kernel.image()).arg("-initrd").arg(initramfs);
        qemu.args(["-append", KERNEL_OPTIONS]);
        // The guest may read what the user who runs this owns, and can write nothing.
        qemu.args([
            "-virtfs",
            "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
        ]);
        ports(&mut qemu, folder.path());
        network(&mut qemu);
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let qemu = qemu.spawn().context("can't start qemu-system-x86_64")?;
        Ok(Self { qemu, folder })
    }

    /// The command's output; the second pipe also carries QEMU's own messages.
    pub fn output(&mut self) -> Result<(ChildStdout, ChildStderr)> {
        let pipes = (self.qemu.stdout.take(), self.qemu.stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else { bail!("the guest's output is taken") };
        Ok((stdout, stderr))
    }

    /// The command's exit status, once the guest has ended.
    pub fn wait(&mut self, within: Duration) -> Result<i32> {
        const POLL_INTERVAL: Duration = Duration::from_millis(50);
        let deadline = Instant::now() + within;
        while self.qemu.try_wait().context("wait for the guest")?.is_none() {
            if Instant::now() > deadline {
                self.end();
                bail!("the guest did not end within {} s; {}", within.as_secs(), self.last_words());
            }
            sleep(POLL_INTERVAL);
        }
        let status = fs::read_to_string(self.folder.path().join(STATUS)).unwrap_or_default();
        match status.trim().parse() {
            Ok(status) => Ok(status),
            Err(_) => bail!("the guest ended before the command; {}", self.last_words()),
        }
    }

    fn last_words(&self) -> String {
        let log = fs::read(self.folder.path().join(LOG)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        format!("its kernel's last messages:\n{last}")
    }

    fn end(&mut self) {
        // Fails only if it has already ended.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}

/// QEMU in its own network namespace, which has its end of the guest's cable; QEMU ends with us.
fn in_namespace() -> Command {
    let mut qemu = host::in_namespace();
    qemu.args(["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"]);
    qemu
}

/// The kernel's messages into a file; three ports for the command: stdout, stderr, status.
fn ports(qemu: &mut Command, folder: &Path) {
    let (log, status) = (folder.join(LOG), folder.join(STATUS));
    qemu.args([
        "-chardev",
        &format!("file,id=log,path={}", log.display()),
        "-serial",
        "chardev:log",
    ]);
    qemu.args(["-device", "virtio-serial"]);
    // With `stdio`, QEMU would mistake the end of the input for the end of the reader, and the guest would wait.
    for (name, file) in [
        ("stdout", "/proc/self/fd/1".to_owned()),
        ("stderr", "/proc/self/fd/2".to_owned()),
        ("status", status.display().to_string()),
    ] {
        qemu.args(["-chardev", &format!("file,id={name},path={file}")]);
        qemu.args(["-device", &format!("virtserialport,chardev={name},name={name}")]);
    }
}

/// Three cards on one hub, each with its own ring (eth0, eth1, eth2), and one with two queues (eth3)
/// if the host can create the device for it.
fn network(qemu: &mut Command) {
    for (number, card) in ["e1000", "e1000e", "vmxnet3"].iter().enumerate() {
        qemu.args(["-netdev", &format!("hubport,hubid=0,id=cable{number}")]);
        qemu.args(["-device", &format!("{card},netdev=cable{number}")]);
    }
    // QEMU warns about a hub without a host. This one answers nothing from outside.
    qemu.args(["-netdev", "user,id=host,restrict=on"]);
    qemu.args(["-netdev", "hubport,hubid=0,id=cable,netdev=host"]);
    if host::can_make_tun().is_ok() {
        qemu.args(["-netdev", "tap,id=queues,queues=2,script=no,downscript=no"]);
        qemu.args(["-device", "virtio-net-pci,netdev=queues,mq=on,vectors=6"]);
    }
}
