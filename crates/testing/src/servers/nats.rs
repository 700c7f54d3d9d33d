//! Debian's nats-server, with JetStream.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use super::{Running, free_port, has, start};

/// A running nats-server on a port of its own.
pub struct Nats {
    server: Option<Running>,
    address: SocketAddr,
    storage: String,
}

/// Starts one whose storage is in `folder`. None, and the test is skipped, if it is not installed.
pub fn nats(folder: &Path) -> Option<Nats> {
    if !has("nats-server") {
        return None;
    }
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let storage = folder.join("jetstream").display().to_string();
    let mut nats = Nats { server: None, address, storage };
    nats.start();
    Some(nats)
}

impl Nats {
    /// What clients connect to.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Kills it. What it has stored stays.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Starts it again, at the same address.
    pub fn start(&mut self) {
        let port = self.address.port().to_string();
        let arguments = ["-js", "-sd", &self.storage, "-a", "127.0.0.1", "-p", &port];
        self.server = Some(start("nats-server", &arguments, self.address));
    }

    /// Publishes a message as anyone could, in the text protocol of NATS (docs.nats.io, "NATS Protocol").
    pub fn publish(&self, subject: &str, message: &str) {
        let mut client = TcpStream::connect(self.address).expect("it listens");
        let length = message.len();
        let text = format!(
            "CONNECT {{\"verbose\":false}}\r\nPUB {subject} {length}\r\n{message}\r\nPING\r\n"
        );
        client.write_all(text.as_bytes()).expect("it reads");
        let mut said = String::new();
        // It answers the ping once it has the message.
        while !said.contains("PONG") {
            let mut some = [0; 512];
            let read = std::io::Read::read(&mut client, &mut some).expect("it answers");
            assert!(read > 0, "{said}");
            said += &String::from_utf8_lossy(&some[..read]);
        }
    }
}
