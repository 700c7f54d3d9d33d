//! The cells of kernel parameters among the side effects of a setting.

use std::path::Path;

/// The area that the cells belong to.
pub(crate) const ID: &str = "sysctl";
/// Where the parameters are.
pub(crate) const ROOT: &str = "/proc/sys";

/// The cell name of a parameter.
pub(crate) fn name(file: &Path) -> Option<String> {
    Some(format!("{ID}/{}", file.strip_prefix(ROOT).ok()?.to_str()?))
}
