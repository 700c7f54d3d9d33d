//! `cargo xtask test supply`: checks the packages that goodput is built of against `deny.toml` and a copy of the
//! RustSec advisory list, and packs the crates for crates.io.
//!
//! The checks are those of cargo-deny (advisories, licences, duplicates, sources), and `deny.toml` is
//! its file, so `cargo deny check` gives the same result if it is installed. Building cargo-deny takes
//! longer than all tests together, and its list comes from GitHub, which not every network reaches.

mod advisories;
mod packages;
mod policy;
mod publishing;

use anyhow::Result;

use crate::tally::Tally;

pub use advisories::{Options, run};

/// Prints how old the list is, and what is wrong.
pub fn check() -> Result<Tally> {
    let policy = policy::Policy::read()?;
    let advisories = advisories::List::read()?;
    println!("  {}", advisories.age());
    let packages = packages::all()?;
    let mut problems = policy.problems(&packages);
    problems.extend(advisories.problems(&packages, &policy));
    println!("  {} packages; {} crates can be packed", packages.len(), publishing::packed()?);
    Ok(Tally::of_problems(&problems))
}
