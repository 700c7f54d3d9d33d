//! Every registry, with the names and the pages of its entries.

use goodput_ceiling::bounds;
use goodput_compat::formats;
use goodput_diagnose::{check::checks, probes, rules};
use goodput_kernel::sources;
use goodput_lab::faults;
use goodput_model::{EndName, SettingRef};
use goodput_mover::movers;
use goodput_settings::settings;
use goodput_wire::protocols;

use super::field;

/// A list of things that goodput knows.
pub struct Registry {
    /// What one of them is.
    pub kind: &'static str,
    /// Their names.
    pub names: fn() -> Vec<&'static str>,
    /// The pages of this name.
    pub pages: fn(&str) -> Vec<String>,
}

/// A registry in which each entry has a name.
macro_rules! registry {
    ($kind:literal, $all:expr, |$entry:ident| $name:expr => $page:expr) => {
        Registry {
            kind: $kind,
            names: || $all.iter().map(|$entry| $name).collect(),
            pages: |name| $all.iter().filter(|$entry| $name == name).map(|$entry| $page).collect(),
        }
    };
}

/// All registries, in the order in which their pages are printed.
pub const ALL: &[Registry] = &[
    registry!("rule", rules::ALL, |rule| rule.id => super::rule(rule)),
    registry!("check", checks::ALL, |check| check.id => super::check(check)),
    registry!("probe", probes::ALL, |probe| probe.id => super::probe(probe)),
    registry!("bound", bounds::ALL, |bound| bound.id => super::bound(bound)),
    Registry { kind: "setting", names: setting_names, pages: setting_pages },
    registry!("mover", movers::ALL, |mover| mover.id() => super::mover(*mover)),
    registry!("protocol", protocols::ALL, |protocol| protocol.id => super::protocol(protocol)),
    registry!("format", formats::ALL, |format| format.id => super::format(format)),
    registry!("scenario", goodput_lab::builtin(), |scenario| scenario.name => {
        // A built-in scenario that can't be read fails its own tests.
        super::scenario(scenario).unwrap_or_else(|why| why.to_string())
    }),
    registry!("fault", faults::ALL, |fault| fault.id => super::fault(fault)),
    registry!("source", sources::ALL, |source| source.id() => super::source(*source)),
    Registry { kind: "field", names: field::names, pages: field::find },
];

fn setting_names() -> Vec<&'static str> {
    settings::ALL.iter().map(|setting| setting.id).collect()
}

/// A setting may be written as in a comparison, with its end, scope and values. A member of a family (`sysctl`) has the
/// family's page behind its own.
pub fn setting_pages(name: &str) -> Vec<String> {
    let bare = name.split('=').next().unwrap_or(name);
    let Ok(setting) = bare.parse::<SettingRef>() else { return Vec::new() };
    pages_with(&setting, &here(&setting), on_freebsd(&setting.name))
}

/// The pages of a setting of another host, which runs this system, with the line `value` about its value there.
pub fn pages_elsewhere(setting: &SettingRef, value: &str, system: &str) -> Vec<String> {
    if system != FREEBSD {
        return pages_with(setting, value, None);
    }
    let name = &setting.name;
    let text = match goodput_remote::systems::described_on_freebsd(name) {
        Some((meaning, values)) => format!("- on FreeBSD: {meaning}\n- values there: {values}\n"),
        // The family's page and example are about Linux.
        None if name.starts_with("sysctl.") => {
            "- a parameter of FreeBSD's kernel: `sysctl -d` there describes it\n".into()
        }
        None => return pages_with(setting, value, None),
    };
    vec![format!("\n## `{name}`\n\n{value}{text}")]
}

/// As `uname -s` prints it.
const FREEBSD: &str = "FreeBSD";

/// The pages of a setting, with the line `value` about the value that a host has, and what it does on FreeBSD.
fn pages_with(setting: &SettingRef, value: &str, on_freebsd: Option<String>) -> Vec<String> {
    let named = settings::ALL.iter().copied().find(|known| known.id == setting.name);
    let Some(known) = named.or_else(|| goodput_settings::find_for(setting).ok()) else {
        let page = on_freebsd.map(|text| format!("\n## `{}`\n\n{value}{text}", setting.name));
        return page.into_iter().collect();
    };
    let (page, on_freebsd) = (super::setting(known), on_freebsd.unwrap_or_default());
    vec![match known.id == setting.name {
        true => page + value + &on_freebsd,
        false => {
            let (name, family) = (&setting.name, known.id);
            format!(
                "\n## `{name}`\n\nOne of the settings of `{family}`.\n\n{value}{on_freebsd}{page}"
            )
        }
    }]
}

/// What a setting does on a FreeBSD host.
fn on_freebsd(name: &str) -> Option<String> {
    let (meaning, values) = goodput_remote::systems::described_on_freebsd(name)?;
    Some(format!(
        "- on FreeBSD, by SSH: {meaning}\n- values there: {values}\n- its value there: `goodput settings list {name} --on \
         ssh://root@HOST`\n"
    ))
}

/// What this host has, if one value of it is named.
fn here(setting: &SettingRef) -> String {
    let is_one = goodput_settings::find_for(setting).is_ok_and(|known| !known.is_plan());
    if !is_one || setting.end == EndName::Far {
        return String::new();
    }
    let value = goodput_settings::read(setting).unwrap_or_else(|why| format!("unknown: {why}"));
    format!("- this host has: {value}\n")
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

    #[test]
    fn settings_of_freebsd_have_pages_here() {
        let page = setting_pages("sysctl.kern.polling.user_frac").concat();
        assert!(page.contains("percent of the CPU") && page.contains("0 to 99"), "{page}");
        let page = setting_pages("polling@em0").concat();
        assert!(page.contains("deferred") && page.contains("on FreeBSD, by SSH"), "{page}");
        assert!(setting_pages("sysctl.kern.polling.nonsense").is_empty());
    }

    #[test]
    fn a_member_of_a_family_has_its_name_and_value_before_the_familys_page() {
        let page = setting_pages("sysctl.kernel.ostype").concat();
        let (member, family) = page.split_once("\n## `sysctl`\n").expect("both pages");
        assert!(
            member.contains("## `sysctl.kernel.ostype`") && member.contains("has: Linux"),
            "{page}"
        );
        assert!(family.contains("- values:") && !family.contains("this host"), "{page}");
        let far = setting_pages("far:sysctl.kernel.ostype").concat();
        assert!(!far.contains("this host"), "{far}");
        let elsewhere = |name: &str, system: &str| {
            let setting = format!("far:{name}").parse().unwrap();
            pages_elsewhere(&setting, "- ssh://b has: 50\n", system).concat()
        };
        let page = elsewhere("sysctl.kern.polling.user_frac", "FreeBSD");
        assert!(page.contains("b has: 50\n- on FreeBSD: percent of the CPU"), "{page}");
        for name in ["sysctl.kern.polling.user_frac", "sysctl.net.inet.tcp.recvspace"] {
            let page = elsewhere(name, "FreeBSD");
            assert!(!page.contains("tcp_rmem") && !page.contains("HOST"), "{page}");
        }
        let linux = elsewhere("polling@eth0", "Linux");
        assert!(linux.contains("deferred") && !linux.contains("FreeBSD"), "{linux}");
        assert!(!setting_pages("sysctl").concat().contains("this host"));
    }
}
