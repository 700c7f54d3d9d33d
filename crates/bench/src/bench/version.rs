//! What a program says about its version.

use std::path::Path;

use goodput_tools::shell::command;

/// The first line of what a program prints about its version. Some then end with an error, and some print the version on stderr.
pub fn version(name: &str, file: &Path, argument: &str) -> String {
    // neper leaves a log even then, where it was started.
    let said = tempfile::tempdir().and_then(|folder| {
        command(&file.to_string_lossy()).arg(argument).current_dir(folder.path()).output()
    });
    let said = said.map(|said| {
        let both = [said.stdout, said.stderr].concat();
        first_line(&String::from_utf8_lossy(&both))
    });
    match said {
        Ok(line) if line.contains(name) => line,
        Ok(line) => format!("{name}: {line}"),
        Err(error) => format!("{name}: {error}"),
    }
}

/// The first line that has words.
pub fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_its_program() {
        assert_eq!(version("sh", "echo".as_ref(), "sh 1"), "sh 1");
        assert_eq!(version("sh", "echo".as_ref(), "1"), "sh: 1");
        assert!(version("none", "/nonexistent".as_ref(), "1").starts_with("none: "));
    }
}
