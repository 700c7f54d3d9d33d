//! The programs that goodput stands in for, by their names and options. Each program has its own file,
//! with a table that maps each option.

pub mod arguments;
mod document;
pub mod files;
mod iperf;
mod iperf3;
mod names;
mod nuttcp;
pub mod option;
pub mod parsed;
pub mod program;
mod ttcp;
mod values;

use std::path::Path;

pub use document::document;
pub use names::install;
pub use program::Program;

/// This list is authoritative: the names that goodput answers to, `goodput as --list`,
/// `docs/old-names.md` and the tests are made from it.
pub const ALL: &[&Program] = &[&iperf3::PROGRAM, &iperf::PROGRAM, &nuttcp::PROGRAM, &ttcp::PROGRAM];

/// The program with this name.
pub fn find(name: &str) -> Result<&'static Program, String> {
    ALL.iter().copied().find(|program| program.name == name).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|program| program.name).collect();
        format!(
            "can't act as {name:?}: goodput doesn't know this program; write {}",
            known.join(", ")
        )
    })
}

/// The program that goodput was called as, by the file name.
pub fn called_as(argument: &str) -> Option<&'static Program> {
    find(Path::new(argument).file_name()?.to_str()?).ok()
}
