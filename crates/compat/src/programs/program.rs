//! A program that goodput replaces: a table of its options, and the dependencies among them.

use super::files::Files;
use super::option::{Mode, Opt, Refusal};
use super::parsed::ParsedArguments;

/// A program that goodput stands in for.
#[derive(Debug)]
pub struct Program {
    /// The name that it is called by.
    pub name: &'static str,
    /// Id of the protocol that it speaks.
    pub protocol: &'static str,
    /// The version whose options and output goodput reproduces.
    pub version: &'static str,
    /// Usage, client and server.
    pub usage: [&'static str; 2],
    /// Whether the host stands among the options as an operand.
    pub takes_host: bool,
    /// Every option.
    pub options: &'static [Opt],
    /// Whether the options ask for a client or a server, or why for neither.
    pub mode: fn(&ParsedArguments) -> Result<Mode, Refusal>,
    /// Converts the options that depend on each other; `arguments` has what the table alone gives.
    pub client: fn(&ParsedArguments, arguments: Vec<String>) -> Result<Vec<String>, Refusal>,
    /// The same for a server.
    pub server: fn(&ParsedArguments, arguments: Vec<String>) -> Result<Vec<String>, Refusal>,
    /// Whether a server detaches from the terminal.
    pub background: fn(&ParsedArguments) -> bool,
    /// The files that it also writes.
    pub files: fn(&ParsedArguments) -> Files,
    /// Additional argument of a client's second run, if the options ask for two runs.
    pub again: fn(&ParsedArguments) -> Option<&'static str>,
}
