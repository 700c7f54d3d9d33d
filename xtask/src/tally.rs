//! Counts what passed, failed, was skipped or not judged, announces each step with its time, and repeats the
//! failures at the end, because CI logs are cut from the front.

use std::fmt;
use std::ops::AddAssign;
use std::time::Instant;

use anyhow::Result;

/// How many checks passed, failed and were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Checks that ran and succeeded.
    pub passed: usize,
    /// Checks that ran and failed, or could not run.
    pub failed: usize,
    /// Checks that this machine could not host and nobody required.
    pub skipped: usize,
    /// Checks that ran while others used the machine's CPUs, so that their results show nothing.
    pub not_judged: usize,
    /// What failed, in words; a check may have none, or several.
    pub failures: Vec<String>,
}

impl Tally {
    /// One check that passed.
    pub const PASSED: Self = Self::of(1, 0);
    /// One check that was skipped.
    pub const SKIPPED: Self = Self::of(0, 1);

    const fn of(passed: usize, skipped: usize) -> Self {
        Self { passed, failed: 0, skipped, not_judged: 0, failures: Vec::new() }
    }

    /// One check that failed, for this reason.
    pub fn failure(why: String) -> Self {
        Self { failed: 1, failures: vec![why], ..Self::default() }
    }

    /// One check that must find nothing; prints what it found.
    pub fn of_problems(problems: &[String]) -> Self {
        for problem in problems {
            println!("  {problem}");
        }
        if problems.is_empty() { Self::PASSED } else { Self::failure(problems.join("\n")) }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
        self.not_judged += more.not_judged;
        self.failures.extend(more.failures);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)?;
        match self.not_judged {
            0 => Ok(()),
            some => write!(f, ", {some} not judged"),
        }
    }
}

/// Runs one step after the other, and continues after a failure.
pub struct Steps {
    total: Tally,
    failed: Vec<&'static str>,
}

impl Steps {
    /// No step done yet.
    pub fn new() -> Self {
        Self { total: Tally::default(), failed: Vec::new() }
    }

    /// Runs one step; an error counts as one failed check.
    pub fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<Tally>) {
        println!("\n== {name}");
        let started = Instant::now();
        let tally = work().unwrap_or_else(|error| {
            println!("  {error:#}");
            Tally::failure(format!("{error:#}"))
        });
        println!("== {name}: {tally}, {:.1} s", started.elapsed().as_secs_f64());
        if tally.failed > 0 {
            self.failed.push(name);
        }
        self.total += tally;
    }

    /// Repeats the failures, and prints the total as the last line; an error if anything failed.
    pub fn finish(self) -> Result<()> {
        if !self.failed.is_empty() {
            println!("\nfailed: {}", self.failed.join(", "));
        }
        for failure in &self.total.failures {
            println!("\n{failure}");
        }
        println!("\n{}", self.total);
        // The total stays the last line even if stderr and stdout go to the same place.
        if self.total.failed > 0 { std::process::exit(1) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_counts_as_one_failure_and_the_next_step_still_runs() {
        let mut steps = Steps::new();
        steps.step("broken", || anyhow::bail!("no"));
        steps.step("fine", || Ok(Tally::PASSED));
        assert_eq!(steps.total.to_string(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(steps.failed, ["broken"]);
        assert_eq!(steps.total.failures, ["no"]);
    }

    #[test]
    fn one_problem_is_enough_to_fail() {
        assert_eq!(Tally::of_problems(&[]), Tally::PASSED);
        assert_eq!(Tally::of_problems(&["x".into(), "y".into()]), Tally::failure("x\ny".into()));
    }
}
