//! The programs that goodput stands in for, by their names and options. One file a program: a table of
//! what each option becomes.

pub mod arguments;
mod document;
pub mod files;
mod iperf;
mod iperf3;
mod names;
mod nuttcp;
pub mod table;
mod ttcp;
mod values;

use std::path::Path;

pub use document::document;
pub use names::install;
pub use table::Shim;

/// The list is the truth: the names that goodput answers to, `goodput as --list`, `docs/old-names.md`
/// and the tests are made from it.
pub const ALL: &[&Shim] = &[&iperf3::SHIM, &iperf::SHIM, &nuttcp::SHIM, &ttcp::SHIM];

/// The program of this name.
pub fn find(name: &str) -> Result<&'static Shim, String> {
    ALL.iter().copied().find(|shim| shim.name == name).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|shim| shim.name).collect();
        format!("goodput can't replace {name:?}; it can replace {}", known.join(", "))
    })
}

/// The program that goodput was called as, by the name of its file.
pub fn called_as(argument: &str) -> Option<&'static Shim> {
    find(Path::new(argument).file_name()?.to_str()?).ok()
}
