//! The output of failing tests, cut to what shows why; repeated at the end of `cargo xtask test`.
//!
//! libtest and libtest-mimic print `failures:`, then for each failing test a line `---- NAME stdout ----`
//! or `---- NAME ----` with its output below, then `failures:` again with the names alone.

/// Lines repeated of each failing test.
const MAX_LINES: usize = 15;
/// Lines shown of a test binary that broke off.
const LAST_LINES: usize = 15;

/// The output of failed tests, in order.
#[derive(Debug, Default)]
pub struct Failures {
    all: Vec<Failure>,
}

#[derive(Debug)]
struct Failure {
    name: String,
    lines: Vec<String>,
}

impl Failures {
    /// Reads one line of the section with the output of failing tests.
    pub fn read(&mut self, line: &str) {
        if let Some(name) = heading(line) {
            self.all.push(Failure { name: name.into(), lines: Vec::new() });
        } else if let Some(failure) = self.all.last_mut() {
            failure.lines.push(line.into());
        }
    }

    /// Whether a test of this name failed in any module.
    pub fn contain(&self, test: &str) -> bool {
        let is_it = |name: &str| name == test || name.ends_with(&format!("::{test}"));
        self.all.iter().any(|failure| is_it(&failure.name))
    }

    /// A test binary ended without a result; these were its last lines.
    pub fn broke_off(&mut self, said: &[String]) {
        let lines = said[said.len().saturating_sub(LAST_LINES)..].to_vec();
        self.all.push(Failure { name: "a test binary that ended without a result".into(), lines });
    }

    /// Each failing test with its message.
    pub fn in_words(&self) -> Vec<String> {
        self.all.iter().map(Failure::in_words).collect()
    }
}

impl Failure {
    /// The panic, or everything printed if there is none.
    fn in_words(&self) -> String {
        let panic = self.lines.iter().position(|line| line.contains("panicked at "));
        let said = self.lines[panic.unwrap_or(0)..].iter();
        let said = said.take_while(|line| *line != "stack backtrace:");
        let said = said.filter(|line| !line.is_empty() && !line.starts_with("note: run with"));
        let mut said: Vec<_> = said.map(String::from).collect();
        if said.len() > MAX_LINES {
            let left_out = said.split_off(MAX_LINES).len();
            said.push(format!("… and {left_out} more lines"));
        }
        said.insert(0, format!("FAILED {}", self.name));
        said.join("\n  ")
    }
}

/// The name in `---- a::name stdout ----`.
fn heading(line: &str) -> Option<&str> {
    let name = line.strip_prefix("---- ")?.strip_suffix(" ----")?;
    Some(name.strip_suffix(" stdout").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let mut failures = Failures::default();
        text.lines().for_each(|line| failures.read(line));
        failures.in_words()
    }

    #[test]
    fn each_test_has_its_panic_without_what_it_said_before() {
        let text = "
---- a::one stdout ----
chatter

thread 'a::one' (7) panicked at crates/a/src/lib.rs:1:2:
assertion `left == right` failed
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- two ----
no panic: 5 s
stack backtrace:
   0: rust_begin_unwind

";
        let one = "FAILED a::one
  thread 'a::one' (7) panicked at crates/a/src/lib.rs:1:2:
  assertion `left == right` failed
    left: 1
   right: 2";
        assert_eq!(read(text), [one, "FAILED two\n  no panic: 5 s"]);
    }

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        let text = format!("---- a ----\n{}", "line\n".repeat(40));
        let said = read(&text);
        assert_eq!(said[0].lines().count(), 1 + MAX_LINES + 1);
        assert!(said[0].ends_with("… and 25 more lines"), "{}", said[0]);
    }

    #[test]
    fn a_test_that_said_nothing_is_named_all_the_same() {
        assert_eq!(
            read("---- src/lib.rs - one (line 3) stdout ----\n"),
            ["FAILED src/lib.rs - one (line 3)"]
        );
        assert_eq!(read("no heading"), [""; 0]);
    }

    #[test]
    fn of_a_binary_that_broke_off_the_last_lines_are_reported() {
        let mut failures = Failures::default();
        let lines: Vec<_> = (0..100).map(|n| n.to_string()).collect();
        failures.broke_off(&lines);
        let said = failures.in_words().concat();
        assert!(
            said.starts_with("FAILED a test binary that ended without a result\n  85"),
            "{said}"
        );
        assert!(said.ends_with("  99"), "{said}");
    }
}
