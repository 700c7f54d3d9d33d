//! Files that use each other in a circle: none of them can be read, tested or changed alone. A folder's own file and
//! what lies in the folder are one thing here, as a parent declares its children and they use what is theirs.

use std::collections::{BTreeMap, BTreeSet};

/// A module by its names from the crate's root.
type Module = Vec<String>;

/// Each file's module, with the paths that it uses.
pub type UsedPaths = BTreeMap<Module, BTreeSet<Vec<String>>>;

/// One line for each circle.
pub fn problems(used: &UsedPaths) -> Vec<String> {
    let reached: BTreeMap<_, _> = used.keys().map(|module| (module, reach(module, used))).collect();
    let circle = |module: &Module| -> BTreeSet<&Module> {
        reached[module].iter().filter(|other| reached[*other].contains(module)).copied().collect()
    };
    let circles: BTreeSet<_> = used.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    let line = |circle: &BTreeSet<&Module>| {
        let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
        format!("{} use each other in a circle", names.join(", "))
    };
    circles.iter().map(line).collect()
}

/// All that a module leads to.
fn reach<'a>(from: &'a Module, used: &'a UsedPaths) -> BTreeSet<&'a Module> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        let files = used[module].iter().filter_map(|path| file_of(path, used));
        left.extend(files.filter(|file| !is_family(module, file) && seen.insert(*file)));
    }
    seen
}

/// The file that has what a path names.
fn file_of<'a>(path: &[String], used: &'a UsedPaths) -> Option<&'a Module> {
    (0..=path.len()).rev().find_map(|length| used.get_key_value(&path[..length])).map(|(m, _)| m)
}

fn is_family(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Module {
        text.split("::").filter(|part| !part.is_empty()).map(Into::into).collect()
    }

    fn found(files: &[(&str, &[&str])]) -> Vec<String> {
        let used = |(file, uses): &(&str, &[&str])| {
            (path(file), uses.iter().map(|used| path(used)).collect())
        };
        problems(&files.iter().map(used).collect())
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
