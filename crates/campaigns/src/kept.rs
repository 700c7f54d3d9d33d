//! The results of a campaign in a file, one JSON line each. A campaign that was stopped can go on from there.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

/// A file of results that can be added to.
pub struct KeptFile(File);

impl KeptFile {
    /// An empty file.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self(file))
    }

    /// The file with the results that it has, if there is one. A result that was only half written when the campaign was
    /// stopped is removed.
    pub fn go_on(path: &Path) -> Result<Self> {
        let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = opened.with_context(|| format!("open {}", path.display()))?;
        let text = fs::read(path).with_context(|| format!("read {}", path.display()))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        file.set_len(whole as u64).with_context(|| format!("shorten {}", path.display()))?;
        Ok(Self(file))
    }

    /// Adds a result, which is one line of JSON.
    pub fn add(&mut self, line: &str) -> Result<()> {
        self.0.write_all(format!("{line}\n").as_bytes()).context("keep a result")
    }
}

/// The results in a file.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    read_by(path, |line| Ok(serde_json::from_str(line)?))
}

/// What a function makes of each result in a file.
pub fn read_by<T>(path: &Path, parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let result = |(number, line): (usize, &str)| {
        let at = || format!("{}:{}: no result of this campaign", path.display(), number + 1);
        parse(line).with_context(at)
    };
    text.lines().enumerate().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_goes_on_after_its_last_whole_result() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.jsonl");
        let mut file = KeptFile::go_on(&path).unwrap();
        file.add("1").unwrap();
        fs::write(&path, "1\n2\n[3, ").unwrap();
        let mut file = KeptFile::go_on(&path).unwrap();
        file.add("4").unwrap();
        assert_eq!(read::<u8>(&path).unwrap(), [1, 2, 4]);
        KeptFile::create(&path).unwrap();
        assert!(read::<u8>(&path).unwrap().is_empty());
    }

    #[test]
    fn a_line_that_is_no_result_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.jsonl");
        fs::write(&path, "1\nnothing\n").unwrap();
        let why = read::<u8>(&path).unwrap_err().to_string();
        assert!(why.ends_with("kept.jsonl:2: no result of this campaign"), "{why}");
    }
}
