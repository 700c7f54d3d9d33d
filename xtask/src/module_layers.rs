//! The pictures of ARCHITECTURE.md inside a crate: which of its modules may import which, as data,
//! compared with every path in the sources.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::module_uses::{Uses, module_of};
use crate::rust_source::{RustFile, files};

/// The modules of a folder, layered.
struct LayeredFolder {
    /// The folder, whose `mod.rs` or `lib.rs` may use all of them.
    path: &'static str,
    /// The crate's source folder.
    sources: &'static str,
    /// From the bottom up. Each layer uses the layers below it.
    layers: &'static [Layer],
}

/// Modules at the same height.
struct Layer {
    modules: &'static [&'static str],
    /// Whether they may use what the folder's own `mod.rs` declares.
    uses_folder: bool,
}

const fn layer(modules: &'static [&'static str]) -> Layer {
    Layer { modules, uses_folder: false }
}

const fn layer_of_folder(modules: &'static [&'static str]) -> Layer {
    Layer { modules, uses_folder: true }
}

const ENGINE: &str = "crates/engine/src";

const LAYERED_FOLDERS: &[LayeredFolder] = &[
    LayeredFolder {
        path: ENGINE,
        sources: ENGINE,
        layers: &[
            layer(&["clock", "error", "events"]),
            layer(&["interrupt", "threads"]),
            layer(&["control", "run"]),
            layer(&["result"]),
            layer(&["near"]),
            layer(&["serve", "verbs"]),
        ],
    },
    LayeredFolder {
        path: "crates/engine/src/serve",
        sources: ENGINE,
        layers: &[
            layer(&["address", "counts", "shown_memory"]),
            layer(&["admit"]),
            layer_of_folder(&["session"]),
            layer_of_folder(&["listen"]),
        ],
    },
];

/// Every path that points upwards or sideways, and every module without a layer.
pub fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for folder in LAYERED_FOLDERS {
        let paths = files(Path::new(folder.path), "rs")?;
        let files: Vec<_> = paths.iter().map(|path| RustFile::read(path)).collect::<Result<_>>()?;
        problems.extend(folder.problems(&files));
    }
    Ok(problems)
}

impl LayeredFolder {
    fn problems(&self, files: &[RustFile]) -> Vec<String> {
        let mut problems = self.differences(files);
        for file in files {
            let module = self.module_of(&file.path);
            if let Some(submodule) = self.submodule(&module) {
                let wrong = Uses::with_tests(file, module.clone()).paths.into_iter();
                let wrong = wrong.filter(|used| !self.may_use(&submodule, used));
                let here = file.path.display();
                problems.extend(wrong.map(|used| {
                    format!("{here} uses {}, which is not below {submodule}", used.join("::"))
                }));
            }
        }
        problems
    }

    /// What is only in the list or only in the folder.
    fn differences(&self, files: &[RustFile]) -> Vec<String> {
        let listed = self.layers.iter().flat_map(|layer| layer.modules);
        let listed: BTreeSet<_> = listed.map(|name| (*name).to_owned()).collect();
        let there: BTreeSet<_> =
            files.iter().filter_map(|file| self.submodule(&self.module_of(&file.path))).collect();
        let unlisted = there.difference(&listed).map(|name| (name, "has no layer"));
        let gone = listed.difference(&there).map(|name| (name, "has a layer but is gone"));
        let problem =
            |(name, what)| format!("{}: {name} {what} in xtask/src/module_layers.rs", self.path);
        unlisted.chain(gone).map(problem).collect()
    }

    /// The path of a file's module within the crate.
    fn module_of(&self, file: &Path) -> Vec<String> {
        module_of(Path::new(self.sources), file)
    }

    /// The first part of `path` inside this folder, if the path leads into it.
    fn submodule(&self, path: &[String]) -> Option<String> {
        let folder = self.module_of(Path::new(self.path));
        path.strip_prefix(folder.as_slice())?.first().cloned()
    }

    fn may_use(&self, submodule: &str, used: &[String]) -> bool {
        let Some(other) = self.submodule(used) else { return true };
        let height = |name: &str| self.layers.iter().position(|l| l.modules.contains(&name));
        let (Some(own), other_height) = (height(submodule), height(&other)) else { return true };
        // Anything but a module is an item of the folder's own file, above all modules.
        match other_height {
            Some(below) if below < own => true,
            Some(same) if same == own => submodule == other,
            Some(_) => false,
            None => self.layers[own].uses_folder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTER: LayeredFolder = LayeredFolder {
        path: "c/src",
        sources: "c/src",
        layers: &[layer(&["low", "beside"]), layer(&["high"])],
    };
    const INNER: LayeredFolder = LayeredFolder {
        path: "c/src/high",
        sources: "c/src",
        layers: &[layer(&["one"]), layer_of_folder(&["two"]), layer_of_folder(&["three"])],
    };

    fn check(folder: &LayeredFolder, file: &str, text: &str) -> Vec<String> {
        let mut all: Vec<_> =
            ["lib", "low/mod", "beside", "high/mod", "high/one", "high/two", "high/three"]
                .map(|name| RustFile::parse(format!("c/src/{name}.rs"), String::new()).unwrap())
                .into();
        let below = |file: &RustFile| file.path.starts_with(folder.path);
        all.push(RustFile::parse(format!("c/src/{file}"), text.into()).unwrap());
        all.retain(below);
        folder.problems(&all)
    }

    #[test]
    fn down_and_within_is_fine() {
        let fine = |file, text| assert_eq!(check(&OUTER, file, text), Vec::<String>::new());
        fine("high/four.rs", "use crate::{low::A, beside, high::one}; use super::one::B;");
        fine("low/x.rs", "use super::y; mod tests { use super::super::*; use other::high; }");
        fine("low/x.rs", "pub(in crate::high) struct S;");
        fine("lib.rs", "use crate::high::one; use self::low::A;");
    }

    #[test]
    fn up_and_sideways_is_not() {
        let used = |text| check(&OUTER, "low/x.rs", text);
        let wrong = ["c/src/low/x.rs uses high::A, which is not below low"];
        assert_eq!(used("use crate::high::A;"), wrong);
        assert_eq!(used("use crate::{low::B, high::{A as C}};"), wrong);
        assert_eq!(used("use super::super::high::A;"), wrong);
        assert_eq!(used("mod tests { use super::super::super::high::A; }"), wrong);
        assert_eq!(used("fn f() -> crate::high::A { todo() }"), wrong);
        assert_eq!(used("fn f() { g!(\"{}\", 1 + crate::high::A) }"), wrong);
        assert_eq!(used("use crate::high::*;").len(), 1);
        assert_eq!(used("use crate::beside::A;").len(), 1);
        assert_eq!(used("use crate::Item;").len(), 1, "an item of lib.rs");
    }

    #[test]
    fn some_layers_use_what_their_folder_declares() {
        let used = |file, text| check(&INNER, file, text).len();
        assert_eq!(used("high/three.rs", "use crate::high::{two, one, Item}; use crate::low;"), 0);
        assert_eq!(used("high/two.rs", "use super::three;"), 1);
        assert_eq!(used("high/one.rs", "use super::three;"), 1);
        assert_eq!(used("high/one.rs", "use crate::high::Item;"), 1);
    }

    #[test]
    fn list_and_folder_name_the_same_modules() {
        let found = check(&OUTER, "new.rs", "");
        assert!(found[0].contains("new has no layer"), "{found:?}");
        let found = OUTER.problems(&[]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("beside has a layer but is gone"), "{found:?}");
    }
}
