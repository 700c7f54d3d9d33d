//! Values that someone else's file sets again after ours (sysctl.d(5)), or in its place (fstab).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;

use super::contents::Assignment;
use super::mount;
use super::place::PARAMETERS;
use super::root::below;

/// Folders of such files; of several files with one name, the first counts.
const FOLDERS: [&str; 4] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];
/// Prefix of settings that are kernel parameters.
const SYSCTL: &str = "sysctl.";

/// The values that `file` keeps and another file sets later, with the last such file.
pub fn overruled(root: &Path, file: &Path, keeps: &[Assignment]) -> Vec<(SettingRef, PathBuf)> {
    if file == below(root, mount::FILE) {
        return mount::overruled(root, keeps);
    }
    if file != below(root, PARAMETERS) {
        return Vec::new();
    }
    let later: Vec<(PathBuf, String)> = later(root, file)
        .into_iter()
        .filter_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?)))
        .collect();
    let found = keeps.iter().filter_map(|(setting, _)| {
        let parameter = slashed(setting.name.strip_prefix(SYSCTL)?);
        let sets = |(_, text): &&(PathBuf, String)| sets(text, &parameter);
        let (path, _) = later.iter().rev().find(sets)?;
        Some((setting.clone(), path.clone()))
    });
    found.collect()
}

/// The files that are read after `own`: all are sorted by name, whichever folder they are in.
fn later(root: &Path, own: &Path) -> Vec<PathBuf> {
    let mut files = BTreeMap::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(below(root, folder)).into_iter().flatten().flatten() {
            files.entry(entry.file_name()).or_insert_with(|| entry.path());
        }
    }
    let name = own.file_name().unwrap_or_default().to_owned();
    let is_read = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "conf");
    files
        .into_iter()
        .filter(|(other, _)| *other > name)
        .map(|(_, path)| path)
        .filter(is_read)
        .collect()
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
    use super::*;

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
        let own = below(root, PARAMETERS);
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
        let by = |name: &str| vec![(keeps[0].0.clone(), below(root, name))];
        assert_eq!(overruled(root, &own, &keeps), by("/usr/lib/sysctl.d/99-b.conf"));
        put("/etc/sysctl.d/99-b.conf", "# nothing\n");
        assert_eq!(overruled(root, &own, &keeps), []);
    }
}
