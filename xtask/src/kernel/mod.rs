//! `cargo xtask kernel PACKAGE -- COMMAND`: runs a command under the kernel of a Debian package, in a virtual machine
//! whose root is this host's, read-only below a layer of memory.
//!
//! Kernels of distributions have what is often missing from the kernel of a build machine: netem, fq, cake, VLANs,
//! NFS, and drivers of devices with real rings.

mod guest;
mod host;
mod initramfs;
mod job;
mod package;
mod suite;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use guest::{Guest, Processor};
use job::Job;
use package::Kernel;

pub use suite::check;

/// Options of `cargo xtask kernel`.
#[derive(clap::Args)]
pub struct Options {
    /// `debian` for the newest kernel of this Debian release, a series such as 6.12, or the name of a package such as
    /// linux-image-6.1.0-56-amd64
    package: String,
    /// Give up after this time, seconds
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Run on the processor itself (/dev/kvm) instead of emulating one
    #[arg(long)]
    kvm: bool,
    /// The command, which runs as root in this folder
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

/// Runs the command, and exits as it did.
pub fn run(options: &Options) -> Result<()> {
    host::can_boot().map_err(|what| anyhow::anyhow!("a guest needs {what}"))?;
    if let Err(what) = host::can_make_tun() {
        eprintln!("the guest has no eth3, which needs {what}");
    }
    let kernel = Kernel::provide(&options.package)?;
    let processor = if options.kvm { Processor::Own } else { Processor::Emulated };
    let mut guest = Guest::boot(&kernel, processor, &Job::here(&options.command)?)?;
    let (stdout, stderr) = guest.output()?;
    let copies = [
        thread::spawn(move || copy(stdout, io::stdout())),
        thread::spawn(move || copy(stderr, io::stderr())),
    ];
    let status = guest.wait(Duration::from_secs(options.seconds));
    for copy in copies {
        copy.join().map_err(|_| anyhow::anyhow!("a reader of the guest's output died"))?;
    }
    std::process::exit(status?)
}

/// Passes output on as it comes. A reader who has gone does not stop the command.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = [0; 4096];
    while let Ok(length) = from.read(&mut buffer)
        && length > 0
    {
        let _ = to.write_all(&buffer[..length]).and_then(|()| to.flush());
    }
}
