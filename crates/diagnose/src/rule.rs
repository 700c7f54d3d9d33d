//! What a rule is: static facts, one pure check, and the witness that must move.

use goodput_model::{Finding, Missing};

use crate::view::View;

/// A cause of lost goodput and how it differs from its look-alikes.
#[derive(Debug)]
pub struct Rule {
    /// Kebab-case name, as scenarios and records use it; also the name of its file.
    pub id: &'static str,
    /// The cause in a few words.
    pub title: &'static str,
    /// When it is asked in the order of elimination.
    pub stage: Stage,
    /// Ids of the more general rules that this one explains: if both fire at the same end, or
    /// the other one blames the path, this one is the reason, and only it is reported.
    pub explains: &'static [&'static str],
    /// Fires, stays quiet, or says what it lacks to decide.
    pub check: fn(&View) -> Result<Option<Finding>, Missing>,
    /// The one number that falls when the cause is removed. Of every rule it falls, so that
    /// "did it move" is one question.
    pub witness: fn(&View) -> Result<f64, Missing>,
    /// Name of that number, with its unit.
    pub witness_name: &'static str,
    /// The rule's own source text; its header is the rule's page.
    pub source: &'static str,
}

/// The order of elimination: what an earlier stage explains, a later one need not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The path gives what it can: nothing to fix.
    Ceiling,
    /// Counted at one host; beats any inference.
    Counted,
    /// The program at either end was not ready.
    Application,
    /// A window or buffer was full.
    Window,
    /// A CPU was full.
    Cpu,
    /// What remains: the network between.
    Path,
    /// Not a limit of this measurement: worth knowing, but never the verdict.
    Aside,
}

/// Headings that every rule's page has, in this order.
pub const HEADINGS: [&str; 6] = [
    "What it means",
    "Why it limits",
    "How it is seen",
    "What to try",
    "When it is wrong",
    "Source",
];

impl Rule {
    /// The rule's page in Markdown: the module documentation of its file.
    pub fn page(&self) -> String {
        let header = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        header.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}
