//! The stage of a run: namespaces, ports, and how the programs are started in them.

use std::path::Path;
use std::process::Command;

use super::net::Net;
use super::place::Place;
use super::programs::{GOODPUT, Program};

/// Where a run takes place.
pub struct Stage<'a> {
    /// The namespaces.
    pub net: &'a Net,
    /// The place.
    pub place: Place,
    /// A port that no recent run has used, and the next 100.
    pub port: u16,
    /// How long payload is sent.
    pub seconds: u32,
    /// The goodput under test.
    pub goodput: &'a Path,
    /// The peer's program, if it was given.
    pub peer: Option<&'a Path>,
}

impl Stage<'_> {
    /// The command of a server.
    pub fn server(&self, program: &Program) -> Command {
        let client = self.file(program);
        let server = program.server_file.map(|server| Path::new(&client).with_file_name(server));
        let server = server.map(|server| server.to_string_lossy().into_owned());
        self.net.at_server(self.place, &server.unwrap_or(client))
    }

    /// The command of a client.
    pub fn client(&self, program: &Program) -> Command {
        Net::at_client(self.place, &self.file(program))
    }

    fn file(&self, program: &Program) -> String {
        if program.name == GOODPUT.name {
            self.goodput.to_string_lossy().into_owned()
        } else {
            self.peer.map_or(program.name.into(), |file| file.to_string_lossy().into_owned())
        }
    }
}
