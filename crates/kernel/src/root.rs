//! The location of `/proc` and `/sys`, and reading files there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use goodput_model::Missing;

/// Longest file that is read. The largest, /proc/stat, stays under 100 KB on 500 CPUs.
const MAX_BYTES: u64 = 4 << 20;

/// Most files are shorter, and then read at once.
const USUAL_BYTES: usize = 4096;

/// The directory that holds `proc` and `sys`: `/`, or a made-up one in tests.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Root {
    /// A root at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The text of `file`, a path without the leading slash. Every file of /proc and /sys ends in a newline. A text
    /// without one was cut short, and the number at its end can't be trusted.
    pub fn read(&self, file: &str) -> Result<String, Missing> {
        whole(file, &self.read_bytes(file).map_err(|error| unreadable(file, &error))?)
    }

    /// The text of `file`, or `None` if there is no such file. A file that may not be read is not known to be absent.
    pub fn read_if_there(&self, file: &str) -> Result<Option<String>, Missing> {
        match self.read_bytes(file) {
            Ok(bytes) => whole(file, &bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(file, &error)),
        }
    }

    /// Where `file` is.
    pub(crate) fn file(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// Whether `file` can be opened, and if not, why.
    pub fn readable(&self, file: &str) -> Result<(), Missing> {
        File::open(self.path.join(file)).map(drop).map_err(|error| unreadable(file, &error))
    }

    /// The names in a folder, in no order, or `None` if there is no such folder.
    pub fn names(&self, folder: &str) -> Result<Option<Vec<String>>, Missing> {
        let listed = fs::read_dir(self.path.join(folder))
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
        let names: Vec<OsString> = match listed {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(folder, &error)),
        };
        Ok(Some(names.into_iter().filter_map(|name| name.into_string().ok()).collect()))
    }

    fn read_bytes(&self, file: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        let path: &Path = &self.path.join(file);
        File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The text of a whole file.
fn whole(file: &str, bytes: &[u8]) -> Result<String, Missing> {
    let text = String::from_utf8_lossy(bytes);
    match text.chars().next_back() {
        None => Err(Missing::because(format!("/{file} is empty"))),
        Some('\n') => Ok(text.into_owned()),
        Some(_) => Err(Missing::because(format!("/{file} is cut short"))),
    }
}

fn unreadable(file: &str, error: &io::Error) -> Missing {
    Missing::because(format!("can't read /{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_cut_and_absent_files_are_distinguished() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        for (name, content) in [("whole", "1\n"), ("cut", "1"), ("empty", "")] {
            std::fs::write(directory.path().join(name), content).unwrap();
        }
        assert_eq!(root.read("whole").unwrap(), "1\n");
        assert_eq!(root.read("cut").unwrap_err().to_string(), "/cut is cut short");
        assert_eq!(root.read("empty").unwrap_err().to_string(), "/empty is empty");
        assert!(root.read("absent").unwrap_err().to_string().starts_with("can't read /absent"));
        assert_eq!(root.read_if_there("absent"), Ok(None));
        assert!(root.readable("whole").is_ok() && root.readable("absent").is_err());
        let mut names = root.names("").unwrap().unwrap();
        names.sort();
        assert_eq!(names, ["cut", "empty", "whole"]);
        assert_eq!(root.names("absent"), Ok(None));
        assert!(root.names("whole").is_err(), "it is no folder");
    }
}
