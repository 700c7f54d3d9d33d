//! Options as words again, for a command that measures once more what a plan has.

use std::fmt;

use crate::shell;

/// Options with their values, in the order of the help.
#[derive(Debug, Default)]
pub struct Words(Vec<String>);

impl Words {
    /// With a switch, if it is set.
    pub fn flag(mut self, name: &str, is_set: bool) -> Self {
        self.0.extend(is_set.then(|| format!("--{name}")));
        self
    }

    /// With an option, once for each of its values.
    pub fn value<T: ToString>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        let word = |value: T| format!("--{name} {}", shell::word(&value.to_string()));
        self.0.extend(values.into_iter().map(word));
        self
    }

    /// With those of another group behind them.
    pub fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }
}

impl fmt::Display for Words {
    /// Each with a space before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_each_value_as_one_word() {
        let words = Words::default().value("source", Some("it's big")).flag("cold", true);
        let words = words.flag("more", false).and(Words::default().value("flows", Some(4)));
        assert_eq!(words.to_string(), r" --source 'it'\''s big' --cold --flows 4");
    }
}
