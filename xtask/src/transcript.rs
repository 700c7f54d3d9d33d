//! Reads the output of `cargo test`: how many tests passed and failed, and the output of the failing ones.
//!
//! A test that can't run here returns early, so it is counted as passed; the line that it leaves instead
//! ([`goodput_testing::skip`]) is subtracted in [`Transcript::tally`].

use std::collections::BTreeSet;

use goodput_testing::{Kind, Outcome};

use crate::failures::Failures;
use crate::tally::Tally;

/// The results of the output so far.
#[derive(Debug, Default)]
pub struct Transcript {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// Whether the lines belong to failing tests.
    in_failures: bool,
    running: bool,
    /// Output of the running test binary so far.
    said: Vec<String>,
    unfinished: usize,
    failures: Failures,
}

impl Transcript {
    /// Reads one line of stdout or stderr.
    pub fn read(&mut self, line: &str) {
        let plain = anstream::adapter::strip_str(line).to_string();
        let plain = plain.trim_end();
        if plain.starts_with("test result: ") {
            self.end_binary(plain);
        } else if plain == "failures:" {
            // The second time, only the names follow.
            self.in_failures = !self.in_failures;
        } else if self.in_failures {
            self.failures.read(plain);
        } else if is_start(plain) {
            self.break_off();
            self.running = true;
        }
        if self.running && !self.in_failures {
            self.said.push(plain.into());
        }
    }

    /// The counts, once everything is read and cargo's exit code is known. A run that broke off
    /// or tested nothing has failed, whatever its lines say.
    pub fn tally(mut self, cargo_succeeded: bool, proved_nothing: &BTreeSet<Outcome>) -> Tally {
        self.break_off();
        // A failing test counts as failed, whatever line it left before.
        let count = |kind: Kind| {
            let of_kind = proved_nothing.iter().filter(|outcome| outcome.kind == kind);
            of_kind.filter(|outcome| !self.failures.contain(&outcome.test)).count()
        };
        let (skipped, not_judged) = (count(Kind::Skipped), count(Kind::NotJudged));
        let passed = self.passed.saturating_sub(skipped + not_judged);
        let mut failed = self.failed + self.unfinished;
        let mut failures = self.failures.in_words();
        let nothing_ran = self.passed + failed == 0;
        if failed == 0 && (nothing_ran || !cargo_succeeded) {
            failed = 1;
            failures.push("FAILED cargo test: no test did, see its errors above".into());
        }
        Tally { passed, failed, skipped: skipped + self.ignored, not_judged, failures }
    }

    fn end_binary(&mut self, line: &str) {
        self.passed += count(line, "passed");
        self.failed += count(line, "failed");
        self.ignored += count(line, "ignored");
        self.in_failures = false;
        self.running = false;
        self.said.clear();
    }

    /// If a test binary is still running, it has ended without a result.
    fn break_off(&mut self) {
        let said = std::mem::take(&mut self.said);
        if std::mem::take(&mut self.running) {
            self.unfinished += 1;
            self.failures.broke_off(&said);
        }
    }
}

/// Whether this is libtest's `running 12 tests`.
fn is_start(line: &str) -> bool {
    let words: Vec<_> = line.split(' ').collect();
    matches!(words[..], ["running", n, "test" | "tests"] if n.parse::<usize>().is_ok())
}

/// The number before `word`, as in `12 passed;`; 0 if the line has none.
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

    /// The tally of a run that left these lines.
    fn tally(text: &str, succeeded: bool, left: &[(Kind, &str)]) -> Tally {
        let outcome = |(kind, test): &(Kind, &str)| Outcome {
            kind: *kind,
            binary: "b".into(),
            test: (*test).into(),
            why: "root".into(),
        };
        read(text).tally(succeeded, &left.iter().map(outcome).collect())
    }

    const TWO_BINARIES: &str = "
running 3 tests
test one ... ok
test two ... ok
test three ... ok

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 1 test
test four ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    const ONE_FAILS: &str = "running 2 tests\ntest m::a ... FAILED\ntest b ... ok\n\n\
        failures:\n\n---- m::a stdout ----\nthread 'a' panicked at x.rs:1:1:\nno\n\n\
        failures:\n    m::a\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\nerror: failed\n";

    #[test]
    fn what_proved_nothing_has_neither_passed_nor_failed() {
        let left = [(Kind::Skipped, "two"), (Kind::NotJudged, "four")];
        let tally = tally(TWO_BINARIES, true, &left);
        assert_eq!(tally.to_string(), "2 passed, 0 failed, 1 skipped, 1 not judged");
    }

    #[test]
    fn colours_do_not_hide_a_result() {
        let line = "test result: \x1b[31mFAILED\x1b[m. 2 passed; 1 failed; 1 ignored; 0 measured";
        assert_eq!(tally(line, false, &[]).to_string(), "2 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn a_binary_that_dies_without_a_result_has_failed() {
        let died_first = format!("running 7 tests\n{TWO_BINARIES}");
        assert_eq!(tally("running 1 test", true, &[]).failed, 1);
        assert_eq!(tally(&died_first, true, &[]).failed, 1);
    }

    #[test]
    fn a_build_that_fails_or_tests_nothing_has_failed() {
        assert_eq!(tally("error: could not compile", false, &[]).failed, 1);
        assert_eq!(tally("", true, &[]).failed, 1);
        assert_eq!(tally(TWO_BINARIES, false, &[]).failed, 1);
    }

    #[test]
    fn a_failing_test_is_not_skipped_as_well() {
        let left = [(Kind::Skipped, "a"), (Kind::Skipped, "b")];
        let tally = tally(ONE_FAILS, false, &left);
        assert_eq!(tally.to_string(), "0 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn what_failed_is_said_again_with_its_message() {
        let failures = tally(ONE_FAILS, false, &[]).failures;
        assert_eq!(failures, ["FAILED m::a\n  thread 'a' panicked at x.rs:1:1:\n  no"]);
        assert!(tally(TWO_BINARIES, true, &[]).failures.is_empty());
    }

    #[test]
    fn of_a_binary_that_dies_the_last_lines_are_said_again() {
        let text =
            format!("{TWO_BINARIES}running 1 test\nfatal runtime error\nrunning 2 tests\nhm");
        let failures = tally(&text, false, &[]).failures;
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures[0].ends_with("\n  running 1 test\n  fatal runtime error"), "{failures:?}");
        assert!(tally("", true, &[]).failures[0].starts_with("FAILED cargo test"));
    }
}
