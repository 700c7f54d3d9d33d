//! Packs the crates as crates.io would get them. Nothing is compiled: that is what other steps do.

use anyhow::{Context, Result};
use serde::Deserialize;

use goodput_tools::shell::{capture, cargo};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    /// Where it may go; `None`: anywhere.
    publish: Option<Vec<String>>,
}

/// Number of crates that may be published, which can all be packed.
pub fn packed() -> Result<usize> {
    let mut ask = cargo(["metadata", "--format-version=1", "--no-deps"]);
    let metadata: Metadata = serde_json::from_str(&capture(&mut ask)?)
        .context("can't read what cargo says of the workspace")?;
    let names = metadata.packages.into_iter().filter(|package| package.publish.is_none());
    let names: Vec<_> = names.map(|package| package.name).collect();
    let place = tempfile::tempdir().context("can't make a folder for the packed crates")?;
    let mut pack = cargo(["package", "--quiet", "--no-verify", "--allow-dirty", "--offline"]);
    pack.arg("--target-dir").arg(place.path());
    capture(pack.args(names.iter().flat_map(|name| ["--package", name])))?;
    Ok(names.len())
}
