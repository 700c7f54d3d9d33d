//! What could limit a transfer on this host, from its settings and counters alone, before any
//! traffic: `goodput check`.

pub mod checks;
mod view;

use goodput_model::{Confidence, Finding, Missing, Permanent, Place, Undecided};

use crate::finding::Draft;
pub use view::{Growth, HostView};

/// What a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The host: asked once.
    Host,
    /// A network device: asked for each.
    Device,
}

/// One thing about a host that could limit traffic.
pub struct Check {
    /// Id of the rule that names the same cause when it limits a transfer, if there is one.
    pub id: &'static str,
    /// What the check looks for, in one phrase.
    pub title: &'static str,
    /// What it looks at.
    pub scope: Scope,
    ask: &'static dyn Ask,
}

/// A finding, nothing, or what is missing for a decision.
type Answer = Result<Option<Finding>, Missing>;

/// How a check looks at a host: a function, or a row in a table of checks of the same kind.
trait Ask: Sync {
    fn ask(&self, check: &Check, host: &HostView) -> Answer;
}

impl<F: Fn(&Check, &HostView) -> Answer + Sync> Ask for F {
    fn ask(&self, check: &Check, host: &HostView) -> Answer {
        self(check, host)
    }
}

impl Check {
    /// Fires, stays quiet, or reports what is missing. `Possible` means that it could limit traffic; anything more
    /// means that harm was seen, or that something is certainly wrong.
    pub fn check(&self, host: &HostView) -> Result<Option<Finding>, Missing> {
        self.ask.ask(self, host)
    }

    /// A finding whose summary is its evidence: `value` of `fact`.
    fn draft(&self, confidence: Confidence, fact: &str, value: f64, text: &str) -> Draft {
        Draft::new(self.id, Place::Near, confidence, text).saw(Place::Near, fact, value, text)
    }
}

/// The result of all checks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// The findings, the most certain first.
    pub findings: Vec<Finding>,
    /// What could not be decided.
    pub undecided: Vec<Undecided>,
}

/// Asks every check: those of the host once, those of a device for each view that names one. The
/// facts of the host are those of the first view.
pub fn check(views: &[HostView]) -> Checked {
    let mut checked = Checked::default();
    for check in checks::ALL {
        let asked = views.iter().enumerate().filter(|(n, view)| match check.scope {
            Scope::Host => *n == 0,
            Scope::Device => view.device.is_some(),
        });
        for (_, view) in asked {
            checked.note(check, view);
        }
    }
    let sureness = |finding: &Finding| std::cmp::Reverse(finding.confidence);
    checked.findings.sort_by_key(sureness);
    checked
}

impl Checked {
    fn note(&mut self, check: &Check, view: &HostView) {
        let of = match (check.scope, view.device) {
            (Scope::Device, Some(device)) => format!("{device}: "),
            _ => String::new(),
        };
        match check.check(view) {
            Ok(Some(mut finding)) => {
                finding.summary.insert_str(0, &of);
                if let Some(device) = view.device {
                    name_device(&mut finding, device);
                }
                self.findings.push(finding);
            }
            Ok(None) => {}
            Err(why) => self
                .undecided
                .push(Undecided { rule: check.id.into(), because: format!("{of}{why}") }),
        }
    }
}

/// Puts the device's name where commands and files say DEV.
fn name_device(finding: &mut Finding, device: &str) {
    let named = |text: &mut String| *text = text.replace("DEV", device);
    finding.advice.iter_mut().for_each(named);
    for Permanent { file, lines } in &mut finding.permanent {
        named(file);
        named(lines);
    }
}

/// Whether harm was seen, rather than merely possible.
pub fn is_seen(finding: &Finding) -> bool {
    finding.confidence > Confidence::Possible
}
