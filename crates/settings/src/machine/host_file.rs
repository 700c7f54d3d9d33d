//! Where files of the whole host are: below /, or in a test below a directory with made-up ones.

use std::path::PathBuf;

/// The place of a file with this absolute path.
pub(crate) fn host_file(path: &str) -> PathBuf {
    #[cfg(test)]
    if let Some(root) = crate::testing::made_up_root() {
        return root.join(path.trim_start_matches('/'));
    }
    path.into()
}
