//! Runs other programs from the root of the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// A command that starts in the root of the repository and has no stdin.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// The cargo that runs us, with the lock files unchanged.
pub fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    command.arg("--locked").args(arguments);
    command
}

/// Runs `command` and shows its output; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("can't start {}", spelled(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", spelled(command));
    }
    Ok(())
}

/// Runs `command` and returns what it printed on stdout.
pub fn capture(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::piped()).output();
    let output = output.with_context(|| format!("can't start {}", spelled(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", spelled(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// This machine in a line of a page: `kernel: Linux 6.18 x86_64, 2 CPUs`.
pub fn machine() -> Result<String> {
    let kernel = capture(command("uname").args(["-srm"]))?;
    Ok(format!("kernel: {}, {} CPUs", kernel.trim(), std::thread::available_parallelism()?))
}

/// Whether a program of this name is on the path, or where Debian puts root's programs.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(["/usr/sbin", "/sbin"]).any(|dir| Path::new(dir).join(name).is_file())
}

fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    format!("`{line}`")
}
