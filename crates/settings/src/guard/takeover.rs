//! The work of the guard: wait, and put back.

use std::io::{self, Write};
use std::path::Path;

use super::READY;
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
        say(&format!(
            "goodput: the run ended without putting this back: {} {}",
            entry.setting, entry.outcome
        ));
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
