//! How a value survives a reboot: which lines belong in which files. Nothing is written here. What no file of the system
//! says belongs to the unit that sets values at boot.

mod application;
pub mod freebsd;
mod link;
mod modules;
mod network;
mod nfs;
mod qdisc_kind;
mod sysctl;

use goodput_model::{Bytes, Permanent, SettingRef};

pub(crate) use application::{application, socket_buffer};
pub(crate) use link::{link_file, link_switch, offload};
pub(crate) use modules::{MODULES, module_option};
pub(crate) use network::{NETWORK_FILES, network_file};
pub(crate) use nfs::{mount_option, sunrpc_slots};
pub(crate) use qdisc_kind::qdisc_kind;
pub(crate) use sysctl::sysctl;

/// From a setting and a value to the files that keep it; empty if no file can.
pub type Form = fn(&SettingRef, &str) -> Vec<Permanent>;

/// The form of a setting that no file of the system can say: goodput's unit sets it at boot.
pub(crate) const AT_BOOT: Form = |_, _| Vec::new();

/// What several settings need, with one entry per file and without duplicate lines.
pub fn merged(all: impl IntoIterator<Item = Permanent>) -> Vec<Permanent> {
    let mut files: Vec<Permanent> = Vec::new();
    for one in all {
        match files.iter_mut().find(|known| known.file == one.file) {
            None => files.push(one),
            Some(known) => join(&mut known.lines, &one.lines),
        }
    }
    files
}

/// Adds the lines of `more` that `lines` doesn't have. In our files, the section that differs comes last.
fn join(lines: &mut String, more: &str) {
    for line in more.lines() {
        if !lines.lines().any(|known| known == line) {
            lines.push('\n');
            lines.push_str(line);
        }
    }
}

fn entry(file: impl Into<String>, lines: impl Into<String>) -> Permanent {
    Permanent { file: file.into(), lines: lines.into() }
}

/// The scope as one word that is safe in a file's name and in a line.
fn plain(scope: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    scope.chars().map(|c| if safe(c) { c } else { '-' }).collect()
}

/// The device after the `@`, without a class.
pub(crate) fn device(setting: &SettingRef) -> String {
    let scope = setting.scope.as_deref().unwrap_or_default();
    plain(scope.split_once(':').map_or(scope, |(device, _class)| device))
}

/// A size for files and C programs: in bytes, without a unit.
pub(crate) fn in_bytes(size: &str) -> String {
    size.parse::<Bytes>().map_or_else(|_| size.into(), |bytes| bytes.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::permanent;
    use crate::settings::ALL;
    use proptest::prelude::*;

    fn of(example: &str) -> Vec<Permanent> {
        let (setting, values) = example.split_once('=').unwrap();
        let value = values.rsplit_once(',').map_or(values, |(_, last)| last);
        permanent(&setting.parse().unwrap(), value.trim_matches('"')).unwrap()
    }

    #[test]
    fn a_value_that_means_not_set_takes_the_setting_away() {
        let unset = ALL.iter().filter_map(|setting| Some((setting, setting.unset?)));
        for (setting, value) in unset.filter(|(setting, _)| !setting.is_plan()) {
            let (one, _) = setting.example.split_once('=').unwrap();
            let forms = permanent(&one.parse().unwrap(), value).unwrap();
            // goodput's unit does that at boot, or a section is left out; no file gets a number in its place.
            let is_without = forms.iter().all(|form| form.lines.starts_with("# no section"));
            assert!(is_without, "{}: {forms:?}", setting.id);
            let [command] = &crate::to_keep([(&one.parse().unwrap(), value)], |_| None)[..] else {
                panic!("{}", setting.id)
            };
            assert_eq!(command.lines, format!("goodput settings set --save {one}={value}"));
        }
        for (setting, value) in ALL.iter().filter_map(|setting| Some((setting, setting.unset?))) {
            let one = setting.example.split_once('=').unwrap().0.parse().unwrap();
            for form in permanent(&one, value).unwrap() {
                let says_number = form.lines.ends_with(" 0") || form.lines.ends_with("=0");
                let is_word = form.lines.contains(&format!(", {value})"));
                assert!(!says_number && !is_word, "{}: {}", setting.id, form.lines);
            }
        }
    }

    #[test]
    fn each_file_has_a_place_and_lines() {
        for setting in ALL {
            let files = of(setting.example);
            for Permanent { file, lines } in files {
                let place = ["/", "the application", NETWORK_FILES];
                assert!(place.iter().any(|p| file.starts_with(p)), "{}: {file}", setting.id);
                assert!(!lines.trim().is_empty() && !lines.ends_with('\n'), "{}", setting.id);
            }
        }
    }

    #[test]
    fn two_settings_of_one_device_share_one_file() {
        let both = merged([of("offload.tso@em0=on,off"), of("offload.gso@em0=on,off")].concat());
        let link = both.iter().find(|p| p.file.ends_with(".link")).unwrap();
        assert_eq!(link.lines.matches("[Link]").count(), 1, "{}", link.lines);
        assert!(link.lines.contains("TCPSegmentationOffload=no"), "{}", link.lines);
        assert!(link.lines.contains("GenericSegmentationOffload=no"), "{}", link.lines);
        let names: std::collections::BTreeSet<_> = both.iter().map(|p| &p.file).collect();
        assert_eq!(names.len(), both.len());
    }

    #[test]
    fn the_far_end_s_device_is_not_looked_up_here() {
        let text = of("far:offload.tso@lo=on,off")[0].lines.clone();
        assert!(text.contains("OriginalName=lo") && !text.contains("MACAddress="), "{text}");
    }

    proptest! {
        #[test]
        fn no_scope_and_no_value_break_out_of_a_file(scope in "[^@\0]{1,12}", value in ".{0,12}") {
            for setting in ALL.iter().filter(|s| s.example.contains('@')) {
                let name = format!("far:{}@{scope}", setting.id);
                let Ok(setting) = name.parse::<SettingRef>() else { continue };
                for Permanent { file, .. } in permanent(&setting, &value).unwrap_or_default() {
                    let is_path = !file.starts_with(NETWORK_FILES);
                    prop_assert!(!is_path || !file.contains("/.."), "{file}");
                }
            }
        }
    }
}
