//! Where scenarios come from: built in, or a file of the user.

use std::path::Path;

use super::Scenario;
use crate::error::LabError;
use crate::scenarios::{self, Builtin};

pub(super) fn file(path: &Path) -> Result<Scenario, LabError> {
    let text = std::fs::read_to_string(path).map_err(|source| LabError::Io {
        what: "read the scenario",
        object: path.display().to_string(),
        source,
    })?;
    Scenario::parse(&path.display().to_string(), &text)
}

pub(super) fn builtin(name: &str) -> Result<Scenario, LabError> {
    let builtin = find(name)?;
    Scenario::parse(builtin.name, builtin.toml)
}

/// A built-in scenario by its name.
pub(crate) fn find(name: &str) -> Result<&'static Builtin, LabError> {
    match scenarios::builtin().iter().find(|builtin| builtin.name == name) {
        Some(builtin) => Ok(builtin),
        None => Err(LabError::UnknownScenario { name: name.into(), hint: hint(name) }),
    }
}

fn hint(name: &str) -> String {
    let names = scenarios::builtin().iter().map(|builtin| builtin.name);
    match nearest(name, names) {
        Some(nearest) => format!("; did you mean {nearest:?}?"),
        None => String::new(),
    }
}

/// The name most like `name`, where one is like it at all.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Below this, suggestions are rather puzzling than helpful; the value clap uses.
    const LIKE: f64 = 0.7;
    names
        .map(|other| (strsim::jaro_winkler(name, other), other))
        .filter(|(likeness, _)| *likeness > LIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, other)| other)
}
