//! `deny.toml`: the allowed licences, sources and duplicates, each exception with its reason.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use super::packages::Package;
use goodput_tools::shell::root;

/// The parts of cargo-deny's file that are used here. Anything else in it is an error, because it
/// would be ignored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    advisories: Advisories,
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advisories {
    ignore: Vec<Ignored>,
}

/// An advisory that does not concern goodput.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ignored {
    id: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    multiple_versions: Deny,
    skip: Vec<Skipped>,
}

/// An older version beside another version.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skipped {
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Deny,
    #[serde(rename = "unknown-git")]
    _unknown_git: Deny,
    allow_registry: Vec<String>,
}

/// The only supported choice.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Deny {
    Deny,
}

impl Policy {
    /// Reads the file.
    pub fn read() -> Result<Self> {
        let file = root().join("deny.toml");
        let text = fs::read_to_string(&file).context("can't read deny.toml")?;
        toml::from_str(&text).context("deny.toml is not as it is heeded here")
    }

    /// Whether an advisory does not concern goodput.
    pub fn ignores(&self, id: &str) -> bool {
        self.advisories.ignore.iter().any(|ignored| ignored.id == id)
    }

    /// Advisories that do not concern goodput.
    pub fn ignored(&self) -> impl Iterator<Item = &str> {
        self.advisories.ignore.iter().map(|ignored| ignored.id.as_str())
    }

    /// Violations of the policy.
    pub fn problems(&self, packages: &[Package]) -> Vec<String> {
        let foreign: Vec<_> = packages.iter().filter(|package| package.source.is_some()).collect();
        let mut problems: Vec<_> =
            foreign.iter().filter_map(|package| self.unlicensed(package)).collect();
        problems.extend(foreign.iter().filter_map(|package| self.unknown_source(package)));
        problems.extend(self.duplicates(&foreign));
        problems.extend(self.reasonless());
        problems
    }

    fn unlicensed(&self, package: &Package) -> Option<String> {
        let Package { name, version, license, .. } = package;
        let Some(license) = license else {
            return Some(format!("{name} {version} names no licence"));
        };
        let Ok(expression) = Expression::parse_mode(license, ParseMode::LAX) else {
            return Some(format!("{name} {version}: {license:?} is no licence expression"));
        };
        let allowed = |needed: &spdx::LicenseReq| {
            self.licenses.allow.iter().any(|allowed| *allowed == needed.to_string())
        };
        (!expression.evaluate(allowed))
            .then(|| format!("{name} {version}: deny.toml does not allow the licence {license}"))
    }

    fn unknown_source(&self, package: &Package) -> Option<String> {
        let source = package.source.as_deref()?;
        let registry = source.strip_prefix("registry+");
        let known =
            registry.is_some_and(|url| self.sources.allow_registry.iter().any(|a| a == url));
        (!known).then(|| {
            format!(
                "{} {} comes from {source}, which deny.toml does not allow",
                package.name, package.version
            )
        })
    }

    /// All versions of a package except the newest need a reason, and each reason needs its version.
    fn duplicates(&self, packages: &[&Package]) -> Vec<String> {
        let Deny::Deny = self.bans.multiple_versions;
        let mut versions: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
        for package in packages {
            versions.entry(&package.name).or_default().push(package);
        }
        let older = versions.values_mut().flat_map(|versions| {
            versions.sort_by(|a, b| a.version.cmp(&b.version));
            versions.pop();
            versions.iter().map(|package| format!("{}@{}", package.name, package.version))
        });
        let older: Vec<_> = older.collect();
        let skipped = |name: &String| self.bans.skip.iter().any(|skip| skip.package == *name);
        let unexplained = older.iter().filter(|name| !skipped(name));
        let unexplained = unexplained.map(|name| format!("{name} stands beside a newer version"));
        let needless = self.bans.skip.iter().filter(|skip| !older.contains(&skip.package));
        let needless = needless
            .map(|skip| format!("deny.toml excuses {}, which is not there any more", skip.package));
        unexplained.chain(needless).collect()
    }

    fn reasonless(&self) -> Vec<String> {
        let ignored = self.advisories.ignore.iter().map(|ignored| (&ignored.id, &ignored.reason));
        let skipped = self.bans.skip.iter().map(|skip| (&skip.package, &skip.reason));
        let without = ignored.chain(skipped).filter(|(_, reason)| reason.trim().is_empty());
        without.map(|(what, _)| format!("deny.toml gives no reason for {what}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [advisories]
        ignore = []
        [licenses]
        allow = ["MIT", "Apache-2.0 WITH LLVM-exception"]
        [bans]
        multiple-versions = "deny"
        skip = [{ crate = "old@1.0.0", reason = "no newer one does it" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
        allow-registry = ["https://github.com/rust-lang/crates.io-index"]
    "#;

    fn package(name: &str, version: &str, license: &str) -> Package {
        Package {
            name: name.into(),
            version: version.parse().unwrap(),
            source: Some("registry+https://github.com/rust-lang/crates.io-index".into()),
            license: Some(license.into()),
        }
    }

    fn problems(packages: &[Package]) -> Vec<String> {
        let old = [package("old", "1.0.0", "MIT"), package("old", "2.0.0", "MIT")];
        toml::from_str::<Policy>(POLICY).unwrap().problems(&[packages, &old].concat())
    }

    #[test]
    fn licences_are_read_as_expressions() {
        let fine = ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "Apache-2.0 WITH LLVM-exception"];
        for license in fine {
            assert_eq!(problems(&[package("a", "1.0.0", license)]), Vec::<String>::new());
        }
        for license in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "whatever I like"] {
            assert_eq!(problems(&[package("a", "1.0.0", license)]).len(), 1, "{license}");
        }
        assert_eq!(problems(&[Package { license: None, ..package("a", "1.0.0", "") }]).len(), 1);
    }

    #[test]
    fn other_sources_and_second_versions_are_problems() {
        let source = Some("git+https://example.com/a".into());
        assert_eq!(problems(&[Package { source, ..package("a", "1.0.0", "MIT") }]).len(), 1);
        let two = [package("a", "1.0.0", "MIT"), package("a", "1.1.0", "MIT")];
        assert_eq!(problems(&two), ["a@1.0.0 stands beside a newer version"]);
    }

    #[test]
    fn an_excuse_for_what_is_gone_is_a_problem() {
        let policy: Policy = toml::from_str(POLICY).unwrap();
        let left = policy.problems(&[package("old", "2.0.0", "MIT")]);
        assert_eq!(left, ["deny.toml excuses old@1.0.0, which is not there any more"]);
    }

    #[test]
    fn what_would_not_be_heeded_is_an_error() {
        assert!(toml::from_str::<Policy>(&format!("{POLICY}\n[output]\n")).is_err());
        let warn = POLICY.replacen("unknown-git = \"deny\"", "unknown-git = \"warn\"", 1);
        assert!(toml::from_str::<Policy>(&warn).is_err());
    }
}
