//! `cargo xtask docs`: the documents that the program generates about itself.
//!
//! They are in docs/ beside the handwritten ones. A folder there that the program generates
//! contains nothing else, so that pages of removed verbs disappear.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use goodput_tools::shell::{capture, cargo, command, root, run as run_command};

/// Options of `cargo xtask docs`.
#[derive(clap::Args)]
pub struct Options {
    /// Changes nothing; fails when a document is not as the program would generate it.
    #[arg(long)]
    check: bool,
}

/// Files of one folder tree, by path in the tree.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// Generates the documents, or reports which ones are out of date.
pub fn run(options: &Options) -> Result<()> {
    run_command(&mut cargo(["build", "--quiet", "--workspace"]))?;
    if options.check {
        let problems = problems()?;
        if !problems.is_empty() {
            bail!("docs/ is out of date:\n  {}", problems.join("\n  "));
        }
        return Ok(());
    }
    update(&root().join("docs"), &generate()?)
}

/// Differences between docs/ and what the built program generates.
pub fn problems() -> Result<Vec<String>> {
    let mut problems = differences(&generate()?, &read_tree(&root().join("docs"))?);
    if !problems.is_empty() {
        problems.push("`cargo xtask docs` writes them anew".into());
    }
    Ok(problems)
}

fn generate() -> Result<Tree> {
    let folder = tempfile::tempdir().context("can't make a folder for the documents")?;
    let program = target_directory()?.join("debug/goodput");
    let mut generate = command(program.to_str().context("the target directory is not UTF-8")?);
    // Help is as wide as $COLUMNS and shows values of variables, so run without this user's variables.
    capture(generate.env_clear().args(["generate", "reference"]).arg(folder.path()))?;
    let tree = read_tree(folder.path())?;
    if tree.is_empty() {
        bail!("`goodput generate reference` wrote nothing");
    }
    Ok(tree)
}

pub fn target_directory() -> Result<PathBuf> {
    let metadata = capture(&mut cargo(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let folder = metadata["target_directory"].as_str();
    folder.map(Into::into).context("cargo metadata names no target directory")
}

fn differences(fresh: &Tree, present: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, new) in fresh {
        match present.get(path) {
            None => problems.push(format!("docs/{} is missing", path.display())),
            Some(old) if old != new => {
                problems.push(format!("docs/{} {}", path.display(), first_difference(old, new)));
            }
            Some(_) => {}
        }
    }
    let left_over = left_over(fresh, present);
    problems.extend(left_over.map(|path| format!("docs/{} is left over", path.display())));
    problems
}

/// Files in generated folders that are no longer generated.
fn left_over<'a>(fresh: &'a Tree, present: &'a Tree) -> impl Iterator<Item = &'a PathBuf> {
    present.keys().filter(|path| {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let generated = |folder| fresh.keys().any(|other| other.parent() == Some(folder));
        !fresh.contains_key(*path) && folder.is_some_and(generated)
    })
}

fn first_difference(old: &[u8], new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let (mut old, mut new) = (old.lines(), new.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => break,
            (is, should) if is != should => {
                let quoted =
                    |line: Option<&str>| line.map_or("absent".into(), |l| format!("`{l}`"));
                return format!("line {number} is {}, not {}", quoted(is), quoted(should));
            }
            _ => {}
        }
    }
    "differs in its line ends".into()
}

fn update(docs: &Path, fresh: &Tree) -> Result<()> {
    let present = read_tree(docs)?;
    for path in left_over(fresh, &present) {
        fs::remove_file(docs.join(path))?;
        println!("removed docs/{}", path.display());
    }
    for (path, text) in fresh.iter().filter(|(path, text)| present.get(*path) != Some(*text)) {
        let file = docs.join(path);
        fs::create_dir_all(file.parent().unwrap_or(docs))?;
        fs::write(&file, text).with_context(|| format!("can't write {}", file.display()))?;
        println!("wrote docs/{}", path.display());
    }
    Ok(())
}

fn read_tree(top: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut folders = vec![top.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder);
        for entry in entries.with_context(|| format!("can't list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                tree.insert(path.strip_prefix(top)?.into(), fs::read(&path)?);
            }
        }
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        files.iter().map(|(path, text)| (path.into(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn what_is_written_by_hand_is_left_alone() {
        let fresh = tree(&[("cli.md", "a\n"), ("man/x.1", "x\n")]);
        let present = tree(&[("cli.md", "a\n"), ("man/x.1", "x\n"), ("protocol.md", "by hand")]);
        assert_eq!(differences(&fresh, &present), Vec::<String>::new());
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        let fresh = tree(&[("cli.md", "a\nb\n"), ("man/x.1", "x\n"), ("new.md", "")]);
        let present = tree(&[("cli.md", "a\nc\n"), ("man/x.1", "x"), ("man/gone.1", "")]);
        let expected = [
            "docs/cli.md line 2 is `c`, not `b`",
            "docs/man/x.1 differs in its line ends",
            "docs/new.md is missing",
            "docs/man/gone.1 is left over",
        ];
        assert_eq!(differences(&fresh, &present), expected);
    }

    #[test]
    fn an_update_leaves_no_difference() {
        let docs = tempfile::tempdir().unwrap();
        fs::create_dir(docs.path().join("man")).unwrap();
        fs::write(docs.path().join("man/gone.1"), "").unwrap();
        fs::write(docs.path().join("protocol.md"), "by hand").unwrap();
        let fresh = tree(&[("cli.md", "a"), ("man/x.1", "x")]);
        update(docs.path(), &fresh).unwrap();
        let present = read_tree(docs.path()).unwrap();
        assert_eq!(differences(&fresh, &present), Vec::<String>::new());
        assert!(present.contains_key(Path::new("protocol.md")));
    }
}
