//! The work of the guard: wait, and put back.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{NAME, READY};
use crate::by_ssh;
use crate::journal::JournalFile;
use crate::restore::RestoreReport;
use crate::settle::{UndoRequest, settle};

/// The guard's whole life: waits until the other end of standard input is closed, then puts back
/// what `journal` holds, if its run did not. Returns the exit code: 0 if nothing
/// is left changed, 1 if something is, 2 if the journal could not be read.
pub fn guard_main(journal: &Path) -> i32 {
    if announce().is_err() {
        return 2;
    }
    // Any end of the input means the same: the run is over.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    match JournalFile::take_over(journal) {
        Ok(None) => 0,
        Ok(Some(journal)) => report(&settle(journal, UndoRequest::default())),
        Err(error) => {
            say(&format!("goodput: can't read {}: {error}", journal.display()));
            2
        }
    }
}

/// Whether the guard of `journal` runs, as far as is visible from here. Between the death of its run and its first step, its
/// command line is all that shows it.
pub(crate) fn runs(journal: &Path) -> bool {
    let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.any(|process| {
        is_guard(&process.path(), journal).unwrap_or(false)
            && by_ssh::is_trusted(&process.path()).unwrap_or(false)
    })
}

/// Whether a process has the command line of the guard of `journal`. `None` if it has ended.
fn is_guard(process: &Path, journal: &Path) -> Option<bool> {
    let command = fs::read(process.join("cmdline")).ok()?;
    let words: Vec<_> = command.strip_suffix(b"\0")?.split(|byte| *byte == 0).collect();
    let is_named = words.first()? == &NAME.as_bytes();
    Some(is_named && words.last()? == &journal.as_os_str().as_bytes())
}

/// Reports that it is ready, and closes the pipe so that the run need not read any more.
fn announce() -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(format!("{READY}\n").as_bytes())?;
    stdout.flush()?;
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}

fn report(report: &RestoreReport) -> i32 {
    for entry in &report.entries {
        say(&format!("goodput: settings of the ended run: {}: {}", entry.setting, entry.outcome));
    }
    for file in &report.files {
        say(&format!("goodput: files of the ended run: {file}"));
    }
    if let Some(problem) = &report.problem {
        say(&format!("goodput: {}: {problem}", report.journal.display()));
    }
    i32::from(!report.is_clean())
}

/// The terminal may be gone by now; putting back goes on without it.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
