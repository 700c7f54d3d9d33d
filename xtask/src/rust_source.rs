//! The Rust files of this repository, parsed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::Attribute;

use goodput_tools::shell::root;

/// One Rust file.
pub struct RustFile {
    /// Path from the root of the repository.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Its syntax tree.
    pub tree: syn::File,
}

impl RustFile {
    /// Parses `text`.
    pub fn parse(path: impl Into<PathBuf>, text: String) -> Result<Self> {
        let path = path.into();
        let tree = syn::parse_file(&text);
        let tree = tree.with_context(|| format!("{} is not valid Rust", path.display()))?;
        Ok(Self { path, text, tree })
    }

    /// Reads and parses a file, `path` being relative to the root of the repository.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(root().join(path));
        Self::parse(path, text.with_context(|| format!("can't read {}", path.display()))?)
    }
}

/// Every Rust file of the workspace and of fuzz/, sorted by path.
pub fn all() -> Result<Vec<RustFile>> {
    let mut paths = Vec::new();
    for folder in ["crates", "fuzz", "xtask"] {
        paths.extend(files(Path::new(folder), "rs")?);
    }
    paths.sort();
    paths.iter().map(|path| RustFile::read(path)).collect()
}

/// The files below `folder` with this extension, relative to the root of the repository.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let entries = fs::read_dir(root().join(folder));
    for entry in entries.with_context(|| format!("can't list {}", folder.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                paths.extend(files(&path, extension)?);
            }
        } else if path.extension().is_some_and(|other| other == extension) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Whether `attribute` is `name(… word …)`, such as `allow(dead_code)`.
pub fn names(attribute: &Attribute, name: &str, word: &str) -> bool {
    let mut found = false;
    if attribute.path().is_ident(name) {
        // Anything but a list of paths (`cfg(feature = "x")`) does not name the word.
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident(word);
            if let Ok(value) = meta.value() {
                value.parse::<syn::Expr>()?;
            }
            Ok(())
        });
    }
    found
}
