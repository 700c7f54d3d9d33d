//! What a file uses from its own crate: its paths, and the names that it re-exports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use crate::rust_source::RustFile;

/// The names from the root of a crate to a module or an item.
pub type CratePath = Vec<String>;

/// The module of a file below the folder `sources` of a crate.
pub fn module_of(sources: &Path, file: &Path) -> CratePath {
    let inside: PathBuf = file.strip_prefix(sources).unwrap_or(file).with_extension("");
    let parts = inside.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| part != "mod" && part != "lib" && part != "main").collect()
}

/// What a file uses.
#[derive(Debug, Default)]
pub struct Uses {
    /// The paths that begin with `crate`, `self` or `super`.
    pub paths: BTreeSet<CratePath>,
    /// Names that the file has by `use`, such as `pub use part::Item` in a `mod.rs`, and the origin of each.
    pub passed_on: BTreeMap<String, CratePath>,
}

impl Uses {
    /// Uses of a file including its tests.
    pub fn with_tests(file: &RustFile, module: CratePath) -> Self {
        Self::read(file, module, true)
    }

    /// Uses of a file without its module `tests`.
    pub fn outside_tests(file: &RustFile, module: CratePath) -> Self {
        Self::read(file, module, false)
    }

    fn read(file: &RustFile, module: CratePath, tests: bool) -> Self {
        let children = file.tree.items.iter().filter_map(|item| match item {
            syn::Item::Mod(module) => Some(module.ident.to_string()),
            _ => None,
        });
        let children = children.collect();
        let own = module.clone();
        let mut reader = Reader { own, module, children, tests, uses: Self::default() };
        reader.visit_file(&file.tree);
        reader.uses
    }
}

struct Reader {
    /// The file's module.
    own: CratePath,
    /// The module being read, within the file.
    module: CratePath,
    /// The modules that the file declares.
    children: BTreeSet<String>,
    /// Whether tests are read too.
    tests: bool,
    uses: Uses,
}

impl Reader {
    /// The path from the root of the crate, if `parts` lead into it.
    fn absolute(&self, parts: &[String]) -> Option<CratePath> {
        let (mut from, mut rest) = match parts.first()?.as_str() {
            "crate" => (Vec::new(), &parts[1..]),
            "self" | "super" => (self.module.clone(), parts),
            _ => return None,
        };
        while let [first, others @ ..] = rest {
            match first.as_str() {
                "super" => drop(from.pop()),
                "self" => {}
                _ => break,
            }
            rest = others;
        }
        from.extend_from_slice(rest);
        Some(from)
    }

    fn add(&mut self, parts: &[String]) {
        self.uses.paths.extend(self.absolute(parts));
    }

    fn pass_on(&mut self, name: &syn::Ident, parts: &[String]) {
        let child = parts.first().is_some_and(|first| self.children.contains(first));
        let path = if child { Some([&self.own[..], parts].concat()) } else { self.absolute(parts) };
        if let Some(path) = path.filter(|_| self.module == self.own) {
            self.uses.passed_on.insert(name.to_string(), path);
        }
    }

    fn add_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.add_leaf(&name.ident, &with(&name.ident)),
            syn::UseTree::Rename(renamed) => self.add_leaf(&renamed.rename, &with(&renamed.ident)),
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_tree(before, tree));
            }
        }
    }

    fn add_leaf(&mut self, name: &syn::Ident, parts: &[String]) {
        self.add(parts);
        self.pass_on(name, parts);
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_use(&mut self, used: &'ast syn::ItemUse) {
        self.add_tree(&[], &used.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.add(&parts);
        visit::visit_path(self, path);
    }

    /// An item's visibility is no use of a module.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident == "tests" && !self.tests {
            return;
        }
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    /// Expressions in a macro call, as in `format!` and `assert!`.
    fn visit_macro(&mut self, used: &'ast syn::Macro) {
        let list = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(expressions) = used.parse_body_with(list) {
            expressions.iter().for_each(|expression| self.visit_expr(expression));
        }
    }
}
