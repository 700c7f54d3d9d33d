//! Converts `sysctl.<name>` to a file under /proc/sys, and finds the nearest existing names.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;

use super::sysctl_documented::DOCUMENTED;
use crate::error::SettingError;
use goodput_model::nearest;

const ROOT: &str = "/proc/sys";

/// The part after `sysctl.`.
pub(crate) fn dotted(setting: &SettingRef) -> Option<&str> {
    setting.name.strip_prefix("sysctl.")
}

/// The name of a setting in one spelling: a sysctl's with dots between the parts of its path. An unknown
/// name stays as it is.
pub(crate) fn canonical(name: &str) -> String {
    let below = name.strip_prefix("sysctl.").and_then(below_root);
    let path = below.as_deref().and_then(Path::to_str);
    path.map_or_else(
        || name.to_string(),
        |path| format!("sysctl.{}", path.chars().map(swap_separator).collect::<String>()),
    )
}

/// The file of a setting. It may not exist, but is always below /proc/sys.
pub(crate) fn path(setting: &SettingRef) -> Result<PathBuf, SettingError> {
    let unknown = || SettingError::Unknown { name: setting.name.clone(), nearest: Vec::new() };
    let below = below_root(dotted(setting).ok_or_else(unknown)?).ok_or_else(unknown)?;
    Ok(Path::new(ROOT).join(below))
}

/// The device of a parameter, from its directory: `net/ipv4/conf/eth0` and the like.
pub(super) fn device(setting: &SettingRef) -> Option<String> {
    let path = path(setting).ok()?;
    let parts: Vec<&str> = path.to_str()?.split('/').collect();
    let found = parts.windows(2).find(|pair| ["conf", "neigh"].contains(&pair[0]))?[1];
    (!["all", "default"].contains(&found)).then(|| found.into())
}

/// Refuses a name without a file: says why a documented one has none here, or lists the most similar names with one.
pub(crate) fn check_exists(setting: &SettingRef) -> Result<(), SettingError> {
    let path = path(setting)?;
    if path.is_file() {
        return Ok(());
    }
    if let Some(why) = path.strip_prefix(ROOT).ok().and_then(Path::to_str).and_then(why_not_here) {
        return Err(SettingError::NotHere { name: setting.name.clone(), why });
    }
    let names = names_beside(&path);
    let nearest = nearest(&setting.name, names.iter().map(String::as_str));
    Err(SettingError::Unknown { name: setting.name.clone(), nearest })
}

/// Why a documented parameter may have no file here; `None` for an undocumented one.
fn why_not_here(below: &str) -> Option<&'static str> {
    DOCUMENTED.iter().find(|(known, _)| *known == below)?;
    Some(match below.split('/').next() {
        Some("net") => {
            "this network namespace does not have it; if the kernel does, it is in the host's own namespace"
        }
        Some("sunrpc") => "the module sunrpc is not loaded; `modprobe sunrpc` loads it",
        _ => "this kernel does not have it",
    })
}

/// The relative path of a name, by the rules of sysctl(8) and sysctl.d(5): the first separator
/// shows whether `.` or `/` separates; the other one then stands for itself or, in names with
/// dots, for a dot. `None` for anything that could lead out of /proc/sys.
fn below_root(name: &str) -> Option<PathBuf> {
    let first = name.find(['.', '/'])?;
    let slashed: String = match name.as_bytes()[first] {
        b'/' => name.into(),
        _ => name.chars().map(swap_separator).collect(),
    };
    let good = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
        !part.is_empty() && part != "." && part != ".." && part.chars().all(plain)
    };
    slashed.split('/').all(good).then(|| slashed.into())
}

fn swap_separator(c: char) -> char {
    match c {
        '.' => '/',
        '/' => '.',
        other => other,
    }
}

/// The settings in and below the deepest existing directory on the way to `path`.
fn names_beside(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(folder) = path.ancestors().skip(1).find(|folder| folder.is_dir()) {
        collect(folder, &mut names);
    }
    names
}

fn collect(folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, names),
            Ok(_) => names.extend(name_of(&path)),
            Err(_) => {}
        }
    }
}

fn name_of(path: &Path) -> Option<String> {
    let below = path.strip_prefix(ROOT).ok()?.to_str()?;
    Some(format!("sysctl.{}", below.chars().map(swap_separator).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::EndName;
    use proptest::prelude::*;

    fn below(name: &str) -> Option<String> {
        below_root(name).map(|p| p.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_documented_parameter_that_is_missing_has_a_reason() {
        let why = |name: &str| why_not_here(name).unwrap_or_default();
        assert!(why("net/core/rps_sock_flow_entries").contains("namespace"));
        assert!(why("sunrpc/tcp_slot_table_entries").contains("modprobe sunrpc"));
        assert_eq!(why_not_here("net/core/nonsense"), None);
    }

    #[test]
    fn both_ways_of_writing_a_device_with_a_dot_are_read() {
        let file = Some("net/ipv4/conf/eth0.100/rp_filter".to_owned());
        assert_eq!(below("net.ipv4.conf.eth0/100.rp_filter"), file);
        assert_eq!(below("net/ipv4/conf/eth0.100/rp_filter"), file);
    }

    #[test]
    fn nothing_leads_out_of_proc_sys() {
        for name in [
            "",
            "a",
            "..",
            "net/../../etc",
            "a.//.b",
            "net//x",
            "/etc/passwd",
            "./x",
            "a.",
            "net.\0",
        ] {
            assert_eq!(below(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_misspelt_name_brings_the_right_one() {
        let error = check_exists(&"sysctl.net.ipv4.tcp_rmen".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("sysctl.net.ipv4.tcp_rmem"), "{error}");
        let error = check_exists(&"sysctl.net.ip4.tcp_rmem".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("sysctl.net.ipv4.tcp_rmem"), "{error}");
    }

    proptest! {
        #[test]
        fn any_name_stays_below_the_root(name in "[a-z./_]{0,24}|.{0,12}") {
            let setting = SettingRef { end: EndName::Near, name: format!("sysctl.{name}"), scope: None };
            if let Ok(path) = path(&setting) {
                let parts: Vec<_> = path.components().collect();
                prop_assert!(path.starts_with(ROOT));
                prop_assert!(parts.iter().all(|p| *p != std::path::Component::ParentDir));
            }
        }
    }
}
