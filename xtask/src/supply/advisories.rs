//! The copy of the RustSec advisory list: for each advisory about a package of ours, the facts that decide
//! whether it concerns us; and the names of all other packages with advisories.
//!
//! Facts only: no sentence of an advisory is copied. `cargo xtask advisories` renews the copy.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use semver::VersionReq;
use serde::{Deserialize, Serialize};

use super::packages::{self, Package};
use super::policy::Policy;
use goodput_tools::shell::{capture, command, root};

/// Where the list comes from.
const ORIGIN: &str = "https://github.com/RustSec/advisory-db";

/// The copy.
const FILE: &str = "xtask/advisories.toml";

/// Options of `cargo xtask advisories`.
#[derive(clap::Args)]
pub struct Options {
    /// A clone of the list, if it is not to be fetched from GitHub.
    clone: Option<PathBuf>,
}

/// The parsed copy.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Time of the list's last change, seconds since 1970.
    changed_unix_s: u64,
    /// Other packages with advisories. A new copy is needed when goodput begins to use one.
    elsewhere: BTreeSet<String>,
    /// Advisories about packages of ours.
    advisory: Vec<Advisory>,
}

/// One advisory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Advisory {
    id: String,
    package: String,
    date: String,
    /// Versions without the fault.
    patched: Vec<VersionReq>,
    /// Versions that never had the fault.
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

/// The copied part of an advisory, as it is in the list.
#[derive(Deserialize)]
struct Original {
    advisory: Head,
    versions: Versions,
}

#[derive(Deserialize)]
struct Head {
    id: String,
    package: String,
    date: String,
    withdrawn: Option<String>,
}

#[derive(Deserialize)]
struct Versions {
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

impl List {
    /// Reads the copy.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string(root().join(FILE)).with_context(|| format!("no {FILE}"))?;
        toml::from_str(&text).with_context(|| format!("{FILE} is not as it was made"))
    }

    /// How old the copy is, in words.
    pub fn age(&self) -> String {
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(self.changed_unix_s);
        let age = SystemTime::now().duration_since(changed).unwrap_or_default();
        format!("the copy of the advisory list is {} days old", age.as_secs() / 86_400)
    }

    /// Advisories that concern what we use.
    pub fn problems(&self, packages: &[Package], policy: &Policy) -> Vec<String> {
        let foreign: Vec<_> = packages.iter().filter(|package| package.source.is_some()).collect();
        let of = |advisory: &Advisory| {
            let concerned = foreign.iter().find(|package| advisory.concerns(package));
            concerned.map(|package| {
                (advisory.id.clone(), format!("{} {}", package.name, package.version))
            })
        };
        let found: Vec<_> = self.advisory.iter().filter_map(of).collect();
        let open = found.iter().filter(|(id, _)| !policy.ignores(id));
        let open =
            open.map(|(id, package)| format!("{package}: https://rustsec.org/advisories/{id}"));
        let needless = policy.ignored().filter(|id| found.iter().all(|(found, _)| found != id));
        let needless =
            needless.map(|id| format!("deny.toml ignores {id}, which does not concern us"));
        let names: BTreeSet<_> = foreign.iter().map(|package| &package.name).collect();
        let unknown = names.into_iter().filter(|name| self.elsewhere.contains(*name)).map(|name| {
            format!(
                "{FILE} has no advisories of {name}, and there are some: `cargo xtask advisories`"
            )
        });
        open.chain(needless).chain(unknown).collect()
    }
}

impl Advisory {
    fn concerns(&self, package: &Package) -> bool {
        let within =
            |ranges: &[VersionReq]| ranges.iter().any(|range| range.matches(&package.version));
        self.package == package.name && !within(&self.patched) && !within(&self.unaffected)
    }
}

/// Renews the copy.
pub fn run(options: &Options) -> Result<()> {
    let fetched;
    let clone = match &options.clone {
        Some(clone) => clone.as_path(),
        None => {
            fetched = tempfile::tempdir().context("no temporary directory")?;
            let mut git = command("git");
            git.args(["clone", "--quiet", "--depth=1", ORIGIN]).arg(fetched.path());
            capture(&mut git).context("the list can't be fetched; name a clone of it")?;
            fetched.path()
        }
    };
    let ours: BTreeSet<_> = packages::all()?.into_iter().map(|package| package.name).collect();
    let list = copied(clone, &ours)?;
    let text = written(&list)?;
    fs::write(root().join(FILE), text).with_context(|| format!("can't write {FILE}"))?;
    println!("{FILE}: {} advisories; {}", list.advisory.len(), list.age());
    Ok(())
}

fn git(clone: &Path) -> Command {
    let mut git = command("git");
    git.arg("-C").arg(clone);
    git
}

/// The facts of a clone, which may be bare.
fn copied(clone: &Path, ours: &BTreeSet<String>) -> Result<List> {
    let changed = capture(git(clone).args(["log", "-1", "--format=%ct"]))?;
    let files = capture(git(clone).args(["ls-tree", "-r", "--name-only", "HEAD", "crates/"]))?;
    let (mut advisory, mut elsewhere) = (Vec::new(), BTreeSet::new());
    for file in files.lines().filter(|file| file.ends_with(".md")) {
        let Some(package) = file.split('/').nth(1) else { bail!("what is {file}?") };
        if !ours.contains(package) {
            elsewhere.insert(package.to_owned());
            continue;
        }
        let text = capture(git(clone).arg("show").arg(format!("HEAD:{file}")))?;
        advisory.extend(read(&text).with_context(|| format!("can't read {file}"))?);
    }
    let changed_unix_s = changed.trim().parse().context("the list has no time")?;
    Ok(List { changed_unix_s, elsewhere, advisory })
}

/// The facts in the TOML block at the head of an advisory; none if it was withdrawn.
fn read(text: &str) -> Result<Option<Advisory>> {
    let block = text.trim_start().strip_prefix("```toml").and_then(|rest| rest.split_once("\n```"));
    let (block, _) = block.context("it does not begin with a block of TOML")?;
    let Original { advisory, versions } = toml::from_str(block)?;
    let Head { id, package, date, withdrawn } = advisory;
    let Versions { patched, unaffected } = versions;
    Ok(withdrawn.is_none().then_some(Advisory { id, package, date, patched, unaffected }))
}

fn written(list: &List) -> Result<String> {
    let mut text = format!("# Facts of the RustSec advisory list, {ORIGIN} (CC0-1.0).\n");
    text.push_str("# `cargo xtask advisories` makes this file.\n\n");
    write!(text, "{}", toml::to_string_pretty(list)?)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVISORY: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2020-0001\"\npackage = \"a\"\n\
        date = \"2020-01-02\"\ncategories = [\"x\"]\n\n[versions]\npatched = [\">= 1.2.3\", \"^0.9.7\"]\n\
        unaffected = [\"< 0.5\"]\n```\n\n# It is bad\n";

    fn package(version: &str) -> Package {
        let source = Some("registry".into());
        Package { name: "a".into(), version: version.parse().unwrap(), source, license: None }
    }

    #[test]
    fn an_advisory_concerns_versions_between_the_unaffected_and_the_patched() {
        let advisory = read(ADVISORY).unwrap().unwrap();
        for version in ["0.5.0", "0.9.6", "1.2.2", "1.2.3-rc.1"] {
            assert!(advisory.concerns(&package(version)), "{version}");
        }
        for version in ["0.4.9", "0.9.7", "1.2.3", "2.0.0"] {
            assert!(!advisory.concerns(&package(version)), "{version}");
        }
        assert!(!advisory.concerns(&Package { name: "b".into(), ..package("1.0.0") }));
    }

    #[test]
    fn what_was_withdrawn_is_left_out_and_nonsense_is_an_error() {
        let withdrawn = ADVISORY.replace("categories", "withdrawn = \"2021-01-01\"\ncategories");
        assert_eq!(read(&withdrawn).unwrap(), None);
        assert!(read("# Nothing").is_err());
        assert!(read("```toml\n[advisory]\n```\n").is_err());
    }

    #[test]
    fn the_copy_is_read_as_it_is_written() {
        let list = List {
            changed_unix_s: 1,
            elsewhere: BTreeSet::from(["b".into()]),
            advisory: vec![read(ADVISORY).unwrap().unwrap()],
        };
        let back: List = toml::from_str(&written(&list).unwrap()).unwrap();
        assert_eq!((back.advisory, back.elsewhere), (list.advisory, list.elsewhere));
        List::read().unwrap();
    }
}
