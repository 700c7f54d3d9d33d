//! goodput on a terminal of its own, and the CPU time that it takes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use super::Stage;
use crate::bench::net::wait_for;

/// A program on a terminal that nobody looks at, 160 columns wide; it ends with this.
pub struct OnTerminal {
    /// script(1), which has the terminal.
    script: Child,
    pid: u32,
}

impl OnTerminal {
    /// Starts goodput with these arguments; none has a space.
    pub fn start(stage: &Stage<'_>, arguments: &[&str]) -> Result<Self> {
        let named = stage.folder().join("pid");
        // The one of an earlier run would be taken for this one's.
        let _ = fs::remove_file(&named);
        let command = format!(
            "stty rows 50 cols 160; echo $$ > {}; exec {} {}",
            named.display(),
            stage.program.display(),
            arguments.join(" ")
        );
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"]);
        script.env("TERM", "xterm-256color").env_remove("NO_COLOR").env_remove("CI");
        script.env("XDG_DATA_HOME", stage.folder()).env("XDG_STATE_HOME", stage.folder());
        // With its end, script would end the program.
        let script = script.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut on_terminal = Self { script: script.context("can't start script(1)")?, pid: 0 };
        wait_for("a program on a terminal", || {
            let pid = fs::read_to_string(&named).unwrap_or_default().trim().parse();
            on_terminal.pid = pid.unwrap_or(0);
            Ok(on_terminal.pid != 0)
        })?;
        Ok(on_terminal)
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> Result<bool> {
        Ok(self.script.try_wait()?.is_none())
    }

    /// CPU time so far of its threads for which `wanted` is true of their name, seconds. `None` if there is no such thread
    /// (any more).
    pub fn cpu_s(&self, wanted: impl Fn(&str) -> bool) -> Option<f64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?.flatten();
        let of_thread = |thread: fs::DirEntry| {
            let name = fs::read_to_string(thread.path().join("comm")).ok()?;
            wanted(name.trim()).then(|| on_cpu_s(&thread.path()))?
        };
        threads.filter_map(of_thread).reduce(|sum, one| sum + one)
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // If this fails, it has already ended. The terminal ends with it, and with the terminal the program.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

/// Nanoseconds on a CPU are the first number of schedstat (Documentation/scheduler/sched-stats.rst).
fn on_cpu_s(thread: &Path) -> Option<f64> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}
