//! The results of a campaign in a file, one JSON line each. A campaign that was stopped can go on from there.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
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

/// Which case of which campaign.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The case's name.
    pub name: &'a str,
    /// What was drawn for it, in any form that differs with it.
    pub drawn: &'a str,
}

/// The cases of which no result is there yet.
///
/// # Errors
/// When a result is of another case with the same name: the file is of another campaign, with another seed perhaps.
pub fn left<'a, C>(
    cases: Vec<C>,
    results: impl Iterator<Item = Identity<'a>>,
    identity: impl Fn(&C) -> Identity<'_>,
) -> Result<Vec<C>> {
    let drawn: HashMap<_, _> = results.map(|result| (result.name, result.drawn)).collect();
    let mut left = Vec::new();
    for case in cases {
        let Identity { name, drawn: wanted } = identity(&case);
        match drawn.get(name) {
            None => left.push(case),
            Some(drawn) if *drawn == wanted => {}
            Some(_) => bail!(
                "{name} is another case in the file of results: go on with the arguments of that campaign, or name another \
                 file with --keep"
            ),
        }
    }
    Ok(left)
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
    fn a_campaign_does_not_go_on_with_cases_of_another_one() {
        let results = [("a-1", "seed 1"), ("b-2", "seed 1")];
        let left_of = |cases: &[(&'static str, &'static str)]| {
            let identity = |(name, drawn): (&'static str, &'static str)| Identity { name, drawn };
            left(cases.to_vec(), results.into_iter().map(identity), |case| identity(*case))
        };
        assert_eq!(left_of(&[("b-2", "seed 1"), ("c-3", "seed 1")]).unwrap(), [("c-3", "seed 1")]);
        let why = left_of(&[("a-1", "seed 2")]).unwrap_err().to_string();
        assert!(why.starts_with("a-1 is another case"), "{why}");
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
