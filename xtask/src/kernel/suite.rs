//! The step `kernel` of `cargo xtask test`: runs tests that were built for this host again under Debian's newest
//! kernel, and some that only its devices and queueing disciplines can host.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use goodput_testing::everything_required;

use super::guest::{Guest, Processor};
use super::host;
use super::job::{Job, quoted};
use super::package::Kernel;
use crate::tally::Tally;
use crate::test::transcribe;
use crate::test_binaries;
use goodput_tools::shell::root;

/// The kernel that everything runs under.
const KERNEL: &str = "debian";
/// Far longer than usual: a busy machine takes longer, which is no failure.
const SUITE_TIMEOUT: Duration = Duration::from_secs(1800);

/// Some tests of one test binary.
struct Suite {
    /// The source of the binary's root module.
    source: &'static str,
    /// The tests to run, each by a part of its name; empty for all.
    tests: &'static [&'static str],
}

const SUITES: [Suite; 2] = [
    Suite { source: "crates/goodput/tests/kernel/main.rs", tests: &[] },
    // With netem under them.
    Suite { source: "crates/lab/src/lib.rs", tests: &["lab::tests"] },
];

/// Boots once, runs all suites, and counts their tests.
pub fn check() -> Result<Tally> {
    let fetch =
        || Kernel::provide(KERNEL).map_err(|error| format!("the package of a kernel: {error:#}"));
    let kernel = host::can_boot().and_then(|()| can_have_eth3()).and_then(|()| fetch());
    let kernel = match kernel {
        Ok(kernel) => kernel,
        Err(what) => return Ok(skip(&what)),
    };
    println!("  Linux {}", kernel.release);
    let words = ["sh", "-c", &script(&test_binaries::all()?)?].map(OsString::from);
    let mut guest = Guest::boot(&kernel, Processor::Emulated, &Job::here(&words)?)?;
    let (stdout, stderr) = guest.output()?;
    let (transcript, status) = thread::scope(|scope| {
        let waits = scope.spawn(|| guest.wait(SUITE_TIMEOUT));
        (transcribe(stdout, stderr), waits.join())
    });
    let status =
        status.map_err(|_| anyhow::anyhow!("the thread that waits for the guest panicked"))?;
    let mut tally = transcript?.tally(matches!(status, Ok(0)), &BTreeSet::new());
    if let Err(error) = status {
        println!("  {error:#}");
        tally += Tally::failure(format!("{error:#}"));
    }
    Ok(tally)
}

/// Nothing, or why the guest would have no eth3. In the guest no test may be skipped, so one missing card keeps all
/// tests from running; the message says so.
fn can_have_eth3() -> Result<(), String> {
    host::can_make_tun()
        .map_err(|what| format!("{what} (for eth3, without which none of the suites runs)"))
}

fn skip(what: &str) -> Tally {
    let needs = format!("kernel: needs {what}");
    println!("SKIPPED {needs}");
    if everything_required() { Tally::failure(needs) } else { Tally::SKIPPED }
}

/// Runs every suite. The guest hosts all their tests, so none may be skipped. Each suite runs in the folder of its
/// package, as with cargo, and fails if one of its tests does.
fn script(binaries: &[(PathBuf, String)]) -> Result<String> {
    let mut script = String::from("export GOODPUT_REQUIRE=all\nfailed=0\n");
    for suite in &SUITES {
        let source = root().join(suite.source);
        let (_, binary) = binaries
            .iter()
            .find(|(of, _)| *of == source)
            .with_context(|| format!("cargo builds no test of {}", suite.source))?;
        let package = source.ancestors().find(|folder| folder.join("Cargo.toml").exists());
        let package = package.context("a source is in a package")?.to_string_lossy();
        let tests: String = suite.tests.iter().map(|test| format!(" {}", quoted(test))).collect();
        script += &format!("(cd {} && {}{tests}) || failed=1\n", quoted(&package), quoted(binary));
    }
    Ok(script + "exit $failed\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_runs_in_the_folder_of_its_package() {
        let binary =
            |suite: &Suite| (root().join(suite.source), format!("/built/{}", suite.source));
        let all: Vec<_> = SUITES.iter().map(binary).collect();
        let script = script(&all).unwrap();
        let root = root().display().to_string();
        let lab = format!(
            "(cd '{root}/crates/lab' && '/built/crates/lab/src/lib.rs' 'lab::tests') || failed=1\n"
        );
        assert!(script.contains(&lab), "{script}");
        assert!(script.ends_with("exit $failed\n"), "{script}");
        assert_eq!(script.matches("(cd ").count(), SUITES.len());
    }

    #[test]
    fn a_suite_that_nobody_builds_is_an_error() {
        assert!(script(&[]).unwrap_err().to_string().contains(SUITES[0].source));
    }
}
