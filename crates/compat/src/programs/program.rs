//! A program that goodput replaces: a table of its options, and what hangs together among them.

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
    /// The version whose options and output these are.
    pub version: &'static str,
    /// How it is called, client and server.
    pub usage: [&'static str; 2],
    /// Whether a host stands among the options without one in front.
    pub takes_host: bool,
    /// Every option.
    pub options: &'static [Opt],
    /// Whether the options ask for a client or for a server, or why for neither.
    pub mode: fn(&ParsedArguments) -> Result<Mode, Refusal>,
    /// What those options become that hang together; `arguments` has what the table gives of itself.
    pub client: fn(&ParsedArguments, arguments: Vec<String>) -> Result<Vec<String>, Refusal>,
    /// The same of a server.
    pub server: fn(&ParsedArguments, arguments: Vec<String>) -> Result<Vec<String>, Refusal>,
    /// Whether a server leaves the terminal.
    pub background: fn(&ParsedArguments) -> bool,
    /// The files it writes besides.
    pub files: fn(&ParsedArguments) -> Files,
    /// What a client's second run has besides, if the options ask for two.
    pub again: fn(&ParsedArguments) -> Option<&'static str>,
}
