//! Where the history is kept by default.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::StoreError;

/// `$XDG_DATA_HOME/goodput/history.db`, or `~/.local/share/goodput/history.db`, for root as for
/// everyone. A relative path in the variable is ignored, as the XDG Base Directory Specification
/// (version 0.8) requires.
///
/// Errors: neither variable holds an absolute path.
pub fn default_path() -> Result<PathBuf, StoreError> {
    path_in(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"))
}

fn path_in(data_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, StoreError> {
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let data = data_home.and_then(absolute);
    let standard = || home.and_then(absolute).map(|home| home.join(".local/share"));
    let data = data.or_else(standard).ok_or(StoreError::NoHome)?;
    Ok(data.join("goodput").join("history.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(data_home: Option<&str>, home: Option<&str>) -> Option<String> {
        let path = path_in(data_home.map(Into::into), home.map(Into::into)).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    #[test]
    fn the_xdg_rule_holds() {
        let standard = Some("/home/a/.local/share/goodput/history.db".to_string());
        assert_eq!(path(Some("/data"), Some("/home/a")), Some("/data/goodput/history.db".into()));
        assert_eq!(path(Some("data"), Some("/home/a")), standard);
        assert_eq!(path(Some(""), Some("/home/a")), standard);
        assert_eq!(path(None, Some("/home/a")), standard);
        assert_eq!(path(None, None), None);
        assert_eq!(path(None, Some("")), None);
    }
}
