//! placeholder
/// Options.
#[derive(clap::Args)]
pub struct Options {}
/// Run.
pub fn run(_: &Options) -> anyhow::Result<()> {
    Ok(())
}
