//! Documents written by hand name what is there: every crate, every decision record, and no file that has moved.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::rust_source;
use goodput_tools::shell::root;

/// Pages that stand in the root and in `crates`.
const PAGES: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "crates/README.md"];

/// What a document leaves out or names wrongly.
pub fn problems() -> Result<Vec<String>> {
    let crates = names_in("crates", |path| path.is_dir())?;
    let decisions = names_in("docs/decisions", |path| path.is_file())?;
    let mut problems = missing("crates/README.md", &crates, |name| format!("| `{name}` |"))?;
    problems.extend(missing("ARCHITECTURE.md", &crates, |name| format!("`crates/{name}`"))?);
    let link = |name: &str| format!("(docs/decisions/{name})");
    problems.extend(missing("ARCHITECTURE.md", &decisions, link)?);
    let docs = rust_source::files(Path::new("docs"), "md")?;
    for page in PAGES.iter().map(PathBuf::from).chain(docs) {
        problems.extend(moved(&page, &read(&page)?));
    }
    Ok(problems)
}

/// The names of entries of a folder, sorted.
fn names_in(folder: &str, wanted: fn(&Path) -> bool) -> Result<Vec<String>> {
    let entries = fs::read_dir(root().join(folder));
    let mut names = Vec::new();
    for entry in entries.with_context(|| format!("can't list {folder}"))? {
        let entry = entry?;
        if wanted(&entry.path()) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The names whose `mention` is not in the page.
fn missing(page: &str, names: &[String], mention: fn(&str) -> String) -> Result<Vec<String>> {
    let text = read(Path::new(page))?;
    let absent = names.iter().map(|name| mention(name)).filter(|mention| !text.contains(mention));
    Ok(absent.map(|mention| format!("{page}: {mention} is missing")).collect())
}

/// Paths of sources in backquotes that do not exist.
fn moved(page: &Path, text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_other = |quoted: &str| quoted.starts_with('/') || quoted.contains([' ', '<', '*']);
    let is_path = |quoted: &&str| quoted.contains("/src/") && !is_other(quoted);
    let gone = quoted.filter(is_path).filter(|path| !exists(path));
    gone.map(|path| format!("{}: `{path}` does not exist", page.display())).collect()
}

/// A path stands for itself or for a file in `crates`, with or without `.rs`.
fn exists(path: &str) -> bool {
    let file = path.to_string() + ".rs";
    let places = [root(), root().join("crates")];
    places.iter().any(|place| place.join(path).exists() || place.join(&file).exists())
}

fn read(page: &Path) -> Result<String> {
    let text = fs::read_to_string(root().join(page));
    text.with_context(|| format!("can't read {}", page.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_moved_is_found_and_a_pattern_is_none() {
        let text =
            "`xtask/src/tidy.rs`, `wire/src/session`, `wire/src/<id>.rs`, `wire/src/gone.rs`";
        let found = moved(Path::new("x.md"), text);
        assert_eq!(found, ["x.md: `wire/src/gone.rs` does not exist"]);
    }

    #[test]
    fn a_name_that_a_page_leaves_out_is_found() {
        let names = ["model".into(), "nowhere".into()];
        let found = missing("crates/README.md", &names, |name| format!("| `{name}` |")).unwrap();
        assert_eq!(found, ["crates/README.md: | `nowhere` | is missing"]);
    }
}
