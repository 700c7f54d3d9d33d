//! Files of another root than `/`, for tests.

use std::path::{Path, PathBuf};

/// An absolute path below another root than `/`.
pub fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}
