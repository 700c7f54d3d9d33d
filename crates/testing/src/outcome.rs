//! Tests that passed in libtest's count but have proven nothing: each adds a line to a file, which `cargo xtask test`
//! counts.

use std::fmt;
use std::fs::File;
use std::io::Write;

use crate::running_test;

/// The environment variable that names the file of these lines; without it they are only printed.
pub const FILE: &str = "GOODPUT_OUTCOMES";

/// Why a test that passed has proven nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// This machine can't run it.
    Skipped,
    /// Other programs took the machine's CPUs while it ran.
    NotJudged,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skipped => "SKIPPED",
            Self::NotJudged => "NOT JUDGED",
        })
    }
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// Why it has proven nothing.
    pub kind: Kind,
    /// The test binary: test names are unique within one.
    pub binary: String,
    /// The test, with its modules.
    pub test: String,
    /// What it needs, or what disturbed it.
    pub why: String,
}

impl Outcome {
    fn of_running_test(kind: Kind, why: &str) -> Self {
        let binary = std::env::current_exe().unwrap_or_default();
        let binary = binary.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { kind, binary, test: running_test(), why: why.into() }
    }

    /// Parses a line of [`Outcome::to_line`].
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(4, '\t');
        let kinds = [Kind::Skipped, Kind::NotJudged];
        let kind = fields.next()?;
        let kind = kinds.into_iter().find(|known| known.to_string() == kind)?;
        let mut field = || fields.next().map(String::from);
        Some(Self { kind, binary: field()?, test: field()?, why: field()? })
    }

    /// One line, for any content of the texts.
    pub fn to_line(&self) -> String {
        let Self { kind, binary, test, why } = self;
        let plain = |text: &str| text.replace(['\t', '\n'], " ");
        format!("{kind}\t{}\t{}\t{}\n", plain(binary), plain(test), plain(why))
    }

    /// Prints it and adds it to the file, if there is one.
    fn keep(&self) {
        eprintln!("{self}");
        if let Some(file) = std::env::var_os(FILE) {
            let file = File::options().append(true).open(file);
            // In one call, because other tests write there as well.
            let kept = file.and_then(|mut file| file.write_all(self.to_line().as_bytes()));
            kept.unwrap_or_else(|error| panic!("can't keep `{self}` in ${FILE}: {error}"));
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, test, why, .. } = self;
        match kind {
            Kind::Skipped => write!(f, "{kind} {test}: needs {why}"),
            Kind::NotJudged => write!(f, "{kind} {test}: {why}"),
        }
    }
}

/// Whether a test that can't run here is a failure (`GOODPUT_REQUIRE=all`).
pub fn everything_required() -> bool {
    std::env::var_os("GOODPUT_REQUIRE").is_some_and(|what| what == "all")
}

/// Reports that the running test can't run here because it needs something. The test must then return, and doesn't
/// count as passed.
///
/// # Panics
///
/// If everything is required, and on a thread that runs no test.
pub fn skip(needs: &str) {
    let outcome = Outcome::of_running_test(Kind::Skipped, needs);
    assert!(!everything_required(), "{outcome}, and must run");
    outcome.keep();
}

/// Reports that other programs disturbed the running test, so that its result proves nothing.
///
/// # Panics
///
/// On a thread that runs no test.
pub fn not_judged(why: &str) {
    Outcome::of_running_test(Kind::NotJudged, why).keep();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::as_test;

    #[test]
    fn a_line_is_read_back_whatever_it_says() {
        let of_test = || Outcome::of_running_test(Kind::NotJudged, "one\ntwo\tthree");
        let outcome = as_test("a\tb", of_test);
        let line = outcome.to_line();
        assert_eq!(line.matches('\n').count(), 1);
        let read = Outcome::parse(line.trim_end()).unwrap();
        assert_eq!((&*read.test, &*read.why), ("a b", "one two three"));
        assert_eq!(read.kind, Kind::NotJudged);
        assert_eq!(Outcome::parse("SKIPPED\tno more"), None);
        assert_eq!(Outcome::parse("ELSE\ta\tb\tc"), None);
    }

    /// The environment belongs to the process, so the helper runs in another process.
    #[test]
    fn a_skip_is_kept_in_the_file_and_fails_where_all_is_required() {
        if std::env::var_os("GOODPUT_TEST_SKIPS").is_some() {
            return skip("a second host");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let run = |require: &str| {
            let exe = std::env::current_exe().unwrap();
            let mut again = std::process::Command::new(exe);
            again.args(["--exact", &running_test()]);
            again.env("GOODPUT_TEST_SKIPS", "1").env("GOODPUT_REQUIRE", require);
            again.env(FILE, file.path()).output().unwrap()
        };
        assert!(run("").status.success());
        let kept = std::fs::read_to_string(file.path()).unwrap();
        let kept: Vec<_> = kept.lines().filter_map(Outcome::parse).collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        let name = "outcome::tests::a_skip_is_kept_in_the_file_and_fails_where_all_is_required";
        assert_eq!(kept[0].to_string(), format!("SKIPPED {name}: needs a second host"));
        assert!(!run("all").status.success());
    }
}
