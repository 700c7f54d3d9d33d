//! Values that someone else's file sets again after ours (sysctl.d(5)), or in its place (fstab, and the first file of
//! systemd that matches a device).

use std::collections::BTreeMap;

use goodput_model::SettingRef;

use super::contents::Assignment;
use super::host::SavingHost;
use super::place::PARAMETERS;
use super::{earlier, mount};

/// Folders of such files; of several files with one name, the first counts.
const FOLDERS: [&str; 4] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];
/// Prefix of settings that are kernel parameters.
const SYSCTL: &str = "sysctl.";

/// The values that the file at this absolute path keeps and that another file overrules, with that file.
pub fn overruled(
    host: &mut dyn SavingHost,
    path: &str,
    keeps: &[Assignment],
) -> Vec<(SettingRef, String)> {
    match path {
        mount::FILE => mount::overruled(host, keeps),
        PARAMETERS => set_later(host, keeps),
        _ => earlier::overruled(host, path, keeps),
    }
}

/// The parameters that another file sets after ours, with the last such file.
fn set_later(host: &mut dyn SavingHost, keeps: &[Assignment]) -> Vec<(SettingRef, String)> {
    let later: Vec<(String, String)> = later(host)
        .into_iter()
        .filter_map(|path| Some((path.clone(), host.read(&path)?)))
        .collect();
    let found = keeps.iter().filter_map(|(setting, _)| {
        let parameter = slashed(setting.name.strip_prefix(SYSCTL)?);
        let sets = |(_, text): &&(String, String)| sets(text, &parameter);
        let (path, _) = later.iter().rev().find(sets)?;
        Some((setting.clone(), path.clone()))
    });
    found.collect()
}

/// The files that are read after ours: all are sorted by name, whichever folder they are in.
fn later(host: &mut dyn SavingHost) -> Vec<String> {
    let own = PARAMETERS.rsplit('/').next().unwrap_or(PARAMETERS);
    let mut files = BTreeMap::new();
    for folder in FOLDERS {
        let names = host.list(folder).into_iter();
        for name in names.filter(|name| name.as_str() > own && name.ends_with(".conf")) {
            let path = format!("{folder}/{name}");
            files.entry(name).or_insert(path);
        }
    }
    files.into_values().collect()
}

/// Whether a file sets a parameter, named with slashes.
fn sets(text: &str, parameter: &str) -> bool {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let mut named = lines.filter_map(|line| line.split_once('='));
    named.any(|(name, _)| matches(&slashed(name.trim_start_matches('-').trim()), parameter))
}

/// A name with slashes between its parts: the first separator shows which of the two separates.
fn slashed(name: &str) -> String {
    let by_dots = name.find(['.', '/']).is_some_and(|at| name.as_bytes()[at] == b'.');
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    if by_dots { name.chars().map(swap).collect() } else { name.into() }
}

/// A part of `pattern` may be `*`, which matches any one part (glob(7); other patterns are rare there).
fn matches(pattern: &str, parameter: &str) -> bool {
    let (pattern, parameter) = (pattern.split('/'), parameter.split('/'));
    pattern.clone().count() == parameter.clone().count()
        && pattern.zip(parameter).all(|(pattern, part)| pattern == "*" || pattern == part)
}

#[cfg(test)]
mod tests {
    use super::super::host::Here;
    use super::super::root::below;
    use super::*;
    use std::fs;

    #[test]
    fn a_parameter_is_known_however_it_is_written() {
        for line in [
            "net.ipv4.conf.eth0.rp_filter = 1",
            "-net/ipv4/conf/eth0/rp_filter=1",
            "  net.ipv4.conf.*.rp_filter=2",
        ] {
            assert!(sets(&format!("# old\n{line}\n"), "net/ipv4/conf/eth0/rp_filter"), "{line}");
        }
        for line in [
            "#net.ipv4.tcp_sack = 1",
            "; net.ipv4.tcp_sack = 1",
            "net.ipv4.tcp_sacks = 1",
            "net.ipv4.tcp_sack",
        ] {
            assert!(!sets(line, "net/ipv4/tcp_sack"), "{line}");
        }
        assert_eq!(slashed("net.ipv4.conf.eth0/100.x"), "net/ipv4/conf/eth0.100/x");
    }

    #[test]
    fn only_later_files_overrule_and_one_name_counts_once() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let put = |path: &str, text: &str| {
            let path = below(root, path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let keeps: [Assignment; 1] =
            [("sysctl.net.ipv4.tcp_sack".parse().unwrap(), "1".to_owned())];
        put("/etc/sysctl.d/10-a.conf", "net.ipv4.tcp_sack = 0\n");
        put("/usr/lib/sysctl.d/99-b.conf", "net.ipv4.tcp_sack = 0\n");
        put("/etc/sysctl.d/99-z.backup", "net.ipv4.tcp_sack = 0\n");
        let by = |name: &str| vec![(keeps[0].0.clone(), name.to_owned())];
        let overruled = || overruled(&mut Here(root), PARAMETERS, &keeps);
        assert_eq!(overruled(), by("/usr/lib/sysctl.d/99-b.conf"));
        put("/etc/sysctl.d/99-b.conf", "# nothing\n");
        assert_eq!(overruled(), []);
    }
}
