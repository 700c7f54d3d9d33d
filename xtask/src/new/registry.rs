//! The registries: where their entries are, how they are listed, and their templates.

use anyhow::{Result, bail};

use super::edit;

/// Marks a place in a template that a person fills in; `cargo xtask test` finds those left over.
pub const BLANK: &str = concat!("FILL", " IN");

/// One registry.
pub struct Registry {
    /// What an entry is called.
    pub kind: &'static str,
    folder: &'static str,
    entry: Entry,
    /// Separates the words of an id.
    separator: char,
    template: &'static str,
    /// What to do after filling in; `{id}` stands for the id.
    then: &'static str,
}

/// How an entry looks in the list `ALL` of its mod.rs.
enum Entry {
    /// `&receive_window::RULE`.
    Item(&'static str),
    /// `&send_file::SendFile`: a type named after the id.
    Type,
    /// `"receive-window",` in `builtin!(…)` of crates/lab/src/scenarios.rs: the entry is no Rust file.
    Text,
}

/// Every registry.
pub const REGISTRIES: [Registry; 12] = [
    Registry {
        kind: "rule",
        folder: "crates/diagnose/src/rules",
        entry: Entry::Item("RULE"),
        separator: '-',
        template: include_str!("../../templates/rule.rs.txt"),
        then: "cargo test -p goodput-diagnose; cargo xtask docs",
    },
    Registry {
        kind: "check",
        folder: "crates/diagnose/src/check/checks",
        entry: Entry::Item("CHECK"),
        separator: '-',
        template: include_str!("../../templates/check.rs.txt"),
        then: "cargo test -p goodput-diagnose; cargo xtask docs",
    },
    Registry {
        kind: "probe",
        folder: "crates/diagnose/src/probes",
        entry: Entry::Item("PROBE"),
        separator: '-',
        template: include_str!("../../templates/probe.rs.txt"),
        then: "cargo test -p goodput-diagnose",
    },
    Registry {
        kind: "bound",
        folder: "crates/ceiling/src/bounds",
        entry: Entry::Item("BOUND"),
        separator: '-',
        template: include_str!("../../templates/bound.rs.txt"),
        then: "cargo test -p goodput-ceiling",
    },
    Registry {
        kind: "setting",
        folder: "crates/settings/src/settings",
        entry: Entry::Item("SETTING"),
        separator: '.',
        template: include_str!("../../templates/setting.rs.txt"),
        then: "cargo test -p goodput-settings; cargo xtask docs",
    },
    Registry {
        kind: "mover",
        folder: "crates/mover/src/movers",
        entry: Entry::Type,
        separator: '-',
        template: include_str!("../../templates/mover.rs.txt"),
        then: "cargo test -p goodput-mover; cargo xtask docs",
    },
    Registry {
        kind: "protocol",
        folder: "crates/wire/src/protocols",
        entry: Entry::Item("PROTOCOL"),
        separator: '-',
        template: include_str!("../../templates/protocol.rs.txt"),
        then: "cargo test -p goodput-wire; cargo xtask fuzz",
    },
    Registry {
        kind: "framing",
        folder: "crates/framing/src/framings",
        entry: Entry::Item("KIND"),
        separator: '-',
        template: include_str!("../../templates/framing.rs.txt"),
        then: "cargo test -p goodput-framing -p goodput-mover; name it in its protocol's tickets",
    },
    Registry {
        kind: "source",
        folder: "crates/kernel/src/sources",
        entry: Entry::Type,
        separator: '-',
        template: include_str!("../../templates/source.rs.txt"),
        then: "cargo test -p goodput-kernel",
    },
    Registry {
        kind: "fault",
        folder: "crates/lab/src/faults",
        entry: Entry::Item("KIND"),
        separator: '-',
        template: include_str!("../../templates/fault.rs.txt"),
        then: "cargo test -p goodput-lab",
    },
    Registry {
        kind: "scenario",
        folder: "crates/lab/scenarios",
        entry: Entry::Text,
        separator: '-',
        template: include_str!("../../templates/scenario.toml"),
        then: "cargo run -- lab run {id}",
    },
    Registry {
        kind: "format",
        folder: "crates/compat/src/formats",
        entry: Entry::Item("FORMAT"),
        separator: '-',
        template: include_str!("../../templates/format.rs.txt"),
        then: "write its shape down in crates/compat/src/formats/tests/shape.rs; cargo xtask docs",
    },
];

impl Registry {
    /// Refuses an id that the registry's conformance test would refuse.
    pub fn check_id(&self, id: &str) -> Result<()> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let word = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(plain)
        };
        if !id.split(self.separator).all(word) {
            bail!("{id:?} must be lower-case words joined by {:?}", self.separator);
        }
        Ok(())
    }

    /// The entry's file, from the root of the repository.
    pub fn file(&self, id: &str) -> String {
        match self.entry {
            Entry::Text => format!("{}/{id}.toml", self.folder),
            Entry::Item(_) | Entry::Type => format!("{}/{}.rs", self.folder, self.module(id)),
        }
    }

    /// The file that lists the entries.
    pub fn list(&self) -> String {
        match self.entry {
            Entry::Text => "crates/lab/src/scenarios.rs".into(),
            Entry::Item(_) | Entry::Type => format!("{}/mod.rs", self.folder),
        }
    }

    /// The text of the list file with the new entry; not formatted.
    pub fn add_to(&self, text: &str, id: &str) -> Result<String> {
        let module = self.module(id);
        let item = match self.entry {
            Entry::Item(name) => name.to_owned(),
            Entry::Type => self.type_name(id),
            Entry::Text => return edit::add_builtin(text, id),
        };
        let text = edit::add_module(text, &module)?;
        edit::add_entry(&text, &format!("&{module}::{item}"))
    }

    /// The text of the entry's file.
    pub fn text(&self, id: &str) -> String {
        let text = self.template.replace("{id}", id);
        text.replace("{module}", &self.module(id)).replace("{Type}", &self.type_name(id))
    }

    /// What to do after filling in.
    pub fn then(&self, id: &str) -> String {
        self.then.replace("{id}", id)
    }

    fn module(&self, id: &str) -> String {
        id.replace(self.separator, "_")
    }

    fn type_name(&self, id: &str) -> String {
        id.split(self.separator).map(capitalised).collect()
    }
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;
    use crate::module_uses::{CratePath, Uses, module_of};
    use crate::rust_source::{RustFile, files};
    use goodput_tools::shell::root;

    fn id(registry: &Registry) -> String {
        ["very", "new"].join(&registry.separator.to_string())
    }

    #[test]
    fn every_list_is_of_the_shape_that_can_be_added_to() {
        for registry in &REGISTRIES {
            let list = registry.list();
            let text = std::fs::read_to_string(root().join(&list)).expect(&list);
            let added = registry.add_to(&text, &id(registry)).expect(&list);
            syn::parse_file(&added).expect(&list);
            let entry = match registry.entry {
                Entry::Text => "    \"very-new\",",
                Entry::Item(_) | Entry::Type => "&very_new::",
            };
            assert!(added.contains(entry), "{list}");
            assert!(registry.add_to(&added, &id(registry)).is_err(), "twice in {list}");
        }
    }

    #[test]
    fn every_template_is_of_its_id_and_says_what_to_fill_in() {
        for registry in &REGISTRIES {
            let text = registry.text(&id(registry));
            assert!(text.contains(BLANK), "{}", registry.kind);
            assert!(!["{id}", "{module}", "{Type}"].iter().any(|p| text.contains(p)), "{text}");
            if registry.list().ends_with("mod.rs") {
                syn::parse_file(&text).expect(registry.kind);
            }
        }
    }

    /// What each module of a crate has: its items, and what it has by `use`.
    fn names_by_module(sources: &Path) -> BTreeMap<CratePath, BTreeSet<String>> {
        let mut all: BTreeMap<CratePath, BTreeSet<String>> = BTreeMap::new();
        for path in files(sources, "rs").expect("a crate's sources") {
            let (file, module) = (RustFile::read(&path).unwrap(), module_of(sources, &path));
            let used = Uses::with_tests(&file, module.clone()).passed_on.into_keys();
            let own = file.tree.items.iter().filter_map(name_of).map(ToString::to_string);
            all.entry(module).or_default().extend(own.chain(used));
        }
        all
    }

    fn name_of(item: &syn::Item) -> Option<&syn::Ident> {
        match item {
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Fn(item) => Some(&item.sig.ident),
            syn::Item::Macro(item) => item.ident.as_ref(),
            syn::Item::Mod(item) => Some(&item.ident),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            _ => None,
        }
    }

    /// A template is not part of any crate, so nothing else notices if a path that it imports is gone.
    #[test]
    fn every_path_that_a_template_imports_exists_in_its_crate() {
        for registry in REGISTRIES.iter().filter(|registry| registry.list().ends_with("mod.rs")) {
            let (folder, _) = registry.folder.split_once("/src").expect("a crate's sources");
            let sources = Path::new(folder).join("src");
            let names = names_by_module(&sources);
            let exists = |path: &CratePath| {
                let module =
                    (0..=path.len()).rev().find(|length| names.contains_key(&path[..*length]));
                let (module, rest) = path.split_at(module.expect("the root is a module"));
                rest.first().is_none_or(|name| name == "self" || names[module].contains(name))
            };
            let template =
                RustFile::parse(registry.file(&id(registry)), registry.text(&id(registry)));
            let template = template.expect(registry.kind);
            let module = module_of(&sources, &template.path);
            for path in Uses::with_tests(&template, module).passed_on.values() {
                assert!(exists(path), "the template of a {} imports {path:?}", registry.kind);
            }
        }
    }

    /// The recipes can be typed literally: no entry of that name exists yet.
    #[test]
    fn the_recipes_make_entries_that_do_not_exist() {
        let page = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
        let words = page.lines().filter_map(|line| line.strip_prefix("    cargo xtask new "));
        let mut count = 0;
        for mut words in words.map(str::split_whitespace) {
            let (Some(kind), Some(id)) = (words.next(), words.next()) else { panic!("{page}") };
            let registry = REGISTRIES.iter().find(|registry| registry.kind == kind).expect(kind);
            let file = registry.file(id);
            assert!(registry.check_id(id).is_ok() && !root().join(&file).exists(), "{file}");
            assert_eq!(words.nth(1), Some(&*file), "what the recipe says of {kind} {id}");
            count += 1;
        }
        assert!(count >= 10, "only {count} recipes");
    }

    #[test]
    fn ids_are_those_that_conformance_tests_accept() {
        let check = |kind: &str, id: &str| {
            let registry = REGISTRIES.iter().find(|registry| registry.kind == kind);
            registry.unwrap().check_id(id).is_ok()
        };
        assert!(check("rule", "path-loss") && check("setting", "offload.tso"));
        assert!(!check("rule", "path.loss") && !check("rule", "PathLoss") && !check("rule", ""));
        assert!(!check("setting", "offload-tso") && !check("setting", "offload..tso"));
    }
}
