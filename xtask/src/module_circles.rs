//! Files that use each other in a circle: none of them can be read, tested or changed alone. A folder's own file and
//! the folder's contents count as one here, because a parent declares its children and they use the parent's items. A
//! name that a folder only re-exports (`pub use`) counts as part of the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::module_uses::{CratePath, Uses, module_of};
use crate::rust_source::{RustFile, files};

/// How often a name may be re-exported before it is found.
const MAX_PASSES: usize = 8;

/// Each file's module, with what it uses.
type UsedPaths = BTreeMap<CratePath, Uses>;

/// One line per circle.
pub fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for sources in crates()? {
        let name = sources.iter().nth_back(1).unwrap_or_default().to_string_lossy();
        problems.extend(lines_of(&read(&sources)?).iter().map(|line| format!("{name}: {line}")));
    }
    Ok(problems)
}

/// The source folder of every crate.
pub fn crates() -> Result<BTreeSet<PathBuf>> {
    let of = |file: &PathBuf| {
        Some(file.iter().take(3).collect::<PathBuf>()).filter(|f| f.ends_with("src"))
    };
    let all: BTreeSet<_> = files(Path::new("crates"), "rs")?.iter().filter_map(of).collect();
    Ok(all.into_iter().chain([PathBuf::from("xtask/src")]).collect())
}

/// The paths that every file of a crate uses outside its tests. A crate with a library and a program has two roots.
fn read(sources: &Path) -> Result<UsedPaths> {
    let mut used = UsedPaths::new();
    for path in files(sources, "rs")? {
        let file = RustFile::read(&path)?;
        let module = module_of(sources, &path);
        let uses = Uses::outside_tests(&file, module.clone());
        let both = used.entry(module).or_default();
        both.paths.extend(uses.paths);
        both.passed_on.extend(uses.passed_on);
    }
    Ok(used)
}

fn lines_of(used: &UsedPaths) -> Vec<String> {
    let reached: BTreeMap<_, _> = used.keys().map(|module| (module, reach(module, used))).collect();
    let circle = |module: &CratePath| -> BTreeSet<&CratePath> {
        reached[module].iter().filter(|other| reached[*other].contains(module)).copied().collect()
    };
    let circles: BTreeSet<_> = used.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    let line = |circle: &BTreeSet<&CratePath>| {
        let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
        format!("{} use each other in a circle", names.join(", "))
    };
    circles.iter().map(line).collect()
}

/// Everything reachable from a module.
fn reach<'a>(from: &'a CratePath, used: &'a UsedPaths) -> BTreeSet<&'a CratePath> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        let files = used[module].paths.iter().filter_map(|path| file_of(path, used, MAX_PASSES));
        left.extend(files.filter(|file| !is_family(module, file) && seen.insert(*file)));
    }
    seen
}

/// The file that defines what a path names.
fn file_of<'a>(path: &[String], used: &'a UsedPaths, passes: usize) -> Option<&'a CratePath> {
    let found = |length: usize| Some((length, used.get_key_value(&path[..length])?));
    let (length, (module, uses)) = (0..=path.len()).rev().find_map(found)?;
    match path[length..].split_first() {
        Some((name, rest)) if passes > 0 && uses.passed_on.contains_key(name) => {
            let target = [&uses.passed_on[name][..], rest].concat();
            file_of(&target, used, passes - 1)
        }
        _ => Some(module),
    }
}

fn is_family(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> CratePath {
        text.split("::").filter(|part| !part.is_empty()).map(Into::into).collect()
    }

    fn found(files: &[(&str, &[&str])]) -> Vec<String> {
        let used = |(file, uses): &(&str, &[&str])| {
            let paths = uses.iter().map(|used| path(used)).collect();
            (path(file), Uses { paths, ..Uses::default() })
        };
        lines_of(&files.iter().map(used).collect())
    }

    fn read_text(files: &[(&str, &str)]) -> Vec<String> {
        let used = |(name, text): &(&str, &str)| {
            let file = RustFile::parse(format!("c/src/{name}.rs"), (*text).into()).unwrap();
            let module = module_of(Path::new("c/src"), &file.path);
            (module.clone(), Uses::outside_tests(&file, module))
        };
        lines_of(&files.iter().map(used).collect())
    }

    #[test]
    fn a_name_that_a_folder_passes_on_is_the_files_that_has_it() {
        let folder = ("a/mod", "mod b; mod c; pub use b::B; pub(crate) use self::c::{C as D};");
        let circle =
            [folder, ("a/b", "use super::D; struct B;"), ("a/c", "use crate::a::B; struct C;")];
        assert_eq!(read_text(&circle), ["a::b, a::c use each other in a circle"]);
        let chain = [folder, ("a/b", "use super::D; struct B;"), ("a/c", "struct C;")];
        assert_eq!(read_text(&chain), Vec::<String>::new());
    }

    #[test]
    fn what_only_a_test_uses_closes_no_circle() {
        let files = [("a", "use crate::b::B;"), ("b", "mod tests { use crate::a::A; }")];
        assert_eq!(read_text(&files), Vec::<String>::new());
    }

    #[test]
    fn a_circle_is_found_with_all_its_files_and_only_those() {
        let files: [(&str, &[&str]); 5] = [
            ("a", &["b::B"]),
            ("b", &["c::d::D", "std::x"]),
            ("c", &[]),
            ("c::d", &["a::A", "e::E"]),
            ("e", &["e::own"]),
        ];
        assert_eq!(found(&files), ["a, b, c::d use each other in a circle"]);
    }

    #[test]
    fn a_folder_and_what_is_in_it_are_no_circle() {
        let files: [(&str, &[&str]); 4] =
            [("", &["a::A"]), ("a", &["a::b::B"]), ("a::b", &["a::Own", "c::C"]), ("c", &["Root"])];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn two_circles_are_two_lines() {
        let files: [(&str, &[&str]); 4] =
            [("a", &["b"]), ("b", &["a"]), ("c", &["d", "a"]), ("d", &["c"])];
        assert_eq!(found(&files).len(), 2);
    }
}
