//! The cells that kernel parameters are among what changes along with a setting.

use std::path::Path;

/// The area that the cells belong to.
pub(crate) const ID: &str = "sysctl";
/// Where the parameters are.
pub(crate) const ROOT: &str = "/proc/sys";

/// The name of the cell that a parameter is.
pub(crate) fn name(file: &Path) -> Option<String> {
    Some(format!("{ID}/{}", file.strip_prefix(ROOT).ok()?.to_str()?))
}
