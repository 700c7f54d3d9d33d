//! Where scenarios come from: built in, or a user's file; and which of their cases is meant.

use std::path::Path;

use super::Scenario;
use super::cases::{self, Case};
use crate::error::LabError;
use crate::scenarios::{self, Builtin};

/// The cases of a file that match a name.
pub(super) struct File {
    origin: String,
    text: String,
    /// Empty if the file is a single case: then `text` itself is parsed, so that errors have line numbers.
    cases: Vec<Case>,
}

impl File {
    /// Splits a file into its cases.
    pub(super) fn parse(origin: &str, text: &str) -> Result<Self, LabError> {
        let broken = |problem: String| broken(origin, problem);
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| broken(error.to_string()))?;
        let several = cases::is_several(&table);
        let cases = if several { cases::expand(table).map_err(broken)? } else { Vec::new() };
        Ok(Self { origin: origin.into(), text: text.into(), cases })
    }

    /// The file that a name begins with, with only those cases that match the rest of the name.
    pub(super) fn find(name: &str) -> Result<Self, LabError> {
        let (file, chosen) = match own_file(name) {
            Some((path, rest)) => (Self::parse(path, &read(path)?)?, rest),
            None => {
                let (builtin, rest) = name.split_once('/').unwrap_or((name, ""));
                let builtin = find(builtin)?;
                (Self::parse(builtin.name, builtin.toml)?, rest)
            }
        };
        file.only(&chosen.split('/').filter(|word| !word.is_empty()).collect::<Vec<_>>())
    }

    /// Only the cases whose names continue like this after the scenario's own.
    pub(super) fn only(mut self, chosen: &[&str]) -> Result<Self, LabError> {
        if chosen.is_empty() {
            return Ok(self);
        }
        let fits = |case: &Case| {
            let mut words = case.name.split('/').skip(1);
            chosen.iter().all(|word| words.next() == Some(*word))
        };
        let (fitting, others): (Vec<_>, Vec<_>) = self.cases.into_iter().partition(fits);
        if fitting.is_empty() {
            let names: Vec<_> = others.iter().map(|case| case.name.as_str()).collect();
            let write = match names.is_empty() {
                true => "the scenario has only one: leave it out".into(),
                false => format!("write {}", names.join(", ")),
            };
            let wanted = chosen.join("/");
            return Err(broken(&self.origin, format!("there is no case {wanted:?}; {write}")));
        }
        self.cases = fitting;
        Ok(self)
    }

    pub(super) fn default_case(&self) -> Result<Scenario, LabError> {
        match self.cases.get(cases::default_case(&self.cases)) {
            Some(case) => self.read_case(case),
            None => self.read_whole(),
        }
    }

    pub(super) fn all_cases(&self) -> Result<Vec<Scenario>, LabError> {
        if self.cases.is_empty() {
            return Ok(vec![self.read_whole()?]);
        }
        self.cases.iter().map(|case| self.read_case(case)).collect()
    }

    /// The file if the whole file is meant, otherwise the one case as if it were written alone.
    fn source(&self, whole: bool) -> String {
        match self.cases.get(cases::default_case(&self.cases)) {
            Some(case) if !whole => format!("# {}\n{}", case.name, case.table),
            _ => self.text.clone(),
        }
    }

    fn read_case(&self, case: &Case) -> Result<Scenario, LabError> {
        let scenario = Scenario::from_table(&case.name, case.table.clone());
        scenario.map_err(|why| broken(&self.origin, format!("case {}: {why}", case.name)))
    }

    fn read_whole(&self) -> Result<Scenario, LabError> {
        let scenario = Scenario::from_text(&self.text);
        scenario.map_err(|why| broken(&self.origin, why))
    }
}

/// The text of a built-in scenario or of a file, as a start for one's own; the text of one case, if the name names a case.
pub fn source(name: &str) -> Result<String, LabError> {
    let whole = own_file(name).map_or(!name.contains('/'), |(_, rest)| rest.is_empty());
    Ok(File::find(name)?.source(whole))
}

fn broken(origin: &str, problem: String) -> LabError {
    LabError::Scenario { origin: origin.into(), problem: problem.trim_end().into() }
}

/// The path of a file and the rest of the name, if the name is not that of a built-in scenario: a path ends in `.toml`,
/// or is that of an existing file.
fn own_file(name: &str) -> Option<(&str, &str)> {
    const ENDING: &str = ".toml";
    if name.contains('/') && Path::new(name).is_file() {
        return Some((name, ""));
    }
    let end = name
        .match_indices(ENDING)
        .map(|(at, _)| at + ENDING.len())
        .find(|end| name[*end..].is_empty() || name[*end..].starts_with('/'))?;
    Some(name.split_at(end))
}

fn read(path: &str) -> Result<String, LabError> {
    std::fs::read_to_string(path).map_err(|source| LabError::Io {
        what: "read the scenario",
        object: path.into(),
        source,
    })
}

/// A built-in scenario by its name.
fn find(name: &str) -> Result<&'static Builtin, LabError> {
    match scenarios::builtin().iter().find(|builtin| builtin.name == name) {
        Some(builtin) => Ok(builtin),
        None => Err(LabError::UnknownScenario { name: name.into(), hint: hint(name) }),
    }
}

fn hint(name: &str) -> String {
    let names = scenarios::builtin().iter().map(|builtin| builtin.name);
    goodput_model::meant(name, names).map_or_else(String::new, |meant| format!("; {meant}"))
}
