//! What goodput can say about one thing it knows: a rule, a check, a setting, a mover, a field of the
//! record. The reference documents and `goodput explain` are made of these.

pub mod field;
pub mod planted;

use goodput_ceiling::bounds::Bound;
use goodput_diagnose::Rule;
use goodput_diagnose::check::{Check, Scope as CheckScope};
use goodput_model::{Bytes, Role, Source};
use goodput_mover::Mover;
use goodput_settings::{Scope, Setting};

/// A cause that the diagnosis can name.
pub fn rule(rule: &Rule) -> String {
    // A page's headings are of the first level; here they stand below the rule's own.
    let page = format!("\n{}", rule.page()).replace("\n# ", "\n### ");
    format!("\n## `{}`\n\n{}. {}\n{page}\n", rule.id, rule.title, planted::line(rule.id))
}

/// What `goodput check` looks for on a host.
pub fn check(check: &Check) -> String {
    format!("\n## `{}`\n\n{}. `goodput check` looks at {}.\n", check.id, check.title, scope(check))
}

/// A bound of `goodput ceiling`.
pub fn bound(bound: &Bound) -> String {
    let (id, title) = (bound.id, bound.title);
    let how = format!("How: {}.\n\nOptions: {}.", bound.source, bound.needs);
    format!("\n## `{id}`\n\n`goodput ceiling` computes this bound: {title}.\n\n{how}\n")
}

/// What a check looks at.
pub fn scope(check: &Check) -> &'static str {
    match check.scope {
        CheckScope::Host => "the host",
        CheckScope::Device => "each device",
    }
}

/// A setting that can be compared and changed.
pub fn setting(setting: &Setting) -> String {
    let scope = match setting.scope {
        Scope::Plan => "the measurement; nothing on the machine changes".to_string(),
        other => other.to_string(),
    };
    format!(
        "\n## `{}`\n\n{}. {}\n\n- applies to: {scope}\n- values: {}\n",
        setting.id,
        sentence(setting.title),
        setting.why,
        setting.values
    )
}

/// A way to move payload.
pub fn mover(mover: &dyn Mover) -> String {
    let transports: Vec<_> = mover.transports().iter().map(|t| format!("{t:?}")).collect();
    format!(
        "\n## `{}`\n\n{}.\n\n- for: {}\n- side: {}\n",
        mover.id(),
        sentence(mover.summary()),
        transports.join(", "),
        sides(mover)
    )
}

/// What a mover does, and with which files: the same on any machine.
pub fn sides(mover: &dyn Mover) -> String {
    let sources = match (mover.takes(&Source::Memory(Bytes(1))), mover.takes(&Source::Input)) {
        (true, true) => " (--source FILE or -)",
        (true, false) => " (--source FILE)",
        _ => "",
    };
    let sinks = if mover.stores() { " (--sink)" } else { "" };
    let side = |role: &Role| match role {
        Role::Sender => format!("sends{sources}"),
        Role::Receiver => format!("receives{sinks}"),
    };
    mover.roles().iter().map(side).collect::<Vec<_>>().join(", ")
}

/// With a capital in front.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
