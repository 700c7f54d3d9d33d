//! Installs goodput under the old names in a directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::ALL;

/// Creates a symbolic link to this program for every name, and returns the links. Existing files are
/// never replaced; only links of ours may be there already.
pub fn install(directory: &Path) -> Result<Vec<PathBuf>> {
    let program = std::env::current_exe().context("can't find goodput's own file")?;
    let links: Vec<_> = ALL.iter().map(|program| directory.join(program.name)).collect();
    // All or none: otherwise, names that are already taken would show only later.
    for link in &links {
        let taken = fs::symlink_metadata(link).is_ok();
        if taken && fs::read_link(link).ok().as_ref() != Some(&program) {
            bail!("{} already exists; remove it, or choose another directory", link.display());
        }
    }
    fs::create_dir_all(directory).with_context(|| format!("can't make {}", directory.display()))?;
    for link in &links {
        if fs::symlink_metadata(link).is_err() {
            let to = || format!("can't link {} to {}", link.display(), program.display());
            symlink(&program, link).with_context(to)?;
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_made_once_and_replace_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let links = install(directory.path()).unwrap();
        assert_eq!(links.len(), ALL.len());
        assert_eq!(fs::read_link(&links[0]).unwrap(), std::env::current_exe().unwrap());
        assert_eq!(install(directory.path()).unwrap(), links);
        fs::remove_file(&links[1]).unwrap();
        fs::write(&links[1], "another program").unwrap();
        fs::remove_file(&links[0]).unwrap();
        assert!(install(directory.path()).unwrap_err().to_string().contains("already exists"));
        assert!(!links[0].exists());
    }
}
