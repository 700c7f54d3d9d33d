//! A file or folder that an environment variable may name as well.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

/// The parser of an option that `variable` stands for. An empty name is refused in words that say where it may come
/// from: a script that sets the variable to nothing types no option.
pub fn path(variable: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(move |name| {
        if name.is_empty() {
            return Err(format!("the name is empty; write the name of a file or folder, or leave the option out and unset {variable}"));
        }
        Ok(PathBuf::from(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[test]
    fn an_empty_name_is_refused_with_what_may_have_set_it() {
        let parse = |name: &str| {
            let option = Arg::new("key").long("key").value_parser(path("GOODPUT_KEY_FILE"));
            let command = Command::new("x").arg(option);
            let found = command.try_get_matches_from(["x", "--key", name])?;
            Ok::<_, clap::Error>(found.get_one::<PathBuf>("key").cloned())
        };
        let why = parse("").unwrap_err().to_string();
        assert!(why.contains("--key") && why.contains("unset GOODPUT_KEY_FILE"), "{why}");
        assert_eq!(parse("a b").unwrap(), Some("a b".into()));
    }
}
