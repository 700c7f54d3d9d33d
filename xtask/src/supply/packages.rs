//! The packages that the workspace and the fuzz targets are built of.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use semver::Version;
use serde::Deserialize;

use goodput_tools::shell::{capture, cargo};

/// One version of one package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Its source; `None`: this repository.
    pub source: Option<String>,
    /// Its declared licence.
    pub license: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// All packages in the lock files.
pub fn all() -> Result<Vec<Package>> {
    let mut packages = BTreeSet::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let mut command = cargo(["metadata", "--format-version=1", "--manifest-path", manifest]);
        let metadata: Metadata = serde_json::from_str(&capture(&mut command)?)
            .with_context(|| format!("can't read what cargo says of {manifest}"))?;
        packages.extend(metadata.packages);
    }
    Ok(packages.into_iter().collect())
}
