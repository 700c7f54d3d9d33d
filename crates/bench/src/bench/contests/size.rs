//! The size of the program.

use std::fs;

use anyhow::{Context, Result};

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::STRIPPED;
use crate::bench::measure::Values;
use crate::bench::stage::Stage;
use crate::bench::watch::Watch;
use goodput_tools::shell::{capture, command};

pub static CONTEST: Contest = Contest {
    id: "size",
    title: "Size of the program",
    about: "The program for packages (profile dist) after strip(1), 10^6 bytes.",
    places: LOOPBACK,
    load: Load::tcp(1),
    length: Length::OneSecond,
    watch: Watch::Nothing,
    entries: &[Entry { name: "goodput", kind: Kind::Measured(stripped) }],
    columns: &[&STRIPPED],
    goals: &[Goal {
        what: "size, MB",
        of: "goodput",
        measure: &STRIPPED,
        against: Against::Nothing,
        bound: Bound::Below(15.0),
    }],
};

fn stripped(stage: &Stage<'_>, _: &Load) -> Result<Values> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("stripped");
    capture(command("strip").arg("-o").arg(&file).arg(stage.goodput))?;
    let len = fs::metadata(&file).with_context(|| format!("look at {}", file.display()))?.len();
    Ok(Values::from([(STRIPPED.id.into(), len as f64)]))
}
