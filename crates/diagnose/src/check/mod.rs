//! What could limit a transfer on this host, from its settings and counters alone, before any
//! traffic: `goodput check`.

pub mod checks;
mod view;

use goodput_model::{Confidence, Finding, Missing, Permanent, Undecided};

pub use view::{Growth, HostView};

/// What a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The host: asked once.
    Host,
    /// A network device: asked for each.
    Device,
}

/// One thing that a host can be found wanting in.
pub trait Check: Sync {
    /// Id of the rule that names the same cause once it limits a transfer, where there is one.
    fn id(&self) -> &'static str;

    /// What is looked for, in one phrase.
    fn title(&self) -> &'static str;

    /// What it looks at.
    fn scope(&self) -> Scope;

    /// Fires, stays quiet, or says what it lacks. `Possible`: could limit, were there traffic;
    /// anything more: seen to harm, or wrong for certain.
    fn check(&self, host: &HostView) -> Result<Option<Finding>, Missing>;
}

/// What came of all checks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// What was found, the surest first.
    pub findings: Vec<Finding>,
    /// What could not be told.
    pub undecided: Vec<Undecided>,
}

/// Asks every check: those of the host once, those of a device for each view that names one. The
/// facts of the host are those of the first view.
pub fn check(views: &[HostView]) -> Checked {
    let mut checked = Checked::default();
    for check in checks::ALL {
        let asked = views.iter().enumerate().filter(|(n, view)| match check.scope() {
            Scope::Host => *n == 0,
            Scope::Device => view.device.is_some(),
        });
        for (_, view) in asked {
            checked.note(*check, view);
        }
    }
    let sureness = |finding: &Finding| std::cmp::Reverse(finding.confidence);
    checked.findings.sort_by_key(sureness);
    checked
}

impl Checked {
    fn note(&mut self, check: &dyn Check, view: &HostView) {
        let of = match (check.scope(), view.device) {
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
                .push(Undecided { rule: check.id().into(), because: format!("{of}{why}") }),
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

/// Whether it was seen to harm, rather than that it could.
pub fn is_seen(finding: &Finding) -> bool {
    finding.confidence > Confidence::Possible
}
