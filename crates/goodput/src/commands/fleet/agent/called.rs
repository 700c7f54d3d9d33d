//! The tasks that this agent was called for, on its disk: a task opens a server once, whoever shows it again, and also after
//! a restart.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::commands::fleet::durable::replace;

/// The name of the file.
const FILE: &str = "called";

/// Tasks, and until when each could be shown again, seconds since 1970 by the clock of the bus.
pub(super) struct Called {
    folder: PathBuf,
    tasks: RefCell<HashMap<String, f64>>,
}

impl Called {
    /// Those of the agent whose files are in `folder`. A line that can't be read is left out.
    pub fn open(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        let text = match fs::read_to_string(&file) {
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read,
        };
        let text = text.with_context(|| format!("can't read {}", file.display()))?;
        let line = |line: &str| {
            let (task, until) = line.split_once(' ')?;
            Some((task.to_owned(), until.parse().ok()?))
        };
        let tasks = RefCell::new(text.lines().filter_map(line).collect());
        Ok(Self { folder: folder.to_owned(), tasks })
    }

    /// Notes a task, which can be shown again until `until_s`. `false`: it was there before.
    pub fn note(&self, task: &str, until_s: f64, now_s: f64) -> Result<bool> {
        let mut tasks = self.tasks.borrow_mut();
        tasks.retain(|_, until_s| *until_s >= now_s);
        if tasks.contains_key(task) {
            return Ok(false);
        }
        tasks.insert(task.into(), until_s);
        let lines = tasks.iter().map(|(task, until_s)| format!("{task} {until_s}\n"));
        self.write(&lines.collect::<String>())
            .with_context(|| format!("can't write {}", self.folder.join(FILE).display()))?;
        Ok(true)
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        replace(&self.folder, &self.folder.join(FILE), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_noted_once_until_it_expires_and_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let called = Called::open(folder.path()).unwrap();
        assert!(called.note("t-1", 100.0, 0.0).unwrap());
        assert!(!called.note("t-1", 100.0, 1.0).unwrap());
        let again = Called::open(folder.path()).unwrap();
        assert!(!again.note("t-1", 100.0, 100.0).unwrap());
        assert!(again.note("t-2", 300.0, 100.0).unwrap());
        assert!(
            again.note("t-1", 300.0, 101.0).unwrap(),
            "it had expired, and is refused for that"
        );
        fs::write(folder.path().join(FILE), "half\nt-3 x\n").unwrap();
        assert!(Called::open(folder.path()).unwrap().note("t-3", 9.0, 0.0).unwrap());
    }
}
