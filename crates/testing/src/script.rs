//! Programs that tests write and run.

use std::path::Path;
use std::process::Command;

/// Writes a script to `path` that can be run at once. Another process writes it: a program that any process has open to
/// write can't be run (execve(2), ETXTBSY), and a child that another test is just starting would have ours open.
///
/// # Panics
///
/// If it can't be written.
#[track_caller]
pub fn write_script(path: &Path, text: &str) {
    let write = "printf '%s' \"$1\" > \"$2\" && chmod 755 \"$2\"";
    let made = Command::new("sh").args(["-c", write, "sh", text]).arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "{} can't be written", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_runs_while_other_threads_start_programs() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let script = folder.path().join(format!("script {thread}"));
                scope.spawn(move || {
                    for turn in 0..20 {
                        write_script(&script, &format!("#!/bin/sh\nexit {turn}\n"));
                        assert_eq!(Command::new(&script).status().unwrap().code(), Some(turn));
                    }
                });
            }
        });
    }
}
