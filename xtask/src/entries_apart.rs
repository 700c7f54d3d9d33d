//! Registries whose entries share facts, but never ask each other: an entry is known to the list of its folder only. What
//! entries are ranked by is measured, so no row gives one a place before others.

use std::path::Path;

use anyhow::Result;
use syn::visit::Visit;

use crate::module_uses::{CratePath, Uses, module_of};
use crate::rust_source::{RustFile, files, names};

/// The folder of a registry.
struct Registry {
    path: &'static str,
    /// The crate's source folder.
    sources: &'static str,
    /// Names that the crate does not use, because they stand for an order of its entries that nobody measured.
    orders: &'static [&'static str],
}

const REGISTRIES: [Registry; 1] = [Registry {
    path: "crates/diagnose/src/rules",
    sources: "crates/diagnose/src",
    orders: &["Stage", "stage", "explains"],
}];

/// Every use of an entry by anything but its own file and the list, every use of the list by an entry, and every name of an
/// order of the entries. Whoever uses the list is no entry's helper: that would be a circle (`module_circles`).
pub fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for registry in &REGISTRIES {
        let paths = files(Path::new(registry.sources), "rs")?;
        let files: Vec<_> = paths.iter().map(|path| RustFile::read(path)).collect::<Result<_>>()?;
        problems.extend(registry.problems(&files));
    }
    Ok(problems)
}

impl Registry {
    fn problems(&self, files: &[RustFile]) -> Vec<String> {
        let list = self.module_of(Path::new(self.path));
        let is_list = |file: &&RustFile| self.module_of(&file.path) == list;
        let entries: Vec<_> = files
            .iter()
            .filter(is_list)
            .flat_map(|file| declared(&file.tree))
            .map(|name| [&list[..], &[name]].concat())
            .collect();
        let mut problems = Vec::new();
        for file in files {
            let module = self.module_of(&file.path);
            let uses = Uses::outside_tests(file, module.clone());
            let wrong = uses.paths.iter().filter(|used| self.is_wrong(&module, used, &entries));
            let here = file.path.display();
            problems.extend(wrong.map(|used| {
                format!("{here} uses {}: entries of {} are apart", used.join("::"), self.path)
            }));
            problems.extend(self.orders_in(file).into_iter().map(|(line, name)| {
                format!(
                    "{here}:{line}: {name}: entries of {} are ranked by what is measured",
                    self.path
                )
            }));
        }
        problems
    }

    /// Names of an order of the entries, with their lines.
    fn orders_in(&self, file: &RustFile) -> Vec<(usize, String)> {
        let mut names = Names { wanted: self.orders, found: Vec::new() };
        names.visit_file(&file.tree);
        names.found
    }

    fn is_wrong(&self, user: &CratePath, used: &CratePath, entries: &[CratePath]) -> bool {
        let list = self.module_of(Path::new(self.path));
        let is_within = |path: &CratePath, module: &CratePath| path.starts_with(module);
        let of_entry = entries.iter().find(|entry| is_within(used, entry));
        match of_entry {
            Some(entry) => !is_within(user, entry) && *user != list,
            None => is_within(used, &list) && entries.contains(user),
        }
    }

    fn module_of(&self, file: &Path) -> CratePath {
        module_of(Path::new(self.sources), file)
    }
}

/// Walks a file and notes where it uses some names.
struct Names<'a> {
    wanted: &'a [&'static str],
    found: Vec<(usize, String)>,
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_ident(&mut self, ident: &'ast syn::Ident) {
        if self.wanted.iter().any(|name| ident == name) {
            self.found.push((ident.span().start().line, ident.to_string()));
        }
    }
}

/// The modules that a file declares, without its tests.
fn declared(file: &syn::File) -> impl Iterator<Item = String> {
    file.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if !module.attrs.iter().any(|a| names(a, "cfg", "test")) => {
            Some(module.ident.to_string())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: Registry =
        Registry { path: "c/src/rules", sources: "c/src", orders: &["explains"] };

    fn count(file: &str, text: &str) -> usize {
        let list = "mod one; mod two; #[cfg(test)] mod conformance;";
        let others =
            [("rules/mod.rs", list), ("lib.rs", ""), ("fact.rs", ""), ("rules/two.rs", "")];
        let others = others.into_iter().filter(|(name, _)| *name != file);
        let parsed = |(name, text): (&str, &str)| {
            RustFile::parse(format!("c/src/{name}"), text.into()).unwrap()
        };
        let all: Vec<_> = others.chain([(file, text)]).map(parsed).collect();
        REGISTRY.problems(&all).len()
    }

    #[test]
    fn entries_use_facts_and_the_list_uses_entries() {
        assert_eq!(count("rules/one.rs", "use crate::fact::Fact; fn f() { self::g() }"), 0);
        assert_eq!(count("rules/mod.rs", "mod one; const ALL: &[&R] = &[&self::one::RULE];"), 0);
        assert_eq!(count("lib.rs", "use crate::rules::ALL;"), 0);
        assert_eq!(count("rules/one.rs", "mod tests { use super::super::two::RULE; }"), 0);
        assert_eq!(count("rules/conformance.rs", "use super::ALL;"), 0);
    }

    #[test]
    fn entries_ask_neither_each_other_nor_the_list() {
        let asked = [
            "use super::two::limited;",
            "use crate::rules::two;",
            "fn f() { (crate::rules::two::RULE.check)(view) }",
            "use super::ALL;",
            "fn f() { super::find(\"two\") }",
            "pub use super::two::RULE as OTHER;",
        ];
        for text in asked {
            assert_eq!(count("rules/one.rs", text), 1, "{text}");
        }
        assert_eq!(count("fact.rs", "pub use crate::rules::two::limited;"), 1);
    }

    #[test]
    fn no_entry_has_a_place_before_others() {
        assert_eq!(count("rules/one.rs", "const R: Rule = Rule { explains: &[] };"), 1);
        assert_eq!(count("lib.rs", "struct Rule { explains: u8 }"), 1);
        assert_eq!(count("lib.rs", "fn lateness_explains() {}"), 0);
    }
}
