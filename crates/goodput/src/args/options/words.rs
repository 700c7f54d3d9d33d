//! Options as words again, for a command that measures once more what a plan has.

use std::fmt;

use goodput_model::shell;

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

    /// Without an option, whatever its values: `--rate`.
    pub fn without(mut self, name: &str) -> Self {
        self.0.retain(|word| word.split(' ').next() != Some(name));
        self
    }

    /// With an option and its value in place of what it had: `--rate 97mbit`.
    pub fn with(self, option: &str) -> Self {
        let mut words = self.without(option.split(' ').next().unwrap_or(option));
        words.0.push(option.into());
        words
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

    #[test]
    fn an_option_is_replaced_and_left_out() {
        let words = || Words::default().value("rate", Some("20mbit")).flag("rate-limited", true);
        assert_eq!(words().with("--rate 97mbit").to_string(), " --rate-limited --rate 97mbit");
        assert_eq!(words().without("--rate").to_string(), " --rate-limited");
    }
}
