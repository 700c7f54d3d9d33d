//! Reads what `cargo test -- --show-output` prints: results, and the tests that skipped.
//!
//! A test that this machine can't host prints `SKIPPED <name>: needs <what>` and returns, so
//! libtest counts it as passed. libtest hides what passing tests print; `--show-output` makes it
//! print that after the run, in a section `successes:`, one test after the other. A test binary
//! with a harness of its own prints both kinds of line itself, and may also report a skipped test
//! as ignored; it is one skip then, too.
//!
//! A test that has run, and whose outcome proves nothing as others took the machine's CPUs meanwhile, prints
//! `NOT JUDGED <name>: <why>` and returns. It has neither passed nor failed, and is counted as that.

use std::collections::BTreeSet;

use crate::failures::Failures;
use crate::tally::Tally;

/// What the output said so far.
#[derive(Debug, Default)]
pub struct Transcript {
    passed: usize,
    failed: usize,
    ignored: usize,
    ignored_names: Vec<String>,
    /// Every skip, as `<name>: needs <what>`.
    pub skips: Vec<String>,
    /// The skips of the test binary that is running, which may name one twice.
    skips_here: BTreeSet<String>,
    /// What was not judged, as `<name>: <why>`.
    pub not_judged: Vec<String>,
    section: Section,
    running: bool,
    /// What the test binary that is running has said so far.
    said: Vec<String>,
    unfinished: usize,
    failures: Failures,
}

/// The part of a test binary's output that a line belongs to.
#[derive(Debug, Default, PartialEq, Eq)]
enum Section {
    /// One line for each test.
    #[default]
    Progress,
    /// What passing tests printed.
    Successes,
    /// What failing tests printed.
    Failures,
    /// The names of those once more.
    FailedNames,
}

impl Transcript {
    /// Takes one line, of stdout or stderr. Returns whether a person wants to see it.
    pub fn read(&mut self, line: &str) -> bool {
        let plain = anstream::adapter::strip_str(line).to_string();
        let plain = plain.trim_end();
        if plain.starts_with("test result: ") {
            self.end_binary(plain);
        } else if plain == "successes:" {
            self.section = Section::Successes;
        } else if plain == "failures:" {
            let again = self.section == Section::Failures;
            self.section = if again { Section::FailedNames } else { Section::Failures };
        } else if let Some(skip) = plain.strip_prefix("SKIPPED ") {
            return self.skip(skip);
        } else if let Some(test) = plain.strip_prefix("NOT JUDGED ") {
            // A failing test counts as failed, whatever it printed before.
            if self.section != Section::Failures {
                self.not_judged.push(test.into());
            }
            return true;
        } else if let Some(name) = ignored_name(plain) {
            self.ignored_names.push(name.into());
        } else if self.section == Section::Progress && is_start(plain) {
            self.break_off();
            self.running = true;
        }
        if self.section == Section::Failures {
            self.failures.read(plain);
        } else if self.running {
            self.said.push(plain.into());
        }
        self.section != Section::Successes
    }

    /// The counts, once everything is read and cargo's exit code is known. A run that broke off
    /// or tested nothing has failed, whatever its lines say.
    pub fn tally(mut self, cargo_succeeded: bool, skips_forbidden: bool) -> Tally {
        self.break_off();
        let as_passed = self.skips.iter().filter(|skip| !self.is_ignored(skip)).count();
        let not_judged = self.not_judged.len();
        let passed = self.passed.saturating_sub(as_passed + not_judged);
        let skipped = self.ignored + as_passed;
        let mut failed = self.failed + self.unfinished;
        let mut failures = self.failures.in_words();
        let nothing_ran = self.passed + failed == 0;
        if failed == 0 && (nothing_ran || !cargo_succeeded) {
            failed = 1;
            failures.push("FAILED cargo test: no test did, see its errors above".into());
        }
        if skips_forbidden {
            failures
                .extend(self.skips.iter().map(|skip| format!("FAILED by being skipped: {skip}")));
            return Tally { passed, failed: failed + skipped, skipped: 0, not_judged, failures };
        }
        Tally { passed, failed, skipped, not_judged, failures }
    }

    /// Whether the harness counted this skip as ignored, rather than as passed.
    fn is_ignored(&self, skip: &str) -> bool {
        let name = skip.split(": needs ").next().unwrap_or(skip);
        self.ignored_names.iter().any(|path| path.rsplit("::").next() == Some(name))
    }

    fn skip(&mut self, skip: &str) -> bool {
        // A failing test counts as failed, whatever it printed before.
        if self.section == Section::Failures || !self.skips_here.insert(skip.into()) {
            return false;
        }
        self.skips.push(skip.into());
        true
    }

    fn end_binary(&mut self, line: &str) {
        self.passed += count(line, "passed");
        self.failed += count(line, "failed");
        self.ignored += count(line, "ignored");
        self.section = Section::Progress;
        self.skips_here.clear();
        self.running = false;
    }

    /// Where a test binary is still running, it has ended without a result.
    fn break_off(&mut self) {
        let said = std::mem::take(&mut self.said);
        if std::mem::take(&mut self.running) {
            self.unfinished += 1;
            self.failures.broke_off(&said);
        }
    }
}

/// The name in `test a::name ... ignored, reason`, or behind a kind: `test [kind] name ... `.
fn ignored_name(line: &str) -> Option<&str> {
    let (name, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
    end.starts_with("ignored").then(|| name.split_whitespace().last())?
}

/// Whether this is libtest's `running 12 tests`.
fn is_start(line: &str) -> bool {
    let words: Vec<_> = line.split(' ').collect();
    matches!(words[..], ["running", n, "test" | "tests"] if n.parse::<usize>().is_ok())
}

/// The number before `word`, as in `12 passed;`; 0 where the line does not say.
fn count(line: &str, word: &str) -> usize {
    let words: Vec<_> = line.split([' ', ';']).collect();
    let found = words.windows(2).find(|pair| pair[1] == word);
    found.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Transcript {
        let mut transcript = Transcript::default();
        for line in text.lines() {
            transcript.read(line);
        }
        transcript
    }

    const TWO_BINARIES: &str = "
running 3 tests
test one ... ok
test two ... ok
test three ... ok

successes:

---- two stdout ----
SKIPPED two: needs root
SKIPPED two: needs root

successes:
    one
    two
    three

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 1 test
test four ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn sums_results_and_takes_skips_out_of_the_passed() {
        let tally = read(TWO_BINARIES).tally(true, false);
        assert_eq!(tally.to_string(), "3 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_required_skip_is_a_failure() {
        let tally = read(TWO_BINARIES).tally(true, true);
        assert_eq!(tally.to_string(), "3 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn colours_do_not_hide_a_result() {
        let line = "test result: \x1b[31mFAILED\x1b[m. 2 passed; 1 failed; 1 ignored; 0 measured";
        let tally = read(line).tally(false, false);
        assert_eq!(tally.to_string(), "2 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn a_binary_that_dies_without_a_result_has_failed() {
        let died_last = "running 1 test";
        let died_first = format!("running 7 tests\n{TWO_BINARIES}");
        assert_eq!(read(died_last).tally(true, false).failed, 1);
        assert_eq!(read(&died_first).tally(true, false).failed, 1);
    }

    #[test]
    fn a_build_that_fails_or_tests_nothing_has_failed() {
        assert_eq!(read("error: could not compile").tally(false, false).failed, 1);
        assert_eq!(read("").tally(true, false).failed, 1);
        assert_eq!(read(TWO_BINARIES).tally(false, false).failed, 1);
    }

    #[test]
    fn a_failing_test_is_not_skipped_as_well() {
        let text = "running 1 test\ntest a ... FAILED\nfailures:\n---- a stdout ----\n\
                    SKIPPED a: needs root\nfailures:\n    a\n\
                    test result: FAILED. 0 passed; 1 failed; 0 ignored";
        assert_eq!(read(text).tally(false, true).to_string(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn what_failed_is_said_again_with_its_message_and_without_what_passed() {
        let text = "running 2 tests\ntest a ... FAILED\ntest b ... ok\n\nsuccesses:\n\n\
                    ---- b stdout ----\nchatter\n\nsuccesses:\n    b\n\nfailures:\n\n\
                    ---- a stdout ----\nthread 'a' panicked at x.rs:1:1:\nno\n\nfailures:\n    a\n\n\
                    test result: FAILED. 1 passed; 1 failed; 0 ignored\nerror: test failed\n";
        let failures = read(text).tally(false, false).failures;
        assert_eq!(failures, ["FAILED a\n  thread 'a' panicked at x.rs:1:1:\n  no"]);
        assert!(read(TWO_BINARIES).tally(true, false).failures.is_empty());
        let required = read(TWO_BINARIES).tally(true, true).failures;
        assert_eq!(required, ["FAILED by being skipped: two: needs root"]);
    }

    #[test]
    fn of_a_binary_that_dies_the_last_lines_are_said_again() {
        let text =
            format!("{TWO_BINARIES}running 1 test\nfatal runtime error\nrunning 2 tests\nhm");
        let failures = read(&text).tally(false, false).failures;
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures[0].ends_with("\n  running 1 test\n  fatal runtime error"), "{failures:?}");
        assert!(read("").tally(true, false).failures[0].starts_with("FAILED cargo test"));
    }

    #[test]
    fn what_was_not_judged_has_neither_passed_nor_failed_though_all_is_required() {
        let text = "running 2 tests\nNOT JUDGED a: others took 40 % of the CPUs\n\
                    test a ... ok\ntest b ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored";
        let transcript = read(text);
        assert_eq!(transcript.not_judged, ["a: others took 40 % of the CPUs"]);
        let tally = transcript.tally(true, true);
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 0 skipped, 1 not judged");
    }

    #[test]
    fn a_skip_that_is_also_reported_as_ignored_is_one_skip() {
        let text = "running 2 tests\nSKIPPED b: needs root\ntest a ... ok\ntest [x] b   ... ignored\n\
                    test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured";
        assert_eq!(read(text).tally(true, false).to_string(), "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn the_words_of_passing_tests_are_not_shown_but_their_skips_are() {
        let mut transcript = Transcript::default();
        assert!(transcript.read("test one ... ok"));
        assert!(!transcript.read("successes:"));
        assert!(!transcript.read("chatter"));
        assert!(transcript.read("SKIPPED one: needs a second host"));
        assert!(transcript.read("test result: ok. 1 passed; 0 failed"));
        assert!(transcript.read("running 0 tests"));
    }
}
