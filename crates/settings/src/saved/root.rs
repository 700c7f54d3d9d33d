//! Files of another root than `/`, for tests.

use std::path::{Path, PathBuf};

/// An absolute path below another root than `/`.
pub fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// The absolute path below another root as it is called there.
pub fn seen_from(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    Path::new("/").join(path).to_string_lossy().into_owned()
}
