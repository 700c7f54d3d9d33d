//! The dependency picture of ARCHITECTURE.md as data, compared with cargo's view.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::rust_source::{RustFile, names};
use crate::{entries_apart, method_circles, module_circles, module_layers};
use goodput_tools::shell::{capture, cargo, root};

/// What one crate of the workspace may do.
struct Layer {
    /// The package.
    name: &'static str,
    /// The packages of this workspace it may depend on.
    may_use: &'static [&'static str],
    /// Whether it does no I/O and reads no clock (ARCHITECTURE.md, invariant 1).
    pure: bool,
    /// Whether it may hold unsafe code (invariant 11).
    may_be_unsafe: bool,
}

const fn layer(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { name, may_use, pure: false, may_be_unsafe: false }
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { pure: true, ..layer(name, may_use) }
}

const fn near_kernel(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { may_be_unsafe: true, ..layer(name, may_use) }
}

const TESTING: &str = "goodput-testing";
const TOOLS: &str = "goodput-tools";
const MODEL: &str = "goodput-model";
const CEILING: &str = "goodput-ceiling";
const FRAMING: &str = "goodput-framing";
const FILES: &str = "goodput-files";
const NETLINK: &str = "goodput-netlink";
const WIRE: &str = "goodput-wire";
const DIAGNOSE: &str = "goodput-diagnose";
const EXPERIMENT: &str = "goodput-experiment";
const SHAPING: &str = "goodput-shaping";
const STORE: &str = "goodput-store";
const MOVER: &str = "goodput-mover";
const KERNEL: &str = "goodput-kernel";
const SETTINGS: &str = "goodput-settings";
const REMOTE: &str = "goodput-remote";
const RELAY: &str = "goodput-relay";
const LAB: &str = "goodput-lab";
const SANDBOX: &str = "goodput-sandbox";
const ENGINE: &str = "goodput-engine";
const COMPAT: &str = "goodput-compat";
const CAPTURE: &str = "goodput-capture";
const CHARTS: &str = "goodput-charts";
const WATCH: &str = "goodput-watch";
const FLEET: &str = "goodput-fleet";
const BUS: &str = "goodput-bus";
const WEB: &str = "goodput-web";

/// From the bottom up. The tests of a crate may use all crates before it.
const LAYERS: &[Layer] = &[
    // For tests only: no part of the program uses it.
    layer(TESTING, &[]),
    pure(MODEL, &[]),
    near_kernel(NETLINK, &[]),
    pure(FRAMING, &[MODEL]),
    layer(FILES, &[]),
    pure(WIRE, &[MODEL, FRAMING]),
    pure(CEILING, &[MODEL]),
    pure(DIAGNOSE, &[MODEL, CEILING]),
    pure(EXPERIMENT, &[MODEL]),
    pure(SHAPING, &[MODEL, CEILING]),
    pure(CHARTS, &[MODEL]),
    pure(WATCH, &[MODEL]),
    pure(FLEET, &[MODEL]),
    layer(BUS, &[MODEL]),
    layer(STORE, &[MODEL]),
    // What it shows and starts besides the history is handed to it.
    layer(WEB, &[MODEL, CHARTS, FLEET, STORE]),
    near_kernel(MOVER, &[MODEL, FRAMING, NETLINK]),
    near_kernel(KERNEL, &[MODEL, NETLINK]),
    near_kernel(CAPTURE, &[]),
    near_kernel(SETTINGS, &[MODEL, NETLINK]),
    // Its rows are settings of the registry.
    layer(REMOTE, &[MODEL, SETTINGS]),
    near_kernel(RELAY, &[]),
    near_kernel(LAB, &[MODEL, NETLINK, RELAY]),
    // It drops privileges through libraries; it has no unsafe code of its own.
    layer(SANDBOX, &[]),
    layer(
        ENGINE,
        &[
            MODEL, FRAMING, FILES, WIRE, CEILING, DIAGNOSE, EXPERIMENT, SHAPING, MOVER, KERNEL,
            CAPTURE, SETTINGS, REMOTE,
        ],
    ),
    // Everything that reads foreign input, for the fuzzer; not part of the program.
    layer(
        "goodput-fuzzed",
        &[
            MODEL, NETLINK, FRAMING, WIRE, FILES, SHAPING, STORE, MOVER, KERNEL, CAPTURE, SETTINGS,
            REMOTE, LAB, FLEET,
        ],
    ),
    layer(COMPAT, &[MODEL, ENGINE]),
    // The program reads every registry, for help, lists and documents.
    layer(
        "goodput",
        &[
            MODEL, WIRE, FILES, CEILING, DIAGNOSE, EXPERIMENT, SHAPING, STORE, MOVER, KERNEL,
            SETTINGS, REMOTE, LAB, SANDBOX, ENGINE, COMPAT, CHARTS, WATCH, FLEET, BUS, WEB,
        ],
    ),
    // The developers' programs, which share how they start others. `xtask` counts what tests leave behind, and starts the
    // other two. The bench compares its measurements with what one CPU copies.
    layer(TOOLS, &[]),
    layer("xtask", &[TESTING, TOOLS]),
    layer("goodput-bench", &[MODEL, MOVER, TOOLS]),
    // It judges kept trains of datagrams again.
    layer("goodput-campaigns", &[MODEL, SHAPING, TOOLS]),
];

/// Libraries whose purpose is I/O; not for pure crates.
const IO_LIBRARIES: &[&str] = &[
    "async-nats",
    "async-std",
    "libc",
    "mio",
    "netlink-sys",
    "nix",
    "polling",
    "rusqlite",
    "rustix",
    "smol",
    "socket2",
    "tempfile",
    "tokio",
];

/// A package in cargo's view.
struct Package {
    name: String,
    /// Normal, build and development dependencies.
    uses: Vec<Dependency>,
    /// Root files of its library and programs, relative to the root of the repository.
    roots: Vec<PathBuf>,
    /// The folder of its Cargo.toml.
    folder: PathBuf,
}

struct Dependency {
    name: String,
    for_tests: bool,
}

/// Every difference between the pictures and the workspace.
pub fn problems() -> Result<Vec<String>> {
    let metadata = capture(&mut cargo(["metadata", "--no-deps", "--format-version=1"]))?;
    let packages = packages(&serde_json::from_str(&metadata)?)?;
    let mut problems = compare(&packages, LAYERS);
    for (package, layer) in with_layer(&packages, LAYERS) {
        problems.extend(source_problems(package, layer)?);
    }
    problems.extend(entries_apart::problems()?);
    problems.extend(module_layers::problems()?);
    problems.extend(module_circles::problems()?);
    problems.extend(method_circles::problems()?);
    Ok(problems)
}

fn compare(packages: &[Package], layers: &[Layer]) -> Vec<String> {
    let known = |name: &str| layers.iter().any(|layer| layer.name == name);
    let exists = |name: &str| packages.iter().any(|package| package.name == name);
    let unknown = packages.iter().filter(|p| !known(&p.name));
    let gone = layers.iter().filter(|layer| !exists(layer.name));
    let here = "xtask/src/layering.rs";
    let mut problems: Vec<_> =
        unknown.map(|p| format!("{} has no layer in {here}", p.name)).collect();
    problems.extend(gone.map(|l| format!("{} has a layer in {here} but is gone", l.name)));
    for (package, layer) in with_layer(packages, layers) {
        problems.extend(package.uses.iter().filter_map(|used| {
            let below = if used.for_tests {
                layers.iter().take_while(|l| l.name != layer.name).any(|l| l.name == used.name)
            } else {
                layer.may_use.contains(&used.name.as_str())
            };
            let wrong_way = exists(&used.name) && !below;
            let io = layer.pure && !used.for_tests && IO_LIBRARIES.contains(&used.name.as_str());
            let why = if wrong_way { "is not below it" } else { "does I/O, which it may not" };
            (wrong_way || io).then(|| format!("{} uses {}, which {why}", package.name, used.name))
        }));
    }
    problems
}

/// What the compiler would not report: whether a crate turns the compiler's checks on.
fn source_problems(package: &Package, layer: &Layer) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in package.roots.iter().filter(|_| !layer.may_be_unsafe) {
        if !forbids_unsafe(&RustFile::read(path)?) {
            problems.push(format!("{} lacks `#![forbid(unsafe_code)]`", path.display()));
        }
    }
    if layer.pure && !bans_io(&package.folder) {
        problems.push(format!("{} needs the clippy.toml that bans I/O", package.name));
    }
    Ok(problems)
}

fn forbids_unsafe(file: &RustFile) -> bool {
    file.tree.attrs.iter().any(|attribute| names(attribute, "forbid", "unsafe_code"))
}

/// All pure crates have the same ban as `model`.
fn bans_io(folder: &std::path::Path) -> bool {
    let ban = std::fs::read(root().join("crates/model/clippy.toml"));
    let own = std::fs::read(folder.join("clippy.toml"));
    matches!((ban, own), (Ok(ban), Ok(own)) if ban == own)
}

fn with_layer<'a>(
    packages: &'a [Package],
    layers: &'a [Layer],
) -> impl Iterator<Item = (&'a Package, &'a Layer)> {
    packages.iter().filter_map(|package| {
        let layer = layers.iter().find(|layer| layer.name == package.name)?;
        Some((package, layer))
    })
}

fn packages(metadata: &Value) -> Result<Vec<Package>> {
    list(metadata, "packages")?.iter().map(package).collect()
}

fn package(value: &Value) -> Result<Package> {
    let uses = list(value, "dependencies")?
        .iter()
        .map(|used| Ok(Dependency { name: text(used, "name")?, for_tests: used["kind"] == "dev" }));
    let is_root = |kinds: &[Value]| kinds.iter().any(|kind| kind == "lib" || kind == "bin");
    let mut roots = Vec::new();
    for target in list(value, "targets")? {
        if is_root(list(target, "kind")?) {
            let path = PathBuf::from(text(target, "src_path")?);
            roots.push(path.strip_prefix(root()).map(Into::into).unwrap_or(path));
        }
    }
    let manifest = PathBuf::from(text(value, "manifest_path")?);
    Ok(Package {
        name: text(value, "name")?,
        uses: uses.collect::<Result<_>>()?,
        roots,
        folder: manifest.parent().context("a manifest lies in a folder")?.into(),
    })
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    let list = value[key].as_array();
    list.map(Vec::as_slice).with_context(|| format!("cargo metadata has no list `{key}`"))
}

fn text(value: &Value, key: &str) -> Result<String> {
    let text = value[key].as_str();
    text.map(Into::into).with_context(|| format!("cargo metadata has no text `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn using(name: &str, uses: &[&str]) -> Package {
        let uses = uses.iter().map(|name| Dependency { name: (*name).into(), for_tests: false });
        let (roots, folder) = (Vec::new(), PathBuf::new());
        Package { name: name.into(), uses: uses.collect(), roots, folder }
    }

    const TABLE: &[Layer] = &[pure("low", &[]), layer("high", &["low"])];

    fn check(packages: &[Package]) -> Vec<String> {
        compare(packages, TABLE)
    }

    #[test]
    fn one_way_is_fine() {
        let fine = [using("low", &["serde"]), using("high", &["low", "tokio"])];
        assert_eq!(check(&fine), Vec::<String>::new());
    }

    #[test]
    fn the_other_way_is_not() {
        let wrong = [using("low", &["high"]), using("high", &[])];
        assert_eq!(check(&wrong), ["low uses high, which is not below it"]);
    }

    #[test]
    fn tests_may_use_all_that_is_lower_and_nothing_higher() {
        let mut packages = [using("low", &[]), using("mid", &[]), using("high", &["mid"])];
        let table = [layer("low", &[]), layer("mid", &[]), layer("high", &["low"])];
        assert_eq!(compare(&packages, &table), ["high uses mid, which is not below it"]);
        packages[2].uses[0].for_tests = true;
        assert_eq!(compare(&packages, &table), Vec::<String>::new());
        packages[1].uses = vec![Dependency { name: "high".into(), for_tests: true }];
        assert_eq!(compare(&packages, &table), ["mid uses high, which is not below it"]);
    }

    #[test]
    fn a_pure_crate_has_no_io_library_but_its_tests_may() {
        let mut packages = [using("low", &["tokio"]), using("high", &[])];
        assert_eq!(check(&packages), ["low uses tokio, which does I/O, which it may not"]);
        packages[0].uses[0].for_tests = true;
        assert_eq!(check(&packages), Vec::<String>::new());
    }

    #[test]
    fn table_and_workspace_name_the_same_crates() {
        let found = check(&[using("low", &[]), using("new", &[])]);
        assert!(found[0].starts_with("new has no layer"), "{found:?}");
        assert!(found[1].starts_with("high has a layer"), "{found:?}");
    }

    #[test]
    fn forbidding_unsafe_is_seen() {
        let forbids = |text: &str| forbids_unsafe(&RustFile::parse("x.rs", text.into()).unwrap());
        assert!(forbids("//! x\n#![forbid(unsafe_code)]\n"));
        assert!(!forbids("//! x\n#![deny(unsafe_code)]\n"));
    }

    #[test]
    fn metadata_is_read() {
        let metadata = serde_json::json!({"packages": [{
            "name": "low",
            "manifest_path": "/r/low/Cargo.toml",
            "dependencies": [{"name": "a", "kind": null}, {"name": "b", "kind": "dev"}],
            "targets": [
                {"kind": ["lib"], "src_path": "/r/low/src/lib.rs"},
                {"kind": ["test"], "src_path": "/r/low/tests/t.rs"},
            ],
        }]});
        let package = packages(&metadata).unwrap().remove(0);
        assert_eq!(package.roots, [PathBuf::from("/r/low/src/lib.rs")]);
        assert_eq!(package.uses.iter().map(|d| d.for_tests).collect::<Vec<_>>(), [false, true]);
        assert!(packages(&serde_json::json!({})).is_err());
    }
}
