//! Kept runs, judged by today's rules without running anything.

use std::io::Write;
use std::process::Stdio;
use std::thread;

use anyhow::{Context, Result, bail};

use goodput_tools::shell::{self, cargo, command};

/// The lines of kept runs with the verdicts and findings of today's rules. Lines without a record stay as they are.
pub fn judge_again(lines: &str) -> Result<String> {
    // Built with the whole workspace: alone, it would get other features of its dependencies, and so a second build.
    shell::run(&mut cargo(["build", "--quiet", "--workspace", "--example=rejudge"]))?;
    let mut judge = command("target/debug/examples/rejudge");
    judge.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = judge.spawn().context("start the example `rejudge`")?;
    let mut input = child.stdin.take().context("the example has no standard input")?;
    let said = thread::scope(|scope| {
        // Written beside reading, because both pipes are shorter than the lines. If it stops reading, its end says why.
        scope.spawn(move || input.write_all(lines.as_bytes()));
        child.wait_with_output()
    })?;
    if !said.status.success() {
        bail!("the example `rejudge` ended with {}", said.status);
    }
    String::from_utf8(said.stdout).context("the example `rejudge` printed no UTF-8")
}
