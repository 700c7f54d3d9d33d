//! Objects whose methods in several files call each other in a circle: such an object is one that can only be read as a
//! whole, but is spread over files. It belongs in one file, or it consists of smaller objects. Methods that only build upon
//! those of another file are no circle. Nor is a trait's implementation, on which the object itself does not build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;
use syn::visit::{self, Visit};

use crate::module_circles::crates;
use crate::module_uses::{CratePath, Uses, module_of};
use crate::rust_source::{RustFile, files};

/// What the methods of one type in one file are called, and which methods of the same type they call.
#[derive(Debug, Default)]
struct Methods {
    defined: BTreeSet<String>,
    called: BTreeSet<String>,
}

/// The methods of each type, by file. A type is known by the module that has it and by its name.
type Types = BTreeMap<CratePath, BTreeMap<PathBuf, Methods>>;

/// One line per circle.
pub fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for sources in crates()? {
        let read = |path: &PathBuf| Ok((module_of(&sources, path), RustFile::read(path)?));
        let all: Vec<_> = files(&sources, "rs")?.iter().map(read).collect::<Result<_>>()?;
        problems.extend(circles(&sources, &types_of(&all)));
    }
    Ok(problems)
}

fn types_of(files: &[(CratePath, RustFile)]) -> Types {
    let mut types = Types::new();
    for (module, file) in files {
        let imported = Uses::outside_tests(file, module.clone()).passed_on;
        let mut reader = Reader { methods: BTreeMap::new(), of: None };
        reader.visit_file(&file.tree);
        for (name, methods) in reader.methods {
            let own = [&module[..], std::slice::from_ref(&name)].concat();
            let known = imported.get(&name).cloned().unwrap_or(own);
            types.entry(known).or_default().insert(file.path.clone(), methods);
        }
    }
    types
}

fn circles(sources: &Path, types: &Types) -> Vec<String> {
    let line = |(name, by_file): (&CratePath, &BTreeMap<PathBuf, Methods>)| {
        let circle: Vec<_> = by_file.keys().filter(|file| comes_back(file, by_file)).collect();
        let names = circle.iter().map(|file| file.strip_prefix(sources).unwrap_or(file));
        let names: Vec<_> = names.map(|file| file.display().to_string()).collect();
        let (files, name) = (names.join(", "), name.last()?);
        (!circle.is_empty()).then(|| {
            format!(
                "{}: methods of {name} call each other in a circle of {files}",
                sources.display()
            )
        })
    };
    types.iter().filter_map(line).collect()
}

/// Whether calls of the methods in `file` lead to other files and back.
fn comes_back(file: &Path, by_file: &BTreeMap<PathBuf, Methods>) -> bool {
    let (mut seen, mut left) = (BTreeSet::new(), vec![file]);
    while let Some(from) = left.pop() {
        let called = &by_file[from].called;
        let used = |(other, methods): &(&PathBuf, &Methods)| {
            *other != from && !methods.defined.is_disjoint(called)
        };
        let next = by_file.iter().filter(used).map(|(other, _)| other.as_path());
        left.extend(next.filter(|other| seen.insert(*other)));
    }
    seen.contains(file)
}

/// Reads the inherent methods of a file outside its tests.
struct Reader {
    methods: BTreeMap<String, Methods>,
    /// The type whose methods are being read.
    of: Option<String>,
}

impl Reader {
    fn call(&mut self, name: &syn::Ident) {
        if let Some(of) = &self.of {
            self.methods.entry(of.clone()).or_default().called.insert(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let (syn::Type::Path(path), None) = (&*item.self_ty, &item.trait_) else { return };
        let Some(name) = path.path.segments.last() else { return };
        let name = name.ident.to_string();
        let methods = self.methods.entry(name.clone()).or_default();
        methods.defined.extend(item.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
            _ => None,
        }));
        self.of = Some(name);
        visit::visit_item_impl(self, item);
        self.of = None;
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident("self")) {
            self.call(&call.method);
        }
        visit::visit_expr_method_call(self, call);
    }

    /// `Self::function`.
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let parts: Vec<_> = path.path.segments.iter().map(|part| &part.ident).collect();
        if let [first, name] = parts[..]
            && first == "Self"
        {
            self.call(name);
        }
    }

    /// Expressions in a macro call, as in `format!` and `matches!`.
    fn visit_macro(&mut self, used: &'ast syn::Macro) {
        let list = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(expressions) = used.parse_body_with(list) {
            expressions.iter().for_each(|expression| self.visit_expr(expression));
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let read = |(name, text): &(&str, &str)| {
            let file = RustFile::parse(format!("c/src/{name}.rs"), (*text).into()).unwrap();
            (module_of(Path::new("c/src"), &file.path), file)
        };
        circles(Path::new("c/src"), &types_of(&files.iter().map(read).collect::<Vec<_>>()))
    }

    const TYPE: (&str, &str) =
        ("a/mod", "mod b; struct A; impl A { fn of(&self) { self.further() } fn own(&self) {} }");

    #[test]
    fn methods_of_two_files_that_call_each_other_are_found() {
        let other = ("a/b", "use super::A; impl A { fn further(&self) { self.own() } }");
        let circle = "c/src: methods of A call each other in a circle of a/b.rs, a/mod.rs";
        assert_eq!(found(&[TYPE, other]), [circle]);
        let by_name = ("a/b", "use super::A; impl A { fn further(&self) { Self::own(self) } }");
        assert_eq!(found(&[TYPE, by_name]), [circle]);
    }

    #[test]
    fn methods_that_build_upon_others_and_another_type_of_the_name_are_no_circle() {
        let one_way = ("a/b", "use super::A; impl A { fn further(&self) {} }");
        assert_eq!(found(&[TYPE, one_way]), Vec::<String>::new());
        let other = ("a/b", "struct A; impl A { fn further(&self) { self.own() } }");
        assert_eq!(found(&[TYPE, other]), Vec::<String>::new());
        let in_tests =
            ("a/b", "mod tests { use super::A; impl A { fn further(&self) { self.own() } } }");
        assert_eq!(found(&[TYPE, in_tests]), Vec::<String>::new());
    }
}
