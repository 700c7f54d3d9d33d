//! Other files that an old program writes: its output, and its process id.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// The files that were named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Output is appended here, including errors.
    pub log: Option<PathBuf>,
    /// Holds the process id while the process runs.
    pub pid: Option<PathBuf>,
}

/// A file with a process id, which is removed with the process.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    file: File,
}

impl Files {
    /// The paths as typed.
    pub fn named(log: Option<&str>, pid: Option<&str>) -> Self {
        Self { log: log.map(PathBuf::from), pid: pid.map(PathBuf::from) }
    }

    /// From now on, this process writes to these files. The process id stays there until the returned
    /// value is dropped.
    pub fn begin(&self) -> Result<Option<PidFile>> {
        if let Some(path) = &self.log {
            let file = appended(path)?;
            let to = || format!("can't print to {}", path.display());
            rustix::stdio::dup2_stdout(&file).with_context(to)?;
            rustix::stdio::dup2_stderr(&file).with_context(to)?;
        }
        let path = self.pid.as_deref();
        let kept = |path: &Path| {
            let file = write_pid(path, std::process::id())?;
            Ok(PidFile { path: path.into(), file })
        };
        path.map(kept).transpose()
    }

    /// The same for a process that will be started.
    pub fn give_to(&self, command: &mut Command) -> Result<()> {
        match &self.log {
            Some(path) => {
                let file = appended(path)?;
                let again = file.try_clone().context("can't share the log file")?;
                command.stdout(file).stderr(again);
            }
            None => {
                command.stdout(Stdio::null());
            }
        }
        Ok(())
    }

    /// Notes the id of the process that detaches from the terminal. The file stays when it ends.
    pub fn note_pid(&self, id: u32) -> Result<()> {
        self.pid.as_deref().map_or(Ok(()), |path| write_pid(path, id).map(drop))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // The file may already be gone. A server that root started may no longer be allowed to remove
        // it, but can leave it empty.
        if std::fs::remove_file(&self.path).is_err() {
            let _ = self.file.set_len(0);
        }
    }
}

fn appended(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("can't open the log file {}", path.display()))
}

fn write_pid(path: &Path, id: u32) -> Result<File> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(id.to_string().as_bytes())?;
        Ok::<_, std::io::Error>(file)
    };
    write().with_context(|| format!("can't write the process id to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_id_is_there_while_it_runs() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pid");
        let files = Files::named(None, path.to_str());
        let kept = files.begin().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
        drop(kept);
        assert!(!path.exists());

        let nowhere = Files::named(None, Some("/nonexistent/pid"));
        assert!(nowhere.begin().unwrap_err().to_string().contains("/nonexistent/pid"));
        assert!(Files::default().begin().unwrap().is_none());
    }

    #[test]
    fn a_log_is_continued() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let files = Files::named(path.to_str(), None);
        for _ in 0..2 {
            let mut echo = Command::new("echo");
            files.give_to(echo.arg("said")).unwrap();
            assert!(echo.status().unwrap().success());
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "said\nsaid\n");
    }
}
