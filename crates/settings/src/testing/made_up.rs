//! Host files that no test machine has: interrupts, frequencies.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

thread_local! {
    static ROOT: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Where the calling thread finds made-up files of the host, if any.
pub(crate) fn made_up_root() -> Option<PathBuf> {
    ROOT.with_borrow(Clone::clone)
}

/// Files that the calling thread takes for the host's until this value is dropped.
pub(crate) struct MadeUp(tempfile::TempDir);

impl MadeUp {
    pub(crate) fn host(files: &[(&str, &str)]) -> Self {
        let folder = super::folder();
        ROOT.set(Some(folder.path().to_owned()));
        let host = Self(folder);
        files.iter().for_each(|(path, text)| host.write(path, text));
        host
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let file = self.0.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Makes `path` a link to a file of this host.
    pub(crate) fn link(&self, path: &str, to: &str) {
        std::os::unix::fs::symlink(to, self.0.path().join(path)).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).unwrap()
    }
}

impl Drop for MadeUp {
    fn drop(&mut self) {
        ROOT.set(None);
    }
}
