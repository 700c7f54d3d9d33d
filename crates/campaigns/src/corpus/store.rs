//! The corpus on disk: one xz file for each campaign, in which each line is a run as `goodput lab run --json` prints it.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use lzma_rust2::{XzOptions, XzReader, XzWriter};

use goodput_tools::shell::root;

/// xz's preset, 0 to 9: its window of 8 MiB covers the records of several runs, which repeat each other's names.
const XZ_PRESET: u32 = 6;

/// Every line of the corpus, in the order of the files' names.
pub fn lines() -> Result<String> {
    let mut files: Vec<_> = fs::read_dir(folder())
        .context("read corpus/")?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|end| end == "xz"));
    files.sort();
    let mut lines = String::new();
    for path in files {
        let shown = path.display();
        let packed = fs::read(&path).with_context(|| format!("read {shown}"))?;
        let mut reader = XzReader::new(&packed[..], false);
        reader.read_to_string(&mut lines).with_context(|| format!("unpack {shown}"))?;
        if !lines.ends_with('\n') {
            lines.push('\n');
        }
    }
    Ok(lines)
}

/// Adds the lines of a campaign as a file of this name, and returns its path.
///
/// # Errors
/// When the name is no name, or there is such a file already.
pub fn add(name: &str, lines: &str) -> Result<PathBuf> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        bail!("{name:?}: a campaign's name has only letters, digits and hyphens");
    }
    let path = folder().join(format!("{name}.jsonl.xz"));
    if path.exists() {
        bail!("{} is there already: take another name", path.display());
    }
    fs::write(&path, pack(lines)?).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

fn folder() -> PathBuf {
    root().join("corpus")
}

fn pack(lines: &str) -> Result<Vec<u8>> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(XZ_PRESET))?;
    writer.write_all(lines.as_bytes())?;
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let lines = "{\"case\":\"x\"}\n".repeat(10_000);
        let packed = pack(&lines).unwrap();
        assert!(packed.len() < lines.len() / 50);
        let mut out = String::new();
        XzReader::new(&packed[..], false).read_to_string(&mut out).unwrap();
        assert_eq!(out, lines);
    }
}
