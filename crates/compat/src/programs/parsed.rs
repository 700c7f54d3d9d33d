//! The typed arguments, by the names of a program's table.

use super::option::{Opt, Refusal};

/// The typed arguments, by the table's names of options.
#[derive(Debug)]
pub struct ParsedArguments {
    pub(super) given: Vec<(&'static Opt, String)>,
    pub(super) operands: Vec<String>,
}

impl ParsedArguments {
    /// Whether an option was given, by its short name if it has one: `-R`, `--bidir`.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The value of an option, the last one if it was given several times. Empty if the option takes none.
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut same = self.given.iter().filter(|(option, _)| option.name() == name);
        same.next_back().map(|(_, value)| value.as_str())
    }

    /// The one of `names` that was given last.
    pub fn last_of<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        let mut given = self.given.iter().rev().map(|(option, _)| option.name());
        given.find_map(|given| names.iter().find(|name| **name == given).copied())
    }

    /// The value of an option, converted; an error names the option.
    pub fn read<T>(
        &self,
        name: &str,
        convert: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Refusal> {
        let read = self.value(name).map(convert).transpose();
        read.map_err(|why| Refusal(format!("option {name}: {why}")))
    }

    /// The arguments that are not options.
    pub fn operands(&self) -> &[String] {
        &self.operands
    }
}
