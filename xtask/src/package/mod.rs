//! `cargo xtask package`: goodput as people install it, a Debian package, or one file for every Linux.

mod deb;
mod image;
mod lifecycle;
mod started;
mod static_program;
mod tree;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use goodput_tools::shell::{cargo, root, run as run_command};

use self::deb::Packing;
use crate::docs::target_directory;
use crate::tally::Tally;

/// Options of `cargo xtask package`.
#[derive(clap::Args)]
pub struct Options {
    /// Folder of what is made
    #[arg(long, value_name = "DIR", default_value = "target/package")]
    out: PathBuf,
    /// Package this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Make the program without libraries instead: one file, for every Linux and for containers
    #[arg(long, conflicts_with = "program")]
    r#static: bool,
    /// Let the static program also measure in this root of another system, such as one made by debootstrap; nothing there
    /// is changed
    #[arg(long = "in", value_name = "DIR", requires = "static")]
    systems: Vec<PathBuf>,
    /// Let the static program also measure in a root of this release of Debian, such as bullseye; debootstrap makes the
    /// root, and it vanishes
    #[arg(long, value_name = "RELEASE", requires = "static")]
    debian: Vec<String>,
}

/// Makes the package, and says where it is.
pub fn run(options: &Options) -> Result<()> {
    let out = root().join(&options.out);
    fs::create_dir_all(&out).with_context(|| format!("can't make {}", out.display()))?;
    if options.r#static {
        println!("{}", static_program::make(&out, &options.systems, &options.debian)?.display());
        return Ok(());
    }
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    println!("{}", deb::make(&program, env!("CARGO_PKG_VERSION"), &out, Packing::Small)?.display());
    Ok(())
}

/// The step of `cargo xtask test`: a Debian package of the program that the tests run is installed, used, upgraded and
/// removed, in a root of its own, without systemd and with it. An image for containers is made, too.
pub fn check() -> Result<Tally> {
    if let Some(needs) = lifecycle::obstacle().or_else(started::obstacle) {
        println!("SKIPPED {needs}");
        let required = goodput_testing::everything_required();
        return Ok(if required { Tally::failure(needs) } else { Tally::SKIPPED });
    }
    let program = target_directory()?.join("debug/goodput");
    let place = tempfile::tempdir().context("can't make a folder for the packages")?;
    let version = env!("CARGO_PKG_VERSION");
    let old = deb::make(&program, version, place.path(), Packing::Quick)?;
    let new = deb::make(&program, &format!("{version}+next"), place.path(), Packing::Quick)?;
    lifecycle::go_through(&old, &new)?;
    started::go_through(&old, &new)?;
    let said = [deb::complaints(&old)?, image::complaints()?].concat();
    Ok(Tally::of_problems(&said))
}

/// The smallest program, as it runs on this machine's distribution.
fn build() -> Result<PathBuf> {
    run_command(&mut cargo(["build", "--profile=dist", "--package=goodput"]))?;
    Ok(target_directory()?.join("dist/goodput"))
}
