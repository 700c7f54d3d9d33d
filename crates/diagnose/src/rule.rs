//! The definition of a rule: static facts, one pure check, and the witness that must move.

use goodput_model::{Finding, Missing};

use crate::account::Part;
use crate::view::View;

/// A cause of lost goodput and how it differs from its look-alikes.
#[derive(Debug)]
pub struct Rule {
    /// Kebab-case name, as in scenarios and records; also the name of the rule's file.
    pub id: &'static str,
    /// The cause in a few words.
    pub title: &'static str,
    /// The parts of the account that the rule explains: a limiter, and where it sits. A cause of nothing that took time
    /// is no verdict.
    pub refines: &'static [Part],
    /// Whether the rule names such a part, or says why it took time. A deeper finding takes the place of one about the same
    /// part that goes less deep.
    pub depth: Depth,
    /// Whether the cause, if it is at a host, is a queueing discipline there or its queue: what a shaper does to TCP. A test
    /// of a shaper then judges the shaper by what TCP got. Any other cause at a host keeps TCP from showing what the shaper
    /// gives.
    pub is_of_discipline: bool,
    /// Fires, stays quiet, or reports what is missing for a decision.
    pub check: fn(&View) -> Result<Option<Finding>, Missing>,
    /// The one number that falls when the cause is removed. Every rule's witness falls, so
    /// "did it move" is one question.
    pub witness: fn(&View) -> Result<f64, Missing>,
    /// Name of the witness, with its unit.
    pub witness_name: &'static str,
    /// The witness in English, and the unit that follows its value: `bytes in headers`, ` %`.
    pub witness_words: (&'static str, &'static str),
    /// The rule's own source text; its header is the rule's page.
    pub source: &'static str,
}

/// How much a rule says of a part of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// It names the part: losses, a window, a CPU, a rate.
    Limiter,
    /// It says by what: a queue that drops, a buffer that may not grow.
    Reason,
    /// It says why that came about: a link that goes down leaves the marks of a short queue.
    Root,
    /// It makes several parts cost more. It takes no place of what names one of them.
    Beside,
    /// It limits nothing here: worth knowing, but never the verdict.
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
