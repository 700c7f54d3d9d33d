//! Readability checks that neither rustfmt nor clippy makes, of sources and documents.

use std::path::Path;

use anyhow::Result;
use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::documents;
use crate::new::BLANK;
use crate::rust_source::{self, RustFile, names};
use goodput_tools::shell::root;

/// Longest file, in lines outside its tests.
const MAX_FILE_LINES: usize = 600;
/// Most files must be shorter than this.
const USUAL_FILE_LINES: usize = 150;
/// Lints that hide unused code.
const LINTS: &[&str] = &["dead_code", "unused"];

/// Every violation in the repository; prints how many files are short.
pub fn problems() -> Result<Vec<String>> {
    let files = rust_source::all()?;
    let mut problems: Vec<String> = files.iter().flat_map(problems_of).collect();
    for path in rust_source::files(Path::new("crates/lab/scenarios"), "toml")? {
        let text = std::fs::read_to_string(root().join(&path))?;
        problems.extend(blanks(&path, &text));
    }
    let (short, all) = short_files(files.iter().map(lines_outside_tests));
    println!(
        "  {short} of {all} Rust files have fewer than {USUAL_FILE_LINES} lines outside tests"
    );
    if short * 2 <= all {
        problems.push(format!("most files must be shorter than {USUAL_FILE_LINES} lines"));
    }
    problems.extend(documents::problems()?);
    Ok(problems)
}

fn problems_of(file: &RustFile) -> Vec<String> {
    let mut breaches = Breaches { path: &file.path, found: Vec::new() };
    if !file.text.starts_with("//!") {
        breaches.add(1, "starts with `//!` and what the file owns");
    }
    if lines_outside_tests(file) > MAX_FILE_LINES {
        breaches.add(
            MAX_FILE_LINES,
            format!("a file has at most {MAX_FILE_LINES} lines outside tests"),
        );
    }
    breaches.found.extend(blanks(&file.path, &file.text));
    breaches.visit_file(&file.tree);
    breaches.found
}

/// Lines from `cargo xtask new` that nobody has filled in yet.
fn blanks(path: &Path, text: &str) -> Vec<String> {
    let blank = text.lines().enumerate().filter(|(_, line)| line.contains(BLANK));
    let left = |(number, _)| {
        format!("{}:{}: something is left to {}", path.display(), number + 1, BLANK.to_lowercase())
    };
    blank.map(left).collect()
}

/// Lines of the file without its test modules; 0 for files under `tests/`.
fn lines_outside_tests(file: &RustFile) -> usize {
    if file.path.components().any(|part| part.as_os_str() == "tests") {
        return 0;
    }
    let is_test = |item: &&syn::Item| match item {
        syn::Item::Mod(module) => module.attrs.iter().any(|a| names(a, "cfg", "test")),
        _ => false,
    };
    let in_tests: usize = file.tree.items.iter().filter(is_test).map(lines).sum();
    file.text.lines().count() - in_tests
}

fn lines(node: &impl Spanned) -> usize {
    let span = node.span();
    span.end().line - span.start().line + 1
}

/// How many of the files that hold more than tests are short, and how many there are.
fn short_files(lengths: impl Iterator<Item = usize>) -> (usize, usize) {
    let lengths: Vec<_> = lengths.filter(|length| *length > 0).collect();
    (lengths.iter().filter(|length| **length < USUAL_FILE_LINES).count(), lengths.len())
}

/// Walks a file and notes every violation.
struct Breaches<'a> {
    path: &'a Path,
    found: Vec<String>,
}

impl Breaches<'_> {
    fn add(&mut self, line: usize, rule: impl AsRef<str>) {
        self.found.push(format!("{}:{line}: {}", self.path.display(), rule.as_ref()));
    }
}

impl<'ast> Visit<'ast> for Breaches<'_> {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("ignore") {
            self.add(attribute.span().start().line, "a test that can't run here calls `skip`");
        }
        for lint in LINTS {
            if names(attribute, "allow", lint) || names(attribute, "expect", lint) {
                let line = attribute.span().start().line;
                self.add(line, format!("unused code goes away instead of `{lint}` being allowed"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        problems_of(&RustFile::parse("src/x.rs", text.into()).unwrap())
    }

    #[test]
    fn a_tidy_file_has_no_problem() {
        assert_eq!(check("//! Owns x.\n\nfn f() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn each_rule_can_be_broken() {
        let broken = [
            ("fn f() {}\n".into(), "src/x.rs:1: starts with"),
            (format!("//! x\n{}", "//\n".repeat(MAX_FILE_LINES)), "a file has at most"),
            ("//! x\n#[ignore]\nfn f() {}\n".into(), "src/x.rs:2: a test that can't run"),
            ("//! x\n#[allow(dead_code)]\nfn f() {}\n".into(), "src/x.rs:2: unused code"),
            (format!("//! {BLANK}: x\n"), "src/x.rs:1: something is left"),
            ("//! x\n#![allow(unused)]\n".into(), "src/x.rs:2: unused code"),
            (
                "//! x\nimpl X {\n    #[expect(dead_code, reason = \"r\")]\n    fn f() {}\n}\n"
                    .into(),
                "src/x.rs:3: unused code",
            ),
        ];
        for (text, problem) in broken {
            let found = check(&text);
            assert!(found.len() == 1 && found[0].contains(problem), "{problem}: {found:?}");
        }
    }

    #[test]
    fn tests_do_not_count_as_lines_of_the_file() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(MAX_FILE_LINES));
        let file = RustFile::parse("src/x.rs", format!("//! x\n{tests}")).unwrap();
        assert_eq!(lines_outside_tests(&file), 1);
        assert_eq!(problems_of(&file), Vec::<String>::new());
    }

    #[test]
    fn files_that_hold_only_tests_do_not_count_as_short() {
        assert_eq!(short_files([0, 0, 30, USUAL_FILE_LINES, 20].into_iter()), (2, 3));
    }
}
