//! The page of one thing that goodput knows: a rule, a setting, a mover, a field of the record. The reference
//! documents and `goodput explain` consist of these pages.

pub mod field;
pub mod planted;
pub mod registries;

use std::fmt::Write;

use goodput_ceiling::bounds::Bound;
use goodput_compat::formats::Format;
use goodput_diagnose::Rule;
use goodput_diagnose::check::{Check, Scope as CheckScope};
use goodput_diagnose::probes::Probe;
use goodput_kernel::sources::Source as FactSource;
use goodput_lab::faults::Kind as Fault;
use goodput_lab::{Builtin, LabError, Scenario};
use goodput_model::{Bytes, Role, Source};
use goodput_mover::Mover;
use goodput_settings::{Scope, Setting};
use goodput_wire::Protocol;

/// A cause that the diagnosis can name.
pub fn rule(rule: &Rule) -> String {
    // A page's headings are of the first level; here they go below the rule's own heading.
    let page = format!("\n{}", rule.page()).replace("\n# ", "\n### ");
    format!("\n## `{}`\n\n{}. {}\n{page}\n", rule.id, rule.title, planted::line(rule.id))
}

/// What `goodput check` looks for on a host.
pub fn check(check: &Check) -> String {
    format!("\n## `{}`\n\n{}. `goodput check` looks at {}.\n", check.id, check.title, scope(check))
}

/// A probe of `goodput test --probe`.
pub fn probe(probe: &Probe) -> String {
    let mut page =
        format!("\n## `{}`\n\n`goodput test --probe` may run this: {}.\n\n", probe.id, probe.title);
    for pair in probe.pairs {
        // Writing to a String can't fail.
        let _ =
            writeln!(page, "- distinguishes `{}` from `{}`: {}", pair.one, pair.other, pair.why);
    }
    page
}

/// A protocol that goodput speaks with peers.
pub fn protocol(protocol: &Protocol) -> String {
    let Protocol { id, port, summary, .. } = protocol;
    let control = if protocol.has_control { "a connection" } else { "none" };
    format!(
        "\n## `{id}`\n\n{}. A target is `{id}://HOST`.\n\n- port: {port}\n- control: {control}\n",
        sentence(summary)
    )
}

/// Another program's output.
pub fn format(format: &Format) -> String {
    format!("\n## `{0}`\n\n`--format {0}` prints {1}.\n", format.id, format.summary)
}

/// A scenario of the lab: what it shows, and its default case.
pub fn scenario(builtin: &Builtin) -> Result<String, LabError> {
    let Scenario { title, case, .. } = Scenario::load(builtin.name)?;
    let toml = goodput_lab::scenario_source(&case)?;
    let toml: String =
        toml.lines().map(|line| format!("    {line}\n").replace("    \n", "\n")).collect();
    let name = builtin.name;
    let run = format!("`goodput lab run {name}` runs its default case, `{case}`");
    Ok(format!("\n## `{name}`\n\n{title}\n\n{run}:\n\n{toml}"))
}

/// A fault that a scenario can plant.
pub fn fault(fault: &Fault) -> String {
    let example: String =
        fault.example.trim().lines().map(|line| format!("    {line}\n")).collect();
    let Fault { id, summary, .. } = fault;
    format!(
        "\n## `{id}`\n\nA fault that a scenario of the lab can plant: {summary}.\n\n    [[fault]]\n    kind = \"{id}\"\n{example}"
    )
}

/// A source of facts about a host.
pub fn source(source: &dyn FactSource) -> String {
    let id = source.id();
    format!("\n## `{id}`\n\nThe facts `{id}.…` of a record: {}.\n", source.summary())
}

/// A bound of `goodput ceiling`.
pub fn bound(bound: &Bound) -> String {
    let (id, title) = (bound.id, bound.title);
    let how = format!("How: {}.\n\nOptions: {}.", bound.source, bound.needs);
    format!("\n## `{id}`\n\n`goodput ceiling` computes this bound: {title}.\n\n{how}\n")
}

/// What a check examines.
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
        "\n## `{}`\n\n{}. {}\n\n- applies to: {scope}\n- values: {}\n- example: `goodput compare HOST {}`\n",
        setting.id,
        sentence(setting.title),
        setting.why,
        setting.accepted(),
        setting.example
    )
}

/// A way to move payload.
pub fn mover(mover: &dyn Mover) -> String {
    let transports: Vec<_> = mover.transports().iter().map(ToString::to_string).collect();
    format!(
        "\n## `{}`\n\n{}.\n\n- transport: {}\n- what it does: {}\n",
        mover.id(),
        sentence(mover.summary()),
        transports.join(", "),
        sides(mover)
    )
}

/// A mover's function, and its use of files: the same on any machine.
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

/// Capitalises the first letter.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
