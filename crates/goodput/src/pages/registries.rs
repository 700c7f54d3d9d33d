//! Every registry, with the names and the pages of its entries.

use goodput_ceiling::bounds;
use goodput_compat::formats;
use goodput_diagnose::{check::checks, probes, rules};
use goodput_kernel::sources;
use goodput_lab::faults;
use goodput_mover::movers;
use goodput_settings::settings;
use goodput_wire::protocols;

use super::field;

/// A list of things that goodput knows.
pub struct Registry {
    /// Their names.
    pub names: fn() -> Vec<&'static str>,
    /// The pages of this name.
    pub pages: fn(&str) -> Vec<String>,
}

/// A registry in which each entry has a name.
macro_rules! registry {
    ($all:expr, |$entry:ident| $name:expr => $page:expr) => {
        Registry {
            names: || $all.iter().map(|$entry| $name).collect(),
            pages: |name| $all.iter().filter(|$entry| $name == name).map(|$entry| $page).collect(),
        }
    };
}

/// All registries, in the order in which their pages are printed.
pub const ALL: &[Registry] = &[
    registry!(rules::ALL, |rule| rule.id => super::rule(rule)),
    registry!(checks::ALL, |check| check.id => super::check(check)),
    registry!(probes::ALL, |probe| probe.id => super::probe(probe)),
    registry!(bounds::ALL, |bound| bound.id => super::bound(bound)),
    Registry { names: setting_names, pages: setting_pages },
    registry!(movers::ALL, |mover| mover.id() => super::mover(*mover)),
    registry!(protocols::ALL, |protocol| protocol.id => super::protocol(protocol)),
    registry!(formats::ALL, |format| format.id => super::format(format)),
    registry!(goodput_lab::builtin(), |scenario| scenario.name => {
        // A built-in scenario that can't be read fails its own tests.
        super::scenario(scenario).unwrap_or_else(|why| why.to_string())
    }),
    registry!(faults::ALL, |fault| fault.id => super::fault(fault)),
    registry!(sources::ALL, |source| source.id() => super::source(*source)),
    Registry { names: field::names, pages: field::find },
];

fn setting_names() -> Vec<&'static str> {
    settings::ALL.iter().map(|setting| setting.id).collect()
}

/// A setting may be written as in a comparison, with its end, scope and values. A name for several settings (`sysctl`)
/// has a page of its own too.
fn setting_pages(name: &str) -> Vec<String> {
    let bare = name.strip_prefix("far:").unwrap_or(name);
    let bare = bare.split(['@', '=']).next().unwrap_or(bare);
    let named = settings::ALL.iter().copied().find(|setting| setting.id == bare);
    named.or_else(|| goodput_settings::find(bare).ok()).map(super::setting).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_every_registry_has_a_page() {
        for registry in ALL {
            for name in (registry.names)() {
                let pages = (registry.pages)(name);
                // A field that is the only one of its name has its whole path there.
                let title = format!("{name}`\n");
                let is_titled = pages.iter().all(|page| page.contains(&title));
                assert!(!pages.is_empty() && is_titled, "{name}: {pages:?}");
            }
        }
        for setting in settings::ALL {
            assert_eq!(setting_pages(setting.example).len(), 1, "{}", setting.example);
        }
    }
}
