//! Placeholders of a scenario file: `{name}`, replaced by the value that the case gives for it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use toml::{Table, Value};

/// A case's values for its placeholders, and which of them the file used.
#[derive(Debug, Default)]
pub(super) struct Values {
    given: Table,
    used: RefCell<BTreeSet<String>>,
}

impl Values {
    /// Sets the value of one placeholder, which must have none yet.
    pub(super) fn give(&mut self, name: &str, value: &Value) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!("{name:?} can't be a placeholder: use a to z, 0 to 9, - and _"));
        }
        match self.given.insert(name.into(), value.clone()) {
            None => Ok(()),
            Some(_) => Err(format!("{{{name}}} has a value already, from [strength]")),
        }
    }

    /// The table with all placeholders replaced.
    pub(super) fn fill_table(&self, table: &Table) -> Result<Table, String> {
        table.iter().map(|(key, value)| Ok((key.clone(), self.fill(value)?))).collect()
    }

    /// An error if a value is given but never used: most likely one of the two names is misspelled.
    pub(super) fn all_used(&self) -> Result<(), String> {
        let used = self.used.borrow();
        match self.given.keys().find(|name| !used.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(format!("nothing in the file uses {{{name}}}")),
        }
    }

    fn fill(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Array(list) => list
                .iter()
                .map(|value| self.fill(value))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            Value::Table(table) => self.fill_table(table).map(Value::Table),
            other => Ok(other.clone()),
        }
    }

    /// A placeholder that is the whole text becomes its value, of any type; one within a text becomes the text of its
    /// value.
    fn fill_text(&self, text: &str) -> Result<Value, String> {
        if let Some((before, name, after)) = next(text)
            && before.is_empty()
            && after.is_empty()
        {
            return self.value(name).cloned();
        }
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, name, after)) = next(rest) {
            filled.push_str(before);
            match self.value(name)? {
                Value::String(value) => filled.push_str(value),
                other => filled.push_str(&other.to_string()),
            }
            rest = after;
        }
        Ok(Value::String(filled + rest))
    }

    fn value(&self, name: &str) -> Result<&Value, String> {
        self.used.borrow_mut().insert(name.into());
        self.given.get(name).ok_or_else(|| {
            let given: Vec<_> = self.given.keys().map(|name| format!("{{{name}}}")).collect();
            format!("there is no value for {{{name}}}; there are {}", given.join(", "))
        })
    }
}

/// The first placeholder of a text, with the text before and after it. Braces around anything else are text.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('{').find_map(|(start, _)| {
        let (name, after) = text[start + 1..].split_once('}')?;
        is_name(name).then(|| (&text[..start], name, after))
    })
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !text.is_empty() && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> Values {
        let mut values = Values::default();
        values.give("loss", &Value::String("1%".into())).unwrap();
        values.give("percent", &Value::Integer(20)).unwrap();
        values
    }

    fn filled(text: &str) -> Result<Value, String> {
        values().fill(&Value::String(text.into()))
    }

    #[test]
    fn a_placeholder_alone_keeps_the_type_of_its_value() {
        assert_eq!(filled("{percent}"), Ok(Value::Integer(20)));
        assert_eq!(filled("{loss}"), Ok(Value::String("1%".into())));
    }

    #[test]
    fn a_placeholder_in_a_text_becomes_text() {
        assert_eq!(filled("a {percent} b {loss}"), Ok(Value::String("a 20 b 1%".into())));
        assert_eq!(filled("{ {loss} }"), Ok(Value::String("{ 1% }".into())));
        assert_eq!(filled("tcp { 1, 2 } {}"), Ok(Value::String("tcp { 1, 2 } {}".into())));
    }

    #[test]
    fn what_has_no_value_is_named_with_those_that_have() {
        let error = filled("{los}").unwrap_err();
        assert_eq!(error, "there is no value for {los}; there are {loss}, {percent}");
    }

    #[test]
    fn a_value_that_nothing_asks_for_is_named() {
        let values = values();
        values.fill(&Value::String("{loss}".into())).unwrap();
        assert_eq!(values.all_used().unwrap_err(), "nothing in the file uses {percent}");
    }

    #[test]
    fn a_value_is_given_once() {
        assert!(values().give("loss", &Value::Integer(1)).unwrap_err().contains("{loss}"));
        assert!(values().give("a b", &Value::Integer(1)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_filled_or_an_error(text in "[{}a-z ü%]{0,24}") {
            let _ = filled(&text);
        }
    }
}
